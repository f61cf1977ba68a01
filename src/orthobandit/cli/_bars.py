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
