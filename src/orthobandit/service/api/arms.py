"""Arms of a running experiment: add and retire them."""

from typing import Annotated

import numpy as np
from fastapi import Path, Request
from pydantic import ConfigDict, Field

from orthobandit.arms import ArmSet
from orthobandit.errors import FeatureError, ParameterError
from orthobandit.service.api.experiments import ExperimentAnswer
from orthobandit.service.api.operations import Resource
from orthobandit.service.api.shared import WRITES, Arm, Arms, Body, EmptyBody, Key, experiment_of
from orthobandit.service.http.idempotency import Once
from orthobandit.service.http.limits import MAX_ARMS, MAX_PLAIN_ARMS
from orthobandit.service.http.problems import Problem

arms = Resource("/v1/experiments/{key}/arms", tag="arms", role="admin", responses=WRITES)


class ArmsBody(Body):
    """Arms to add, described like the existing ones: by labels, or by labels and features."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"arms": ["newest"]}]})

    arms: Annotated[Arms, Field(min_length=1, max_length=MAX_ARMS)]


def add_arms(arms: ArmSet, given: list[str] | list[Arm]) -> ArmSet:
    """Return the arm set with new arms after the old ones; both are described the same way."""
    labels = list(arms.labels)
    rows = arms.features
    # Arms that were given as labels have one-hot features, and new labels extend those.
    is_plain = rows.shape == (len(arms), len(arms)) and np.array_equal(rows, np.eye(len(arms)))
    new = [arm.features for arm in given if isinstance(arm, Arm)]
    labels += [arm.label if isinstance(arm, Arm) else arm for arm in given]
    if len(labels) > MAX_ARMS:
        raise ParameterError(f"arms would be {len(labels)}; an experiment here has at most {MAX_ARMS}")
    if not new:
        if not is_plain:
            raise FeatureError(
                f"arms have {rows.shape[1]} features in this experiment; give those of new ones as well"
            )
        if len(labels) > MAX_PLAIN_ARMS:
            raise ParameterError(
                f"arms would be {len(labels):,} labels, and without features at most {MAX_PLAIN_ARMS:,} can"
                " be compared"
            )
        return ArmSet.one_hot(len(labels), labels)
    for arm, row in zip(labels[len(arms) :], new, strict=True):
        if len(row) != rows.shape[1]:
            raise FeatureError(f"arm {arm!r} has {len(row)} features; those so far have {rows.shape[1]}")
    return ArmSet(np.vstack([rows, new]), labels)


@arms.post("", summary="Add arms")
def add(key: Key, body: ArmsBody, request: Request, keyed: Once) -> ExperimentAnswer:
    """Add arms after the existing ones; claims are then about the best of all."""
    experiment = experiment_of(request, key)
    keyed.once(experiment, body).extend(lambda arms: add_arms(arms, body.arms))
    return ExperimentAnswer.of(key, experiment)


@arms.post("/{label:path}/retire", summary="Take an arm out")
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
