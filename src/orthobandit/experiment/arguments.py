"""Arguments of an experiment's methods, checked at the edge and put into one form."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import Bounded
from orthobandit.estimate.forecaster import Covariates
from orthobandit.experiment.book import check_pairs_kept
from orthobandit.experiment.draw import new_key
from orthobandit.experiment.settings import OBJECTIVE, Metric, Settings, seconds
from orthobandit.policy import AnytimeElimination, Policy


def settings_of(arms: ArmSet, policy: Policy[Any] | None, given: dict[str, Any]) -> Settings:
    """Return the settings that the arguments of :meth:`Experiment.create` say."""
    known = ("rewards", "window", "silence", "sticky", "reference", "holdout", "objective", "add")
    for name in given:
        if name not in (*known, "metrics", "guardrails", "key"):
            raise ParameterError(
                f"{name!r} is not a setting; settings are {', '.join(known)}, metrics and guardrails"
            )
    if not isinstance(arms, ArmSet):
        raise ParameterError(f"arms={arms!r} must be an ArmSet: ArmSet.one_hot(2, labels=['a', 'b'])")
    rewards = given.get("rewards")
    chosen = AnytimeElimination(rewards=rewards) if policy is None else policy
    check_pairs_kept(chosen, arms)
    mode = getattr(chosen, "confidence", None)
    if rewards is not None and mode is not None and mode != Bounded(*map(float, rewards)):
        raise ParameterError(
            f"rewards={rewards!r} must be said to the policy: {type(chosen).__name__}(rewards={rewards!r})"
        )
    if isinstance(mode, Bounded):
        rewards = mode.reward_range
    objective = Metric(given.get("objective", OBJECTIVE), rewards, bool(given.get("add", False)))
    silence, window = given.get("silence", "zero"), given.get("window")
    return Settings(
        arms=arms,
        policy=chosen,
        key=given.get("key") or new_key(),
        window=seconds(window),
        silence=silence,
        sticky=bool(given.get("sticky", True)),
        reference=arm_of(arms, given.get("reference", 0)),
        holdout=given.get("holdout", 0.0),
        metrics=(objective, *given.get("metrics", ())),
        guardrails=tuple(given.get("guardrails", ())),
    )


def arm_of(arms: ArmSet, arm: int | str) -> int:
    """Return the number of an arm that is given by number or label."""
    if isinstance(arm, str):
        return arms.index(arm)
    if isinstance(arm, bool) or not isinstance(arm, int | np.integer) or not 0 <= arm < len(arms):
        raise ParameterError(f"arm={arm!r} is not an arm; arms are 0 to {len(arms) - 1}, or their labels")
    return int(arm)


def units_of(count: int | None, unit: str | None, units: Sequence[str] | None) -> list[str | None]:
    """Return one unit, or None, for each proposal that is asked for."""
    if (count is not None) + (unit is not None) + (units is not None) > 1:
        raise ParameterError("give one of count, unit and units")
    if count is not None:
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise ParameterError(f"count={count!r} must be a whole number of at least 1")
        return [None] * int(count)
    given = [unit] if units is None else list(units)
    if not given:
        raise ParameterError("units is empty; ask for at least one")
    for one in given:
        if one is None and units is None:
            continue
        if not isinstance(one, str) or not one:
            raise ParameterError(f"unit={one!r} must be text, e.g. a user's name; numbers as str(number)")
    return list(given)


def covariates_of(given: Any, count: int) -> list[Covariates] | None:
    """Return the covariates of each proposal that is asked for, if any are given."""
    if given is None:
        return None
    many = [given] * count if isinstance(given, Mapping) else list(given)
    if len(many) != count:
        raise ParameterError(f"covariates are {len(many)} for {count} proposals; give one dict each")
    return many


def numbers_of(ids: Sequence[int] | Whole) -> Whole:
    """Return the numbers (n,) of proposals."""
    given = np.asarray(ids)
    if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
        raise ParameterError(f"ids={ids!r} must be numbers of proposals, as `ask` returned them in `.id`")
    return given.astype(np.int64, copy=False)


def values_of(name: str, given: ArrayLike, count: int) -> Array:
    """Return the values (n,) that are told of a metric."""
    try:
        values = np.asarray(given)
        if values.dtype != np.float64 or values.ndim != 1:
            values = np.atleast_1d(values).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise RewardError(f"{name}={given!r} must be a number for each proposal") from None
    if values.shape != (count,):
        raise RewardError(f"{name} has {values.size} values for {count} proposals; give one each")
    return values
