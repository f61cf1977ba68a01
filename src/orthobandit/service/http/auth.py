"""Tokens and their roles: who may do what. Secrets are kept as hashes, and compared in constant time."""

import hmac
import time
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from secrets import token_hex, token_urlsafe
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from orthobandit._foundation.checks import check_choice
from orthobandit.experiment.store.sql.dialects import lock_tables
from orthobandit.service.http.problems import Problem
from orthobandit.service.registry import Registry
from orthobandit.service.tables import TOKENS

# What each role may do: the roles that it includes.
ROLES = {
    "admin": frozenset({"admin", "ask-tell", "read", "edge"}),
    "ask-tell": frozenset({"ask-tell", "read"}),
    "read": frozenset({"read"}),
    "edge": frozenset({"edge"}),
}
FRESH = 5.0  # seconds after which a token is looked up again, so that all servers notice that it was revoked
MOST_KEPT = 10_000  # tokens that are remembered between requests
BEARER = HTTPBearer(auto_error=False, description="A token, as `orthobandit serve` prints one.")


class Token(NamedTuple):
    """A token as it is kept, and without its secret."""

    id: str
    name: str
    role: str
    at: float


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

    def make(self, role: str, name: str = "") -> tuple[Token, str]:
        """Make a token; return it, and the text that is never shown again."""
        with self._registry.writing() as connection:
            return self._make(connection, role, name)

    def first(self) -> str | None:
        """Make an admin's token if there is no token at all; return its text."""
        with self._registry.writing() as connection:
            lock_tables(connection)
            if connection.execute(sa.select(TOKENS.c.id).limit(1)).first() is not None:
                return None
            return self._make(connection, "admin", "first start")[1]

    def _make(self, connection: sa.Connection, role: str, name: str) -> tuple[Token, str]:
        check_choice("role", role, ROLES)
        token = Token(token_hex(6), name, role, time.time())
        secret = token_urlsafe(32)
        connection.execute(sa.insert(TOKENS).values(**token._asdict(), hash=_hash(secret)))
        return token, f"ob_{token.id}_{secret}"

    def all(self) -> list[Token]:
        """Return all tokens, the oldest first."""
        with self._registry.reading() as connection:
            columns = (TOKENS.c.id, TOKENS.c.name, TOKENS.c.role, TOKENS.c.at)
            rows = connection.execute(sa.select(*columns).order_by(TOKENS.c.at, TOKENS.c.id))
            return [Token(*row) for row in rows]

    def revoke(self, id: str) -> bool:  # noqa: A002
        """Remove a token; return whether there was one. Other servers notice within 5 seconds."""
        with self._registry.writing() as connection:
            removed = connection.execute(sa.delete(TOKENS).where(TOKENS.c.id == id)).rowcount
        self._kept.pop(id, None)
        return bool(removed)

    async def find(self, text: str) -> Token | None:
        """Return the token that a text stands for, or None if it is unknown."""
        number, secret = _parts(text)
        if not number:
            return None
        at, token, kept = self._kept.get(number, (-FRESH, None, b""))
        if self._clock() - at >= FRESH:
            at, token, kept = await run_in_threadpool(self._look_up, number)
        return token if _is_same(secret, kept) else None

    def remembered(self, text: str) -> Token | None:
        """Return a token that was looked up lately, or None if it is unknown or must be looked up again."""
        number, secret = _parts(text)
        at, token, kept = self._kept.get(number, (-FRESH, None, b""))
        return token if self._clock() - at < FRESH and _is_same(secret, kept) else None

    def _look_up(self, number: str) -> tuple[float, Token | None, bytes]:
        query = sa.select(TOKENS.c.id, TOKENS.c.name, TOKENS.c.role, TOKENS.c.at, TOKENS.c.hash)
        with self._registry.reading() as connection:
            row = connection.execute(query.where(TOKENS.c.id == number)).first()
        if row is None:
            self._kept.pop(number, None)
            return self._clock(), None, b""
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[number] = found = (self._clock(), Token(*row[:4]), bytes(row[4]))
        return found


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


def needs(role: str) -> Callable[..., Awaitable[None]]:
    """Return a route's dependency that admits only tokens whose role includes `role`."""

    async def check(
        request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)]
    ) -> None:
        tokens: Tokens | None = request.app.state.tokens
        if tokens is None:
            return
        if given is None:
            raise Problem("unauthenticated", "send the header `Authorization: Bearer <token>`")
        token = await tokens.find(given.credentials)
        if token is None:
            raise Problem("unauthenticated", "the token is not known; it was revoked, or is mistyped")
        if role not in ROLES[token.role]:
            raise Problem(
                "forbidden", f"the token has the role {token.role!r}; a token for {role!r} is needed"
            )

    return check
