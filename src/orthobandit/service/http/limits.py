"""Requests that are refused before they are read: too large, not JSON, for another host, or too many."""

import math
import time
from collections.abc import Callable, Collection
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orthobandit.service.http.problems import problem

BODY_LIMIT = 8 * 2**20  # bytes
WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
HEADERS = [(b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"no-referrer")]
RATE = 10_000.0  # requests a second for each token, or for each address without tokens
STRANGERS = 100.0  # requests a second for each address that sends no known token
GUESSES = 1 / 6  # wrong tokens a second that an address may send
BURST = 2.0  # seconds' worth of requests that may come at once
FIRST_GUESSES = 20  # wrong tokens that may come at once
PROVEN = 60.0  # seconds for which a token that was accepted is not counted as a guess
MOST_KEPT = 10_000  # tokens and addresses that are remembered


class Limits:
    """Refuse requests that no route should see.

    Every request that changes something must say that it is JSON, also with an empty body: pages of other
    sites cannot make a browser send that, so that a server without tokens is safe from them.

    Parameters
    ----------
    app : ASGI application
    body_limit : int
        Bytes.
    hosts : collection of str, optional
        Host names that requests may be addressed to, without port; any by default. This refuses pages of
        other sites whose own name points here (DNS rebinding).
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
            await self._hand_on_body(scope, receive, guarded, headers)

    async def _hand_on_body(self, scope: Scope, receive: Receive, send: Send, headers: Headers) -> None:
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


class Pace:
    """A rate limit for each key: `rate` requests a second, and up to `burst` at once.

    One number is kept for each key: the time at which its whole burst is available again (a leaky bucket as
    in the generic cell rate algorithm). A key whose time has come need not be remembered.

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

    def __init__(self, rate: float, burst: float, most: int = MOST_KEPT) -> None:
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


class Rates:
    """Answer 429 with ``Retry-After`` to callers who send too many requests.

    Parameters
    ----------
    app : ASGI application
    rate : float
        Requests a second allowed to each token, or to each address without tokens.
    with_tokens : bool
    clock : callable
        Returns seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        rate: float = RATE,
        *,
        with_tokens: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._with_tokens = with_tokens
        self._clock = clock
        self._known = Pace(rate, max(1.0, BURST * rate))
        self._strangers = Pace(STRANGERS, BURST * STRANGERS)
        self._guesses = Pace(GUESSES, FIRST_GUESSES)
        self._proven: dict[bytes, float] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        now = self._clock()
        token = _token(scope) if self._with_tokens else None
        if token is not None and self._proven.get(token, 0.0) > now:
            wait = self._known.wait(token, now)
            send_on = send
        elif not self._with_tokens:
            wait = self._known.wait(_address(scope), now)
            send_on = send
        else:
            address = _address(scope)
            is_guess = token is not None or _may_hold_token(scope)
            if is_guess and self._guesses.is_over(address, now):
                await _refuse(
                    1 / GUESSES, "too many wrong tokens were sent from this address", scope, receive, send
                )
                return
            wait = self._strangers.wait(address, now)
            send_on = self._judge(send, address, token) if is_guess else send
        if wait:
            await _refuse(wait, "requests come faster than this server's limit", scope, receive, send)
            return
        await self._app(scope, receive, send_on)

    def _judge(self, send: Send, address: str, token: bytes | None) -> Send:
        """Return a `send` that notes whether the token was accepted."""

        async def judged(message: Message) -> None:
            if message["type"] == "http.response.start":
                if message["status"] == 401:
                    self._guesses.wait(address, self._clock())
                elif token is not None and message["status"] < 500:
                    self._prove(token)
            await send(message)

        return judged

    def _prove(self, token: bytes) -> None:
        if len(self._proven) >= MOST_KEPT:
            self._proven.clear()
        self._proven[token] = self._clock() + PROVEN


async def _refuse(wait: float, why: str, scope: Scope, receive: Receive, send: Send) -> None:
    seconds = max(1, math.ceil(wait))
    answer = problem("too-many", f"{why}; try again after {seconds} s, and put several into one request")
    answer.headers["Retry-After"] = str(seconds)
    answer.raw_headers.extend(HEADERS)
    await answer(scope, receive, send)


def _token(scope: Scope) -> bytes | None:
    for name, value in scope["headers"]:
        if name == b"authorization":
            return bytes(value) or None
    return None


def _may_hold_token(scope: Scope) -> bool:
    """Tell whether a request may be a person's login; programs put the token into a header."""
    return scope["method"] == "POST" and not scope["path"].startswith(("/v1/", "/ofrep/"))


def _address(scope: Scope) -> str:
    """Return the caller's address; for IPv6 its /64 network, all of which one caller may hold."""
    host = (scope.get("client") or ("", 0))[0]
    if ":" not in host:
        return str(host)
    try:
        address = ip_address(host)
    except ValueError:
        return str(host)
    if not isinstance(address, IPv6Address):
        return str(host)
    return str(ip_network((address, 64), strict=False).network_address)
