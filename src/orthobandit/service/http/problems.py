"""Errors as problem documents (RFC 9457): what is wrong, where, and what to do."""

import json
import logging
import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from orthobandit.errors import InputError, OrthobanditError, StorageError
from orthobandit.service.http.problem_kinds import KINDS, PREFIX, PROBLEM_JSON, kind_of

LOG = logging.getLogger("orthobandit.service")
REQUEST_ID: ContextVar[str] = ContextVar("request", default="")  # of the request that is being answered
# Seconds after which to try again: the database may be available then, or fewer requests be in progress.
RETRY_AFTER = {"unavailable": 2, "busy": 1}
# Sent instead of the error's own words, which may name files, hosts and packages of the server.
GENERIC_DETAILS = {
    "internal": "The server's log has the details; nothing is known to have been changed.",
    # A database that goes away during a commit may have done it.
    "unavailable": "Try again, with the same Idempotency-Key if you gave one. The server's log says what is"
    " wrong.",
}
MAX_PATH_CHARACTERS = 100  # of an unknown address that an answer repeats
MAX_ERRORS = 20  # that an answer names
# Fields that may have one of several types (Pydantic's unions), and how the place of an error names the type.
UNION_FIELDS = ("arms", "reward", "rewards", "window", "lasts")
UNION_MEMBER = re.compile(r"(list|dict)\[.*\]|float|constrained-str|str")
# What a value must be, by the type of Pydantic's error; names in braces are of the error's context.
COMPLAINTS = {
    "missing": "is missing",
    "extra_forbidden": "there is no such field; is it mistyped?",
    "string_type": "must be text",
    "string_unicode": "must be text in valid Unicode",
    "string_too_short": "must be text of at least {min_length} character(s)",
    "string_too_long": "must be text of at most {max_length} characters",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "too_short": "must have at least {min_length} item(s)",
    "too_long": "must have at most {max_length} items",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
}
MAX_REPEATED_CHARACTERS = 40  # of a value that an answer repeats
# Patterns that text in requests must match, and what they ask for in words.
SLUG = r"^[a-z0-9][a-z0-9_.-]{0,99}$"
ONE_LINE = r"^[^\x00-\x1f\x7f]+$"  # no control characters: databases differ in what they make of them
LINE_OR_NOTHING = r"^[^\x00-\x1f\x7f]*$"
PRINTABLE_ASCII = r"^[\x20-\x7e]+$"
WEB_ADDRESS = r"^https?://"
PATTERNS = {
    SLUG: "use 1 to 100 small letters, digits, '-', '_' and '.', a letter or a digit first",
    ONE_LINE: "use no tabs, line ends or other control characters",
    LINE_OR_NOTHING: "use no tabs, line ends or other control characters",
    PRINTABLE_ASCII: "use printable ASCII characters",
    WEB_ADDRESS: "begin with http:// or https://",
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
    if kind in GENERIC_DETAILS and REQUEST_ID.get():
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
    if kind in GENERIC_DETAILS:
        # A full disk names itself, and every request meets it: a traceback each would fill the next disk.
        has_name = type(error) is StorageError
        LOG.error("%s: %s", type(error).__name__, error, exc_info=None if has_name else error)
        return problem(kind, GENERIC_DETAILS[kind])
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
    found = _errors_of_likeliest_member(found)
    said: dict[str, list[str]] = {}
    given: dict[str, str] = {}
    for one in found[:MAX_ERRORS]:
        pointer = _pointer(one["loc"])
        said.setdefault(pointer, []).append(_need(one))
        given[pointer] = _given(one)
    # Where one of several forms would do, each has its own complaint.
    errors = [
        {"pointer": pointer, "detail": ", or ".join(dict.fromkeys(needs)) + given[pointer]}
        for pointer, needs in said.items()
    ]
    return problem("invalid", "; ".join(f"{one['pointer']}: {one['detail']}" for one in errors), errors)


def complaint_of(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a value, by an error of Pydantic, and the value if it is short.

    Examples
    --------
    >>> complaint_of({"type": "float_type", "loc": ("delta",), "input": "5 %"})
    'must be a number, not "5 %"'
    """
    return _need(error) + _given(error)


def _need(error: Mapping[str, Any]) -> str:
    """Return what a value has to be."""
    context = error.get("ctx", {})
    if error["type"] == "string_pattern_mismatch":
        return PATTERNS.get(str(context.get("pattern")), "has characters that cannot be used here")
    if error["type"] == "missing" and tuple(error["loc"]) == ("body",):
        return "the body is empty; send a JSON object"
    if error["type"] not in COMPLAINTS:
        return str(error["msg"]).removeprefix("Value error, ")
    return COMPLAINTS[error["type"]].format(**context)


def _given(error: Mapping[str, Any]) -> str:
    """Return ", not …" with the value that was given, if it is short."""
    given = error.get("input")
    if error["type"] not in COMPLAINTS or error["type"] in ("missing", "extra_forbidden"):
        return ""
    if not isinstance(given, str | int | float | None):
        return ""
    repeated = json.dumps(given)
    return f", not {repeated}" if len(repeated) <= MAX_REPEATED_CHARACTERS else ""


def _errors_of_likeliest_member(found: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Keep the errors of the type that a value was probably meant to have: arms as labels, or with features.

    Pydantic reports the errors of every type that a field may have. The likeliest type is the one with the
    fewest errors and, among these, the one whose errors lie deepest.
    """
    errors_by_field: dict[tuple[str | int, ...], dict[str | int, list[Mapping[str, Any]]]] = {}
    for one in found:
        place = one["loc"]
        for at in range(1, len(place)):
            if _is_union_member(place[at - 1], place[at]):
                errors_by_field.setdefault(place[:at], {}).setdefault(place[at], []).append(one)
                break
    left_out: set[int] = set()
    for errors_by_type in errors_by_field.values():
        ranks = {
            member: (len(errors), -max(len(one["loc"]) for one in errors))
            for member, errors in errors_by_type.items()
        }
        closest = min(ranks.values())
        for member, errors in errors_by_type.items():
            if ranks[member] != closest:
                left_out.update(id(one) for one in errors)
    return [one for one in found if id(one) not in left_out]


def _pointer(place: Sequence[str | int]) -> str:
    """Return where a value is: a JSON pointer into the body, or the name of a parameter."""
    where, *rest = [
        part for before, part in zip(("", *place), place, strict=False) if not _is_union_member(before, part)
    ]
    path = "/".join(str(part).replace("~", "~0").replace("/", "~1") for part in rest)
    return (f"#/{path}" if path else "#") if where == "body" else f"{where} {path}"


def _is_union_member(before: str | int, part: str | int) -> bool:
    """Tell whether a part of a location names one of the types that a field may have, and not a field."""
    return before in UNION_FIELDS and isinstance(part, str) and UNION_MEMBER.fullmatch(part) is not None


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    detail = str(error.detail)
    headers = error.headers or {}
    if error.status_code == 405:
        allowed = ", ".join(_allowed_methods(request))
        detail = f"{request.method} cannot be used here; use {allowed or 'another method'}"
        headers = {"Allow": allowed} if allowed else {}
    elif detail == "Not Found":
        path = request.url.path[:MAX_PATH_CHARACTERS]
        detail = f"there is nothing at {path!r}; /openapi.json lists what there is"
    elif error.status_code == 400:
        detail = "the body cannot be read; send JSON in UTF-8, without deep nesting"
    answer = problem(BY_STATUS.get(error.status_code, "malformed"), detail)
    answer.headers.update(headers)
    return answer


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods that an address has; the router knows those of its first operation only."""
    routes = [route for route in request.app.routes if route.matches(request.scope)[0] == Match.PARTIAL]
    return sorted({method for route in routes for method in route.methods})


async def _unexpected(request: Request, error: Exception) -> JSONResponse:
    LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return problem("internal", GENERIC_DETAILS["internal"])
