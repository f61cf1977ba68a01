"""Delivery of webhook messages: the queue, the schedule of retries, the senders, and where they may call.

Each message is sent at least once, signed, within a time limit, and never to an address that a server should
not call.
"""

import io
import json
import logging
import socket
import ssl
import time
from collections.abc import Callable, Collection, Iterable
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from itertools import groupby
from operator import attrgetter
from secrets import token_hex
from threading import Condition, Event, Thread
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

import sqlalchemy as sa

from orthobandit._foundation.checks import check_choice
from orthobandit.errors import OrthobanditError, ParameterError
from orthobandit.experiment.store.sql.connections import lock_tables
from orthobandit.experiment.store.sql.service_tables import DELIVERIES, NEWS, WEBHOOKS
from orthobandit.service.background.webhook_events import KINDS, News
from orthobandit.service.background.webhook_signatures import new_secret, sign_headers
from orthobandit.service.registry import Registry

LOG = logging.getLogger("orthobandit.service")
# Seconds between tries; after the last the delivery is given up.
RETRY_SECONDS = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 50_400.0, 72_000.0, 86_400.0)
DELIVERY_SECONDS = (
    10.0  # seconds for all of a delivery: looking up the name, connecting, sending, and the answer
)
GONE = 410  # HTTP status by which a receiver says that it wants no more messages
MAX_DUE = 100  # deliveries that are looked up together
MAX_SENDERS = 8  # webhooks that are sent to at the same time
PARTING_SECONDS = 2.0  # that deliveries in progress have when the server stops
LOOPBACK = ("localhost", "127.0.0.1", "::1")
COMPATIBLE = ip_network("::/96")  # IPv4 addresses in an old way of writing
NAT64 = ip_network("64:ff9b::/96")  # IPv4 addresses behind a translator


class Webhook(NamedTuple):
    """An address that events are sent to, without its secret."""

    id: str
    url: str
    kinds: list[str]
    at: float
    is_off: bool


class Due(NamedTuple):
    """A delivery that is due."""

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


class Answer(NamedTuple):
    """The answer to a message: its status, None if there was no answer, and words for people."""

    status: int | None
    words: str

    @property
    def is_good(self) -> bool:
        """Whether the receiver accepted the message."""
        return self.status is not None and 200 <= self.status < 300


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
        """Make a webhook for some kinds of events, all by default; return it and its secret."""
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

    def address_and_secret(self, name: str) -> tuple[str, str] | None:
        """Return the address and the secret of a webhook."""
        with self._registry.reading() as connection:
            query = sa.select(WEBHOOKS.c.url, WEBHOOKS.c.secret).where(WEBHOOKS.c.id == name)
            found = connection.execute(query).first()
        return None if found is None else (found[0], found[1])

    def known(self) -> set[str]:
        """Return the ids of all events so far."""
        with self._registry.reading() as connection:
            return set(connection.scalars(sa.select(NEWS.c.id)))

    def add(self, news: Iterable[News]) -> int:
        """Record new events and queue their deliveries; return how many were new."""
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
        """Return deliveries that are due, the longest waiting first, except those of some webhooks."""
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
    """Sends deliveries in its own threads, and records the results.

    Each webhook has at most one thread at a time, and each delivery one deadline. So a receiver that answers
    slowly, or never, delays only its own messages, not those of others, and not the keeper.

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
        """Start no further deliveries, and wait a little for those in progress.

        A delivery that is not known to have arrived stays due: the next keeper sends it again.
        """
        self._is_over.set()
        self.wait(PARTING_SECONDS)

    def _send_all(self, webhook: str, group: list[Due]) -> None:
        """Send the due deliveries of one webhook, until one fails."""
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
        """Send one delivery and record the result; return whether it was accepted."""
        answer = send_signed(due.url, due.secret, due.news, due.body, anywhere=self._outbox.anywhere)
        if self._is_over.is_set() and not answer.is_good:
            return False
        result = self._outbox.settle(due, answer, self._clock())
        with self._changed:
            self._counts[result] += 1
        return answer.is_good


def check_url(url: str, *, anywhere: bool) -> SplitResult:
    """Return the parts of an address that messages may go to.

    Parameters
    ----------
    url : str
    anywhere : bool
        Whether plain HTTP and private networks are allowed.

    Raises
    ------
    ParameterError
        If they may not.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise ParameterError(f"url={url!r} cannot be read: {error}") from None
    if parts.scheme not in ("https", "http") or not parts.hostname or port == 0:
        raise ParameterError(f"url={url!r} must be like https://host/path")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise ParameterError("url must have no user, password or fragment; messages are signed instead")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK and not anywhere:
        raise ParameterError(
            f"url={url!r} must begin with https://; the server allows http:// elsewhere than on its own"
            " machine with --webhooks-anywhere"
        )
    return parts


