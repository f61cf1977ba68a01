"""Checks of a request before a route sees it: the size of its body, whether it is JSON, and its host."""

from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orthobandit.service.http.limits import LARGE_BODIES_BYTES, MAX_BODY_BYTES, SMALL_BODY_BYTES
from orthobandit.service.http.problems import problem

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
OWN_LIMIT = "orthobandit.body_limit"  # in a scope: the largest body of this request


class RequestChecks:
    """Refuse requests that no route should see.

    Every request that changes something must say that it is JSON, also with an empty body: pages of other
    sites cannot make a browser send that, so that a server without tokens is safe from them.

    Parameters
    ----------
    app : ASGI application
    body_limit : int
        Bytes.
    room : int
        Total bytes of all larger bodies that are being read or worked on at the same time; 503 beyond that.
    hosts : collection of str, optional
        Host names that requests may be addressed to, without port; any by default. This refuses pages of
        other sites whose own name points here (DNS rebinding).
    """

    def __init__(
        self,
        app: ASGIApp,
        body_limit: int = MAX_BODY_BYTES,
        hosts: Collection[str] | None = None,
        room: int = LARGE_BODIES_BYTES,
    ) -> None:
        self._app = app
        self._limit = body_limit
        self._hosts = hosts
        self._room = max(room, body_limit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request that breaks a limit, or hand it on to the application."""
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
        elif headers.get("content-encoding", "identity").lower() != "identity":
            answer = problem(
                "not-json", "the body is compressed; send it as it is, without the header `Content-Encoding`"
            )
            await answer(scope, receive, guarded)
        else:
            await self._hand_on_body(scope, receive, guarded, headers)

    async def _hand_on_body(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
        limit: int = min(self._limit, scope.get(OWN_LIMIT, self._limit))
        said = headers.get("content-length", "0")
        if said.isdigit() and int(said) > limit:
            await _too_large(limit)(scope, receive, send)
            return
        body = _Body()
        try:
            refusal = await self._read(body, limit, receive)
            if refusal is None:
                await self._app(scope, body.replay(receive), send)
            else:
                await refusal(scope, receive, send)
        except ClientDisconnect:
            return  # half a request is none, and nobody waits for an answer
        finally:
            self._room += body.taken

    async def _read(self, body: "_Body", limit: int, receive: Receive) -> JSONResponse | None:
        """Read a body; return the answer to one that is too large, or for which there is no room."""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            body.add(message.get("body", b""))
            if body.size > limit:
                return _too_large(limit)
            if body.size > SMALL_BODY_BYTES:
                more = body.size - body.taken
                if more > self._room:
                    return problem("busy", "too many large bodies come at once; try again after 1 s")
                self._room -= more
                body.taken = body.size
            if not message.get("more_body", False):
                return None


class _Body:
    """A body that is being read: its parts, and how much of the room for large ones it takes."""

    def __init__(self) -> None:
        self.size = 0
        self.taken = 0
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        self._parts.append(part)
        self.size += len(part)

    def replay(self, receive: Receive) -> Receive:
        """Return a `receive` that gives the whole body first."""
        whole = b"".join(self._parts) if len(self._parts) > 1 else self._parts[0]
        self._parts.clear()
        message: Message | None = {"type": "http.request", "body": whole, "more_body": False}

        async def again() -> Message:
            nonlocal message
            if message is None:
                return await receive()
            given = message
            message = None
            return given

        return again


def _too_large(limit: int) -> JSONResponse:
    return problem("too-large", f"the body has more than {limit} bytes; send fewer items in each request")


def _kind(headers: Headers) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_form(scope: Scope, headers: Headers) -> bool:
    """Tell whether this is a form of the dashboard, which has its own protection."""
    return _kind(headers) in FORMS and scope["path"].startswith("/dashboard/")


def _host(headers: Headers) -> str:
    """Return the name of the host without its port; that of IPv6 is in brackets."""
    host = headers.get("host", "")
    return host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
