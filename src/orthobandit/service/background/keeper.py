"""The keeper: the one server of a database that settles, re-plans and sends webhooks by the clock.

Any `ask` or `tell` that completes a batch re-plans as well, under the experiment's own lock, so that each
plan is written once. But without traffic nobody would notice that windows pass; the keeper does.
"""

import logging
import sqlite3
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from itertools import chain
from threading import Event, Thread

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from orthobandit.errors import OrthobanditError
from orthobandit.experiment.store.sql.connections import address, file_of, make_engine
from orthobandit.service.background.watch import Looks
from orthobandit.service.background.webhook_delivery import Courier, Outbox
from orthobandit.service.background.webhook_events import find_news
from orthobandit.service.http.observability import Metrics

ADVISORY_LOCK_KEY = (
    0x6F727468_6B656570  # the key of PostgreSQL's advisory lock, which holds within one database
)
PATIENCE_SECONDS = 5.0  # seconds
LOG = logging.getLogger("orthobandit.service")
ROUND_SECONDS = 5.0  # seconds between two rounds
PARTING_SECONDS = 3.0  # seconds that a round in progress has when the server stops
MAX_QUIET_JUMP_SECONDS = 60.0  # seconds by which a clock may be set without anybody being told


class KeeperLock:
    """A lock that one server of a database holds, released when its process ends in any way.

    In PostgreSQL it is an advisory lock on a connection of its own, which the database releases when the
    connection breaks. For a SQLite file it is SQLite's lock on an empty file beside it, which the system
    releases with the process. Other databases have no lock, and every server acts as the keeper: even then
    nothing is counted or stored twice, but webhooks may be sent twice.

    Parameters
    ----------
    where : str or Path
    """

    def __init__(self, where: object) -> None:
        url = address(str(where))
        self._file = file_of(url)
        self._engine: Engine | None = None
        if url.get_backend_name() == "postgresql":
            self._engine = make_engine(url, PATIENCE_SECONDS)
        self._connection: Connection | None = None
        self._beside: sqlite3.Connection | None = None

    def is_held(self) -> bool:
        """Tell whether this process holds the lock, after trying to get it."""
        if self._engine is not None:
            return self._is_held_in_postgresql(self._engine)
        if self._file is not None:
            return self._beside is not None or self._is_locked_beside(f"{self._file}-keeper")
        return True

    def _is_held_in_postgresql(self, engine: Engine) -> bool:
        """Take PostgreSQL's advisory lock, or check that it is still held."""
        try:
            if self._connection is not None:
                self._connection.execute(sa.text("SELECT 1"))  # broken, if the lock is lost
                return True
            with ExitStack() as closing:
                connection = closing.enter_context(engine.connect())
                connection = connection.execution_options(isolation_level="AUTOCOMMIT")
                if connection.execute(sa.select(sa.func.pg_try_advisory_lock(ADVISORY_LOCK_KEY))).scalar():
                    closing.pop_all()  # the connection holds the lock, and stays open
                    self._connection = connection
                    return True
        except sa.exc.SQLAlchemyError:
            self._drop()
        return False

    def _is_locked_beside(self, path: str) -> bool:
        """Take SQLite's lock on the file beside the database."""
        # Taken by the keeper's thread, and released by another once that has ended.
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            connection.close()
            return False
        self._beside = connection
        return True

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(sa.exc.SQLAlchemyError):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None

    def release(self) -> None:
        """Release the lock."""
        if self._connection is not None:
            # Said in words: the server notices a closed connection only a moment later.
            with suppress(sa.exc.SQLAlchemyError):
                self._connection.execute(sa.select(sa.func.pg_advisory_unlock(ADVISORY_LOCK_KEY)))
        self._drop()
        if self._beside is not None:
            self._beside.close()
            self._beside = None
        if self._engine is not None:
            self._engine.dispose()


class ClockWatch:
    """Notices, by comparison with a steady clock, that the clock was set or that the machine slept.

    Parameters
    ----------
    clock, steady : callable
        Return seconds: since the epoch, and since any moment.

    Examples
    --------
    >>> times = iter([1000.0, 1005.0, 1100.0, 1105.0])
    >>> watch = ClockWatch(lambda: next(times), iter([0.0, 5.0, 10.0, 15.0]).__next__)
    >>> watch.find_jump(), watch.find_jump(), watch.find_jump()
    (0.0, 90.0, 0.0)
    """

    def __init__(self, clock: Callable[[], float], steady: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steady = steady
        self._difference = clock() - steady()

    def find_jump(self) -> float:
        """Return by how many seconds the clock was set since the last call; 0 if by 60 or less."""
        difference = self._clock() - self._steady()
        jump = difference - self._difference
        # Small steps are kept too, or many of them would add up to a jump.
        self._difference = difference
        return jump if abs(jump) > MAX_QUIET_JUMP_SECONDS else 0.0


class Keeper:
    """A thread that does the work while this process holds the lock, and otherwise tries to get the lock.

    Parameters
    ----------
    lock : KeeperLock
    looks : Looks
    outbox : Outbox
    metrics : Metrics
    clock : callable
        Returns seconds since the epoch.
    """

    def __init__(
        self,
        lock: KeeperLock,
        looks: Looks,
        outbox: Outbox,
        metrics: Metrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._lock = lock
        self._looks = looks
        self._outbox = outbox
        self._metrics = metrics
        self._clock = clock
        self._courier = Courier(outbox, metrics.webhooks, clock)
        self._drift = ClockWatch(clock)
        self._is_over = Event()
        self._known = set[str]()
        self._complaint = ""
        self._thread = Thread(target=self._run, name="keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop, and let another server take over, within seconds whatever receivers and the database do."""
        self._is_over.set()
        self._courier.stop()
        if self._thread.ident is not None:
            self._thread.join(PARTING_SECONDS)
        if self._thread.is_alive():
            LOG.warning("the keeper's last round has not ended; the database is slow")
        self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Wait until no webhook is being sent, for at most so many seconds; return whether none is."""
        return self._courier.wait(seconds)

    def _run(self) -> None:
        """Do a round of work every few seconds until the server stops."""
        while not self._is_over.wait(ROUND_SECONDS):
            jump = self._drift.find_jump()
            if jump:
                self._metrics.clock_jumps += 1
                LOG.warning(
                    "the clock was set by %+.0f s; windows of rewards may end early or late: see to NTP", jump
                )
            try:
                self.round()
                self._complaint = ""
            except OrthobanditError as error:
                if str(error) != self._complaint:  # once, and not every five seconds
                    LOG.warning("the keeper cannot work: %s", error)
                self._complaint = str(error)
            except Exception as error:
                LOG.error("the keeper failed", exc_info=error)

    def round(self) -> bool:
        """Do one round of work; return whether this process is the keeper."""
        self._metrics.is_keeper = self._lock.is_held()
        if not self._metrics.is_keeper:
            self._known.clear()
            return False
        now = self._clock()
        found = self._looks.all()
        news = chain.from_iterable(find_news(key, look, now) for key, look in found.items())
        fresh = [one for one in news if one.id not in self._known]
        if fresh:
            self._outbox.add(fresh)
            self._known.update(one.id for one in fresh)
        self._courier.send(self._outbox.due(now, without=self._courier.busy()))
        return True
