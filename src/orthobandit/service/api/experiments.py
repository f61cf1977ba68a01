"""Experiments: begin, list, look at, pause, resume and stop them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import Response

from orthobandit.service.api.base import READS, WRITES, Key, experiment_of, registry_of
from orthobandit.service.api.creation import begin
from orthobandit.service.api.requests import CreateBody, EmptyBody, StopBody
from orthobandit.service.api.responses import ExperimentAnswer, ExperimentsAnswer
from orthobandit.service.http.auth import needs
from orthobandit.service.http.etags import tagged
from orthobandit.service.http.idempotency import Once

router = APIRouter(prefix="/v1/experiments", tags=["experiments"])
ADMIN = [Depends(needs("admin"))]
READ = [Depends(needs("read"))]


@router.post("", status_code=201, summary="Begin an experiment", responses=WRITES, dependencies=ADMIN)
def create(body: CreateBody, request: Request, response: Response, keyed: Once) -> ExperimentAnswer:
    """Begin an experiment that is kept in the database; with a key, one that is so already is answered."""
    made = begin(registry_of(request), body, is_repeatable=keyed.key is not None)
    response.headers["Location"] = f"/v1/experiments/{body.key}"
    return ExperimentAnswer.of(body.key, made)


@router.get(
    "", summary="List experiments", response_model=ExperimentsAnswer, responses=READS, dependencies=READ
)
def listed(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$")] = "",
) -> Response:
    """List the keys of experiments in order, `limit` at a time."""
    keys = registry_of(request).page(limit + 1, after)
    more = keys[limit - 1] if len(keys) > limit else None
    return tagged(request, ExperimentsAnswer(keys=keys[:limit], next=more).model_dump_json().encode())


@router.get(
    "/{key}",
    summary="Look at an experiment",
    response_model=ExperimentAnswer,
    responses=READS,
    dependencies=READ,
)
def shown(key: Key, request: Request) -> Response:
    """Say what an experiment was set up with, and how far it is."""
    answer = ExperimentAnswer.of(key, experiment_of(request, key))
    return tagged(request, answer.model_dump_json().encode())


@router.post("/{key}/pause", summary="Take no more questions", responses=WRITES, dependencies=ADMIN)
def pause(key: Key, request: Request, keyed: Once, _: EmptyBody | None = None) -> ExperimentAnswer:
    """Refuse to be asked until it is resumed; rewards are still taken."""
    experiment = experiment_of(request, key)
    keyed.once(experiment).pause()
    return ExperimentAnswer.of(key, experiment)


@router.post("/{key}/resume", summary="Go on", responses=WRITES, dependencies=ADMIN)
def resume(key: Key, request: Request, keyed: Once, _: EmptyBody | None = None) -> ExperimentAnswer:
    """Go on after a pause."""
    experiment = experiment_of(request, key)
    keyed.once(experiment).resume()
    return ExperimentAnswer.of(key, experiment)


@router.post("/{key}/stop", summary="End it by hand", responses=WRITES, dependencies=ADMIN)
def stop(key: Key, request: Request, keyed: Once, body: StopBody | None = None) -> ExperimentAnswer:
    """End the experiment: no more proposals; rewards that are awaited are still taken."""
    experiment = experiment_of(request, key)
    keyed.once(experiment, body).stop("" if body is None else body.reason)
    return ExperimentAnswer.of(key, experiment)
