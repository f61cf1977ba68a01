"""Who looks at a page, and what they may do."""

from typing import Annotated, NamedTuple
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool

from orthobandit.service.dashboard.sessions import Sessions
from orthobandit.service.http.auth import ROLES
from orthobandit.service.http.problems import Problem

SESSION_COOKIE = "ob_session"
ANYBODY = "somebody on this machine"  # on a server without tokens


class LoginNeededError(Exception):
    """Nobody is logged in, and the page is not for everybody."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.address = f"/dashboard/login?to={quote(path, safe='')}"


class Viewer(NamedTuple):
    """Who looks: a name, whether they may act, and whether they can log out."""

    name: str
    can_act: bool
    has_session: bool


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
    return Viewer(found.token.name or f"token {found.token.id}", can_act="admin" in roles, has_session=True)


async def actor_of(viewer: Annotated[Viewer, Depends(viewer_of)]) -> Viewer:
    """Return who looks, if they may act."""
    if not viewer.can_act:
        raise Problem("forbidden", "you may look, and not act; log in with the token of an admin")
    return viewer


Looks = Annotated[Viewer, Depends(viewer_of)]
Acts = Annotated[Viewer, Depends(actor_of)]
