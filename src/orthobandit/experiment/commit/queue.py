"""Requests that wait for the next commit: threads and coroutines share it, and one of them leads."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Condition, Lock
from time import perf_counter
from typing import Any, NamedTuple

from orthobandit.experiment.commit.transaction import Request

SLOW = 0.0005  # seconds of a commit from which on it is worth waiting for others
POOL = ThreadPoolExecutor(32, "orthobandit")  # does requests that coroutines wait for
QUIET = 2  # turns of a loop without a new request after which it is not waited for more
ENOUGH = 128  # requests of a commit with which it begins at once


@dataclass(eq=False)
class Job:
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
        """Return what the request returned, or raise what it raised."""
        if self.error is not None:
            raise self.error
        return self.value


class _Commit(NamedTuple):
    """How many requests a commit had, and how long it took."""

    size: int
    seconds: float


class Jobs:
    """Those who wait while another commits are in the next commit together.

    Parameters
    ----------
    commit : function
        Does jobs, marks each as done, and may raise what was in its way.
    rest : function
        Called after each commit, when those who waited for it go on, and before the next begins.
    """

    def __init__(self, commit: Callable[[list[Job]], None], rest: Callable[[], None]) -> None:
        self._commit = commit
        self._rest = rest
        self._waiting = deque[Job]()
        self._changed = Condition(Lock())
        self._is_busy = False
        self._is_gathering = False
        self._last = _Commit(0, 0.0)
        self._gathering = set[asyncio.AbstractEventLoop]()

    def __len__(self) -> int:
        return len(self._waiting)

    def do(self, request: Request) -> Any:
        """Do a request, in one commit with those of others that wait; return what it returns.

        Whoever finds nobody at work leads: does all requests that wait, wakes those who wait for them, and
        lets one that came meanwhile lead the next commit.
        """
        job = Job(request)
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
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        with self._changed:
            self._waiting.append(Job(request, future=future))
            is_first = not self._is_busy and loop not in self._gathering
            if is_first:
                self._gathering.add(loop)
            self._notify()
        if is_first:
            self._gather(loop)
        return future

    def _gather(self, loop: asyncio.AbstractEventLoop, seen: int = 0, quiet: int = 0) -> None:
        """Begin a commit once the loop has nothing else to do that may bring another request.

        Those who were answered by the last commit come again, and are read while the others are answered: to
        begin with the first of them would take two commits, and two threads that wait for the interpreter.
        """
        count = len(self._waiting)
        quiet = quiet + 1 if count == seen else 0
        if quiet < QUIET and count < ENOUGH:
            loop.call_soon(self._gather, loop, count, quiet)
            return
        with self._changed:
            self._gathering.discard(loop)
            if self._is_busy or not self._waiting:  # another has begun meanwhile
                return
            self._is_busy = True
        POOL.submit(self._lead_for_loops)

    def _leads(self, job: Job) -> bool:
        """Put the request of a thread into the queue; tell whether nobody is at work."""
        with self._changed:
            self._waiting.append(job)
            if not self._is_busy:
                self._is_busy = job.leads = True
                return True
            self._notify()
            return False

    def _notify(self) -> None:
        if self._is_gathering and len(self._waiting) >= self._last.size:
            self._changed.notify()

    def _lead(self) -> None:
        """Do the requests that wait in one commit, and let another go on with those that come meanwhile."""
        jobs: list[Job] = []
        try:
            jobs = self._gathered()
            self._committed(jobs)
        finally:
            self._end(jobs)

    def _lead_for_loops(self) -> None:
        """Do as :meth:`_lead`, in a thread that nobody waits for."""
        jobs = self._taken()
        try:
            with suppress(Exception):  # those who wait are told, and the next commit may be well
                self._committed(jobs)
        finally:
            self._end(jobs)

    def _end(self, jobs: list[Job]) -> None:
        _wake(jobs)
        try:
            self._rest()
        finally:
            self._hand_over()

    def _committed(self, jobs: list[Job]) -> None:
        start = perf_counter()
        self._commit(jobs)
        self._last = _Commit(len(jobs), perf_counter() - start)

    def _hand_over(self) -> None:
        """Let a thread that waits lead; if none does, loops that have requests gather."""
        with self._changed:
            thread = next((job for job in self._waiting if job.future is None), None)
            loops = set[asyncio.AbstractEventLoop]()
            if thread is not None:
                thread.leads = True
            else:
                self._is_busy = False
                loops = {job.future.get_loop() for job in self._waiting if job.future is not None}
                loops -= self._gathering
                self._gathering |= loops
        if thread is not None:
            thread.lock.release()
        for loop in loops:
            with suppress(RuntimeError):  # it was closed: nobody waits there any more
                loop.call_soon_threadsafe(self._gather, loop)

    def _give_up(self, job: Job) -> None:
        """Take back a request that nobody waits for any more: its thread was interrupted."""
        with self._changed:
            if job not in self._waiting:
                return
            self._waiting.remove(job)
        if job.leads:
            self._hand_over()

    def _gathered(self) -> list[Job]:
        """Return the requests that wait, once those who were in the last commit had time to come again.

        Otherwise the first of them would commit alone while the others wait, every other time. An eighth of
        the time that the disk takes is less than what that costs.
        """
        size, seconds = self._last
        with self._changed:
            if size > 1 and seconds > SLOW:
                self._is_gathering = True
                try:
                    self._changed.wait_for(lambda: len(self._waiting) >= size, seconds / 8)
                finally:
                    self._is_gathering = False
        return self._taken()

    def _taken(self) -> list[Job]:
        with self._changed:
            jobs = list(self._waiting)
            self._waiting.clear()
        return jobs


def _wake(jobs: list[Job]) -> None:
    """Let those go on who wait for requests that are done; a loop of coroutines is called once."""
    loops: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        if job.future is None:
            job.lock.release()
        else:
            loops.setdefault(job.future.get_loop(), []).append(job)
    for loop, some in loops.items():
        with suppress(RuntimeError):  # it was closed
            loop.call_soon_threadsafe(_resolve, some)


def _resolve(jobs: list[Job]) -> None:
    for job in jobs:
        if job.future is None or job.future.done():  # its caller has gone away
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.value)
