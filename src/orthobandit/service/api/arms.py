"""Arms that come and go."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request

from orthobandit.service.api.base import WRITES, Key, experiment_of
from orthobandit.service.api.creation import extended
from orthobandit.service.api.requests import ArmsBody, EmptyBody
from orthobandit.service.api.responses import ExperimentAnswer
from orthobandit.service.http.auth import needs
from orthobandit.service.http.idempotency import Once
from orthobandit.service.http.problems import Problem

router = APIRouter(
    prefix="/v1/experiments/{key}/arms",
    tags=["arms"],
    dependencies=[Depends(needs("admin"))],
    responses=WRITES,
)


@router.post("", summary="Add arms")
def add(key: Key, body: ArmsBody, request: Request, keyed: Once) -> ExperimentAnswer:
    """Add arms after those so far; claims are then about the best of all."""
    experiment = experiment_of(request, key)
    keyed.once(experiment, body).extend(lambda arms: extended(arms, body.arms))
    return ExperimentAnswer.of(key, experiment)


@router.post("/{label:path}/retire", summary="Take an arm out")
def retire(
    key: Key,
    label: Annotated[str, Path(max_length=200, examples=["with video"])],
    request: Request,
    keyed: Once,
    _: EmptyBody | None = None,
) -> ExperimentAnswer:
    """Take an arm out; claims are then about the best of the rest."""
    experiment = experiment_of(request, key)
    labels = experiment.arms.labels
    if label not in labels:
        raise Problem("not-found", f"there is no arm {label!r}; the arms are {', '.join(map(repr, labels))}")
    keyed.once(experiment).retire(label)
    return ExperimentAnswer.of(key, experiment)
