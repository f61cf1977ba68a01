"""Webhooks: which events of experiments are worth a message, messages still to be sent, and their sender.

Each event is recorded once, under an id that follows from what happened. Each message is sent at least once.
"""

import json
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter
from secrets import token_hex
from threading import Condition, Event, Thread
from typing import Any, NamedTuple

import sqlalchemy as sa

from orthobandit._foundation.checks import check_choice
from orthobandit.errors import OrthobanditError
from orthobandit.experiment.store.sql.connections import lock_tables
from orthobandit.service.background.watch import Look
from orthobandit.service.background.webhook_delivery import Answer, check_url, send_signed
from orthobandit.service.background.webhook_signatures import new_secret
from orthobandit.service.registry import Registry
from orthobandit.service.tables import DELIVERIES, NEWS, WEBHOOKS

DECLARED = "experiment.declared"
RETIRED = "experiment.arm_retired"
SAMPLE_RATIO = "experiment.sample_ratio"
NO_DATA = "experiment.no_data"
GUARDRAIL = "experiment.guardrail"
KINDS = (DECLARED, RETIRED, SAMPLE_RATIO, NO_DATA, GUARDRAIL)
NO_DATA_SECONDS = 3600.0  # without a question or a reward after which an open experiment has no data
# Seconds between tries; after the last the delivery is given up.
RETRY_SECONDS = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
GONE = 410  # HTTP status by which a receiver says that it wants no more messages
MAX_DUE = 100  # deliveries that are looked up together
LOG = logging.getLogger("orthobandit.service")
MAX_SENDERS = 8  # webhooks that are sent to at the same time
PARTING_SECONDS = 2.0  # that deliveries in progress have when the server stops


class News(NamedTuple):
    """An event of an experiment that a webhook may report.

    Parameters
    ----------
    id : str
        Follows from the event, so that every server finds the same one.
    experiment, kind : str
    at : float
        When it was noticed.
    body : str
        JSON, as it is sent.
    """

    id: str
    experiment: str
    kind: str
    at: float
    body: str


def find_news(key: str, look: Look, now: float) -> Iterator[News]:
    """Yield every event of an experiment so far; nearly all have been recorded before.

    Parameters
    ----------
    key : str
        Of the experiment.
    look : Look
    now : float
        Seconds since the epoch.
    """
    report = look.report

    def news(kind: str, fact: str, **data: Any) -> News:
        name = blake2b(f"{key}\n{kind}\n{fact}".encode(), digest_size=16).hexdigest()
        known = {"advice": report.advice, "proposals": report.proposals, "settled": report.settled}
        # Whoever receives it can hold a later certificate against it, and must know what speaks against it.
        known |= {"head": report.head, "alarms": list(report.alarms)}
        return News(
            f"msg_{name}", key, kind, now, write_message(kind, now, {"experiment": key, **data, **known})
        )

    if report.declared is not None:
        # Arms that come and go open the question again.
        fact = f"{report.declared}\n{len(report.arms)}\n{len(report.retirements)}"
        yield news(DECLARED, fact, arm=report.declared, certainty=report.certainty)
    for arm, reason in report.retirements:
        kind = GUARDRAIL if reason.startswith("by the guardrail") else RETIRED
        yield news(kind, arm, arm=arm, reason=reason)
    if "sample-ratio" in report.alarms:
        warning = next((one for one in report.warnings if "not drawn as the plans say" in one), "")
        yield news(SAMPLE_RATIO, "", warning=warning)
    if report.status == "open" and report.declared is None and now - look.at >= NO_DATA_SECONDS:
        yield news(NO_DATA, str(look.seq), since=_write_moment(look.at))


def write_message(kind: str, at: float, data: dict[str, Any]) -> str:
    """Return the body of a message."""
    return json.dumps({"type": kind, "timestamp": _write_moment(at), "data": data})


def _write_moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class Webhook(NamedTuple):
    """An address that news are sent to, without its secret."""

    id: str
    url: str
    kinds: list[str]
    at: float
    is_off: bool


class Due(NamedTuple):
    """A delivery whose time has come."""

    webhook: str
    news: str
    url: str
    secret: str
    body: str
    tries: int


class Delivery(NamedTuple):
    """A delivery and its result so far."""

    news: str
    kind: str
    experiment: str
    state: str
    tries: int
    next: float
    answer: str


