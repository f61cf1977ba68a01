"""Every limit of the service, and the refusal of requests beyond some of them.

Limits of connections and headers are enforced by :mod:`orthobandit.service.http.connections`, rates by
:mod:`orthobandit.service.http.admission`. Those of bodies are enforced here: a request that is too large, not
JSON or for another host is refused before a route sees it.
"""

from collections.abc import Collection
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orthobandit.service.http.problems import problem

# Connections and headers. See also ConnectionLimits.
MAX_HEADERS = 200
MAX_PIPELINED = 16  # requests that a connection may send before the answer to the first
SPARE_CONNECTIONS = 256  # beyond the limit, that may wait for their refusal; more are just closed
BODY_BYTES_PER_SECOND = 2**16  # a body that comes faster is never too slow
# Rates.
RATE = 10_000.0  # requests a second for each token, or for each address without tokens
STRANGER_RATE = 100.0  # requests a second for each address that sends no known token
WRONG_TOKEN_RATE = 1 / 6  # wrong tokens a second that an address may send
BURST_SECONDS = 2.0  # seconds' worth of requests that may come at once
WRONG_TOKEN_BURST = 20  # wrong tokens that may come at once
MAX_REQUESTS = 1_000  # that are in progress at the same time
MAX_REMEMBERED_CALLERS = 10_000  # tokens and addresses that are remembered
# Bodies, in bytes.
MAX_BODY_BYTES = 8 * 2**20
STRANGER_BODY_BYTES = 2**14  # of a caller without a known token: a form with a token in it
SMALL_BODY_BYTES = 2**16  # a body that needs no room of its own
LARGE_BODIES_BYTES = 4 * MAX_BODY_BYTES  # larger bodies that are kept at the same time
# Values in bodies and paths.
MAX_ARMS = 10_000  # of an experiment
MAX_FEATURES = 1_000  # of an arm
MAX_ASKED = 10_000  # proposals of one request
MAX_TOLD = 100_000  # rewards of one request
MAX_ID = 2**63 - 1  # number of a proposal or a plan
MAX_NAME_CHARACTERS = 200  # of a unit, a label, a metric, a key

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
OWN_LIMIT = "orthobandit.body_limit"  # in a scope: the largest body of this request


class ConnectionLimits(NamedTuple):
    """Limits of connections.

    Parameters
    ----------
    most : int
        Connections at the same time.
    head_bytes : int
        Longest request line and headers together.
    head_seconds, body_seconds : float
        Longest time for headers, and for a body. A body has a second more for every 64 KiB that have come.
    stall_seconds : float
        Longest time in which a caller may read nothing of its answer.
    """

    most: int = 2_000
    head_bytes: int = 32 * 2**10
    head_seconds: float = 10.0
    body_seconds: float = 15.0
    stall_seconds: float = 15.0


class Limits:
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


class Pace:
    """A rate limit for each key: `rate` requests a second, and up to `burst` at once.

    One number is kept for each key: the time at which its whole burst is available again (a leaky bucket as
    in the generic cell rate algorithm). A key whose time has passed need not be remembered.

    Parameters
    ----------
    rate : float
        Requests a second.
    burst : float
        Requests at once.
    most : int
        Keys that are remembered.

    Examples
    --------
    >>> pace = Pace(rate=2.0, burst=3)
    >>> [pace.wait("ann", 0.0) for _ in range(4)], pace.wait("ann", 0.5), pace.wait("bob", 0.5)
    ([0.0, 0.0, 0.0, 0.5], 0.0, 0.0)
    """

    def __init__(self, rate: float, burst: float, most: int = MAX_REMEMBERED_CALLERS) -> None:
        self._step = 1.0 / rate
        self._span = burst / rate
        self._most = most
        self._full: dict[str | bytes, float] = {}

    def wait(self, key: str | bytes, now: float) -> float:
        """Count one request of a key and return 0, or return the seconds to wait if the key has none left."""
        full = self._full.get(key, now)
        full = max(full, now) + self._step
        if full - now > self._span + 1e-9:
            return full - now - self._span
        if len(self._full) >= self._most:
            self._forget(now)
        self._full[key] = full
        return 0.0

    def is_over(self, key: str | bytes, now: float) -> bool:
        """Tell whether a key has no requests left, without counting one."""
        return self._full.get(key, now) + self._step - now > self._span + 1e-9

    def _forget(self, now: float) -> None:
        """Forget keys whose burst is whole again, and the older half of the rest if that is not enough."""
        self._full = {key: full for key, full in self._full.items() if full > now}
        if len(self._full) >= self._most:
            self._full = dict(list(self._full.items())[self._most // 2 :])
