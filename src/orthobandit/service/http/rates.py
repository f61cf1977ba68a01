"""How many requests are taken: of each token, of strangers, and of those who guess tokens."""

import math
import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address, ip_network

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orthobandit.service.http.limits import HEADERS
from orthobandit.service.http.problems import problem

RATE = 10_000.0  # requests a second of a token, or of an address where there are no tokens
STRANGERS = 100.0  # requests a second of an address without a token
GUESSES = 1 / 6  # tokens a second that an address may get wrong
BURST = 2.0  # seconds' worth of requests that may come at once
FIRST_GUESSES = 20  # wrong tokens that may come at once
PROVEN = 60.0  # seconds for which a token that was good once is not taken for a guess
MOST_KEPT = 10_000  # tokens and addresses that are remembered


class Pace:
    """So many a second of each key, and so many at once; keeps one number for each that was here lately.

    The number is the time at which the key has its whole burst again (a leaky bucket, kept as in ATM's
    generic cell rate algorithm), so that a key whose time has come need not be remembered.

    Parameters
    ----------
    rate : float
        A second.
    burst : float
        At once.
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
        """Take one of a key, and return 0; or, if there is none, the seconds until there is."""
        full = self._full.get(key, now)
        full = max(full, now) + self._step
        if full - now > self._span + 1e-9:
            return full - now - self._span
        if len(self._full) >= self._most:
            self._forget(now)
        self._full[key] = full
        return 0.0

    def is_over(self, key: str | bytes, now: float) -> bool:
        """Tell whether nothing is left of a key; takes nothing."""
        return self._full.get(key, now) + self._step - now > self._span + 1e-9

    def _forget(self, now: float) -> None:
        """Drop keys that have their whole burst, and if that is not enough, the older half."""
        self._full = {key: full for key, full in self._full.items() if full > now}
        if len(self._full) >= self._most:
            self._full = dict(list(self._full.items())[self._most // 2 :])


class Rates:
    """Refuse what comes too fast, with 429 and ``Retry-After``.

    Parameters
    ----------
    app : ASGI application
    rate : float
        Requests a second of each token; of each address, if there are no tokens.
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
            is_guess = token is not None or _is_form(scope)
            if is_guess and self._guesses.is_over(address, now):
                await _refuse(1 / GUESSES, "too many wrong tokens came from here", scope, receive, send)
                return
            wait = self._strangers.wait(address, now)
            send_on = self._judged(send, address, token) if is_guess else send
        if wait:
            await _refuse(wait, "requests come faster than they are taken", scope, receive, send)
            return
        await self._app(scope, receive, send_on)

    def _judged(self, send: Send, address: str, token: bytes | None) -> Send:
        """Return a `send` that remembers whether the token was good."""

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


def _is_form(scope: Scope) -> bool:
    """Tell whether a person may be sending a token: programs put it into a header."""
    return scope["method"] == "POST" and not scope["path"].startswith(("/v1/", "/ofrep/"))


def _address(scope: Scope) -> str:
    """Return where a request comes from; of IPv6 the network, since whoever has one address has them all."""
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
