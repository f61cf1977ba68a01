"""Simulated visitors for a first look at the service: `orthobandit demo-traffic`."""

import heapq
import http.client
import multiprocessing
import os
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from secrets import token_hex
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_positive, check_whole
from orthobandit._foundation.random import stream
from orthobandit.errors import Argument, ClosedError, ParameterError, ServiceError, UnknownExperimentError
from orthobandit.service.client.client import Client
from orthobandit.service.client.data import ReportData
from orthobandit.service.settings import PORT

# How much more often visitors sign up on each page than on the first one.
PAGES = {
    "as it is": 0.0,
    "short form": 0.02,
    "with video": -0.02,
    "customer stories": 0.05,
    "free month": 0.1,
}
# share that signs up; how far a day moves it; seconds of a day
SIGN_UP_SHARE = 0.25
DAILY_SWING = 0.12
DAY_SECONDS = 60.0
# a newsletter goes out: how much more, how often, for how long
NEWSLETTER_LIFT = 0.15
NEWSLETTER_EVERY_SECONDS = 45.0
NEWSLETTER_SECONDS = 6.0
SILENT_SHARE = 0.1  # share of those who do not sign up for whom no reward is ever reported
# seconds until a reward is known, on average and at most
MEAN_DELAY_SECONDS = 1.5
WINDOW_SECONDS = 10.0
KEY = "landing-page"
STEP_SECONDS = 0.25  # between two batches of visitors
PROGRESS_SECONDS = 5.0  # between two lines of progress
MAX_BATCH = 5_000  # visitors
HOST = "127.0.0.1"
MAX_TRIES = 60  # while the server begins


class Heard(NamedTuple):
    """Rewards, with the second (n,) at which each becomes known, its proposal (n,) and its value (n,)."""

    at: np.ndarray
    ids: list[int]
    rewards: np.ndarray


@dataclass(frozen=True)
class Visitors:
    """Visitors whose sign-up rate drifts: a daily season compressed into a minute, and bursts.

    Parameters
    ----------
    rate : float
        Visitors a second, on average over a day.
    seed : int

    Examples
    --------
    >>> visitors = Visitors(rate=100)
    >>> round(visitors.baseline(15.0), 2), round(visitors.baseline(46.0), 2)
    (0.37, 0.28)
    """

    rate: float
    seed: int = 0

    def baseline(self, at: float) -> float:
        """Return the share that signs up on the first page `at` seconds after the beginning."""
        season = DAILY_SWING * np.sin(2 * np.pi * at / DAY_SECONDS)
        burst = (
            NEWSLETTER_LIFT
            if at >= NEWSLETTER_EVERY_SECONDS and at % NEWSLETTER_EVERY_SECONDS < NEWSLETTER_SECONDS
            else 0.0
        )
        return float(SIGN_UP_SHARE + season + burst)

    def count(self, step: int, seconds: float) -> int:
        """Return how many visitors come in a step of `seconds`."""
        return int(stream(self.seed, "demo-visitors", step).poisson(self.rate * seconds))

    def heard(self, step: int, at: float, ids: list[int], labels: list[str]) -> Heard:
        """Return the rewards that will become known of visitors who saw these pages at second `at`."""
        random = stream(self.seed, "demo-rewards", step)
        chances = self.baseline(at) + np.array([PAGES.get(label, 0.0) for label in labels])
        rewards = (random.random(len(ids)) < chances).astype(float)
        is_heard = (rewards > 0) | (random.random(len(ids)) >= SILENT_SHARE)
        delays = np.minimum(random.exponential(MEAN_DELAY_SECONDS, len(ids)), 0.8 * WINDOW_SECONDS)
        told = np.flatnonzero(is_heard)
        return Heard(at + delays[told], [ids[place] for place in told], rewards[told])


