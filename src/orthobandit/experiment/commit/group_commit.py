"""Group commit: a ledger that threads and processes share, and requests that share one commit.

While a store is written to, nobody else can write to the same file. Work that takes long (planning for many
arms, long reports) is therefore done before the file is locked: the requests are done against the ledger as
it was read, and what they made is written if nobody else wrote to the same experiment meanwhile. If somebody
did, they are done again while the file is locked, so that the second attempt cannot fail for this reason.
"""

import logging
from collections.abc import Sequence
from threading import Thread
from typing import Any, NamedTuple

from orthobandit._foundation.json_arrays import pack_lists, unpack_lists
from orthobandit.arms import ArmSet
from orthobandit.errors import OrthobanditError
from orthobandit.experiment.commit.queue import CommitQueue, Job
from orthobandit.experiment.commit.requests import REMEMBERED_SECONDS, Asking, Telling, groups
from orthobandit.experiment.commit.transaction import Turn
from orthobandit.experiment.forks import Forkable, register_forkable
from orthobandit.experiment.ledger.entries import Noted
from orthobandit.experiment.ledger.ledger import Ledger, resume
from orthobandit.experiment.ledger.snapshot import is_snapshot_due, take_snapshot, write_out
from orthobandit.experiment.settings import Settings
from orthobandit.experiment.store import MemoryStore, Store, Writer

# Arms, and rows of one commit, from which on requests are done before the file is locked: planning for fewer
# arms takes milliseconds, less than locking twice would cost everybody.
MANY_ARMS = 32
MANY_ROWS = 1_000

LOG = logging.getLogger("orthobandit.experiment")


class Snapshot(NamedTuple):
    """A snapshot of the state after an entry, and when it was taken."""

    seq: int
    at: float
    state: dict[str, Any]


