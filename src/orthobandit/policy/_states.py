"""Shared by the states of policies: frozen arrays, exact JSON, and the check of what is observed."""

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from orthobandit._foundation.checks import check_fits
from orthobandit._foundation.release import check_format, stamp
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError, TallyError
from orthobandit.estimate import Plan, Tally


def freeze(state: Any) -> None:
    """Make every array of a state dataclass a read-only ndarray, also those without axes."""
    for field in fields(state):
        value = getattr(state, field.name)
        if not isinstance(value, ArmSet | Tally):
            array = np.asarray(value)
            array.flags.writeable = False
            object.__setattr__(state, field.name, array)


def dump_state(state: Any) -> dict[str, Any]:
    """Return all fields but the arms as plain lists and numbers, and the format that they have."""
    values = {field.name: getattr(state, field.name) for field in fields(state)}
    plain = {
        name: value.to_json() if isinstance(value, Tally) else value.tolist()
        for name, value in values.items()
        if not isinstance(value, ArmSet)
    }
    return {**stamp(), **plain}


def check_state(data: dict[str, Any]) -> None:
    """Raise :class:`VersionError` unless the dumped state of a policy has the format of this release."""
    check_format("the state of the policy", data)


def load_array(
    data: dict[str, Any], name: str, dtype: DTypeLike, shape: tuple[int, ...] | None = None
) -> NDArray[Any]:
    """Return one array of a dumped state, or raise :class:`ParameterError` if it does not fit."""
    array = np.array(_entry(data, name), dtype=dtype)
    if shape is None:
        return array
    if not array.size and 0 in shape:
        return array.reshape(shape)  # nested empty lists do not say how deep they were
    _check_shape(name, array.shape, shape)
    return array


def load_tally(data: dict[str, Any], name: str, shape: tuple[int, ...]) -> Tally:
    """Return one tally of a dumped state, or raise :class:`ParameterError` if it does not fit."""
    tally = Tally.from_json(_entry(data, name))
    _check_shape(name, tally.counts.shape, shape)
    return tally


def _entry(data: dict[str, Any], name: str) -> Any:
    if name not in data:
        raise ParameterError(f"data has no entry {name!r}; it must come from `dump` of the same policy")
    return data[name]


def _check_shape(name: str, shape: tuple[int, ...], needed: tuple[int, ...]) -> None:
    if shape != needed:
        raise ParameterError(
            f"data[{name!r}] has shape {shape} but {needed} is needed; was it dumped with other arms?"
        )


def check_pairs_fit(policy: object, arms: ArmSet, pair_bytes: float) -> None:
    """Raise an error if a policy's state for all pairs of arms would not fit in memory.

    Parameters
    ----------
    policy : object
    arms : ArmSet
    pair_bytes : float
        Bytes of state for each pair of arms.
    """
    check_fits(
        f"{type(policy).__name__} with {len(arms):,} arms",
        pair_bytes * float(len(arms)) ** 2,
        "AnytimeElimination holds only a few numbers per arm",
    )


def check_observed(in_force: Plan, plan: Plan, tally: Tally) -> None:
    """Raise :class:`TallyError` unless the tally can come from the plan that is in force.

    Parameters
    ----------
    in_force : Plan
        What the policy plans now, with the rounds that are left.
    plan, tally : Plan, Tally
        As given to ``observe``.
    """
    probabilities = in_force.probabilities
    left = in_force.rounds
    _check_shapes(in_force, plan, tally)
    rounds = tally.rounds
    late = (rounds > 0) & (plan.number != in_force.number)
    if late.any():
        place = tuple(int(i) for i in np.argwhere(late)[0])
        raise TallyError(
            f"these rounds are of plan number {plan.number[place]}, and number {in_force.number[place]} is in"
            " force; observe what was played under `plan(state)`, before the plan has ended"
        )
    other = (rounds > 0) & np.any(plan.probabilities != probabilities, axis=-1)
    if other.any():
        raise TallyError("the plan is not the one in force; observe what was played under `plan(state)`")
    check_possible(plan, tally)
    over = rounds > left
    if over.any():
        place = tuple(int(i) for i in np.argwhere(over)[0])
        raise TallyError(
            f"the tally has {rounds[place]} rounds but its plan is in force for {left[place]}"
            " more; ask for a new plan when its rounds are used up"
        )


def check_late(in_force: Plan, plan: Plan, tally: Tally) -> None:
    """Raise :class:`TallyError` unless the tally can come from the plan in force or an earlier one."""
    _check_shapes(in_force, plan, tally)
    early = (tally.rounds > 0) & (plan.number > in_force.number)
    if early.any():
        place = tuple(int(i) for i in np.argwhere(early)[0])
        raise TallyError(
            f"these rounds are of plan number {plan.number[place]}, and the newest is number"
            f" {in_force.number[place]}; was the plan made by another run?"
        )
    check_possible(plan, tally)


def _check_shapes(in_force: Plan, plan: Plan, tally: Tally) -> None:
    if not in_force.probabilities.shape == plan.probabilities.shape == tally.counts.shape:
        raise TallyError(
            f"plan and tally have shapes {plan.probabilities.shape} and {tally.counts.shape};"
            f" the state needs {in_force.probabilities.shape}"
        )


def check_possible(plan: Plan, tally: Tally) -> None:
    impossible = (tally.counts > 0) & (plan.probabilities == 0)
    if impossible.any():
        place = tuple(int(i) for i in np.argwhere(impossible)[0])
        raise TallyError(f"arm {place[-1]} was played {tally.counts[place]} times but has probability 0")


def clear(tally: Tally, mask: NDArray[np.bool_]) -> Tally:
    """Return the tally (..., K) with no rounds where `mask` (...) is true."""
    return tally.without(mask)
