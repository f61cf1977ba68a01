"""What is refused before it is read: bodies that are too large or not JSON, and requests for other hosts."""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orthobandit.service.http.problems import problem

BODY_LIMIT = 8 * 2**20  # bytes
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]


class Limits:
    """Refuse what no route should see.

    Every request that changes something must say that it is JSON, also with an empty body: pages of other
    sites cannot make a browser send that, so that a server without tokens is safe from them.

    Parameters
    ----------
    app : ASGI application
    body_limit : int
        Bytes.
    hosts : collection of str, optional
        Names that the server goes by, without port; all by default. A page of another site that lets its
        own name point here is refused.
    """

    def __init__(
        self, app: ASGIApp, body_limit: int = BODY_LIMIT, hosts: Collection[str] | None = None
    ) -> None:
        self._app = app
        self._limit = body_limit
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or hand on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        headers = Headers(scope=scope)
        if self._hosts is not None and _host(headers) not in self._hosts:
            answer = problem("malformed", f"this server is called {', '.join(sorted(self._hosts))}")
            await answer(scope, receive, guarded)
        elif scope["method"] not in WITH_BODY:
            await self._app(scope, receive, guarded)
        elif _kind(headers) != "application/json" and not _is_form(scope, headers):
            answer = problem("not-json", "send JSON with the header `Content-Type: application/json`")
            await answer(scope, receive, guarded)
        else:
            await self._with_body(scope, receive, guarded, headers)

    async def _with_body(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        said = headers.get("content-length", "0")
        try:
            body = None if said.isdigit() and int(said) > self._limit else await self._read(receive)
        except ClientDisconnect:
            return  # half a request is none, and nobody waits for an answer
        if body is None:
            detail = f"the body has more than {self._limit} bytes; send fewer items in each request"
            await problem("too-large", detail)(scope, receive, send)
            return
        is_given = False

        async def again() -> Message:
            nonlocal is_given
            if is_given:
                return await receive()
            is_given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._app(scope, again, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the body, or None once it is too large."""
        parts = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self._limit:
                return None
            if not message.get("more_body", False):
                return b"".join(parts)


def _kind(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_form(scope: Scope, headers: Headers) -> bool:
    """Tell whether this is a form of the dashboard, which protects its forms itself."""
    return _kind(headers) in FORMS and scope["path"].startswith("/dashboard/")


def _host(headers: Headers) -> str:
    """Return the name of the host without its port; that of IPv6 is in brackets."""
    host = headers.get("host", "")
    return host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
