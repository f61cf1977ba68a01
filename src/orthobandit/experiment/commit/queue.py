"""The queue of requests: threads and coroutines put them in, and one thread of its own commits them.

Whoever calls :meth:`CommitQueue.do` only puts a job into the queue and waits. All that must not be left half
done (transactions, locks, the ledger) is done by the queue's own thread, which Ctrl-C never interrupts:
Python raises KeyboardInterrupt in the main thread alone. An interrupt costs the interrupted caller its
answer, and nobody else anything. For the same reason callers take no locks here: they change the queue by
single calls into C (`deque.append`, `SimpleQueue.put`), which an interrupt cannot split.

The thread starts with the first request and ends after a moment without any, so an idle experiment holds no
thread.
"""

import asyncio
import logging
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock, get_ident
from time import perf_counter
from typing import Any, NamedTuple

from orthobandit.errors import ConflictError
from orthobandit.experiment.commit.transaction import Request
from orthobandit.experiment.forks import Forkable, register_forkable

SLOW_SECONDS = 0.0005  # of a commit, from which on it is worth waiting for others
IDLE_SECONDS = 0.1  # without a request, after which the thread ends
CHECK_SECONDS = 1.0  # after which a caller that waits looks whether the thread is there
QUIET_TURNS = 2  # of an event loop without a new request, after which it is not waited for more
REQUESTS_THAT_WAIT_NO_LONGER = 128  # requests of a commit with which it begins at once

LOG = logging.getLogger("orthobandit.experiment")


def _locked() -> Any:
    lock = Lock()
    lock.acquire()
    return lock


@dataclass(eq=False)
class Job:
    """A request and its result.

    Attributes
    ----------
    request : Request or function
    is_call : bool
        Whether the request is a function without arguments that is called between two commits.
    future : asyncio.Future or None
        What a coroutine waits for.
    done : Lock
        What a thread waits for: locked until the job is done.
    is_given_up : bool
        Whether the caller was interrupted; a job that has not started by then never will.
    """

    request: Any
    is_call: bool = False
    future: "asyncio.Future[Any] | None" = None
    done: Any = field(default_factory=_locked)
    is_given_up: bool = False
    value: Any = None
    error: BaseException | None = None

    def result(self) -> Any:
        """Return what the request returned, or raise what it raised."""
        if self.error is not None:
            raise self.error
        return self.value


class _Commit(NamedTuple):
    """How many requests a commit had, and how long it took."""

    size: int
    seconds: float


