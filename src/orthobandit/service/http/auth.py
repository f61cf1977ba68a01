"""Tokens and their roles: who may do what. Secrets are stored as hashes and compared in constant time."""

import asyncio
import hmac
import json
import re
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from secrets import token_hex, token_urlsafe
from typing import Any, NamedTuple

import sqlalchemy as sa
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPBearer

from orthobandit._foundation.checks import check_choice
from orthobandit.errors import Argument, ConflictError, ParameterError
from orthobandit.experiment.settings import seconds
from orthobandit.experiment.store.sql.connections import lock_tables
from orthobandit.experiment.store.sql.service_tables import TOKENS
from orthobandit.service.http.problems import Problem
from orthobandit.service.registry import Registry

# What each role may do: the roles that it includes.
ROLES = {
    "admin": frozenset({"admin", "ask-tell", "read", "edge"}),
    "ask-tell": frozenset({"ask-tell", "read"}),
    "read": frozenset({"read"}),
    "edge": frozenset({"edge"}),
}
FRESH_SECONDS = (
    5.0  # seconds after which a token is looked up again, so that all servers notice that it was revoked
)
MAX_KEPT_TOKENS = 10_000  # tokens that are remembered between requests
TOKEN = "orthobandit.token"  # noqa: S105, in a scope: the token that was sent, if it is good
SESSION_COOKIE = "ob_session"
MISSING = "send the header `Authorization: Bearer <token>`"
UNKNOWN = "the token is not known; it was revoked, has expired, or is mistyped"
BEARER = HTTPBearer(auto_error=False, description="A token, as `orthobandit serve` prints one.")


class Token(NamedTuple):
    """A stored token, without its secret.

    Parameters
    ----------
    id, name, role : str
    at : float
        When it was made, in seconds since the epoch.
    experiments : tuple of str, optional
        Keys of the experiments that it is for, with ``*`` for anything; all if it is None.
    until : float, optional
        When it expires, in seconds since the epoch; never if it is None.

    Examples
    --------
    >>> token = Token("1", "", "read", 0.0, ("shop-*", "signup"))
    >>> [token.is_for(key) for key in ("shop-page", "signup", "signups", "other")]
    [True, True, False, False]
    """

    id: str
    name: str
    role: str
    at: float
    experiments: tuple[str, ...] | None = None
    until: float | None = None

    def is_for(self, key: str) -> bool:
        """Tell whether the token may be used for the experiment of this key."""
        return self.experiments is None or _pattern(self.experiments).fullmatch(key) is not None

    def is_expired(self, now: float) -> bool:
        """Tell whether the token has expired by now, in seconds since the epoch."""
        return self.until is not None and now >= self.until


