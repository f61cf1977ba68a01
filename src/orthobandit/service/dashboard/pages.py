"""Pages: templates, headers that let nothing but the server's own files in, and errors for people."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from math import ceil
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute
from jinja2 import Environment
from starlette.exceptions import HTTPException

from orthobandit.errors import OrthobanditError
from orthobandit.service.dashboard.forms import FIELD, FORM_COOKIE, form_token, keep, new_secret, secret_of
from orthobandit.service.dashboard.viewer import LoginNeededError, Viewer
from orthobandit.service.http.problem_kinds import KINDS, kind_of
from orthobandit.service.http.problems import BY_STATUS, LOG, SILENT, Problem
from orthobandit.showing.html import make_environment
from orthobandit.showing.numbers import about

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Cache-Control": "private, no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
}
RELEASE = version("orthobandit")


@cache
def templates() -> Environment:
    """Return the templates; everything that they are given is escaped."""
    found = make_environment("orthobandit.service.dashboard")
    found.filters["moment"] = moment
    found.filters["briefly"] = lambda at: f"{datetime.fromtimestamp(at, UTC):%d %b %H:%M:%S}"
    found.filters["number"] = found.filters["count"]
    found.filters["about"] = about
    found.filters["days"] = days
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


def page(
    request: Request, name: str, viewer: Viewer | None, status: int = 200, **values: Any
) -> HTMLResponse:
    """Return a template as an answer, with a token for its forms."""
    secret = secret_of(request)
    kept = secret or new_secret()
    text = (
        templates()
        .get_template(name)
        .render(viewer=viewer, field=FIELD, form_token=form_token(kept), release=RELEASE, **values)
    )
    answer = HTMLResponse(text, status, HEADERS)
    if secret is None:
        keep(answer, request, FORM_COOKIE, kept)
    return answer


def see(address: str) -> RedirectResponse:
    """Return the answer to a form that was taken: look at another page."""
    return RedirectResponse(address, 303, {"Cache-Control": "no-store"})


class PageRoute(APIRoute):
    """A route whose errors are pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except LoginNeededError as error:
                return see(error.address)
            except (Problem, OrthobanditError, RequestValidationError, HTTPException) as error:
                return failed(request, *said(error))

        return answered


def failed(request: Request, kind: str, detail: str) -> HTMLResponse:
    """Return an error as a page."""
    status, title = KINDS[kind]
    return page(request, "error.html", None, status, heading=title, detail=detail)


def said(error: Exception) -> tuple[str, str]:
    """Return the kind of an error, and what may be said of it."""
    if isinstance(error, Problem):
        return error.kind, error.detail
    if isinstance(error, OrthobanditError):
        kind = kind_of(error)
        if kind in SILENT:
            LOG.error("%s: %s", type(error).__name__, error, exc_info=error)
        return kind, SILENT.get(kind, str(error))
    if isinstance(error, HTTPException):
        return BY_STATUS.get(error.status_code, "malformed"), str(error.detail)
    return "invalid", "the address or the form has a value that cannot be used"