class CommitQueue(Forkable):
    """Collects the requests that arrive during a commit into the next commit.

    Parameters
    ----------
    commit : function
        Does jobs in one commit and fills in the value or the error of each.
    rest : function
        Called after each commit, once its callers have been released and before the next commit begins.
    """

    def __init__(self, commit: Callable[[list[Job]], None], rest: Callable[[], None]) -> None:
        self._commit = commit
        self._rest = rest
        self._begin_anew()
        register_forkable(self)

    def _begin_anew(self) -> None:
        """Start with an empty queue: at first, and in the child of a fork."""
        self._waiting = deque[Job]()
        self._bell = SimpleQueue[None]()  # wakes the thread
        self._thread_lives = Lock()  # held by the thread for as long as it lives
        self._at_work = Lock()  # held by the thread during a commit, and by whoever forks
        self._worker: int | None = None
        self._is_busy = False
        self._forking: int | None = None  # the thread that forks
        self._last = _Commit(0, 0.0)
        # Loops that gather requests; each is put in and taken out in its own thread.
        self._gathering = set[asyncio.AbstractEventLoop]()

    def __len__(self) -> int:
        return len(self._waiting)

    # What callers do

    def do(self, request: Request) -> Any:
        """Do a request in one commit with others that wait; return what it returns."""
        return self._wait_for(Job(request))

    def call(self, function: Callable[[], Any]) -> Any:
        """Call a function in the queue's thread between two commits; return what it returns."""
        return self._wait_for(Job(function, is_call=True))

    def _wait_for(self, job: Job) -> Any:
        """Queue a job and wait until the thread has done it."""
        if get_ident() == self._worker:
            raise ConflictError(
                "a clock, policy or function that an experiment calls cannot use the same experiment: it"
                " would wait for itself; use it after the call"
            )
        try:
            self._waiting.append(job)
            self._ring()
            while not job.done.acquire(timeout=CHECK_SECONDS):
                self._ring()
        except BaseException:
            job.is_given_up = True
            raise
        return job.result()

    def soon(self, request: Request) -> "asyncio.Future[Any]":
        """Do a request as :meth:`do` does, while a coroutine waits for what it returns."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._waiting.append(Job(request, future=future))
        # During a commit nothing needs to be begun: the thread looks at the queue after it.
        if not self._is_busy:
            self._begin_gathering(loop)
        return future

    def _begin_gathering(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop not in self._gathering:
            self._gathering.add(loop)
            self._gather(loop)

    def _gather(self, loop: asyncio.AbstractEventLoop, seen: int = 0, quiet: int = 0) -> None:
        """Begin a commit once the event loop has nothing else to do that may bring another request.

        Clients answered by the last commit send their next requests while the rest are being answered.
        Starting with the first of these would take two commits, and two threads competing for the
        interpreter.
        """
        count = len(self._waiting)
        quiet = quiet + 1 if count == seen else 0
        if quiet < QUIET_TURNS and count < REQUESTS_THAT_WAIT_NO_LONGER:
            loop.call_soon(self._gather, loop, count, quiet)
            return
        self._gathering.discard(loop)
        if not self._is_busy and self._waiting:
            self._ring()

    def _ring(self) -> None:
        """Wake the thread, or start one.

        No request is overlooked, because it is in the queue before the bell rings: a thread about to end
        checks the bell once more after releasing its lock, and if none is alive, one starts here.
        """
        self._bell.put(None)
        if self._thread_lives.locked():
            return
        try:
            start_new_thread(self._work, (IDLE_SECONDS,))
        except RuntimeError:  # the interpreter ends, or the system has no more threads: then in this one
            self._work(0.0)

    # What the thread does

    def _work(self, idle_seconds: float) -> None:
        """Commit waiting requests until none has arrived for `idle_seconds`."""
        while not self._bell.empty() and self._thread_lives.acquire(blocking=False):
            self._worker = get_ident()
            try:
                while self._has_rung(idle_seconds):
                    self._commit_waiting()
            finally:
                self._worker = None
                self._thread_lives.release()

    def _has_rung(self, seconds: float) -> bool:
        try:
            self._bell.get(timeout=seconds)
        except Empty:
            return False
        return True

    def _commit_waiting(self) -> None:
        """Do all waiting requests in one commit; those that arrive meanwhile are next."""
        self._is_busy = True
        try:
            self._let_others_come()
            jobs = self._take()
            with self._at_work:
                self._do_jobs(jobs)
        finally:
            self._is_busy = False
        # Looked at after it is said that nobody is busy: who came before that relies on this.
        left = list(self._waiting)
        if any(job.future is None for job in left):
            self._bell.put(None)
            return
        for loop in {job.future.get_loop() for job in left if job.future is not None}:
            with suppress(RuntimeError):  # it was closed: nobody waits there any more
                loop.call_soon_threadsafe(self._begin_gathering, loop)

    def _let_others_come(self) -> None:
        """Wait a moment for the threads of the last commit, which often come back at once.

        Otherwise every second commit would hold only the request of the fastest thread, and all others would
        wait for two commits. Waiting an eighth of the last commit's time costs less. Requests of coroutines
        were gathered before (:meth:`_gather`).
        """
        size, seconds = self._last
        if size < 2 or seconds < SLOW_SECONDS or any(job.future is not None for job in list(self._waiting)):
            return
        until = perf_counter() + seconds / 8
        while len(self._waiting) < size and (left := until - perf_counter()) > 0:
            self._has_rung(left)

    def _take(self) -> list[Job]:
        """Take all waiting jobs out of the queue, without those whose callers were interrupted."""
        # The bell first: who rings after this has put in a job that may be taken here or be left for later.
        while not self._bell.empty():
            self._bell.get()
        jobs = []
        while self._waiting:
            job = self._waiting.popleft()
            if not job.is_given_up:
                jobs.append(job)
        return jobs

    def _do_jobs(self, jobs: list[Job]) -> None:
        """Do the requests in one commit, then the calls one by one, then the housekeeping."""
        requests = [job for job in jobs if not job.is_call]
        try:
            if requests:
                start = perf_counter()
                self._commit(requests)
                self._last = _Commit(len(requests), perf_counter() - start)
        except BaseException as error:
            for job in requests:
                job.error = error
        finally:
            _wake(requests)
        for job in jobs:
            if job.is_call:
                try:
                    job.value = job.request()
                except BaseException as error:
                    job.error = error
                finally:
                    _wake([job])
        try:
            self._rest()
        except Exception as error:  # those who waited have their answers, and the next commit may be well
            LOG.error("an experiment could not do its housekeeping after a commit", exc_info=error)

    # Forks: see :mod:`orthobandit.experiment.forks`

    def before_fork(self, seconds: float) -> None:
        """Wait for the commit that is under way, and let none begin."""
        me = get_ident()
        if me != self._worker and self._at_work.acquire(timeout=seconds):
            self._forking = me

    def after_fork_in_parent(self) -> None:
        """Let commits begin."""
        if self._forking == get_ident():
            self._forking = None
            self._at_work.release()

    def after_fork_in_child(self) -> None:
        """Forget the thread and the callers, which do not exist in the child."""
        self._begin_anew()


def _wake(jobs: list[Job]) -> None:
    """Release the callers of finished jobs; each event loop is called once."""
    loops: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        if job.future is None:
            job.done.release()
        else:
            loops.setdefault(job.future.get_loop(), []).append(job)
    for loop, some in loops.items():
        with suppress(RuntimeError):  # it was closed
            loop.call_soon_threadsafe(_resolve, some)


def _resolve(jobs: list[Job]) -> None:
    """Set the results of coroutines' futures; runs in their event loop."""
    for job in jobs:
        if job.future is None or job.future.done():  # its caller has gone away
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.value)
