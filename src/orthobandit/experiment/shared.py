"""A ledger that threads and processes share: requests are done in turns, and in common commits."""

import asyncio
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Condition, Lock
from time import perf_counter
from typing import Any, NamedTuple

from orthobandit.errors import OrthobanditError
from orthobandit.experiment.entries import Noted
from orthobandit.experiment.joint import Asking, groups
from orthobandit.experiment.ledger import Ledger
from orthobandit.experiment.settings import Settings
from orthobandit.experiment.store import MemoryStore, Store, Writer
from orthobandit.experiment.turn import Request, Turn

SLOW = 0.0005  # seconds of a commit from which on it is worth waiting for others
REMEMBERED = 7 * 86_400.0  # seconds for which requests with a key are remembered
POOL = ThreadPoolExecutor(32, "orthobandit")  # does requests that coroutines wait for
# Entries after which the state is kept, so that opening need not begin at the first; later, a tenth of all.
SNAPSHOT = 10_000


@dataclass(eq=False)
class _Job:
    """A request, done together with those of others in one commit.

    Attributes
    ----------
    request : Request
    lock : Lock
        Held until the thread that waits for it is to go on: the request is done, or the thread is to lead.
    future : asyncio.Future or None
        What a coroutine waits for instead.
    leads : bool
        Whether the thread is to do all requests that wait, its own among them.
    """

    request: Request
    lock: Any = field(default_factory=Lock)
    future: "asyncio.Future[Any] | None" = None
    leads: bool = False
    is_done: bool = False
    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class _Commit(NamedTuple):
    """How many requests a commit had, and how long it took."""

    size: int
    seconds: float


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
        self.store, self.settings = store, settings
        self._jobs, self._changed = deque[_Job](), Condition(Lock())
        self._is_busy, self._is_gathering, self._last = False, False, _Commit(0, 0.0)
        self._turn: Turn | None = None

    def do(self, request: Request) -> Any:
        """Do a request, in one commit with those of others that wait; return what it returns.

        Whoever finds nobody at work leads: does all requests that wait, wakes those who wait for them, and
        lets one that came meanwhile lead the next commit.
        """
        job = _Job(request)
        job.lock.acquire()
        try:
            if not self._leads(job):
                job.lock.acquire()
                if job.is_done:
                    return job.result()
            self._lead()
        except BaseException:
            self._give_up(job)
            raise
        return job.result()

    def soon(self, request: Request) -> "asyncio.Future[Any]":
        """Do a request as :meth:`do` does, while a coroutine waits for what it returns."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._leads(_Job(request, future=future)):
            POOL.submit(self._lead_all)
        return future

    def _leads(self, job: _Job) -> bool:
        """Put a request into the queue; tell whether nobody is at work."""
        with self._changed:
            self._jobs.append(job)
            if not self._is_busy:
                self._is_busy = job.leads = True
                return True
            if self._is_gathering and len(self._jobs) >= self._last.size:
                self._changed.notify()
            return False

    def _lead(self) -> None:
        """Do the requests that wait in one commit, and let another go on with those that come meanwhile."""
        jobs: list[_Job] = []
        try:
            jobs = self._gathered()
            self._commit(jobs)
        finally:
            self._hand_over()
            _wake(jobs)

    def _lead_all(self) -> None:
        """Do requests until none waits."""
        while True:
            jobs = self._gathered()
            try:
                self._commit(jobs)
            except BaseException as error:  # those who wait are told, and the next commit may be well
                if not isinstance(error, Exception):
                    raise
            finally:
                _wake(jobs)
            with self._changed:
                if not self._jobs:
                    self._is_busy = False
                    return

    def _hand_over(self) -> None:
        """Let whoever is first in the queue lead."""
        with self._changed:
            if not self._jobs:
                self._is_busy = False
                return
            first = self._jobs[0]
            first.leads = True
        if first.future is None:
            first.lock.release()
        else:
            POOL.submit(self._lead_all)

    def _give_up(self, job: _Job) -> None:
        """Take back a request that nobody waits for any more: its thread was interrupted."""
        with self._changed:
            if job not in self._jobs:
                return
            self._jobs.remove(job)
        if job.leads:
            self._hand_over()

    def _gathered(self) -> list[_Job]:
        """Return the requests that wait, once those who were in the last commit had time to come again.

        Otherwise the first of them would commit alone while the others wait, every other time. An eighth of
        the time that the disk takes is less than what that costs.
        """
        size, seconds = self._last
        with self._changed:
            if size > 1 and seconds > SLOW:
                self._is_gathering = True
                try:
                    self._changed.wait_for(lambda: len(self._jobs) >= size, seconds / 8)
                finally:
                    self._is_gathering = False
            jobs = list(self._jobs)
            self._jobs.clear()
        return jobs

    def _commit(self, jobs: list[_Job]) -> None:
        start = perf_counter()
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
                job.error, job.is_done = error, True
            if not isinstance(error, OrthobanditError):
                raise
            return
        turn.forget()
        self._last = _Commit(len(jobs), perf_counter() - start)
        for job in jobs:
            job.is_done = True

    def _attempt_all(self, jobs: list[_Job], turn: Turn) -> None:
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

    def _attempt(self, job: _Job, turn: Turn) -> None:
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
        if turn.seq - turn.kept >= max(SNAPSHOT, turn.seq // 10):
            self.keep(turn)
            writer.forget(turn.logged_at - REMEMBERED)

    def keep(self, turn: Turn) -> None:
        """Keep a snapshot of the ledger, unless nothing is new or the store ends with the process."""
        is_kept = turn.kept == turn.seq or isinstance(self.store, MemoryStore)
        if turn.writer is not None and not is_kept and not turn.ledger.outbox:
            turn.writer.keep(turn.seq, turn.ledger.to_json())
            turn.kept = turn.seq

    def _caught_up(self, writer: Writer) -> Turn:
        """Return the turn after all that anybody has written."""
        turn = self._loaded() if self._turn is None else self._turn
        turn.writer = writer
        if writer.last() > turn.seq:
            for seq, entry in writer.entries(turn.seq):
                turn.ledger.apply(entry)
                turn.seq, turn.logged_at = seq, entry.at
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


def _units(jobs: list[_Job]) -> list[str]:
    """Return the units that requests will look up."""
    asking = (job.request for job in jobs if isinstance(job.request, Asking))
    return [unit for one in asking for unit in one.names if unit is not None]


def _wake(jobs: list[_Job]) -> None:
    """Let those go on who wait for requests that are done; a loop of coroutines is called once."""
    loops: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        if job.future is None:
            job.lock.release()
        else:
            loops.setdefault(job.future.get_loop(), []).append(job)
    for loop, some in loops.items():
        if not loop.is_closed():
            loop.call_soon_threadsafe(_resolve, some)


def _resolve(jobs: list[_Job]) -> None:
    for job in jobs:
        if job.future is None or job.future.done():  # its caller has gone away
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.value)
