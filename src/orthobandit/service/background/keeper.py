"""What one server does for all, by the clock: settle and re-plan, notice what happened, send webhooks.

Whoever asks or tells re-plans as well, when a batch is complete: under the experiment's own lock, so that
each plan is written once. But where nobody asks, windows pass unnoticed; the keeper notices.
"""

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from threading import Event, Thread

from orthobandit.errors import OrthobanditError
from orthobandit.service.background.lock import KeeperLock
from orthobandit.service.background.watch import Looks
from orthobandit.service.background.webhooks.news import news_of
from orthobandit.service.background.webhooks.outbox import Due, Outbox
from orthobandit.service.background.webhooks.sending import Answer, post
from orthobandit.service.background.webhooks.signing import headers
from orthobandit.service.http.metrics import Metrics

LOG = logging.getLogger("orthobandit.service")
EVERY = 5.0  # seconds between two rounds
SENDERS = 4  # messages that are under way at once


class Keeper:
    """A thread that works while this process holds the lock, and tries to get it while it does not.

    Parameters
    ----------
    lock : KeeperLock
    looks : Looks
    outbox : Outbox
    metrics : Metrics
    clock : callable
        Returns seconds since the epoch.
    """

    def __init__(
        self,
        lock: KeeperLock,
        looks: Looks,
        outbox: Outbox,
        metrics: Metrics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._lock = lock
        self._looks = looks
        self._outbox = outbox
        self._metrics = metrics
        self._clock = clock
        self._is_over = Event()
        self._known = set[str]()
        self._complaint = ""
        self._thread = Thread(target=self._run, name="keeper", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, and let another server take over."""
        self._is_over.set()
        self._thread.join()
        self._lock.release()

    def _run(self) -> None:
        while not self._is_over.wait(EVERY):
            try:
                self.round()
                self._complaint = ""
            except OrthobanditError as error:
                if str(error) != self._complaint:  # once, and not every five seconds
                    LOG.warning("the keeper cannot work: %s", error)
                self._complaint = str(error)
            except Exception as error:
                LOG.error("the keeper failed", exc_info=error)

    def round(self) -> bool:
        """Do all there is to do now; return whether this process is the keeper."""
        self._metrics.is_keeper = self._lock.is_held()
        if not self._metrics.is_keeper:
            self._known.clear()
            return False
        now = self._clock()
        found = self._looks.all()
        news = chain.from_iterable(news_of(key, look, now) for key, look in found.items())
        fresh = [one for one in news if one.id not in self._known]
        if fresh:
            self._outbox.add(fresh)
            self._known.update(one.id for one in fresh)
        self._send(self._outbox.due(now))
        return True

    def _send(self, due: list[Due]) -> None:
        if not due:
            return
        with ThreadPoolExecutor(SENDERS) as pool:
            for one, answer in zip(due, pool.map(self._sent, due), strict=True):
                if answer is not None:
                    self._metrics.webhooks[self._outbox.settle(one, answer, self._clock())] += 1

    def _sent(self, due: Due) -> Answer | None:
        if self._is_over.is_set():
            return None  # the next keeper sends it
        return sent(due.url, due.secret, due.news, due.body, anywhere=self._outbox.anywhere)


def sent(url: str, secret: str, name: str, text: str, *, anywhere: bool) -> Answer:
    """Sign a message and send it."""
    body = text.encode()
    return post(url, headers(secret, name, int(time.time()), body), body, anywhere=anywhere)
