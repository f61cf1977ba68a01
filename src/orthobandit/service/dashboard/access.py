"""Login sessions of the dashboard, and protection of its forms against other sites.

A session's cookie holds 256 random bits, and the database their hash. So a copy of the database lets nobody
in, which a cookie signed with a secret of the database could not ensure. Several servers share sessions.
Logging out ends one on all of them at once, and so does revoking its token, which every look-up joins.

Every form has a token, which is a keyed hash of a secret in one of the browser's own cookies: that of the
session, or one made for the purpose where there is no session. Another site can neither read the cookie nor,
as it is `SameSite=Strict`, make the browser send it. If the browser says which site a form comes from
(``Origin``, ``Sec-Fetch-Site``), it must be this one.
"""

import hmac
import time
from collections.abc import Callable
from hashlib import blake2b
from secrets import token_urlsafe
from typing import Annotated, NamedTuple
from urllib.parse import quote

import sqlalchemy as sa
from fastapi import Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException

from orthobandit.experiment.store.sql.service_tables import SESSIONS, TOKENS
from orthobandit.service.http.auth import COLUMNS, ROLES, SESSION_COOKIE, Token, check_key, read_token
from orthobandit.service.http.problems import Problem
from orthobandit.service.registry import Registry

SESSION_SECONDS = 12 * 3600.0  # seconds of a session
ANYBODY = "somebody on this machine"  # on a server without tokens
FORM_COOKIE = "ob_form"
FIELD = "form_token"
# characters that a secret in a cookie may have
MIN_SECRET_CHARACTERS = 20
MAX_SECRET_CHARACTERS = 200
MAX_FIELDS = 100
MAX_FIELD_BYTES = 2 * 2**20  # bytes of one field


class Session(NamedTuple):
    """A login: the token that was used, and the secret that protects forms."""

    token: Token
    secret: str


class Sessions:
    """The sessions of a database.

    Parameters
    ----------
    registry : Registry
    clock : callable
        Returns seconds since the epoch.
    """

    def __init__(self, registry: Registry, clock: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._clock = clock

    def begin(self, token: Token) -> str:
        """Begin a session and remove expired ones; return the secret for its cookie."""
        secret = token_urlsafe(32)
        now = self._clock()
        with self._registry.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.until <= now))
            row = {"id": _hash(secret), "token": token.id, "until": now + SESSION_SECONDS}
            connection.execute(sa.insert(SESSIONS).values(**row))
        return secret

    def find(self, secret: str | None) -> Session | None:
        """Return the session of a cookie; None if it is unknown, expired, or its token was revoked."""
        if not secret or len(secret) > MAX_SECRET_CHARACTERS:
            return None
        query = (
            sa.select(*COLUMNS)
            .join(SESSIONS, SESSIONS.c.token == TOKENS.c.id)
            .where(SESSIONS.c.id == _hash(secret), SESSIONS.c.until > self._clock())
        )
        with self._registry.reading() as connection:
            row = connection.execute(query).first()
        token = None if row is None else read_token(row)
        return None if token is None or token.is_expired(self._clock()) else Session(token, secret)

    def end(self, secret: str) -> None:
        """End a session, if there is one."""
        with self._registry.writing() as connection:
            connection.execute(sa.delete(SESSIONS).where(SESSIONS.c.id == _hash(secret)))


def _hash(secret: str) -> bytes:
    return blake2b(secret.encode(), digest_size=32, person=b"ob session").digest()


class LoginNeededError(Exception):
    """Nobody is logged in, and the page needs a login."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.address = f"/dashboard/login?to={quote(path, safe='')}"


class Viewer(NamedTuple):
    """Who looks at a page: a name, whether they may act, whether they can log out, and their token."""

    name: str
    can_act: bool
    has_session: bool
    token: Token | None = None


async def viewer_of(request: Request) -> Viewer:
    """Return who looks; a dependency of all pages but the login."""
    if request.app.state.tokens is None:
        return Viewer(ANYBODY, can_act=True, has_session=False)
    sessions: Sessions = request.app.state.dashboard.sessions
    found = await run_in_threadpool(sessions.find, request.cookies.get(SESSION_COOKIE))
    if found is None:
        raise LoginNeededError(request.url.path if request.method == "GET" else "/dashboard")
    roles = ROLES[found.token.role]
    if "read" not in roles:
        raise Problem("forbidden", f"the token has the role {found.token.role!r}, which sees no pages")
    if "key" in request.path_params:
        check_key(found.token, request.path_params["key"])
    name = found.token.name or f"token {found.token.id}"
    return Viewer(name, can_act="admin" in roles, has_session=True, token=found.token)


async def actor_of(viewer: Annotated[Viewer, Depends(viewer_of)]) -> Viewer:
    """Return who looks, if they may act."""
    if not viewer.can_act:
        raise Problem("forbidden", "your token may only read; log in with the token of an admin")
    return viewer


Looks = Annotated[Viewer, Depends(viewer_of)]


Acts = Annotated[Viewer, Depends(actor_of)]


def secret_of(request: Request) -> str | None:
    """Return the secret that the browser has, if any."""
    for name in (SESSION_COOKIE, FORM_COOKIE):
        secret = request.cookies.get(name, "")
        if MIN_SECRET_CHARACTERS <= len(secret) <= MAX_SECRET_CHARACTERS and secret.isascii():
            return secret
    return None


def form_token(secret: str) -> str:
    """Return the token of forms that a browser with this secret is sent."""
    return blake2b(secret.encode(), digest_size=24, person=b"ob form").hexdigest()


def new_secret() -> str:
    """Return a secret for a browser that has none."""
    return token_urlsafe(32)


def set_secret_cookie(
    response: Response, request: Request, name: str, secret: str, seconds: int | None = None
) -> None:
    """Store a secret in a cookie that scripts cannot read."""
    response.set_cookie(
        name,
        secret,
        max_age=seconds,
        path="/dashboard",
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form, files as text, once it is known to be from a page of this server."""
    _check_site(request)
    try:
        async with request.form(max_fields=MAX_FIELDS, max_files=2, max_part_size=MAX_FIELD_BYTES) as form:
            fields = {name: await _text(name, value) for name, value in form.items()}
    except MultiPartException as error:
        raise Problem("malformed", f"the form cannot be read: {error.message}") from None
    secret = secret_of(request)
    given = fields.pop(FIELD, "")
    if secret is None or not hmac.compare_digest(form_token(secret).encode(), given.encode()):
        raise Problem("forbidden", "the form is too old, or not from this server; load its page again")
    return fields


def _check_site(request: Request) -> None:
    origin = request.headers.get("origin")
    host = request.headers.get("host", "")
    is_foreign = origin is not None and origin.partition("://")[2] != host
    # "none": a form that was sent again by its reader, from no page at all.
    if is_foreign or request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        raise Problem("forbidden", f"the form is not from a page of {host}; a proxy must pass `Host` on")


async def _text(name: str, value: UploadFile | str) -> str:
    """Return the text of a field, or of an uploaded file."""
    if isinstance(value, str):
        return value.replace("\r\n", "\n")
    try:
        return (await value.read()).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise Problem(
            "invalid", f"the file of {name!r} is not text; save the table as CSV in UTF-8"
        ) from None


Filled = Annotated[dict[str, str], Depends(read_form)]
