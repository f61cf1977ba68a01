"""Experiments as requests describe them: arms, policy and settings out of plain values."""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from orthobandit.arms import ArmSet
from orthobandit.errors import ExperimentExistsError, FeatureError, ParameterError
from orthobandit.estimate import CovariateRegression
from orthobandit.experiment import Experiment, Guardrail, Metric
from orthobandit.experiment.arguments import settings_of
from orthobandit.experiment.settings import UNKNOWN, Options, RewardRange, Unknown
from orthobandit.policy import AnytimeElimination
from orthobandit.service.api.requests import MOST_ARMS, Arm, CreateBody
from orthobandit.service.registry import Registry


def begin(registry: Registry, body: CreateBody, *, is_repeatable: bool = False) -> Experiment:
    """Begin the experiment that a request describes.

    Parameters
    ----------
    registry : Registry
    body : CreateBody
    is_repeatable : bool
        Whether an experiment that was begun as described is returned, and no error.
    """
    arms = arms_of(body.arms)
    policy = policy_of(body)
    options = options_of(body)
    try:
        return registry.create(body.key, arms, policy, options)
    except ExperimentExistsError:
        found = registry.settings(body.key)
        wanted = settings_of(arms, policy, replace(options, key=found["key"])).to_json()
        if not is_repeatable or json.loads(json.dumps(wanted)) != found:
            raise
        return registry.get(body.key)


def arms_of(given: list[str] | list[Arm]) -> ArmSet:
    """Return arms that are described by labels, or by labels and features."""
    labels = [arm.label if isinstance(arm, Arm) else arm for arm in given]
    rows = [arm.features for arm in given if isinstance(arm, Arm)]
    if not rows:
        return ArmSet.one_hot(len(labels), labels)
    for arm, row in zip(labels, rows, strict=True):
        if len(row) != len(rows[0]):
            raise FeatureError(
                f"arms {labels[0]!r} and {arm!r} have {len(rows[0])} and {len(row)} features; give as many"
            )
    return ArmSet(rows, labels)


def policy_of(body: CreateBody) -> AnytimeElimination:
    """Return the policy that a request asks for."""
    chosen: dict[str, Any] = {"delta": body.delta, "epsilon": body.epsilon, "goal": body.goal}
    if body.covariates is not None:
        chosen["baseline"] = CovariateRegression(names=tuple(body.covariates))
    return AnytimeElimination(rewards=range_of(body.rewards), **chosen)


def range_of(given: list[float] | Unknown | None) -> RewardRange | None:
    """Return a range as a pair; None where it is not known."""
    return None if given is None or given == UNKNOWN else (float(given[0]), float(given[1]))


def options_of(body: CreateBody) -> Options:
    """Return what :meth:`Experiment.create` is given beside arms and policy."""
    return Options(
        rewards=range_of(body.rewards) or UNKNOWN,
        window=body.window,
        silence=body.silence,
        sticky=body.sticky,
        reference=Options.reference if body.reference is None else body.reference,
        holdout=body.holdout,
        objective=body.objective,
        add=body.add,
        metrics=[Metric(one.name, range_of(one.rewards), one.add, one.delta) for one in body.metrics],
        guardrails=[Guardrail(**one.model_dump()) for one in body.guardrails],
    )


def extended(arms: ArmSet, given: list[str] | list[Arm]) -> ArmSet:
    """Return arms with new ones after them, which are described as those so far."""
    labels = list(arms.labels)
    rows = arms.features
    is_plain = rows.shape == (len(arms), len(arms)) and np.array_equal(rows, np.eye(len(arms)))
    new = [arm.features for arm in given if isinstance(arm, Arm)]
    labels += [arm.label if isinstance(arm, Arm) else arm for arm in given]
    if len(labels) > MOST_ARMS:
        raise ParameterError(f"arms would be {len(labels)}; an experiment here has at most {MOST_ARMS}")
    if not new:
        if not is_plain:
            raise FeatureError(
                f"arms have {rows.shape[1]} features in this experiment; give those of new ones as well"
            )
        return ArmSet.one_hot(len(labels), labels)
    for arm, row in zip(labels[len(arms) :], new, strict=True):
        if len(row) != rows.shape[1]:
            raise FeatureError(f"arm {arm!r} has {len(row)} features; those so far have {rows.shape[1]}")
    return ArmSet(np.vstack([rows, new]), labels)
