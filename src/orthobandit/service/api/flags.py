"""Experiments as feature flags, and the events that flag clients track.

This is the OpenFeature Remote Evaluation Protocol (OFREP). A flag is an experiment, a variant is an arm, and
the targeting key is the unit, so that every OpenFeature SDK can ask. Errors have OFREP's codes, by which SDKs
fall back to the caller's default.
"""

import json
from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from orthobandit.errors import (
    ClosedError,
    ConflictError,
    InputError,
    OrthobanditError,
    UnknownExperimentError,
    UnknownProposalError,
    VersionError,
)
from orthobandit.estimate import CovariateRegression
from orthobandit.experiment import Experiment
from orthobandit.service.api.operations import Resource
from orthobandit.service.api.shared import (
    NOT_MODIFIED,
    WRITES,
    Body,
    Key,
    Name,
    Problems,
    document_problems,
    experiment_of,
    registry_of,
    send_tagged,
    token_of,
)
from orthobandit.service.http.auth import allows, check_key
from orthobandit.service.http.idempotency import Once
from orthobandit.service.http.limits import MAX_NAME_CHARACTERS

TARGETING_KEY = "targetingKey"
MISSING = "TARGETING_KEY_MISSING"
INVALID = "INVALID_CONTEXT"
Flag = dict[str, Any]
MAX_FLAGS = 1_000  # experiments that are evaluated at once


class EvaluateBody(BaseModel):
    """An OpenFeature context: the targeting key, and attributes that covariates are taken from."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"context": {"targetingKey": "user-17"}}]})

    context: dict[str, Any] = {}


class TrackBody(Body):
    """An event of a unit; its name is that of a metric."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"unit": "user-17", "event": "reward", "value": 1.0}]}
    )

    unit: Name
    event: Annotated[Name, Field(description="The name of a metric, `reward` where there is no other")]
    value: float = 1.0
    experiment: Annotated[Name | None, Field(description="Its key; all by default")] = None


class FlagAnswer(BaseModel):
    """A flag of OFREP that was evaluated."""

    key: str
    value: str = Field(description="The label of the arm")
    reason: str
    variant: str
    metadata: dict[str, bool | int | str] = Field(description="The proposal's `id` and its plan's number")


class FlagProblem(BaseModel):
    """Why a flag of OFREP cannot be evaluated."""

    key: str | None = None
    errorCode: str  # noqa: N815
    errorDetails: str  # noqa: N815


class BulkAnswer(BaseModel):
    """All flags of OFREP that can be evaluated."""

    flags: list[FlagAnswer | FlagProblem]


class TrackAnswer(BaseModel):
    """Which experiments recorded an event, and why others refused it."""

    told: list[str]
    refused: dict[str, str]
    note: Annotated[str | None, Field(description="Why no experiment recorded it, if none did")] = None


class NotEvaluatedError(OrthobanditError):
    """A context that cannot be evaluated.

    Parameters
    ----------
    code : str
        OFREP's ``errorCode``.
    message : str
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def unit_of(context: dict[str, Any]) -> str:
    """Return the unit that a context is about."""
    unit = context.get(TARGETING_KEY)
    if unit is None or unit == "":
        raise NotEvaluatedError(MISSING, f"give the user or visitor as {TARGETING_KEY!r} in the context")
    if not isinstance(unit, str) or len(unit) > MAX_NAME_CHARACTERS or not unit.isprintable():
        raise NotEvaluatedError(
            INVALID, f"{TARGETING_KEY!r} must be printable text of at most {MAX_NAME_CHARACTERS} characters"
        )
    return unit


def evaluate_flag(key: str, experiment: Experiment, context: dict[str, Any]) -> Flag:
    """Return a flag: the arm of the context's unit, drawn now if it has none."""
    proposal = experiment.ask(
        unit=unit_of(context),
        covariates=_covariates(experiment, context),
        context=_visitor(experiment, context),
    )
    return {
        "key": key,
        "value": proposal.label,
        "reason": "SPLIT",
        "variant": proposal.label,
        "metadata": {"proposal": proposal.id, "plan": proposal.plan, "held": bool(proposal.held)},
    }


def _covariates(experiment: Experiment, context: dict[str, Any]) -> dict[str, float] | None:
    """Return the covariates of an experiment's forecast, from the context's attributes."""
    baseline = getattr(experiment.settings.policy, "baseline", None)
    return _numbers(context, baseline.names if isinstance(baseline, CovariateRegression) else ())


def _visitor(experiment: Experiment, context: dict[str, Any]) -> dict[str, float] | None:
    """Return the visitor's columns of a personalised experiment, from the context's attributes."""
    is_personal = experiment.settings.is_personal
    return _numbers(context, getattr(experiment.settings.policy, "context", ()) if is_personal else ())


def _numbers(context: dict[str, Any], names: Iterable[str]) -> dict[str, float] | None:
    """Return attributes of a context that must be numbers; None if none are wanted."""
    numbers = {}
    for name in names:
        value = context.get(name)
        # In Python a bool is an int, and NaN and infinity are floats.
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
            given = f", not {json.dumps(value)[:40]}; send 1 and 0 for yes and no" if name in context else ""
            raise NotEvaluatedError(INVALID, f"the context must have a number {name!r}{given}")
        numbers[name] = float(value)
    return numbers or None


