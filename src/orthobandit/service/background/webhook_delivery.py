"""Sending of webhook messages: signed, within a time limit, and never to where a server should not call."""

import io
import socket
import ssl
import time
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from orthobandit.errors import ParameterError
from orthobandit.service.background.webhook_signatures import sign_headers

TIMEOUT = 10.0  # seconds for all of a delivery: looking up the name, connecting, sending, and the answer
LOOPBACK = ("localhost", "127.0.0.1", "::1")
COMPATIBLE = ip_network("::/96")  # IPv4 addresses in an old way of writing
NAT64 = ip_network("64:ff9b::/96")  # IPv4 addresses behind a translator


class Answer(NamedTuple):
    """The answer to a message: its status, None if there was no answer, and words for people."""

    status: int | None
    words: str

    @property
    def is_good(self) -> bool:
        """Whether the receiver accepted the message."""
        return self.status is not None and 200 <= self.status < 300


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
    """Send a message within `TIMEOUT` seconds, and follow no redirect.

    The name is looked up once, its address checked, and the connection made to that address. So a name that
    points elsewhere a moment later (DNS rebinding) changes nothing.
    """
    until = time.monotonic() + TIMEOUT
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
        raise TimeoutError(f"it took longer than {TIMEOUT:g} s")
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
        raise TimeoutError(f"the name {host!r} could not be looked up within {TIMEOUT:g} s")
    if isinstance(found[0], Exception):
        raise found[0]
    return str(found[0][0][4][0])


class _TimedSocket:
    """A socket for :class:`~http.client.HTTPConnection` whose reads and writes all end at one moment.

    A time-out of a socket is one for each read: a peer that sends a byte now and then would never meet it.
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
    """Sign a message with the time of now, and send it."""
    body = text.encode()
    return post(url, sign_headers(secret, name, int(time.time()), body), body, anywhere=anywhere)
