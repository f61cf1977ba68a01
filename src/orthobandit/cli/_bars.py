"""Progress of long work: a bar on a terminal, one line a minute in a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

LOGGED = 60.0  # seconds between two lines where stderr is not a terminal
SETTLED = 1.0  # seconds in which what an earlier run left finished comes in

# Called with (done, total, what is being done).
Shown = Callable[..., None]


@contextmanager
def bar(what: str = "") -> Iterator[Shown]:
    """Show how far long work is, for callbacks (done, total) and, if it changes, what is being done."""
    if not sys.stderr.isatty():
        yield _Log(what).show
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task(what, total=None)

        def show(done: float, total: float, name: str = what) -> None:
            progress.update(task, completed=done, total=total, description=name)

        yield show


@dataclass
class _Log:
    """Lines for a log: nothing in the first minute, then one a minute."""

    what: str
    begin: float = field(default_factory=lambda: time.monotonic())
    said: float = 0.0  # seconds after the start
    known: tuple[float, float] = (0.0, 0.0)  # seconds after the start, and what was done then

    def show(self, done: float, total: float, name: str = "") -> None:
        seconds = time.monotonic() - self.begin
        if seconds < SETTLED:
            self.known = (seconds, done)
        if seconds - self.said < LOGGED:
            return
        self.said = seconds
        share = done / total if total else 1.0
        speed = (done - self.known[1]) / (seconds - self.known[0])
        left = f", {timedelta(seconds=round((total - done) / speed))} left" if speed > 0 else ""
        print(f"{f'{name or self.what} '.lstrip()}{share:.0%}{left}", file=sys.stderr, flush=True)
