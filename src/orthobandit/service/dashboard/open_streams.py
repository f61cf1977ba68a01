"""Streams end when the process is told to: a server waits for open requests, and a stream has no end."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def told_to_end(end: Callable[[], None]) -> Iterator[None]:
    """Call a function, in the running loop, before the server's own handlers of signals.

    Servers in threads other than the main one get no signals; their streams end by themselves.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(end)
        found = before[signal.Signals(number)]
        if callable(found):
            found(number, frame)

    for number, found in before.items():
        if callable(found):
            signal.signal(number, handle)
    try:
        yield
    finally:
        for number, found in before.items():
            if callable(found):
                signal.signal(number, found)
