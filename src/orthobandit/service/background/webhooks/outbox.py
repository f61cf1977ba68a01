"""Webhooks and what they are to be told, in the database: each piece of news once, sent at least once."""

import json
import time
from collections.abc import Iterable
from secrets import token_hex
from typing import NamedTuple

import sqlalchemy as sa

from orthobandit._foundation.checks import check_choice
from orthobandit.experiment.store.sql.dialects import lock_tables
from orthobandit.service.background.webhooks.news import KINDS, News
from orthobandit.service.background.webhooks.sending import Answer, check_url
from orthobandit.service.background.webhooks.signing import new_secret
from orthobandit.service.registry import Registry
from orthobandit.service.tables import DELIVERIES, NEWS, WEBHOOKS

# Seconds between tries; after the last the delivery is given up.
DELAYS = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
GONE = 410  # whoever is there does not want to be told any more
AT_ONCE = 100  # deliveries that are looked up together


class Webhook(NamedTuple):
    """Where news are sent, without the secret."""

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
    """A delivery, and what came of it so far."""

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
        Whether they may be on plain HTTP and in private networks.
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
        """Remove a webhook and what it was still to be told; return whether there was one."""
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
        """Keep news that are new, and with them what is to be sent to whom; return how many were new."""
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

    def due(self, now: float) -> list[Due]:
        """Return deliveries whose time has come, those that wait longest first."""
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
            .where(delivery.state == "waiting", delivery.next <= now)
            .where(delivery.webhook == WEBHOOKS.c.id, delivery.news == NEWS.c.id)
            .order_by(delivery.next)
            .limit(AT_ONCE)
        )
        with self._registry.reading() as connection:
            return [Due(*row) for row in connection.execute(query)]

    def settle(self, due: Due, answer: Answer, now: float) -> str:
        """Note what came of a delivery; return "sent", "failed", to be tried again, or "dead"."""
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
