"""Made-up visitors against a running server: they ask, and what came of them is told late, or never."""

import heapq
import time
from collections.abc import Callable
from secrets import token_hex

from orthobandit._foundation.checks import check_positive
from orthobandit.errors import ClosedError, UnknownExperimentError
from orthobandit.service.client.client import Client
from orthobandit.service.client.data import ReportData
from orthobandit.service.demo.visitors import PAGES, WINDOW, Visitors

KEY = "landing-page"
STEP = 0.25  # seconds between two batches of visitors
LINES = 5.0  # seconds between two lines of progress
MOST = 5_000  # visitors of a batch


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
        """Play until an arm is declared, or for `seconds`; return what the server says of the best arm."""
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
            if self._clock() - shown >= LINES:
                shown = self._clock()
                report = self._client.report(self._key)
                self._say(self._line(self._clock() - start, report))
            # A server that is slower than the visitors is not given more than it takes.
            self._sleep(max(0.0, start + step * STEP - self._clock()))
        report = self._client.report(self._key)
        self._say(report["advice"])
        declared: str | None = report["declared"]
        return declared

    def _begin(self) -> None:
        try:
            self._client.experiment(self._key)
        except UnknownExperimentError:
            self._client.create(self._key, list(PAGES), rewards=[0, 1], window=f"{WINDOW:g}s")
            self._say(f"began the experiment {self._key!r} with {len(PAGES)} pages")

    def _step(self, step: int, now: float) -> None:
        try:
            self._ask(step, now)
        except ClosedError:
            self._sleep(STEP)  # paused or stopped: the next report says which
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
        count = min(self._visitors.count(step, STEP), MOST)
        if not count:
            return
        units = [f"{self._run}-{self._asked + place}" for place in range(count)]
        shown = self._client.ask_many(self._key, units=units)
        self._asked += count
        heard = self._visitors.heard(step, now, [one.id for one in shown], [one.label for one in shown])
        for at, number, reward in zip(heard.at.tolist(), heard.ids, heard.rewards.tolist(), strict=True):
            heapq.heappush(self._awaited, (at, number, reward))

    def _line(self, now: float, report: ReportData) -> str:
        left = [arm["label"] for arm in report["arms"] if arm["is_active"]]
        late = f", {self.late} rewards too late" if self.late else ""
        return (
            f"{now:4.0f} s: {self._asked} visitors, {report['settled']} settled, baseline"
            f" {self._visitors.baseline(now):.2f}, {report['leader']!r} leads, {len(left)} of"
            f" {len(report['arms'])} pages left{late}"
        )
