"""Progress of long work: a bar on a terminal, a line a minute in a log; options of runs of cells."""

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
)
from rich.text import Text

from orthobandit._foundation.files import check_folder
from orthobandit.cli._output import whole
from orthobandit.study.sweep import BACKENDS

LOG_SECONDS = 60.0  # between two lines where stderr is not a terminal: a log is read afterwards
CACHED_SECONDS = 1.0  # in which cached work is reported: it says nothing about the speed of the rest

# Called with (done, total, what is being done).
Shown = Callable[..., None]


@contextmanager
def bar(what: str = "") -> Iterator[Shown]:
    """Show a progress bar; yield the callback (done, total) or (done, total, what is being done)."""
    if not sys.stderr.isatty():
        with _Log(what).lines() as show:
            yield show
        return
    time_left = TimeLeft()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        _LeftColumn(time_left),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task(what, total=None)

        def show(done: float, total: float, name: str = what) -> None:
            time_left.update(done, total)
            progress.update(task, completed=done, total=total, description=name)

        yield show


@dataclass
class TimeLeft:
    """Estimates the time left from the speed so far."""

    begin: float = field(default_factory=lambda: time.monotonic())
    known: tuple[float, float] | None = None  # seconds after the start, and what was done then
    seen: tuple[float, float, float] = (0.0, 0.0, 0.0)  # seconds after the start, done, total

    @property
    def seconds(self) -> float:
        """Seconds since the work began."""
        return time.monotonic() - self.begin

    @property
    def share(self) -> float:
        """The part of the work that is done."""
        _, done, total = self.seen
        return done / total if total else 1.0

    def update(self, done: float, total: float) -> None:
        """Note the progress; work done at the start was cached and says nothing about speed."""
        now = self.seconds
        if self.known is None or now - self.known[0] < CACHED_SECONDS:
            self.known = (now, done)
        self.seen = (now, done, total)

    def left(self) -> float | None:
        """Return the seconds left; None if the speed is not known or was misjudged."""
        at, done, total = self.seen
        since, before = self.known or (0.0, 0.0)
        if done <= before or at <= since:
            return None
        speed = (done - before) / (at - since)
        left = (total - done) / speed - (self.seconds - at)
        if done >= total:
            return 0.0
        # The next part takes longer than those before it: to say "0:00:00 left" would be wrong for minutes.
        return left if left > 0 else None


class _LeftColumn(ProgressColumn):
    """The time left, counted down between reports."""

    def __init__(self, time_left: TimeLeft) -> None:
        super().__init__()
        self._time_left = time_left

    def render(self, task: Task) -> Text:  # noqa: ARG002
        """Return the time left."""
        left = self._time_left.left()
        return Text("" if left is None else f"{_clock(left)} left", style="cyan")


@dataclass
class _Log:
    """Progress as lines of a log: after the first minute, one a minute, even while nothing finishes."""

    what: str
    time_left: TimeLeft = field(default_factory=TimeLeft)
    said: float = 0.0  # seconds after the start
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def lines(self) -> Iterator[Shown]:
        """Yield the callback; a thread goes on printing lines when it is not called for long."""
        over = threading.Event()

        def tick() -> None:
            # More often than lines appear, so that none is late by a whole minute.
            while not over.wait(LOG_SECONDS / 4):
                self.say()

        thread = threading.Thread(target=tick, daemon=True)
        thread.start()
        try:
            yield self.show
        finally:
            over.set()
            thread.join()

    def show(self, done: float, total: float, name: str = "") -> None:
        """Note the progress, and print a line if it is time."""
        with self.lock:
            self.what = name or self.what
            self.time_left.update(done, total)
        self.say()

    def say(self) -> None:
        """Print a line if the last one is a minute old."""
        with self.lock:
            seconds = self.time_left.seconds
            if seconds - self.said < LOG_SECONDS or self.time_left.known is None:
                return
            self.said = seconds
            left = self.time_left.left()
            words = "" if left is None else f", {_clock(left)} left"
            print(f"{f'{self.what} '.lstrip()}{self.time_left.share:.0%}{words}", file=sys.stderr, flush=True)


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def add_run_options(parser: argparse.ArgumentParser, out: str | None, said: str = "%(default)s") -> None:
    """Add the options of every command that runs cells; `said` is the default folder as the help names it."""
    cores = os.cpu_count() or 1
    parser.add_argument(
        "--jobs", type=whole, default=cores, help="processes (default: one per core, %(default)s here)"
    )
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="processes",
        help="where to run; ray uses the cluster at RAY_ADDRESS, or a local one (default %(default)s)",
    )
    parser.add_argument(
        "--out", metavar="DIR", default=out, help=f"where to write, and to continue from (default {said})"
    )


@contextmanager
def resumable(out: str) -> Iterator[Callable[..., None]]:
    """Yield a progress bar for cells; after Ctrl-C, print how to resume. `out` must be writable."""
    check_folder("out", out)
    try:
        with bar("cells") as progress:
            yield progress
    except KeyboardInterrupt:
        print("stopped on the way; run the same command again to go on", file=sys.stderr)
        raise
