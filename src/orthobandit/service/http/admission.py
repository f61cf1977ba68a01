"""Admission: who sends a request, and whether it may proceed now; decided before its body is read.

The token is verified first. Requests with a valid token count for the token, all others for their address,
so inventing tokens gains nothing. An unknown token counts as a guess, whatever it was used for. Guesses are
limited, and nothing else is: whoever sends a valid token is answered, however many wrong ones come from the
same address, which may be that of a whole office. Where an address has used up its guesses, its tokens are
verified by a list in memory, which takes microseconds; the database reads that list once in a few seconds.
Guessing faster gains nothing: a secret has 256 random bits.

A request with a body but no token is refused here, so that strangers cannot make the server hold their data.
"""

import math
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network

from fastapi.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orthobandit.errors import OrthobanditError
from orthobandit.service.http.auth import MISSING, SESSION_COOKIE, TOKEN, UNKNOWN, Tokens
from orthobandit.service.http.limits import (
    BURST_SECONDS,
    MAX_REMEMBERED_CALLERS,
    MAX_REQUESTS,
    RATE,
    STRANGER_BODY_BYTES,
    STRANGER_RATE,
    WRONG_TOKEN_BURST,
    WRONG_TOKEN_RATE,
)
from orthobandit.service.http.problems import problem, problem_of
from orthobandit.service.http.request_checks import HEADERS, OWN_LIMIT, WITH_BODY

HEALTH = ("/healthz", "/readyz")  # answered at once, whatever else waits
PAGES = "/dashboard/"
BEARER = b"bearer "


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


class Admission:
    """Identify the sender of a request; answer 429 or 503 with ``Retry-After`` if it has to wait.

    Parameters
    ----------
    app : ASGI application
    rate : float
        Requests a second allowed to each token, or to each address without tokens; 0 for no limit.
    most_requests : int
        Requests in progress at the same time.
    clock : callable
        Returns seconds.
    """

    def __init__(
        self,
        app: ASGIApp,
        rate: float = RATE,
        *,
        most_requests: int = MAX_REQUESTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._most = most_requests
        self._clock = clock
        self._known = Pace(rate, max(1.0, BURST_SECONDS * rate)) if rate else None
        self._strangers = Pace(STRANGER_RATE, BURST_SECONDS * STRANGER_RATE) if rate else None
        self._guesses = Pace(WRONG_TOKEN_RATE, WRONG_TOKEN_BURST)
        self._in_progress = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand on, or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._in_progress >= self._most and scope["path"] not in HEALTH:
            refusal = problem("busy", f"{self._most} requests are in progress; try again after 1 s")
            await _send_refusal(refusal, scope, receive, send)
            return
        self._in_progress += 1
        try:
            found = await self._find_refusal(scope)
            if found is not None:
                await _send_refusal(found, scope, receive, send)
                return
            preparing = scope["app"].state.preparing
            if not preparing.is_done and scope["path"] not in HEALTH:
                await preparing.wait()
            if TOKEN not in scope and _may_be_login(scope):
                send = self._limit_wrong_logins(scope, receive, send)
            await self._app(scope, receive, send)
        finally:
            self._in_progress -= 1

    async def _find_refusal(self, scope: Scope) -> JSONResponse | None:
        """Put the token into the scope; return the refusal, or None if the request may proceed."""
        tokens: Tokens | None = scope["app"].state.tokens
        if tokens is None:
            return self._wait_for(self._known, _address(scope))
        text = self._read_token(scope)
        token = None if text is None else tokens.remembered(text)
        if token is None:
            address = _address(scope)
            if text is not None:
                is_guessing = self._guesses.is_over(address, self._clock())
                try:
                    token = await (tokens.find_listed(text) if is_guessing else tokens.find(text))
                except OrthobanditError as error:
                    return problem_of(error)
                if token is None and self._guesses.wait(address, self._clock()):
                    return _too_many_guesses()
            if token is None:
                return await self._find_refusal_of_stranger(scope, address, text)
        scope[TOKEN] = token
        return self._wait_for(self._known, token.id)

    async def _find_refusal_of_stranger(
        self, scope: Scope, address: str, text: str | None
    ) -> JSONResponse | None:
        """Return the refusal of a request without a valid token, or None if it may proceed."""
        path = scope["path"]
        # A balancer's questions do not wait behind strangers that come through it.
        refusal = self._wait_for(self._strangers, f"health of {address}" if path in HEALTH else address)
        if refusal is not None or scope["method"] not in WITH_BODY:
            return refusal
        if not path.startswith(PAGES):
            # With a blank in it, it is no token but another scheme: `Basic …`.
            is_token = text is not None and " " not in text
            return problem("unauthenticated", UNKNOWN if is_token else MISSING)
        if _announced_size(scope) > STRANGER_BODY_BYTES and not await _has_session(scope):
            # Forms of people who have not logged in are short. Longer ones are refused unread.
            scope[OWN_LIMIT] = STRANGER_BODY_BYTES
        return None

    def _wait_for(self, pace: Pace | None, key: str) -> JSONResponse | None:
        wait = 0.0 if pace is None else pace.wait(key, self._clock())
        if not wait:
            return None
        return _too_many(
            wait, "requests come faster than this server's limit", ", and put several into one request"
        )

    def _limit_wrong_logins(self, scope: Scope, receive: Receive, send: Send) -> Send:
        """Return a `send` that counts a form with a wrong token as a guess, and answers 429 to too many."""
        is_refused = False

        async def limited(message: Message) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start" and message["status"] == 401:
                is_refused = bool(self._guesses.wait(_address(scope), self._clock()))
                if is_refused:
                    await _send_refusal(_too_many_guesses(), scope, receive, send)
            if not is_refused:
                await send(message)

        return limited

    def _read_token(self, scope: Scope) -> str | None:
        """Return the token that a request has, good or not."""
        for name, value in scope["headers"]:
            if name == b"authorization":
                is_bearer = value[: len(BEARER)].lower() == BEARER
                return (value[len(BEARER) :] if is_bearer else value).decode("latin-1") or None
        return None


def _too_many(wait: float, why: str, remedy: str = "") -> JSONResponse:
    seconds = max(1, math.ceil(wait))
    answer = problem("too-many", f"{why}; try again after {seconds} s{remedy}")
    answer.headers["Retry-After"] = str(seconds)
    return answer


def _too_many_guesses() -> JSONResponse:
    return _too_many(1 / WRONG_TOKEN_RATE, "too many wrong tokens were sent from this address")


async def _send_refusal(answer: JSONResponse, scope: Scope, receive: Receive, send: Send) -> None:
    answer.raw_headers.extend(HEADERS)
    await answer(scope, receive, send)


def _may_be_login(scope: Scope) -> bool:
    """Tell whether a request may be a person's login; programs put the token into a header."""
    return bool(scope["method"] == "POST" and scope["path"].startswith(PAGES))


def _announced_size(scope: Scope) -> float:
    """Return the length of a body as announced by the caller; infinite if not announced."""
    for name, value in scope["headers"]:
        if name == b"content-length" and value.isdigit():
            return float(value)
    return math.inf


async def _has_session(scope: Scope) -> bool:
    cookies = HTTPConnection(scope).cookies
    sessions = scope["app"].state.dashboard.sessions
    found = await run_in_threadpool(sessions.find, cookies.get(SESSION_COOKIE))
    return found is not None


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
