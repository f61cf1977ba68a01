"""Readiness: whether the database takes writes now, and soon enough.

To be able to read is not enough: with a full disk, or as a replica, a database answers every question and
takes nothing. So a write is tried, of nothing that anybody could miss. It is tried at most every two seconds,
however many ask, and in a thread of its own: those that requests use may all wait for the same database.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from orthobandit.errors import OrthobanditError

LOG = logging.getLogger("orthobandit.service")
LONGEST = 2.0  # seconds within which the database has to answer
FRESH = 2.0  # seconds for which an answer holds


class Readiness:
    """Tries to write, and remembers for a moment whether that worked. Used by one event loop.

    Parameters
    ----------
    write : callable
        Writes something, and raises :class:`~orthobandit.errors.OrthobanditError` if it cannot.
    clock : callable
        Returns seconds.
    """

    def __init__(self, write: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._trial: asyncio.Future[str] | None = None
        self._begun = 0.0
        self._said = ""

    async def find_trouble(self) -> str:
        """Return why experiments cannot be asked and told now, for the log; empty if they can."""
        now = self._clock()
        is_old = self._trial is not None and self._trial.done() and now - self._begun >= FRESH
        if self._trial is None or is_old:
            self._trial = asyncio.get_running_loop().create_future()
            self._begun = now
            Thread(
                target=self._try, args=(asyncio.get_running_loop(), self._trial), name="trial", daemon=True
            ).start()
        left = max(0.0, self._begun + LONGEST - now)
        try:
            trouble = await asyncio.wait_for(asyncio.shield(self._trial), left)
        except TimeoutError:
            trouble = f"the database does not answer within {LONGEST:g} s"
        self._say(trouble)
        return trouble

    def _try(self, loop: asyncio.AbstractEventLoop, trial: "asyncio.Future[str]") -> None:
        trouble = ""
        try:
            self._write()
        except OrthobanditError as error:
            trouble = str(error)
        except Exception as error:
            LOG.error("a write could not be tried", exc_info=error)
            trouble = repr(error)
        with suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(trial.set_result, trouble)

    def _say(self, trouble: str) -> None:
        """Log what has changed: balancers ask every second."""
        if trouble and not self._said:
            LOG.error("not ready: %s", trouble)
        elif self._said and not trouble:
            LOG.warning("ready again")
        self._said = trouble
