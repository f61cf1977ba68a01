"""Forms: what they hold, and that no page of another site has sent them.

Every form has a token, which is a keyed hash of a secret in one of the browser's own cookies: that of the
session, or one made for the purpose where there is no session. Another site can neither read the cookie nor,
as it is `SameSite=Strict`, make the browser send it. Where the browser says which site a form is from
(``Origin``, ``Sec-Fetch-Site``), it has to be this one as well.
"""

import hmac
from hashlib import blake2b
from secrets import token_urlsafe
from typing import Annotated

from fastapi import Depends, Request, Response
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException

from orthobandit.service.dashboard.viewer import SESSION_COOKIE
from orthobandit.service.http.problems import Problem

FORM_COOKIE = "ob_form"
FIELD = "form_token"
# characters of a secret
SHORTEST = 20
LONGEST = 200
MOST_FIELDS = 100
LARGEST_FIELD = 2 * 2**20  # bytes of one field


def secret_of(request: Request) -> str | None:
    """Return the secret that the browser has, if any."""
    for name in (SESSION_COOKIE, FORM_COOKIE):
        secret = request.cookies.get(name, "")
        if SHORTEST <= len(secret) <= LONGEST and secret.isascii():
            return secret
    return None


def form_token(secret: str) -> str:
    """Return the token of forms that a browser with this secret is sent."""
    return blake2b(secret.encode(), digest_size=24, person=b"ob form").hexdigest()


def new_secret() -> str:
    """Return a secret for a browser that has none."""
    return token_urlsafe(32)


def keep(response: Response, request: Request, name: str, secret: str, seconds: int | None = None) -> None:
    """Let the browser keep a secret, which scripts cannot read."""
    response.set_cookie(
        name,
        secret,
        max_age=seconds,
        path="/dashboard",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


async def filled(request: Request) -> dict[str, str]:
    """Return the fields of a form, files as text, once it is known to be from a page of this server."""
    _check_site(request)
    try:
        async with request.form(max_fields=MOST_FIELDS, max_files=2, max_part_size=LARGEST_FIELD) as form:
            fields = {name: await _text(name, value) for name, value in form.items()}
    except MultiPartException as error:
        raise Problem("malformed", f"the form cannot be read: {error.message}") from None
    secret = secret_of(request)
    given = fields.pop(FIELD, "")
    if secret is None or not hmac.compare_digest(form_token(secret).encode(), given.encode()):
        raise Problem("forbidden", "the form is too old, or not from this server; load its page again")
    return fields


def _check_site(request: Request) -> None:
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    is_foreign = origin is not None and origin.partition("://")[2] != host
    # "none": a form that was sent again by its reader, from no page at all.
    if is_foreign or request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Problem("forbidden", f"the form is not from a page of {host}; a proxy must pass `Host` on")


async def _text(name: str, value: UploadFile | str) -> str:
    if isinstance(value, str):
        return value.replace("\r\n", "\n")
    try:
        return (await value.read()).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise Problem(
            "invalid", f"the file of {name!r} is not text; save the table as CSV in UTF-8"
        ) from None


Filled = Annotated[dict[str, str], Depends(filled)]
