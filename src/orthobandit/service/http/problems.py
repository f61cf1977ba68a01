"""Errors as problem documents (RFC 9457): what is wrong, where, and what to do."""

import logging
import re
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from orthobandit.errors import InputError, OrthobanditError
from orthobandit.service.http.problem_kinds import KINDS, PREFIX, PROBLEM_JSON, kind_of

LOG = logging.getLogger("orthobandit.service")
REQUEST_ID: ContextVar[str] = ContextVar("request", default="")  # of the request that is being answered
# Seconds after which to try again: the database may be available then, or fewer requests be in progress.
RETRY_AFTER = {"unavailable": 2, "busy": 1}
# Sent instead of the error's own words, which may name files, hosts and packages of the server.
SILENT = {
    "internal": "The server's log has the details; nothing is known to have been changed.",
    # A database that goes away during a commit may have done it.
    "unavailable": "Try again, with the same Idempotency-Key if you gave one. The server's log says what is"
    " wrong.",
}
BY_STATUS = {400: "malformed", 404: "not-found", 405: "method", 413: "too-large", 415: "not-json"}


class Problem(Exception):  # noqa: N818
    """A request that is refused.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    detail : str
        What is wrong, and the remedy.
    """

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail


def problem(kind: str, detail: str, errors: Sequence[dict[str, str]] = ()) -> JSONResponse:
    """Return a problem document as an answer; `errors` name fields by JSON pointer."""
    status, title = KINDS[kind]
    document: dict[str, Any] = {
        "type": PREFIX + kind,
        "title": title,
        "status": status,
        "detail": detail,
    }
    if errors:
        document["errors"] = list(errors)
    if kind in SILENT and REQUEST_ID.get():
        document["instance"] = f"urn:orthobandit:request:{REQUEST_ID.get()}"  # the log has it by this
    headers = {}
    if kind in RETRY_AFTER:
        headers["Retry-After"] = str(RETRY_AFTER[kind])
    if kind == "unauthenticated":
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(document, status, headers, media_type=PROBLEM_JSON)


def problem_of(error: OrthobanditError) -> JSONResponse:
    """Return the answer to a request that raised an error of this package."""
    kind = kind_of(error)
    if kind in SILENT:
        LOG.error("%s: %s", type(error).__name__, error, exc_info=error)
        return problem(kind, SILENT[kind])
    field = re.match(r"(\w+)=", str(error)) if isinstance(error, InputError) else None
    errors = [{"pointer": f"#/{field[1]}", "detail": str(error)}] if field else []
    return problem(kind, str(error), errors)


def add_handlers(app: FastAPI) -> None:
    """Answer every error of the application with a problem document."""
    app.add_exception_handler(Problem, _refused)
    app.add_exception_handler(OrthobanditError, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _unexpected)


async def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)  # noqa: S101
    return problem(error.kind, error.detail)


async def _failed(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, OrthobanditError)  # noqa: S101
    return problem_of(error)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    found = error.errors()
    if any(one["type"] == "json_invalid" for one in found):
        return problem("malformed", f"the body is not JSON: {found[0].get('ctx', {}).get('error', '')}")
    # What was given is not repeated: it may be long, and is known to whoever sent it.
    errors = [{"pointer": _pointer(one["loc"]), "detail": one["msg"]} for one in found[:20]]
    return problem("invalid", "; ".join(f"{one['pointer']}: {one['detail']}" for one in errors), errors)


def _pointer(place: Sequence[str | int]) -> str:
    """Return where a value is: a JSON pointer into the body, or the name of a parameter."""
    where, *rest = place
    path = "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in rest)
    return (f"#/{path}" if path else "#") if where == "body" else f"{where} {path}"


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    answer = problem(BY_STATUS.get(error.status_code, "malformed"), str(error.detail))
    answer.headers.update(error.headers or {})
    return answer


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem("internal", SILENT["internal"])
