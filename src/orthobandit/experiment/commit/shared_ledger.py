"""A ledger that threads and processes share: requests are done in turns, and in common commits."""

import logging
from threading import Thread
from typing import Any, NamedTuple

from orthobandit.errors import OrthobanditError
from orthobandit.experiment.commit.group import Asking, groups
from orthobandit.experiment.commit.queue import Job, Jobs
from orthobandit.experiment.commit.transaction import Turn
from orthobandit.experiment.ledger.entries import Noted
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.ledger.snapshot import taken, written_out
from orthobandit.experiment.settings import Settings
from orthobandit.experiment.store import MemoryStore, Store, Writer

REMEMBERED = 7 * 86_400.0  # seconds for which requests with a key are remembered
# Entries after which the state is kept, so that opening need not begin at the first; later, a tenth of all.
SNAPSHOT = 2_000

LOG = logging.getLogger("orthobandit.experiment")


class Picture(NamedTuple):
    """The state after an entry, and when that was."""

    seq: int
    at: float
    state: dict[str, Any]


class SharedLedger:
    """Does requests one after the other, each against all that anybody has written.

    Those that wait while another commits are done together in the next commit: one wait for the disk serves
    them all. When :meth:`do` has returned, or what :meth:`soon` returned is awaited, what the request did is
    in the store.

    Parameters
    ----------
    store : Store
    settings : Settings
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.settings = settings
        self._turn: Turn | None = None
        self._jobs = Jobs(lambda jobs: self._commit(jobs), self._rest)
        self.do = self._jobs.do
        self.soon = self._jobs.soon
        self._keeping: Thread | None = None

    def _commit(self, jobs: list[Job]) -> None:
        try:
            with self.store.exclusive() as writer:
                turn = self._caught_up(writer)
                if self.settings.sticky:
                    turn.look_up(_units(jobs))
                for places in groups(job.request for job in jobs):
                    self._attempt_all([jobs[place] for place in places], turn)
                self._append(turn, writer)
        except BaseException as error:
            self._turn = None  # what was done is not in the store; the next request reads what is
            for job in jobs:
                job.error = error
                job.is_done = True
            if not isinstance(error, OrthobanditError):
                raise
            return
        turn.forget()
        for job in jobs:
            job.is_done = True

    def _attempt_all(self, jobs: list[Job], turn: Turn) -> None:
        """Do requests together, or one by one if one of them is refused: the others do not suffer for it."""
        if len(jobs) > 1:
            requests: Any = [job.request for job in jobs]
            try:
                values = requests[0].together(turn, requests)
            except OrthobanditError:
                pass  # nothing was done, and each will hear what is wrong with its own
            else:
                for job, value in zip(jobs, values, strict=True):
                    job.value = value
                _tick(turn)
                return
        for job in jobs:
            self._attempt(job, turn)

    def _attempt(self, job: Job, turn: Turn) -> None:
        """Do one request; one that is refused, or has nothing new to tell, moves the clock and no more."""
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

    def _rest(self) -> None:
        """Take a picture of the state from time to time, and let another thread keep it.

        The state follows from the log: a picture is a short cut for those who open it, and nobody waits for
        it to be written.
        """
        turn = self._turn
        if turn is None or turn.seq - turn.kept < max(SNAPSHOT, turn.seq // 10):
            return
        if self._keeping is not None and self._keeping.is_alive():
            return
        try:
            picture = self._picture(turn)
        except Exception as error:  # what was requested is done, whatever comes of this
            LOG.error("no picture could be taken after entry %d", turn.seq, exc_info=error)
            return
        if picture is not None:
            # Not of the pool: its threads would be lost if this process were forked.
            self._keeping = Thread(target=self._keep_later, args=(picture,), name="orthobandit-keeping")
            self._keeping.start()

    def keep(self) -> None:
        """Keep the state as it is now, before its store is closed."""
        if self._keeping is not None:
            self._keeping.join()
        picture = self.do(self._picture)
        if picture is not None:
            self._keep(picture)

    def _picture(self, turn: Turn) -> Picture | None:
        """Return the state, unless nothing is new or the store ends with the process."""
        if turn.kept == turn.seq or isinstance(self.store, MemoryStore) or turn.ledger.outbox:
            return None
        turn.kept = turn.seq
        return Picture(turn.seq, turn.logged_at, taken(turn.ledger))

    def _keep(self, picture: Picture) -> None:
        state = written_out(picture.state)
        with self.store.exclusive() as writer:
            writer.keep(picture.seq, state)
            writer.forget(picture.at - REMEMBERED)

    def _keep_later(self, picture: Picture) -> None:
        try:
            self._keep(picture)
        except OrthobanditError as error:  # all that was told is in the log, and the next picture may be kept
            LOG.warning("the state after entry %d was not kept: %s", picture.seq, error)

    def _caught_up(self, writer: Writer) -> Turn:
        """Return the turn after all that anybody has written."""
        turn = self._loaded() if self._turn is None else self._turn
        turn.writer = writer
        if writer.last() > turn.seq:
            for seq, entry in writer.entries(turn.seq):
                turn.ledger.apply(entry)
                turn.seq = seq
                turn.logged_at = entry.at
        self._turn = turn
        return turn

    def _loaded(self) -> Turn:
        snapshot = self.store.snapshot()
        if snapshot is None:
            return Turn(Ledger(self.settings))
        seq, state = snapshot
        ledger = Ledger.from_json(self.settings, state)
        return Turn(ledger, seq=seq, kept=seq, logged_at=ledger.at)


def _tick(turn: Turn) -> None:
    """Log that the clock has moved, if no entry says so."""
    ledger = turn.ledger
    if ledger.at > (ledger.outbox[-1].at if ledger.outbox else turn.logged_at):
        ledger.outbox.append(Noted(ledger.at, "tick", {}))


def _units(jobs: list[Job]) -> list[str]:
    """Return the units that requests will look up."""
    asking = (job.request for job in jobs if isinstance(job.request, Asking))
    return [unit for one in asking for unit in one.names if unit is not None]
