"""Answers with a tag of what they say, so that what has not changed need not be sent again."""

from hashlib import blake2b

from fastapi import Request
from fastapi.responses import Response

# Kept by whoever asked, and by nobody on the way; asked for again each time.
CACHING = "private, no-cache"


def tagged(request: Request, content: bytes, media_type: str = "application/json") -> Response:
    """Return the content with its ETag, or 304 if the caller has it."""
    tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": CACHING, "Vary": "Accept, Authorization"}
    if matches(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)


def matches(given: str | None, tag: str) -> bool:
    """Tell whether ``If-None-Match`` names the tag; weak tags match as well (RFC 9110, 13.1.2).

    Examples
    --------
    >>> matches('"a", W/"b"', '"b"'), matches("*", '"b"'), matches('"a"', '"b"'), matches(None, '"b"')
    (True, True, False, False)
    """
    if given is None:
        return False
    named = [one.strip().removeprefix("W/") for one in given.split(",")]
    return tag in named or named == ["*"]