def post(url: str, headers: dict[str, str], body: bytes, *, anywhere: bool = False) -> Answer:
    """Send a message within `DELIVERY_SECONDS` seconds, and follow no redirect.

    The name is looked up once, its address checked, and the connection made to that address. So a name that
    points elsewhere a moment later (DNS rebinding) changes nothing.
    """
    until = time.monotonic() + DELIVERY_SECONDS
    try:
        parts = check_url(url, anywhere=anywhere)
        connection = _connect(parts, until, anywhere=anywhere)
    except ParameterError as error:
        return Answer(None, str(error))
    except (OSError, UnicodeError) as error:
        return Answer(None, f"no connection: {error}"[:200])
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body, headers | {"User-Agent": "orthobandit", "Connection": "close"})
        answer = connection.getresponse()
        return Answer(answer.status, f"{answer.status} {answer.reason}"[:200])
    except (OSError, HTTPException, ValueError) as error:
        return Answer(None, f"no answer: {error or type(error).__name__}"[:200])
    finally:
        connection.close()


def _connect(parts: SplitResult, until: float, *, anywhere: bool) -> HTTPConnection:
    """Return a connection to an allowed address, with TLS if the URL asks for it."""
    host = str(parts.hostname)
    is_secure = parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    address = _look_up(host, port, until)
    if not anywhere:
        check_address(host, address, is_secure=is_secure)
    plain = socket.create_connection((address, port), timeout=_left(until))
    try:
        if is_secure:
            plain.settimeout(_left(until))
            # The certificate is that of the name, whatever the address.
            plain = ssl.create_default_context().wrap_socket(plain, server_hostname=host)
    except BaseException:
        plain.close()
        raise
    connection = HTTPConnection(host, port)
    connection.sock = _TimedSocket(plain, until)
    connection.auto_open = 0
    return connection


def _left(until: float) -> float:
    """Return the seconds that are left, or raise :class:`TimeoutError` if none are."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError(f"it took longer than {DELIVERY_SECONDS:g} s")
    return left


def _look_up(host: str, port: int, until: float) -> str:
    """Return the address of a name, looked up in a thread: the system's resolver knows no deadline."""
    found: list[Any] = []

    def look_up() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            found.append(error)

    thread = Thread(target=look_up, name="look-up", daemon=True)
    thread.start()
    thread.join(_left(until))
    if not found:
        raise TimeoutError(f"the name {host!r} could not be looked up within {DELIVERY_SECONDS:g} s")
    if isinstance(found[0], Exception):
        raise found[0]
    return str(found[0][0][4][0])


class _TimedSocket:
    """A socket for :class:`~http.client.HTTPConnection` with one deadline for all reads and writes.

    A socket's time-out applies to each read: a peer that sends a byte now and then would never exceed it.
    """

    def __init__(self, plain: socket.socket, until: float) -> None:
        self._plain = plain
        self._until = until

    def sendall(self, data: bytes) -> None:
        self._plain.settimeout(_left(self._until))  # for all of it, says the library
        self._plain.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self._plain, self._until))

    def close(self) -> None:
        self._plain.close()


class _TimedReader(io.RawIOBase):
    def __init__(self, plain: socket.socket, until: float) -> None:
        self._plain = plain
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._plain.settimeout(_left(self._until))
        return self._plain.recv_into(buffer)


def check_address(host: str, address: str, *, is_secure: bool) -> None:
    """Raise :class:`ParameterError` if a server should not call an address.

    Parameters
    ----------
    host : str
        The name that was looked up, for the message.
    address : str
    is_secure : bool
        Whether TLS is used; without it, only this machine is called.
    """
    where = ip_address(address.partition("%")[0])
    if isinstance(where, IPv6Address) and where.ipv4_mapped is not None:
        where = where.ipv4_mapped  # the system calls the IPv4 address itself
    if where.is_loopback or (is_secure and _is_public(where)):
        return
    raise ParameterError(
        f"{host!r} is at {where}, which is not a public address; the server allows it with"
        " --webhooks-anywhere"
    )


def _is_public(where: IPv4Address | IPv6Address) -> bool:
    """Tell whether an address is public, and so is the IPv4 address that a gateway would make of it."""
    if isinstance(where, IPv6Address) and where in NAT64:
        return _is_public(IPv4Address(int(where) & 0xFFFFFFFF))
    if not where.is_global or where.is_multicast or where.is_reserved:
        return False
    if isinstance(where, IPv4Address):
        return True
    if where.is_site_local or where in COMPATIBLE or where.teredo is not None:
        return False
    if where.sixtofour is not None:
        return _is_public(where.sixtofour)
    return True


def send_signed(url: str, secret: str, name: str, text: str, *, anywhere: bool) -> Answer:
    """Sign a message with the current time, and send it."""
    body = text.encode()
    return post(url, sign_headers(secret, name, int(time.time()), body), body, anywhere=anywhere)
