"""Signatures of webhook messages, as Standard Webhooks 1 defines them: how to sign, and how to check one.

A signature is HMAC-SHA256 over the message's id, the time and the body.
"""

import base64
import binascii
import hmac
from hashlib import sha256
from secrets import token_bytes

from orthobandit.errors import ParameterError

PREFIX = "whsec_"
SECRET_BYTES = 32
TOLERANCE_SECONDS = 300.0  # that a message may be old


def new_secret() -> str:
    """Return a secret that messages are signed with."""
    return PREFIX + base64.b64encode(token_bytes(SECRET_BYTES)).decode()


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
        Exactly as received, before it is parsed.
    now : float
        Seconds since the epoch.
    """
    try:
        name = given["webhook-id"]
        at = int(given["webhook-timestamp"])
        signed = given["webhook-signature"].split(" ")
    except (KeyError, ValueError):
        return False
    if abs(now - at) > TOLERANCE_SECONDS:
        return False
    wanted = sign(secret, name, at, body)
    return any(hmac.compare_digest(one.encode(), wanted.encode()) for one in signed)


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ParameterError("secret must be `whsec_` and base64, as the service gave it") from None