class Outbox:
    """The webhooks of a database.

    Parameters
    ----------
    registry : Registry
    anywhere : bool
        Whether they may use plain HTTP and private networks.
    """

    def __init__(self, registry: Registry, *, anywhere: bool = False) -> None:
        self._registry = registry
        self.anywhere = anywhere

    def make(self, url: str, kinds: Iterable[str] = ()) -> tuple[Webhook, str]:
        """Make a webhook for some kinds of news, all by default; return it and its secret."""
        check_url(url, anywhere=self.anywhere)
        wanted = [check_choice("kinds", kind, KINDS) for kind in kinds] or list(KINDS)
        made = Webhook(f"wh_{token_hex(8)}", url, wanted, time.time(), False)
        secret = new_secret()
        with self._registry.writing() as connection:
            row = made._asdict() | {"kinds": json.dumps(wanted), "secret": secret}
            connection.execute(sa.insert(WEBHOOKS).values(row))
        return made, secret

    def all(self) -> list[Webhook]:
        """Return all webhooks, the oldest first."""
        with self._registry.reading() as connection:
            rows = connection.execute(sa.select(WEBHOOKS).order_by(WEBHOOKS.c.at, WEBHOOKS.c.id)).all()
        return [Webhook(row.id, row.url, json.loads(row.kinds), row.at, row.is_off) for row in rows]

    def remove(self, name: str) -> bool:
        """Remove a webhook and its waiting deliveries; return whether there was one."""
        with self._registry.writing() as connection:
            connection.execute(sa.delete(DELIVERIES).where(DELIVERIES.c.webhook == name))
            return bool(connection.execute(sa.delete(WEBHOOKS).where(WEBHOOKS.c.id == name)).rowcount)

    def secret(self, name: str) -> tuple[str, str] | None:
        """Return the address and the secret of a webhook."""
        with self._registry.reading() as connection:
            query = sa.select(WEBHOOKS.c.url, WEBHOOKS.c.secret).where(WEBHOOKS.c.id == name)
            found = connection.execute(query).first()
        return None if found is None else (found[0], found[1])

    def known(self) -> set[str]:
        """Return the names of all news so far."""
        with self._registry.reading() as connection:
            return set(connection.scalars(sa.select(NEWS.c.id)))

    def add(self, news: Iterable[News]) -> int:
        """Record news that are new and queue their deliveries; return how many were new."""
        added = 0
        with self._registry.writing() as connection:
            lock_tables(connection)  # two servers that see the same must not both find it new
            webhooks = connection.execute(sa.select(WEBHOOKS).where(~WEBHOOKS.c.is_off)).all()
            for one in news:
                if connection.execute(sa.select(NEWS.c.id).where(NEWS.c.id == one.id)).first() is not None:
                    continue
                connection.execute(sa.insert(NEWS).values(**one._asdict()))
                for row in webhooks:
                    if one.kind in json.loads(row.kinds):
                        waiting = {"state": "waiting", "tries": 0, "next": one.at, "answer": ""}
                        connection.execute(
                            sa.insert(DELIVERIES).values(webhook=row.id, news=one.id, **waiting)
                        )
                added += 1
        return added

    def due(self, now: float, without: Collection[str] = ()) -> list[Due]:
        """Return deliveries whose time has come, those that wait longest first, but for some webhooks."""
        delivery = DELIVERIES.c
        query = (
            sa.select(
                delivery.webhook,
                delivery.news,
                WEBHOOKS.c.url,
                WEBHOOKS.c.secret,
                NEWS.c.body,
                delivery.tries,
            )
            .where(delivery.state == "waiting", delivery.next <= now, delivery.webhook.not_in(without))
            .where(delivery.webhook == WEBHOOKS.c.id, delivery.news == NEWS.c.id)
            .order_by(delivery.next)
            .limit(MAX_DUE)
        )
        with self._registry.reading() as connection:
            return [Due(*row) for row in connection.execute(query)]

    def settle(self, due: Due, answer: Answer, now: float) -> str:
        """Record the result of a delivery; return "sent", "failed" (to be tried again) or "dead"."""
        tries = due.tries + 1
        is_over = answer.status == GONE or tries > len(RETRY_SECONDS)
        state = "sent" if answer.is_good else "dead" if is_over else "waiting"
        later = now if state != "waiting" else now + RETRY_SECONDS[tries - 1]
        mine = sa.and_(DELIVERIES.c.webhook == due.webhook, DELIVERIES.c.news == due.news)
        with self._registry.writing() as connection:
            values = {"state": state, "tries": tries, "next": later, "answer": answer.words}
            connection.execute(sa.update(DELIVERIES).where(mine).values(**values))
            if answer.status == GONE:
                off = sa.update(WEBHOOKS).where(WEBHOOKS.c.id == due.webhook).values(is_off=True)
                connection.execute(off)
        return "failed" if state == "waiting" else state

    def deliveries(self, name: str, limit: int) -> list[Delivery]:
        """Return the newest deliveries of a webhook."""
        delivery = DELIVERIES.c
        query = (
            sa.select(
                delivery.news,
                NEWS.c.kind,
                NEWS.c.experiment,
                delivery.state,
                delivery.tries,
                delivery.next,
                delivery.answer,
            )
            .where(delivery.webhook == name, delivery.news == NEWS.c.id)
            .order_by(NEWS.c.at.desc(), NEWS.c.id)
            .limit(limit)
        )
        with self._registry.reading() as connection:
            return [Delivery(*row) for row in connection.execute(query)]


class Courier:
    """Sends deliveries in threads of its own, and records what came of them.

    Each webhook has at most one thread at a time, and each delivery a deadline for all of it. So a receiver
    that answers slowly, or never, delays its own messages and neither others nor the keeper.

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
                if webhook in self._busy or len(self._busy) >= MAX_SENDERS or self._is_over.is_set():
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
        self.wait(PARTING_SECONDS)

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
