"""Webhooks: which events of experiments are worth a message, and the messages that are still to be sent.

Each event is recorded once, under an id that follows from what happened. Each message is sent at least once.
"""

import json
import time
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from secrets import token_hex
from typing import Any, NamedTuple

import sqlalchemy as sa

from orthobandit._foundation.checks import check_choice
from orthobandit.experiment.store.sql.dialects import lock_tables
from orthobandit.service.background.watch import Look
from orthobandit.service.background.webhook_messages import Answer, check_url, new_secret
from orthobandit.service.registry import Registry
from orthobandit.service.tables import DELIVERIES, NEWS, WEBHOOKS

DECLARED = "experiment.declared"
RETIRED = "experiment.arm_retired"
SAMPLE_RATIO = "experiment.sample_ratio"
NO_DATA = "experiment.no_data"
GUARDRAIL = "experiment.guardrail"
KINDS = (DECLARED, RETIRED, SAMPLE_RATIO, NO_DATA, GUARDRAIL)
QUIET = 3600.0  # seconds without a question or a reward after which an open experiment has no data
# Seconds between tries; after the last the delivery is given up.
DELAYS = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
GONE = 410  # HTTP status by which a receiver says that it wants no more messages
AT_ONCE = 100  # deliveries that are looked up together


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
    if report.status == "open" and report.declared is None and now - look.at >= QUIET:
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
            .limit(AT_ONCE)
        )
        with self._registry.reading() as connection:
            return [Due(*row) for row in connection.execute(query)]

    def settle(self, due: Due, answer: Answer, now: float) -> str:
        """Record the result of a delivery; return "sent", "failed" (to be tried again) or "dead"."""
        tries = due.tries + 1
        is_over = answer.status == GONE or tries > len(DELAYS)
        state = "sent" if answer.is_good else "dead" if is_over else "waiting"
        later = now if state != "waiting" else now + DELAYS[tries - 1]
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
