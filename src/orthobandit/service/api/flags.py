"""Flags for OpenFeature's SDKs, and the events that they track."""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from orthobandit.errors import (
    ClosedError,
    ConflictError,
    InputError,
    UnknownExperimentError,
    UnknownProposalError,
)
from orthobandit.experiment import Experiment
from orthobandit.service.api.base import NOT_MODIFIED, WRITES, Key, documented, experiment_of, registry_of
from orthobandit.service.api.ofrep import NotEvaluatedError, all_evaluated, evaluated, failure
from orthobandit.service.api.requests import EvaluateBody, TrackBody
from orthobandit.service.api.responses import BulkAnswer, FlagAnswer, FlagProblem, TrackAnswer
from orthobandit.service.http.auth import needs
from orthobandit.service.http.etags import tagged
from orthobandit.service.http.idempotency import Once

MOST_FLAGS = 1_000  # experiments that are evaluated at once


class OFREPRoute(APIRoute):
    """A route that says in OFREP's words what is wrong with a body."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        answer = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                return await answer(request)
            except (RequestValidationError, HTTPException) as error:
                if isinstance(error, HTTPException) and error.status_code != 400:
                    raise
                message = 'the body must be JSON such as {"context": {"targetingKey": "user-17"}}'
                return JSONResponse({"errorCode": "PARSE_ERROR", "errorDetails": message}, 400)

        return answered


PROBLEMS: dict[int | str, dict[str, Any]] = {
    **documented(401, 403, 413, 415, 422, 500, 503),
    400: {"description": "The flag cannot be evaluated", "model": FlagProblem},
}
ALLOWED = [Depends(needs("ask-tell"))]
router = APIRouter(tags=["feature flags"], dependencies=ALLOWED, responses=PROBLEMS, route_class=OFREPRoute)
tracking = APIRouter(tags=["feature flags"], dependencies=ALLOWED, responses=WRITES)


@router.post(
    "/ofrep/v1/evaluate/flags/{key}",
    summary="Which arm to show, as a flag",
    response_model=FlagAnswer,
    responses={404: {"description": "There is no such experiment", "model": FlagProblem}},
)
def evaluate(key: Key, body: EvaluateBody, request: Request) -> JSONResponse:
    """Draw an arm for the context's unit, or give it the one that it has."""
    try:
        return JSONResponse(evaluated(key, experiment_of(request, key), body.context))
    except UnknownExperimentError as error:
        return JSONResponse(failure(key, error), 404)
    except (NotEvaluatedError, ClosedError, InputError) as error:
        return JSONResponse(failure(key, error), 400)


@router.post(
    "/ofrep/v1/evaluate/flags",
    summary="The arms of all experiments, as flags",
    response_model=BulkAnswer,
    responses=NOT_MODIFIED,
)
def evaluate_all(body: EvaluateBody, request: Request) -> Response:
    """Draw an arm of every open experiment whose units keep theirs; what was drawn before stays."""
    try:
        flags = all_evaluated(_all(request), body.context)
    except NotEvaluatedError as error:
        return JSONResponse(failure(None, error), 400)
    return tagged(request, json.dumps({"flags": flags}).encode())


@tracking.post("/v1/track", summary="An event of a unit, as a reward")
def track(body: TrackBody, request: Request, keyed: Once) -> TrackAnswer:
    """Tell an event to the experiments that have a metric of its name and know the unit.

    Without `experiment`, those that refuse it, because their window has passed or for its value, are named in
    the answer; with it, a refusal is a problem as any other.
    """
    if body.experiment is not None:
        one = experiment_of(request, body.experiment)
        proposal = one.known(body.unit)
        if proposal is None:
            raise UnknownProposalError(f"{body.unit!r} has no proposal in {body.experiment!r}; ask first")
        keyed.once(one, body).tell(proposal.id, {body.event: body.value})
        return TrackAnswer(told=[body.experiment], refused={})
    told = []
    refused = {}
    for key, one in _all(request).items():
        proposal = one.known(body.unit) if body.event in one.settings.names else None
        if proposal is None:
            continue
        try:
            keyed.once(one, body).tell(proposal.id, {body.event: body.value})
            told.append(key)
        except (ClosedError, ConflictError, InputError) as error:
            refused[key] = str(error)
    return TrackAnswer(told=told, refused=refused)


def _all(request: Request) -> dict[str, Experiment]:
    """Return the experiments that can be served, by key."""
    registry = registry_of(request)
    found = {}
    for key in registry.page(MOST_FLAGS):
        try:
            found[key] = registry.get(key)
        except ConflictError:  # of a policy that only its own program knows
            continue
    return found
