"""One message to one address, and never to a place that a server should not be made to call."""

import socket
import ssl
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from orthobandit.errors import ParameterError

TIMEOUT = 10.0  # seconds
LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Answer(NamedTuple):
    """What came of a message: the status, None if there was none, and words for people."""

    status: int | None
    words: str

    @property
    def is_good(self) -> bool:
        """Whether it was taken."""
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
    """Send a message, and follow nothing that the answer asks for.

    The name is looked up once, its address checked, and the connection made to that address: a name that
    points elsewhere the next moment changes nothing.
    """
    try:
        parts = check_url(url, anywhere=anywhere)
        connection = _connected(parts, anywhere=anywhere)
    except ParameterError as error:
        return Answer(None, str(error))
    except (OSError, UnicodeError) as error:
        return Answer(None, f"no connection: {error}")
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", path, body, headers | {"User-Agent": "orthobandit", "Connection": "close"})
        answer = connection.getresponse()
        return Answer(answer.status, f"{answer.status} {answer.reason}"[:200])
    except (OSError, HTTPException, ValueError) as error:
        return Answer(None, f"no answer: {error or type(error).__name__}"[:200])
    finally:
        connection.close()


def _connected(parts: SplitResult, *, anywhere: bool) -> HTTPConnection:
    host = str(parts.hostname)
    is_secure = parts.scheme == "https"
    port = parts.port or (443 if is_secure else 80)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    address = str(found[0][4][0])
    if not anywhere:
        _check_address(host, address, is_secure=is_secure)
    plain = socket.create_connection((address, port), timeout=TIMEOUT)
    try:
        # The certificate is that of the name, whatever the address.
        secured = (
            ssl.create_default_context().wrap_socket(plain, server_hostname=host) if is_secure else plain
        )
    except BaseException:
        plain.close()
        raise
    connection = HTTPConnection(host, port, timeout=TIMEOUT)
    connection.sock = secured
    connection.auto_open = 0
    return connection


def _check_address(host: str, address: str, *, is_secure: bool) -> None:
    where = ip_address(address.partition("%")[0])
    mapped = getattr(where, "ipv4_mapped", None)
    where = where if mapped is None else mapped
    if where.is_loopback or (is_secure and where.is_global and not where.is_multicast):
        return
    raise ParameterError(
        f"{host!r} is at {where}, which is no public address; the server allows it with --webhooks-anywhere"
    )
