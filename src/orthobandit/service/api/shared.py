"""Shared by the resources of the API: models, path parameters, documented problems and ETags.

Text that looks like a number is text, and unknown fields are refused.
"""

from hashlib import blake2b
from typing import Annotated, Any

from fastapi import Path, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from orthobandit.experiment import Experiment, Refusal
from orthobandit.service.http.auth import TOKEN, Token
from orthobandit.service.http.limits import MAX_FEATURES, MAX_ID, MAX_NAME_CHARACTERS
from orthobandit.service.http.problem_kinds import KINDS, PREFIX, PROBLEM_JSON, kind_of
from orthobandit.service.http.problems import ONE_LINE
from orthobandit.service.registry import Registry

Key = Annotated[
    str, Path(max_length=MAX_NAME_CHARACTERS, description="The experiment's key", examples=["signup-page"])
]
# Responses may be kept by whoever asked, by nobody on the way, and are checked again each time.
CACHING = "private, no-cache"
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=MAX_NAME_CHARACTERS, pattern=ONE_LINE),
    Field(examples=["a"]),
]
Number = Annotated[int, Field(ge=1, le=MAX_ID, description="The `id` of a proposal")]
Covariates = Annotated[dict[Name, float], Field(max_length=1_000)]


def registry_of(request: Request) -> Registry:
    """Return the experiments of the application."""
    found: Registry = request.app.state.registry
    return found


def token_of(request: Request) -> Token | None:
    """Return the token that a request came with; None on a server without tokens."""
    found: Token | None = request.scope.get(TOKEN)
    return found


def experiment_of(request: Request, key: str) -> Experiment:
    """Return an experiment by its key."""
    return registry_of(request).get(key)


Problems = dict[int | str, dict[str, Any]]  # as FastAPI's `responses`


def document_problems(*statuses: int) -> Problems:
    """Return OpenAPI's description of the problem documents of these statuses."""
    schema = {PROBLEM_JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    titles = {
        status: "; ".join(kind.title for kind in KINDS.values() if kind.status == status)
        for status in statuses
    }
    return {status: {"description": title, "content": schema} for status, title in titles.items()}


NOT_MODIFIED: Problems = {304: {"description": "Not changed since the version that `If-None-Match` names"}}


READS = document_problems(400, 401, 403, 404, 409, 422, 500, 503) | NOT_MODIFIED


WRITES = document_problems(400, 401, 403, 404, 409, 413, 415, 422, 500, 503)


def send_tagged(request: Request, content: bytes, media_type: str = "application/json") -> Response:
    """Send content with its ETag, or 304 if the caller has it already."""
    tag = f'"{blake2b(content, digest_size=12).hexdigest()}"'
    headers = {"ETag": tag, "Cache-Control": CACHING, "Vary": "Accept, Authorization"}
    if matches_tag(request.headers.get("if-none-match"), tag):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)


def matches_tag(given: str | None, tag: str) -> bool:
    """Tell whether ``If-None-Match`` names the tag; weak tags match as well (RFC 9110, 13.1.2).

    Examples
    --------
    >>> [matches_tag(given, '"b"') for given in ('"a", W/"b"', "*", '"a"', None)]
    [True, True, False, False]
    """
    if given is None:
        return False
    named = [one.strip().removeprefix("W/") for one in given.split(",")]
    return tag in named or named == ["*"]


class Body(BaseModel):
    """Base class of all request bodies."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class Arm(Body):
    """An arm that is described by features."""

    label: Name
    features: Annotated[list[float], Field(min_length=1, max_length=MAX_FEATURES)]


Arms = list[Name] | list[Arm]


class EmptyBody(Body):
    """An empty body; the request must still say that it is JSON."""


class FieldProblem(BaseModel):
    """A value that cannot be used."""

    pointer: str = Field(description="Where it is: a JSON pointer into the body, or a parameter")
    detail: str


class ProblemAnswer(BaseModel):
    """A problem document (RFC 9457)."""

    model_config = ConfigDict(
        title="Problem",
        json_schema_extra={
            "examples": [
                {
                    "type": "urn:orthobandit:problem:closed",
                    "title": "It is too late, or the experiment does not take this now",
                    "status": 409,
                    "detail": "the experiment is paused; call `resume` first",
                }
            ]
        },
    )

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldProblem] | None = None
    instance: str | None = Field(None, description="Which request it was, by its `X-Request-Id`")


def problem_schemas() -> dict[str, Any]:
    """Return the schemas of problem documents, by name, to which `document_problems` refers."""
    problem = ProblemAnswer.model_json_schema(ref_template="#/components/schemas/{model}")
    return {**problem.pop("$defs"), "Problem": problem}


class RefusedAnswer(BaseModel):
    """A row of a batch that was refused: an exposure, or rewards."""

    index: int = Field(description="Its place in the batch")
    metric: str | None = Field(description="The metric whose value is wrong; null if it is the whole row")
    pointer: str = Field(description="What is wrong: a JSON pointer into the body")
    type: str = Field(description="The kind of problem")
    detail: str

    @classmethod
    def of(cls, refusal: Refusal, part: str, *, is_named: bool) -> "RefusedAnswer":
        """Return a refusal as plain values.

        Parameters
        ----------
        refusal : Refusal
        part : str
            Of the body, which is wrong if the whole row is.
        is_named : bool
            Whether rewards had names.
        """
        pointer = f"#/{part}/{refusal.index}"
        if refusal.metric is not None:
            name = refusal.metric.replace("~", "~0").replace("/", "~1")
            pointer = f"#/rewards/{name}/{refusal.index}" if is_named else f"#/rewards/{refusal.index}"
        return cls(
            index=refusal.index,
            metric=refusal.metric,
            pointer=pointer,
            type=PREFIX + kind_of(refusal.error),
            detail=str(refusal.error),
        )
