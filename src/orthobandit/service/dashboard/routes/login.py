"""Log in with a token, and out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response

from orthobandit.service.dashboard.forms import Filled, keep
from orthobandit.service.dashboard.pages import page, see
from orthobandit.service.dashboard.routes.base import pages
from orthobandit.service.dashboard.sessions import LASTS
from orthobandit.service.dashboard.viewer import SESSION_COOKIE, Looks
from orthobandit.service.http.auth import ROLES
from orthobandit.service.http.problems import Problem

router = pages()
root = APIRouter(include_in_schema=False)
others = pages()


@root.get("/")
async def home() -> RedirectResponse:
    """Show those who give the bare address the dashboard."""
    return RedirectResponse("/dashboard", 303)


@others.get("/{path:path}")
async def nothing(path: str, _viewer: Looks) -> Response:
    """Say on a page that there is no such page."""
    if not path:
        return see("/dashboard")
    raise Problem("not-found", "there is no such page; it may have been moved")


@router.get("/login")
async def ask(request: Request, to: Annotated[str, Query(max_length=500)] = "/dashboard") -> Response:
    """Ask for a token."""
    if request.app.state.tokens is None:
        return see("/dashboard")
    return page(request, "login.html", None, to=_own(to), problem="")


@router.post("/login")
async def begin(request: Request, fields: Filled) -> Response:
    """Begin a session, if the token is known and may look."""
    tokens = request.app.state.tokens
    to = _own(fields.get("to", ""))
    if tokens is None:
        return see("/dashboard")
    token = await tokens.find(fields.get("token", "").strip())
    if token is None or "read" not in ROLES[token.role]:
        problem = (
            "This token is not known: it was revoked, or is mistyped."
            if token is None
            else f"This token has the role {token.role!r}, which sees no pages; use one for admin or read."
        )
        answer = page(request, "login.html", None, 401 if token is None else 403, to=to, problem=problem)
        if token is None:
            answer.headers["WWW-Authenticate"] = "Bearer"
        return answer
    secret = await run_in_threadpool(request.app.state.dashboard.sessions.begin, token)
    entered = see(to)
    keep(entered, request, SESSION_COOKIE, secret, int(LASTS))
    return entered


@router.post("/logout")
async def end(request: Request, _viewer: Looks, _fields: Filled) -> Response:
    """End the session, on all servers."""
    secret = request.cookies.get(SESSION_COOKIE, "")
    await run_in_threadpool(request.app.state.dashboard.sessions.end, secret)
    answer = see("/dashboard/login")
    answer.delete_cookie(SESSION_COOKIE, path="/dashboard", httponly=True, samesite="strict")
    return answer


def _own(to: str) -> str:
    """Return an address of the dashboard, and of nowhere else.

    Examples
    --------
    >>> _own("/dashboard/new"), _own("//elsewhere.example/dashboard")
    ('/dashboard/new', '/dashboard')
    """
    is_own = (to == "/dashboard" or to.startswith("/dashboard/")) and to.isprintable() and "\\" not in to
    return to if is_own else "/dashboard"
