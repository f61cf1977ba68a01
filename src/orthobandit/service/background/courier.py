"""The courier: sends webhooks in threads of its own, so that no receiver can hold the keeper.

Each webhook has at most one thread at a time, and each delivery a deadline for all of it. So a receiver that
answers slowly, or never, delays its own messages and no others.
"""

import logging
import time
from collections.abc import Callable, Collection
from itertools import groupby
from operator import attrgetter
from threading import Condition, Event, Thread

from orthobandit.errors import OrthobanditError
from orthobandit.service.background.webhook_messages import send_signed
from orthobandit.service.background.webhooks import Due, Outbox

LOG = logging.getLogger("orthobandit.service")
MOST_SENDERS = 8  # webhooks that are sent to at the same time
PARTING = 2.0  # seconds that deliveries in progress have when the server stops


class Courier:
    """Sends deliveries, and records what came of them.

    Parameters
    ----------
    outbox : Outbox
    counts : dict
        Deliveries by result, counted here.
    clock : callable
        Returns seconds since the epoch.
    """

    def __init__(
        self, outbox: Outbox, counts: dict[str, int], clock: Callable[[], float] = time.time
    ) -> None:
        self._outbox = outbox
        self._counts = counts
        self._clock = clock
        self._busy = set[str]()
        self._changed = Condition()
        self._is_over = Event()

    def busy(self) -> Collection[str]:
        """Return the webhooks that are being sent to."""
        with self._changed:
            return set(self._busy)

    def send(self, due: Collection[Due]) -> None:
        """Begin to send deliveries, and return at once; those that find no free sender stay due."""
        by_webhook = attrgetter("webhook")
        for webhook, group in groupby(sorted(due, key=by_webhook), by_webhook):
            with self._changed:
                if webhook in self._busy or len(self._busy) >= MOST_SENDERS or self._is_over.is_set():
                    continue
                self._busy.add(webhook)
            # A daemon: nobody waits for a receiver when the process ends.
            Thread(target=self._send_all, args=(webhook, list(group)), name="courier", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Wait until nothing is being sent, for at most so many seconds; return whether nothing is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._busy, seconds)

    def stop(self) -> None:
        """Begin nothing new, and wait a little for what is being sent.

        What is not known to have arrived then stays due: the next keeper sends it again.
        """
        self._is_over.set()
        self.wait(PARTING)

    def _send_all(self, webhook: str, group: list[Due]) -> None:
        try:
            for due in group:
                # A receiver that fails is not asked again before the next round.
                if self._is_over.is_set() or not self._send_one(due):
                    return
        except OrthobanditError as error:
            LOG.warning("a webhook was sent, and could not be noted: it will be sent again (%s)", error)
        except Exception as error:
            LOG.error("a webhook could not be sent", exc_info=error)
        finally:
            with self._changed:
                self._busy.discard(webhook)
                self._changed.notify_all()

    def _send_one(self, due: Due) -> bool:
        answer = send_signed(due.url, due.secret, due.news, due.body, anywhere=self._outbox.anywhere)
        if self._is_over.is_set() and not answer.is_good:
            return False
        result = self._outbox.settle(due, answer, self._clock())
        with self._changed:
            self._counts[result] += 1
        return answer.is_good
