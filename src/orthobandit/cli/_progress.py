"""Long work: a bar on a terminal, one line a minute in a log; options and interruption of runs of cells."""

import argparse
import os
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

from orthobandit._files import check_folder
from orthobandit.cli._words import whole
from orthobandit.study.sweep import BACKENDS

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


def add_run_options(parser: argparse.ArgumentParser, out: str | None, said: str = "%(default)s") -> None:
    """Add what every command that runs cells shares; `said` is what the help calls the default folder."""
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=whole, default=cores, help="processes (default: all, %(default)s)")
    parser.add_argument(
        "--backend",
        choices=BACKENDS,
        default="processes",
        help="where to run; ray uses the cluster at RAY_ADDRESS, or a local one (default %(default)s)",
    )
    parser.add_argument(
        "--out", metavar="DIR", default=out, help=f"where to write, and to go on from (default {said})"
    )


@contextmanager
def resumable(out: str) -> Iterator[Callable[..., None]]:
    """Yield the progress of cells, if `out` can be written to; after Ctrl-C say that the command goes on."""
    check_folder("out", out)
    try:
        with bar("cells") as progress:
            yield progress
    except KeyboardInterrupt:
        print("stopped on the way; run the same command again to go on", file=sys.stderr)
        raise