class SharedLedger(Forkable):
    """Does requests one after the other, each on top of everything written so far by anybody.

    Requests that arrive during a commit share the next one, so one wait for the disk serves them all. Once
    :meth:`do` has returned, or the result of :meth:`soon` was awaited, the effect is in the store.

    Parameters
    ----------
    store : Store
    settings : Settings
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self._turn: Turn | None = None
        self._is_committing = False
        self._is_closed = False
        self._keeping: Thread | None = None
        self.queue = CommitQueue(lambda jobs: self._commit(jobs), self._rest)
        self.do = self.queue.do
        self.soon = self.queue.soon
        register_forkable(self)

    @property
    def last_seen_arms(self) -> ArmSet:
        """The arms as of the last request here; reads nothing, so others may have added some since."""
        turn = self._turn
        return self.settings.arms if turn is None else turn.ledger.arms

    # A commit

    def _commit(self, jobs: list[Job]) -> None:
        """Do requests and write their entries; if anything but a refusal goes wrong, write nothing."""
        self._is_committing = True
        try:
            if self._turn is None:
                self._turn = self._load()  # before the file is locked: it may take long
            if not (self._is_long(self._turn, jobs) and self._commit_prepared(self._turn, jobs)):
                self._commit_locked(jobs)
            self._turn.forget()
        except BaseException as error:
            self._turn = None  # what was done is not in the store; the next request reads what is
            for job in jobs:
                job.error = error
        finally:
            self._is_committing = False

    def _is_long(self, turn: Turn, jobs: list[Job]) -> bool:
        """Tell whether requests may take so long that the file should not be locked meanwhile."""
        if isinstance(self.store, MemoryStore):  # has nobody else
            return False
        return len(turn.ledger.arms) > MANY_ARMS or _count_rows(jobs) > MANY_ROWS

    def _commit_locked(self, jobs: list[Job]) -> None:
        """Do requests and write their entries while the file is locked."""
        if self._turn is None:
            self._turn = self._load()
        with self.store.exclusive() as writer:
            turn = self._caught_up(writer)
            turn.writer = writer
            self._attempt_groups(jobs, turn)
            self._append(turn, writer)

    def _commit_prepared(self, turn: Turn, jobs: list[Job]) -> bool:
        """Do requests, then lock the file and write their entries; return False if others wrote meanwhile."""
        turn.take_in(self.store.entries(turn.seq))
        memory = _Memory(self.store, turn.seq)
        turn.writer = memory
        try:
            self._attempt_groups(jobs, turn)
            if turn.ledger.outbox or memory.remembered:
                with self.store.exclusive() as writer:
                    memory.check_unchanged(writer)
                    self._append(turn, writer)
                    for key, (at, text) in memory.remembered.items():
                        writer.remember(key, at, text)
        except _BeatenError:
            self._turn = None
            for job in jobs:
                job.value = None
                job.error = None
            return False
        return True

    def _attempt_groups(self, jobs: list[Job], turn: Turn) -> None:
        if self.settings.sticky:
            turn.look_up(_units(jobs))
        for places in groups(job.request for job in jobs):
            self._attempt_all([jobs[place] for place in places], turn)

    def _attempt_all(self, jobs: list[Job], turn: Turn) -> None:
        """Do requests together; if one is refused, do them one by one, so that only that one fails."""
        if len(jobs) > 1:
            requests: Any = [job.request for job in jobs]
            try:
                values = requests[0].together(turn, requests)
            except OrthobanditError:
                pass  # nothing was done, and each will hear what is wrong with its own
            else:
                for job, value in zip(jobs, values, strict=True):
                    if isinstance(value, OrthobanditError):
                        job.error = value
                    else:
                        job.value = value
                _tick(turn)
                return
        for job in jobs:
            self._attempt(job, turn)

    def _attempt(self, job: Job, turn: Turn) -> None:
        """Do one request; if it is refused or adds nothing, only the clock moves."""
        try:
            job.value = job.request(turn)
        except OrthobanditError as error:
            job.error = error
        _tick(turn)

    def _append(self, turn: Turn, writer: Writer) -> None:
        entries = turn.ledger.outbox
        if not entries:
            return
        turn.logged_at = entries[-1].at
        turn.seq = writer.append(entries)
        turn.ledger.outbox = []

    def _caught_up(self, writer: Writer) -> Turn:
        """Return the turn, up to date with what other processes wrote."""
        turn = self._load() if self._turn is None else self._turn
        if writer.last() > turn.seq:
            turn.take_in(writer.entries(turn.seq))
        self._turn = turn
        return turn

    def _load(self) -> Turn:
        """Return a turn from the newest snapshot and all entries since."""
        snapshot = self.store.snapshot()
        if snapshot is None:
            turn = Turn(Ledger(self.settings))
        else:
            seq, state = snapshot
            seq, ledger = resume(self.settings, seq, unpack_lists(state))
            turn = Turn(ledger, seq=seq, kept=seq, logged_at=ledger.at)
        turn.take_in(self.store.entries(turn.seq))
        return turn

    # Snapshots

    def _rest(self) -> None:
        """Take a snapshot of the state from time to time, and let another thread store it.

        The state follows from the log: a snapshot only makes opening faster, so nobody waits for it to be
        written.
        """
        turn = self._turn
        if turn is None or not is_snapshot_due(turn.seq, turn.kept):
            return
        if self._keeping is not None and self._keeping.is_alive():
            return
        try:
            snapshot = self._take_snapshot(turn)
        except Exception as error:  # what was requested is done, whatever comes of this
            LOG.error("no snapshot could be taken after entry %d", turn.seq, exc_info=error)
            return
        if snapshot is not None:
            thread = Thread(target=self._keep_later, args=(snapshot,), name="orthobandit-keeping")
            thread.start()
            self._keeping = thread

    def _take_snapshot(self, turn: Turn) -> Snapshot | None:
        """Return a snapshot of the state; None if nothing is new or the store ends with the process."""
        if turn.kept == turn.seq or isinstance(self.store, MemoryStore) or turn.ledger.outbox:
            return None
        turn.kept = turn.seq
        return Snapshot(turn.seq, turn.logged_at, take_snapshot(turn.ledger))

    def _keep(self, snapshot: Snapshot) -> None:
        # Packed before the file is locked: the state of 1,000 arms would be 80 MB of decimals.
        state = pack_lists(write_out(snapshot.state))
        with self.store.exclusive() as writer:
            writer.keep(snapshot.seq, state)
            writer.forget(snapshot.at - REMEMBERED_SECONDS)

    def _keep_later(self, snapshot: Snapshot) -> None:
        try:
            self._keep(snapshot)
        except (
            OrthobanditError
        ) as error:  # all that was told is in the log, and the next snapshot may be kept
            LOG.warning("the state after entry %d was not kept: %s", snapshot.seq, error)

    # The end

    def close(self) -> None:
        """Store a snapshot and close the store; a second call does nothing.

        The queue's thread does it, after all waiting requests, so that an interrupt cannot stop it half-way.
        """
        if not self._is_closed:
            self.queue.call(self._close)

    def _close(self) -> None:
        """Wait for a snapshot in progress, store the last one, and close the store."""
        if self._is_closed:
            return
        try:
            if self._keeping is not None:
                self._keeping.join()
            snapshot = None if self._turn is None else self._take_snapshot(self._turn)
            if snapshot is not None:
                self._keep(snapshot)
        finally:
            self._is_closed = True
            self._turn = None
            self.store.close()

    def after_fork_in_child(self) -> None:
        """Read the ledger again if a commit was under way at the fork: its thread is not in this process."""
        self._keeping = None
        if self._is_committing:
            self._is_committing = False
            self._turn = None


class _BeatenError(Exception):
    """Somebody else wrote to the experiment while requests were done without a lock."""


class _Memory:
    """Lookups of requests while the file is not locked, and answers to remember once it is.

    Everything read belongs to the moment after entry `seq`; if there are newer entries, it is useless.
    """

    def __init__(self, store: Store, seq: int) -> None:
        self._store = store
        self._seq = seq
        self.remembered: dict[str, tuple[float, str]] = {}

    def known(self, units: Sequence[str]) -> dict[str, int]:
        with self._store.exclusive() as writer:
            self.check_unchanged(writer)
            return writer.known(units)

    def recall(self, key: str) -> str | None:
        with self._store.exclusive() as writer:
            self.check_unchanged(writer)
            return writer.recall(key)

    def remember(self, key: str, at: float, text: str) -> None:
        self.remembered[key] = (at, text)

    def check_unchanged(self, writer: Writer) -> None:
        """Raise :class:`_BeatenError` if others wrote, or did a request with one of the same keys."""
        if writer.last() != self._seq or any(writer.recall(key) is not None for key in self.remembered):
            raise _BeatenError


def _tick(turn: Turn) -> None:
    """Log that the clock has moved, unless an entry says so already."""
    ledger = turn.ledger
    if ledger.at > (ledger.outbox[-1].at if ledger.outbox else turn.logged_at):
        ledger.outbox.append(Noted(ledger.at, "tick", {}))


def _units(jobs: list[Job]) -> list[str]:
    """Return the units that requests will look up."""
    asking = (job.request for job in jobs if isinstance(job.request, Asking))
    return [unit for one in asking for unit in one.names if unit is not None]


def _count_rows(jobs: list[Job]) -> int:
    """Return how many proposals and rewards requests are about, as far as they say so."""
    count = 0
    for job in jobs:
        if isinstance(job.request, Asking):
            count += len(job.request.names)
        elif isinstance(job.request, Telling):
            count += len(job.request.numbers)
    return count
