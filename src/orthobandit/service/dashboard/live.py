"""Live pages: one look a second at each experiment that somebody watches, however many watch it."""

import asyncio
import logging
import signal
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from types import FrameType
from typing import NamedTuple

from fastapi.concurrency import run_in_threadpool

from orthobandit.errors import OrthobanditError
from orthobandit.experiment.report.overview import Glance
from orthobandit.service.dashboard.time_series import Head, History
from orthobandit.service.registry import Registry

LOG = logging.getLogger("orthobandit.service")
LOOK_SECONDS = 1.0  # seconds between two looks
MAX_LISTED = 1_000  # experiments that are remembered between two lists
STREAM_SECONDS = (
    15.0  # seconds of a stream; browsers come again, and a server that ends waits for none longer
)
SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Sight(NamedTuple):
    """An experiment at a glance, and a version that changes whenever the page would change."""

    glance: Glance
    version: str


class Live:
    """Looks at experiments once a second, and notifies the pages that watch them.

    Parameters
    ----------
    registry : Registry
    history : History
    do_due : callable
        Does the actions that are due, in a thread, at every look; returns the waiting ones by key.
    """

    def __init__(self, registry: Registry, history: History, do_due: Callable[[], dict[str, str]]) -> None:
        self._registry = registry
        self._history = history
        self._do_due = do_due
        self._waiting: dict[str, str] = {}
        self._watching: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._versions: dict[str, str] = {}
        self._sights: dict[str, Sight] = {}  # of experiments that are watched
        self._heads: dict[str, Head] = {}  # where logs ended when they were looked at
        self._listed: dict[str, tuple[Head, Sight]] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False

    def look(self, key: str) -> Sight:
        """Look at an experiment without writing to its log."""
        glance = self._registry.get(key).glance()
        waiting = self._waiting.get(key, "")
        seen = (waiting, glance.plan, glance.provisional, glance.checks, glance.report)
        return Sight(glance, blake2b(repr(seen).encode(), digest_size=8).hexdigest())

    def newest(self, key: str) -> Sight:
        """Return the last look, at most a second old; look now if nobody watches.

        All pages that are notified of a change ask at the same time, and one look serves them all.
        """
        return self._sights.get(key) or self.look(key)

    def many(self, keys: Sequence[str]) -> dict[str, Sight | OrthobanditError]:
        """Look at several experiments; those whose logs have not grown are taken from the last list."""
        found: dict[str, Sight | OrthobanditError] = {}
        for key, head in self._history.heads(keys).items():
            kept = self._listed.get(key)
            if kept is None or kept[0] != head:
                try:
                    kept = (head, self.look(key))
                except OrthobanditError as error:  # of a policy that only its own program knows, say
                    found[key] = error
                    continue
                if len(self._listed) >= MAX_LISTED:
                    self._listed.clear()
                self._listed[key] = kept
            found[key] = kept[1]
        return found

    async def stream(self, key: str, known: str = "") -> AsyncIterator[str]:
        """Yield a server-sent event with the version, whenever that differs from the known one."""
        news = asyncio.Event()
        self._watching[key].add(news)
        end = asyncio.get_running_loop().time() + STREAM_SECONDS
        try:
            yield "retry: 1000\n\n"
            while not self._is_ending and (left := end - asyncio.get_running_loop().time()) > 0:
                version = self._versions.get(key, known)
                if version != known:
                    known = version
                    yield f"event: changed\nid: {version}\ndata: {version}\n\n"
                news.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(news.wait(), left)
        finally:
            self._watching[key].discard(news)
            if not self._watching[key]:
                del self._watching[key]
                self._versions.pop(key, None)
                self._sights.pop(key, None)

    async def start(self) -> None:
        """Start looking."""
        self._task = asyncio.create_task(self._run())

    def end_streams(self) -> None:
        """End all streams, so that a server that shuts down does not wait for them."""
        self._is_ending = True
        self._tell(list(self._watching))

    async def stop(self) -> None:
        """Stop looking."""
        self.end_streams()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _tell(self, keys: list[str]) -> None:
        for key in keys:
            for news in self._watching.get(key, ()):
                news.set()

    async def _run(self) -> None:
        """Look at all watched experiments every second, and notify pages of changes."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                found = await run_in_threadpool(self._look_at_all, list(self._watching))
            except Exception:  # nobody waits for the result, who could be told
                LOG.exception("the dashboard could not look, and tries again")
                continue
            changed = [key for key, sight in found.items() if self._versions.get(key) != sight.version]
            for key in changed:
                if key in self._watching:
                    self._versions[key] = found[key].version
                    self._sights[key] = found[key]
            self._tell(changed)

    def _look_at_all(self, watched: list[str]) -> dict[str, Sight]:
        """Look at experiments that are watched or due for a point of their history.

        Done in a thread. Logs that have not grown are not looked at.
        """
        found: dict[str, Sight] = {}
        try:
            before, self._waiting = self._waiting, self._do_due()
            heads = self._history.heads({*watched, *self._registry.open_keys()})
        except OrthobanditError as error:
            LOG.warning("the dashboard cannot look, and tries again: %s", error)
            return found
        for key, head in heads.items():
            is_new = head != self._heads.get(key) or self._waiting.get(key) != before.get(key)
            is_asked_for = key in watched and (is_new or key not in self._versions)
            if not is_asked_for and not (is_new and self._history.is_due(key, head.proposals)):
                continue
            try:
                sight = self.look(key)
                self._history.keep(key, sight.glance.report)
                found[key] = sight
                self._heads[key] = head
            except OrthobanditError as error:
                LOG.warning("the dashboard could not look at %r: %s", key, error)
        return found


@contextmanager
def call_before_shutdown(end: Callable[[], None]) -> Iterator[None]:
    """Call a function in the running loop when the process is told to end, before the server's own handlers.

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
