"""Webhook messages: signed as Standard Webhooks 1 says, and never sent where a server should not call.

A signature is HMAC-SHA256 over the message's id, the time and the body.
"""

import base64
import binascii
import hmac
import socket
import ssl
import time
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from ipaddress import ip_address
from secrets import token_bytes
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

from orthobandit.errors import ParameterError

PREFIX = "whsec_"
SIZE = 32  # bytes of a secret
TOLERANCE = 300.0  # seconds that a message may be old
TIMEOUT = 10.0  # seconds
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def new_secret() -> str:
    """Return a secret that messages are signed with."""
    return PREFIX + base64.b64encode(token_bytes(SIZE)).decode()


def sign(secret: str, name: str, at: int, body: bytes) -> str:
    """Return the signature of a message.

    Parameters
    ----------
    secret : str
        ``whsec_`` and base64.
    name : str
        The message's id.
    at : int
        When it is sent, in seconds since the epoch.
    body : bytes

    Examples
    --------
    >>> sign("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "msg_1", 1700000000, b"{}")
    'v1,LzeNxZHo3O8fwpFJpLh/0B99ugILNFJw+/9lTgx0APs='
    """
    key = _key(secret)
    mac = hmac.new(key, b".".join((name.encode(), str(at).encode(), body)), sha256)
    return f"v1,{base64.b64encode(mac.digest()).decode()}"


def sign_headers(secret: str, name: str, at: int, body: bytes) -> dict[str, str]:
    """Return the headers that a message is sent with."""
    return {
        "Content-Type": "application/json",
        "webhook-id": name,
        "webhook-timestamp": str(at),
        "webhook-signature": sign(secret, name, at, body),
    }


def is_genuine(secret: str, given: dict[str, str], body: bytes, now: float) -> bool:
    """Tell whether a received message was signed with the secret, within five minutes of now.

    Parameters
    ----------
    secret : str
    given : dict
        Its headers, with names in small letters.
    body : bytes
        As it came, before anything was made of it.
    now : float
        Seconds since the epoch.
    """
    try:
        name = given["webhook-id"]
        at = int(given["webhook-timestamp"])
        signed = given["webhook-signature"].split(" ")
    except (KeyError, ValueError):
        return False
    if abs(now - at) > TOLERANCE:
        return False
    wanted = sign(secret, name, at, body)
    return any(hmac.compare_digest(one.encode(), wanted.encode()) for one in signed)


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ParameterError("secret must be `whsec_` and base64, as the service gave it") from None


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
    """Send a message, and follow no redirect.

    The name is looked up once, its address checked, and the connection made to that address. So a name that
    points elsewhere a moment later (DNS rebinding) changes nothing.
    """
    try:
        parts = check_url(url, anywhere=anywhere)
        connection = _connect(parts, anywhere=anywhere)
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


def _connect(parts: SplitResult, *, anywhere: bool) -> HTTPConnection:
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


def send_signed(url: str, secret: str, name: str, text: str, *, anywhere: bool) -> Answer:
    """Sign a message with the time of now, and send it."""
    body = text.encode()
    return post(url, sign_headers(secret, name, int(time.time()), body), body, anywhere=anywhere)