class Traffic:
    """Plays visitors until an arm is declared, or for some time.

    Parameters
    ----------
    client : Client
    visitors : Visitors
    key : str
        Of the experiment, which is begun if there is none.
    say : function
        Shows a line.
    clock, sleep : functions
        Seconds that pass; waits.
    """

    def __init__(
        self,
        client: Client,
        visitors: Visitors,
        *,
        key: str = KEY,
        say: Callable[[str], None] = print,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        check_positive("rate", visitors.rate)
        self._client = client
        self._visitors = visitors
        self._key = key
        self._say = say
        self._clock = clock
        self._sleep = sleep
        self._awaited: list[tuple[float, int, float]] = []  # heap of when, proposal, reward
        self._run = token_hex(4)
        self._asked = 0
        self.told = self.late = 0

    def play(self, seconds: float | None = None) -> str | None:
        """Play until an arm is declared, or for `seconds`; return the server's advice."""
        if seconds is not None:
            check_positive("seconds", seconds)
        self._begin()
        start = shown = self._clock()
        report = self._client.report(self._key)
        step = 0
        while report["declared"] is None and report["status"] != "stopped":
            now = self._clock() - start
            if seconds is not None and now >= seconds:
                break
            self._step(step, now)
            step += 1
            if self._clock() - shown >= PROGRESS_SECONDS:
                shown = self._clock()
                report = self._client.report(self._key)
                self._say(self._line(self._clock() - start, report))
            # A server that is slower than the visitors is not given more than it takes.
            self._sleep(max(0.0, start + step * STEP_SECONDS - self._clock()))
        report = self._client.report(self._key)
        self._say(report["advice"])
        declared: str | None = report["declared"]
        return declared

    def _begin(self) -> None:
        try:
            self._client.experiment(self._key)
        except UnknownExperimentError:
            self._client.create(self._key, list(PAGES), rewards=[0, 1], window=f"{WINDOW_SECONDS:g}s")
            self._say(f"began the experiment {self._key!r} with {len(PAGES)} pages")

    def _step(self, step: int, now: float) -> None:
        """Ask for the visitors of one step, and report the rewards that have become known."""
        try:
            self._ask(step, now)
        except ClosedError:
            self._sleep(STEP_SECONDS)  # paused or stopped: the next report says which
        due: list[tuple[float, int, float]] = []
        while self._awaited and self._awaited[0][0] <= now:
            due.append(heapq.heappop(self._awaited))
        if not due:
            return
        try:
            self._client.tell_many(self._key, [one[1] for one in due], [one[2] for one in due])
            self.told += len(due)
        except ClosedError:
            self.late += len(due)  # this machine slept, and windows have passed meanwhile

    def _ask(self, step: int, now: float) -> None:
        """Ask for the arms of a step's visitors, and remember when each of them will report its reward."""
        count = min(self._visitors.count(step, STEP_SECONDS), MAX_BATCH)
        if not count:
            return
        units = [f"{self._run}-{self._asked + place}" for place in range(count)]
        shown = self._client.ask_many(self._key, units=units)
        self._asked += count
        heard = self._visitors.heard(step, now, [one.id for one in shown], [one.label for one in shown])
        for at, number, reward in zip(heard.at.tolist(), heard.ids, heard.rewards.tolist(), strict=True):
            heapq.heappush(self._awaited, (at, number, reward))

    def _line(self, now: float, report: ReportData) -> str:
        """Return a line of progress."""
        left = [arm["label"] for arm in report["arms"] if arm["is_active"]]
        late = f", {self.late:,} rewards too late" if self.late else ""
        leads = "nobody leads yet" if report["leader"] is None else f"{report['leader']!r} leads"
        return (
            f"{now:4.0f} s: {self._asked:,} visitors, {report['settled']:,} settled, baseline"
            f" {self._visitors.baseline(now):.2f}, {leads}, {len(left)} of"
            f" {len(report['arms'])} pages left{late}"
        )


def show(
    visitors: Visitors,
    *,
    port: int = PORT,
    seconds: float | None = None,
    say: Callable[[str], None] = print,
    is_kept: bool = True,
) -> None:
    """Serve a new database and play visitors against it until an arm is declared; then keep serving.

    Parameters
    ----------
    visitors : Visitors
    port : int
        On loopback; without tokens, since nobody else can reach it.
    seconds : float, optional
        How long visitors come at most.
    say : function
        Shows a line.
    is_kept : bool
        Whether to serve on when no more visitors come, until Ctrl-C.

    Raises
    ------
    ParameterError
        If another program listens on the port: the visitors would go there.
    """
    check_whole("port", port, most=65535)
    _check_free(port)
    with _ended_by_sigterm(), tempfile.TemporaryDirectory(prefix="orthobandit-demo-") as folder:
        where = Path(folder) / "demo.db"
        options = {"host": HOST, "port": port, "with_tokens": False, "say": _quiet}
        # Not forked: this process may have threads.
        process = multiprocessing.get_context("spawn").Process(target=_serve, args=(where,), kwargs=options)
        process.start()
        try:
            with Client(f"http://{HOST}:{port}", retries=MAX_TRIES) as client:
                say(f"dashboard: http://{HOST}:{port}/ (Ctrl-C ends it)")
                _wait_until_ready(port, process, say)
                Traffic(client, visitors, say=say).play(seconds)
            if is_kept:
                say(f"the server goes on at http://{HOST}:{port}/ until Ctrl-C")
                process.join()
                raise ServiceError(f"the server ended by itself, with code {process.exitcode}")
        finally:
            process.terminate()
            process.join()


def _wait_until_ready(port: int, process: BaseProcess, say: Callable[[str], None]) -> None:
    """Wait until the server takes requests, and say how long that has been."""
    say("the server starts; for the first time it compiles, which takes about half a minute")
    start = shown = time.monotonic()
    while not _is_ready(port):
        if not process.is_alive():
            raise ServiceError(f"the server ended before it was ready, with code {process.exitcode}")
        time.sleep(STEP_SECONDS)
        if time.monotonic() - shown >= PROGRESS_SECONDS:
            shown = time.monotonic()
            say(f"{shown - start:4.0f} s: not ready yet")


def _is_ready(port: int) -> bool:
    """Tell whether the server takes requests."""
    connection = http.client.HTTPConnection(HOST, port, timeout=PROGRESS_SECONDS)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:  # it does not listen yet, or is too busy to answer
        return False
    finally:
        connection.close()


def _serve(where: Path, **options: Any) -> None:
    """Serve until the process that simulates visitors ends, even if it is killed."""
    from orthobandit.service.serving import serve  # visitors of a server elsewhere need none here

    Thread(target=_end_with_parent, daemon=True).start()
    serve(where, **options)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that the server and its folder are removed as well."""
    if current_thread() is not main_thread():  # only the main thread may say what signals do
        yield
        return
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


def _check_free(port: int) -> None:
    """Raise :class:`ParameterError` if another program listens on the port."""
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        raise ParameterError(Argument("port", port), f" is taken ({error.strerror}); give another") from None


def _quiet(_: str) -> None:
    """Print nothing: this module prints what the server would."""
