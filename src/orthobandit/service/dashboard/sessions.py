"""Sessions of people who logged in with a token.

A cookie holds 256 random bits, and the database their hash. So a copy of the database lets nobody in, which a
cookie that is signed with something from the database could not promise; several servers share sessions;
logging out ends one on all of them at once; and so does revoking its token, which every look-up joins.
"""

import time
from collections.abc import Callable
from hashlib import blake2b
from secrets import token_urlsafe
from typing import NamedTuple

import sqlalchemy as sa

from orthobandit.service.http.auth import Token
from orthobandit.service.registry import Registry
from orthobandit.service.tables import SESSIONS, TOKENS

LASTS = 12 * 3600.0  # seconds
LONGEST = 200  # characters of a cookie that are looked at


class Session(NamedTuple):
    """Somebody who is logged in: the token that it was done with, and what forms are protected by."""

    token: Token
    secret: str


class Sessions:
    """The sessions of a database.

    Parameters
    ----------
    registry : Registry
    clock : callable
        Returns seconds since the epoch.
    """

    def __init__(self, registry: Registry, clock: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._clock = clock

    def begin(self, token: Token) -> str:
        """Begin a session; return what its cookie holds. Sessions that are over are removed."""
        secret = token_urlsafe(32)
        now = self._clock()
        with self._registry.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.until <= now))
            row = {"id": _hash(secret), "token": token.id, "until": now + LASTS}
            connection.execute(sa.insert(SESSIONS).values(**row))
        return secret

    def find(self, secret: str | None) -> Session | None:
        """Return the session of a cookie; None if there is none, it is over, or its token was revoked."""
        if not secret or len(secret) > LONGEST:
            return None
        query = (
            sa.select(TOKENS.c.id, TOKENS.c.name, TOKENS.c.role, TOKENS.c.at)
            .join(SESSIONS, SESSIONS.c.token == TOKENS.c.id)
            .where(SESSIONS.c.id == _hash(secret), SESSIONS.c.until > self._clock())
        )
        with self._registry.reading() as connection:
            row = connection.execute(query).first()
        return None if row is None else Session(Token(*row), secret)

    def end(self, secret: str) -> None:
        """End a session, if there is one."""
        with self._registry.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.id == _hash(secret)))


def _hash(secret: str) -> bytes:
    return blake2b(secret.encode(), digest_size=32, person=b"ob session").digest()
