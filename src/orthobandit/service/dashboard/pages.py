"""Pages: templates, headers that admit only the server's own files, and errors as pages."""

from datetime import UTC, datetime
from functools import cache
from math import ceil
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from jinja2 import Environment
from starlette.exceptions import HTTPException

from orthobandit._foundation.release import __version__
from orthobandit.errors import OrthobanditError
from orthobandit.service.api.operations import Resource
from orthobandit.service.dashboard.access import (
    FIELD,
    FORM_COOKIE,
    LoginNeededError,
    Viewer,
    form_token,
    new_secret,
    secret_of,
    set_secret_cookie,
)
from orthobandit.service.dashboard.live import Live, Sight
from orthobandit.service.http.problem_kinds import KINDS, kind_of
from orthobandit.service.http.problems import BY_STATUS, GENERIC_DETAILS, LOG, Problem
from orthobandit.showing.html import make_environment
from orthobandit.showing.numbers import about, risk_percent, sure_percent

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cache-Control": "private, no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
}
RELEASE = __version__


@cache
def templates() -> Environment:
    """Return the templates; everything that they are given is escaped."""
    found = make_environment("orthobandit.service.dashboard")
    found.filters["moment"] = moment
    found.filters["briefly"] = lambda at: f"{datetime.fromtimestamp(at, UTC):%d %b %H:%M:%S}"
    found.filters["number"] = found.filters["count"]
    found.filters["about"] = about
    found.filters["days"] = days
    found.filters["sure"] = lambda certainty: sure_percent(1.0 - certainty)
    found.filters["risk"] = lambda certainty: risk_percent(1.0 - certainty)
    return found


def days(count: float) -> str:
    """Return a length of time in words.

    Examples
    --------
    >>> days(0.85), days(1.2), days(5.4), days(61.2)
    ('less than a day', '2 days', '6 days', '62 days')
    """
    return "less than a day" if count < 1 else f"{ceil(count):,} days"


def moment(at: float) -> str:
    """Return a time in words, in UTC.

    Examples
    --------
    >>> moment(0.0)
    '1970-01-01 00:00:00 UTC'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"


def render_page(
    request: Request, name: str, viewer: Viewer | None, status: int = 200, **values: Any
) -> HTMLResponse:
    """Render a template to a response, with a token for its forms."""
    # A browser without a session gets a cookie for its forms alone.
    secret = secret_of(request)
    kept = secret or new_secret()
    text = (
        templates()
        .get_template(name)
        .render(viewer=viewer, field=FIELD, form_token=form_token(kept), release=RELEASE, **values)
    )
    answer = HTMLResponse(text, status, HEADERS)
    if secret is None:
        set_secret_cookie(answer, request, FORM_COOKIE, kept)
    return answer


def redirect(address: str) -> RedirectResponse:
    """Return a redirect to another page, the answer to a form that was accepted."""
    return RedirectResponse(address, 303, {"Cache-Control": "no-store"})


def show_page_of(request: Request, error: Exception) -> Response | None:
    """Answer an error with a page, or with the login if that is what is missing."""
    if isinstance(error, LoginNeededError):
        return redirect(error.address)
    if isinstance(error, Problem | OrthobanditError | RequestValidationError | HTTPException):
        return show_error(request, *describe_error(error))
    return None


def show_error(request: Request, kind: str, detail: str) -> HTMLResponse:
    """Return an error as a page."""
    status, title = KINDS[kind]
    return render_page(request, "error.html", None, status, heading=title, detail=detail)


def describe_error(error: Exception) -> tuple[str, str]:
    """Return the kind of an error, and what a page may say about it."""
    if isinstance(error, Problem):
        return error.kind, error.detail
    if isinstance(error, OrthobanditError):
        kind = kind_of(error)
        if kind in GENERIC_DETAILS:  # its words may name files and hosts
            LOG.error("%s: %s", type(error).__name__, error, exc_info=error)
        return kind, GENERIC_DETAILS.get(kind, str(error))
    if isinstance(error, HTTPException):
        return BY_STATUS.get(error.status_code, "malformed"), str(error.detail)
    return "invalid", "the address or the form has a value that cannot be used"


def dashboard_pages() -> Resource:
    """Return a resource of pages, which are not in the description of the API."""
    return Resource(
        "/dashboard", tag="pages", include_in_schema=False, takes_any_query=True, show_error=show_page_of
    )


def address_of(key: str) -> str:
    """Return the address of an experiment's page.

    Examples
    --------
    >>> address_of("a/b")
    '/dashboard/experiments/a%2Fb'
    """
    return f"/dashboard/experiments/{quote(key, safe='')}"


def sight_of(request: Request, key: str) -> Sight:
    """Return an experiment at a glance."""
    live: Live = request.app.state.dashboard.live
    return live.look(key)