@lru_cache(maxsize=1_000)
def _pattern(experiments: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern that the keys of a token's experiments match."""
    return re.compile("|".join(map(_regex, experiments)), re.DOTALL)


def _regex(text: str) -> str:
    """Return the regular expression of a key in which ``*`` stands for anything."""
    first, *rest = map(re.escape, text.split("*"))
    if not rest:
        return first
    # What was found is not looked for again further on, so that many stars take no longer than one.
    between = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
    return f"{first}{between}.*{rest[-1]}"


COLUMNS = (TOKENS.c.id, TOKENS.c.name, TOKENS.c.role, TOKENS.c.at, TOKENS.c.experiments, TOKENS.c.until)


def read_token(row: Sequence[Any]) -> Token:
    """Return the token of a row of `COLUMNS`."""
    id_, name, role, at, experiments, until = row[: len(COLUMNS)]
    return Token(id_, name, role, at, None if experiments is None else tuple(json.loads(experiments)), until)


class Tokens:
    """The tokens of a database.

    A token is ``ob_<id>_<secret>``. The secret has 256 random bits, so that a quick hash is enough: there
    is no dictionary to try.

    Parameters
    ----------
    registry : Registry
    clock : callable
        Returns seconds; decides when a token is looked up again.
    """

    def __init__(self, registry: Registry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._kept: dict[str, tuple[float, Token | None, bytes]] = {}
        self._listed: dict[str, tuple[Token, bytes]] = {}
        self._listed_at = -FRESH_SECONDS
        self._listing: asyncio.Future[None] | None = None  # the list that is being read, for all who wait

    def make(
        self,
        role: str,
        name: str = "",
        *,
        experiments: Sequence[str] | None = None,
        lasts: str | float | None = None,
    ) -> tuple[Token, str]:
        """Make a token; return it, and the text that is never shown again.

        Parameters
        ----------
        role, name : str
        experiments : sequence of str, optional
            Keys of the experiments that it is for, with ``*`` for anything; all by default.
        lasts : str or float, optional
            Seconds after which it expires, or text such as ``"90d"``; never by default.
        """
        check_choice("role", role, ROLES)
        now = time.time()
        token = Token(
            token_hex(6),
            name,
            role,
            now,
            None if experiments is None else _check_experiments(experiments),
            None if lasts is None else now + _check_lasts(lasts),
        )
        with self._registry.writing() as connection:
            return token, _keep(connection, token)

    def first(self) -> str | None:
        """Make an admin's token if there is no token at all; return its text."""
        with self._registry.writing() as connection:
            lock_tables(connection)
            if connection.execute(sa.select(TOKENS.c.id).limit(1)).first() is not None:
                return None
            return _keep(connection, Token(token_hex(6), "first start", "admin", time.time()))

    def all(self) -> list[Token]:
        """Return all tokens, the oldest first."""
        with self._registry.reading() as connection:
            rows = connection.execute(sa.select(*COLUMNS).order_by(TOKENS.c.at, TOKENS.c.id))
            return [read_token(row) for row in rows]

    def revoke(self, id: str) -> bool:  # noqa: A002
        """Remove a token; return whether there was one. Other servers notice within 5 seconds.

        Raises
        ------
        ConflictError
            If it is the last token that may do everything and never expires.
        """
        with self._registry.writing() as connection:
            # Of two admins who revoke each other at once, the second finds itself alone.
            lock_tables(connection)
            is_admin = sa.and_(
                TOKENS.c.role == "admin", TOKENS.c.experiments.is_(None), TOKENS.c.until.is_(None)
            )
            admins = list(connection.scalars(sa.select(TOKENS.c.id).where(is_admin)))
            if admins == [id]:
                raise ConflictError(
                    f"{id!r} is the last token of an admin for all experiments that does not expire; make"
                    " another first"
                )
            removed = connection.execute(sa.delete(TOKENS).where(TOKENS.c.id == id)).rowcount
        self._kept.pop(id, None)
        self._listed.pop(id, None)
        return bool(removed)

    async def find(self, text: str) -> Token | None:
        """Return the token that a text stands for, or None if it is unknown."""
        number, secret = _parts(text)
        if not number:
            return None
        at, token, kept = self._kept.get(number, (-FRESH_SECONDS, None, b""))
        if self._clock() - at >= FRESH_SECONDS:
            at, token, kept = await run_in_threadpool(self._look_up, number)
        return token if _is_same(secret, kept) and not _is_over(token) else None

    async def find_listed(self, text: str) -> Token | None:
        """Return the token that a text stands for, as of a list of all tokens that is seconds old at most.

        However many texts are tried, the database is asked once in 5 seconds. A token that another server has
        made since is not known yet.
        """
        number, secret = _parts(text)
        if self._clock() - self._listed_at >= FRESH_SECONDS:
            if self._listing is None:
                self._listing = asyncio.ensure_future(self._list())
            # It serves others as well, who must not lose it if this request is given up.
            await asyncio.shield(self._listing)
        token, kept = self._listed.get(number, (None, b""))
        return token if _is_same(secret, kept) and not _is_over(token) else None

    async def _list(self) -> None:
        """Read all tokens from the database."""
        at = self._clock()
        try:
            self._listed = await run_in_threadpool(self._read_all)
            self._listed_at = at
        finally:
            self._listing = None

    def _read_all(self) -> dict[str, tuple[Token, bytes]]:
        with self._registry.reading() as connection:
            rows = connection.execute(sa.select(*COLUMNS, TOKENS.c.hash)).all()
        return {row.id: (read_token(row), bytes(row.hash)) for row in rows}

    def remembered(self, text: str) -> Token | None:
        """Return a token that was looked up lately, or None if it is unknown or must be looked up again."""
        number, secret = _parts(text)
        at, token, kept = self._kept.get(number, (-FRESH_SECONDS, None, b""))
        is_good = self._clock() - at < FRESH_SECONDS and _is_same(secret, kept) and not _is_over(token)
        return token if is_good else None

    def _look_up(self, number: str) -> tuple[float, Token | None, bytes]:
        """Read a token from the database and remember it for a few seconds."""
        query = sa.select(*COLUMNS, TOKENS.c.hash).where(TOKENS.c.id == number)
        with self._registry.reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            self._kept.pop(number, None)
            return self._clock(), None, b""
        if len(self._kept) >= MAX_KEPT_TOKENS:
            self._kept.clear()
        self._kept[number] = found = (self._clock(), read_token(row), bytes(row.hash))
        return found


def _keep(connection: sa.Connection, token: Token) -> str:
    """Store a token with a new secret; return its text."""
    secret = token_urlsafe(32)
    row = token._asdict()
    row["experiments"] = None if token.experiments is None else json.dumps(token.experiments)
    connection.execute(sa.insert(TOKENS).values(**row, hash=_hash(secret)))
    return f"ob_{token.id}_{secret}"


def _check_experiments(given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str) or not given or not all(isinstance(one, str) and one for one in given):
        raise ParameterError(
            Argument("experiments", given),
            " must be a list of keys such as ['signup', 'shop-*']; leave it out for all",
        )
    for one in given:
        if re.fullmatch(r"[a-z0-9*][a-z0-9*_.-]{0,99}", one) is None:
            raise ParameterError(
                Argument("experiments", one),
                " is no key and no pattern of keys, which have small letters, digits,"
                " '-', '_' and '.', and * for anything: the token would be for nothing",
            )
    return tuple(given)


def _check_lasts(given: str | float) -> float:
    try:
        return seconds(given)
    except ParameterError:
        raise ParameterError(
            Argument("lasts", given), " must be seconds, more than 0, or text such as '90d'"
        ) from None


def _is_over(token: Token | None) -> bool:
    return token is not None and token.until is not None and token.is_expired(time.time())


def _parts(text: str) -> tuple[str, str]:
    """Return the number of a token and its secret; no number if the text is no token."""
    head, _, rest = text.partition("_")
    number, _, secret = rest.partition("_")
    return (number, secret) if head == "ob" and len(text) <= 200 else ("", "")


def _is_same(secret: str, kept: bytes) -> bool:
    # Compared even if there is no such token, so that the time taken reveals nothing.
    return hmac.compare_digest(_hash(secret), kept.ljust(32, b"\0"))


def _hash(secret: str) -> bytes:
    return blake2b(secret.encode(), digest_size=32, person=b"ob token").digest()


def check_token(request: Request, role: str, *, for_all: bool = False) -> None:
    """Raise :class:`Problem` unless a request's token has a role.

    A token for some experiments is admitted to the operations of these, by the ``key`` in their path.
    Operations without one decide by themselves what it may see.

    Parameters
    ----------
    request : Request
    role : str
    for_all : bool
        Whether only tokens for all experiments are admitted.
    """
    token: Token | None = request.scope.get(TOKEN)
    if token is None:
        is_bearer = request.headers.get("authorization", "").lower().startswith("bearer ")
        raise Problem("unauthenticated", UNKNOWN if is_bearer else MISSING)
    if role not in ROLES[token.role]:
        raise Problem("forbidden", f"the token has the role {token.role!r}; a token for {role!r} is needed")
    if token.experiments is None:
        return
    if for_all:
        raise Problem("forbidden", "the token is for some experiments only; one for all is needed")
    if "key" in request.path_params:
        check_key(token, request.path_params["key"])


def check_key(token: Token | None, key: str) -> None:
    """Raise :class:`Problem` if a token is not for an experiment; without tokens, everybody's is."""
    if token is not None and not token.is_for(key):
        raise Problem(
            "forbidden", f"the token is not for {key!r}; it is for {', '.join(token.experiments or ())}"
        )


def allows(token: Token | None) -> Callable[[str], bool] | None:
    """Return a test of whether a token is for an experiment's key; None if it is for all."""
    return None if token is None or token.experiments is None else token.is_for
