"""Progress on the terminal: a line that rewrites itself, and nothing where nobody is watching."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 0.1  # seconds between two updates of the line


@contextmanager
def counter(step: str, value: str) -> Iterator[Callable[[int, float], None] | None]:
    """Show ``step 3, value 1.2e-05`` for callbacks (int, float); None when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    shown = 0.0

    def show(number: int, measure: float) -> None:
        nonlocal shown
        if time.monotonic() - shown > EVERY:
            shown = time.monotonic()
            print(f"\r{step} {number}, {value} {measure:.1e}", end="\033[K", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextmanager
def bar(total: int) -> Iterator[Callable[[str, int], None] | None]:
    """Show ``sbe  [#####.....]  50 %  0:12 left`` for callbacks (name, done); None as for :func:`counter`."""
    if not sys.stderr.isatty():
        yield None
        return
    start, shown = (time.monotonic(), 0), 0.0

    def show(name: str, done: int) -> None:
        nonlocal start, shown
        now = time.monotonic()
        if not shown and now - start[0] < 1:
            start = (now, done)  # what an earlier run left finished says nothing about speed
        if now - shown > EVERY or done == total:
            shown = now
            full = round(20 * done / total)
            drawn = "#" * full + "." * (20 - full)
            line = f"{name}  [{drawn}] {done / total:4.0%}{_left(start, (now, done), total)}"
            print(f"\r{line}", end="\033[K", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


@contextmanager
def steps_left() -> Iterator[Callable[[float, float], None] | None]:
    """Show ``[#####.....]  50 %  0:12 left`` for callbacks (done, total); None as for :func:`counter`."""
    if not sys.stderr.isatty():
        yield None
        return
    start = time.monotonic()

    def show(done: float, total: float) -> None:
        share = done / total if total else 1.0
        full = round(20 * share)
        left = _left((start, 0), (time.monotonic(), done), total)
        line = f"[{'#' * full}{'.' * (20 - full)}] {share:4.0%}{left}"
        print(f"\r{line}", end="\033[K", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _left(start: tuple[float, float], now: tuple[float, float], total: float) -> str:
    """Return the time left at the speed between two moments (seconds, done), as text."""
    done = now[1] - start[1]
    if done <= 0:
        return ""
    seconds = round((now[0] - start[0]) / done * (total - now[1]))
    hours, minutes = divmod(seconds // 60, 60)
    clock = f"{hours}:{minutes:02d}:{seconds % 60:02d}" if hours else f"{minutes}:{seconds % 60:02d}"
    return f"  {clock} left"