def describe_failure(key: str | None, error: OrthobanditError) -> Flag:
    """Return OFREP's error for a flag that cannot be evaluated."""
    if isinstance(error, NotEvaluatedError):
        code = error.code
    elif isinstance(error, UnknownExperimentError):
        code = "FLAG_NOT_FOUND"
    else:
        code = INVALID if isinstance(error, InputError) else "GENERAL"
    said = {"errorCode": code, "errorDetails": str(error)}
    return said if key is None else {"key": key, **said}


def evaluate_flags(experiments: dict[str, Experiment], context: dict[str, Any]) -> list[Flag]:
    """Return the flags of all experiments that can be asked.

    Paused and stopped experiments are left out, and so are those that are not sticky: SDKs ask for all flags
    again and again.
    """
    unit_of(context)
    flags = []
    for key, experiment in experiments.items():
        if not experiment.settings.sticky:
            continue
        try:
            flags.append(evaluate_flag(key, experiment, context))
        except ClosedError:
            continue
        except (NotEvaluatedError, InputError) as error:
            flags.append(describe_failure(key, error))
    return flags


def describe_unreadable(_: Request, error: Exception) -> JSONResponse | None:
    """Answer a body that cannot be read with OFREP's error, which is what SDKs read."""
    is_unreadable = isinstance(error, HTTPException) and error.status_code == 400
    if not is_unreadable and not isinstance(error, RequestValidationError):
        return None  # tokens and the like stay problem documents
    message = 'the body must be JSON such as {"context": {"targetingKey": "user-17"}}'
    return JSONResponse({"errorCode": "PARSE_ERROR", "errorDetails": message}, 400)


PROBLEMS: Problems = {
    **document_problems(401, 403, 413, 415, 422, 500, 503),
    400: {"description": "The flag cannot be evaluated", "model": FlagProblem},
}


flags = Resource(
    "/ofrep/v1/evaluate/flags",
    tag="feature flags",
    role="ask-tell",
    responses=PROBLEMS,
    takes_any_query=True,
    show_error=describe_unreadable,
)
tracking = Resource(tag="feature flags", role="ask-tell", responses=WRITES)


@flags.post(
    "/{key}",
    summary="Which arm to show, as a flag",
    response_model=FlagAnswer,
    responses={404: {"description": "There is no such experiment", "model": FlagProblem}},
)
def evaluate(key: Key, body: EvaluateBody, request: Request) -> JSONResponse:
    """Give the arm of the context's unit, drawn now if it has none."""
    try:
        return JSONResponse(evaluate_flag(key, experiment_of(request, key), body.context))
    except UnknownExperimentError as error:
        return JSONResponse(describe_failure(key, error), 404)
    except (NotEvaluatedError, ClosedError, InputError) as error:
        return JSONResponse(describe_failure(key, error), 400)


@flags.post(
    "",
    summary="The arms of all experiments, as flags",
    response_model=BulkAnswer,
    responses=NOT_MODIFIED,
)
def evaluate_all(body: EvaluateBody, request: Request) -> Response:
    """Give the unit's arm in every open, sticky experiment, drawn now where it has none."""
    try:
        evaluated = evaluate_flags(_all(request), body.context)
    except NotEvaluatedError as error:
        return JSONResponse(describe_failure(None, error), 400)
    return send_tagged(request, json.dumps({"flags": evaluated}).encode())


@tracking.post("/v1/track", summary="An event of a unit, as a reward", response_model_exclude_none=True)
def track(body: TrackBody, request: Request, keyed: Once) -> TrackAnswer:
    """Record an event in the experiments that have a metric of its name and know the unit.

    Without `experiment`, the answer names those that refuse it, because the window has passed or the value is
    wrong; with it, a refusal is an ordinary problem.
    """
    if body.experiment is not None:
        check_key(token_of(request), body.experiment)
        one = experiment_of(request, body.experiment)
        proposal = one.known(body.unit)
        if proposal is None:
            raise UnknownProposalError(f"{body.unit!r} has no proposal in {body.experiment!r}; ask first")
        keyed.once(one, body).tell(proposal.id, {body.event: body.value})
        return TrackAnswer(told=[body.experiment], refused={})
    told = []
    refused = {}
    # Many events are of no experiment, which is no error; but nobody should be told nothing of a slip.
    note = f"no experiment has a metric {body.event!r}"
    for key, one in _all(request).items():
        if body.event not in one.settings.names:
            continue
        proposal = one.known(body.unit)
        if proposal is None:
            note = f"{body.unit!r} has no proposal in any experiment that has a metric {body.event!r}"
            continue
        try:
            keyed.once(one, body).tell(proposal.id, {body.event: body.value})
            told.append(key)
        except (ClosedError, ConflictError, InputError) as error:
            refused[key] = str(error)
    return TrackAnswer(told=told, refused=refused, note=None if told or refused else note)


def _all(request: Request) -> dict[str, Experiment]:
    """Return the experiments that can be served and that the token is for, by key."""
    registry = registry_of(request)
    found = {}
    for key in registry.page(MAX_FLAGS, allows=allows(token_of(request))):
        try:
            found[key] = registry.get(key)
        except (ConflictError, VersionError):  # a package or a release that is not installed here
            continue
    return found
