"""Progress of long work: a line that rewrites itself on a terminal, one a minute in a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EVERY = 0.1  # seconds between two updates of the line
LOGGED = 60.0  # seconds between two lines where stderr is not a terminal
SETTLED = 1.0  # seconds in which what an earlier run left finished comes in


@contextmanager
def counter(step: str, value: str) -> Iterator[Callable[[int, float], None] | None]:
    """Show ``step 3, value 1.2e-05`` for callbacks (int, float); None when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with _line(EVERY) as write:
        yield lambda number, measure: write(f"{step} {number}, {value} {measure:.1e}", is_last=False)


@contextmanager
def bar(total: int) -> Iterator[Callable[[str, int], None] | None]:
    """Show ``sbe  [#####.....]  50 %  0:12 left`` for callbacks (name, done); None as for :func:`counter`."""
    if not sys.stderr.isatty():
        yield None
        return
    with steps_left() as show:
        yield lambda name, done: show(done, total, f"{name}  ")


@contextmanager
def steps_left() -> Iterator[Callable[..., None]]:
    """Show ``[#####.....]  50 %  0:12 left`` for callbacks (done, total, prefix); in a log, once a minute."""
    start, now = time.monotonic(), (0.0, 0.0)  # seconds after the start, and what was done then
    with _line(EVERY if sys.stderr.isatty() else LOGGED) as write:

        def show(done: float, total: float, prefix: str = "") -> None:
            nonlocal now
            seconds, share = time.monotonic() - start, done / total if total else 1.0
            if seconds < SETTLED:
                now = (seconds, done)
            full = round(20 * share)
            drawn = f"[{'#' * full}{'.' * (20 - full)}] {share:4.0%}"
            left = _left(seconds - now[0], done - now[1], total - done)
            write(f"{prefix}{drawn}{left}", is_last=done >= total)

        yield show


@contextmanager
def _line(every: float) -> Iterator[Callable[..., None]]:
    """Yield a function that shows a text if the last was shown so many seconds ago; clear it at the end."""
    is_terminal = sys.stderr.isatty()
    shown = -float("inf") if is_terminal else time.monotonic()

    def write(text: str, *, is_last: bool) -> None:
        nonlocal shown
        if time.monotonic() - shown >= every or (is_last and is_terminal):
            shown = time.monotonic()
            ends = ("\r", "\033[K") if is_terminal else ("", "\n")
            print(f"{ends[0]}{text}", end=ends[1], file=sys.stderr, flush=True)

    try:
        yield write
    finally:
        if is_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _left(seconds: float, done: float, remaining: float) -> str:
    """Return the time left, as text, if so much was done in so many seconds."""
    if done <= 0:
        return ""
    left = round(seconds / done * remaining)
    hours, minutes = divmod(left // 60, 60)
    clock = f"{hours}:{minutes:02d}:{left % 60:02d}" if hours else f"{minutes}:{left % 60:02d}"
    return f"  {clock} left"
