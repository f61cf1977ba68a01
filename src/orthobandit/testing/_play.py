"""The experiment that policy checks simulate, and the error for a broken clause."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any, TypeVar

import numpy as np

from orthobandit._foundation.checks import nearest
from orthobandit._foundation.random import draw_arms, stream
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Centre, Plan, Tally
from orthobandit.policy import Policy

S = TypeVar("S")


def require(fact: bool, message: str) -> None:
    """Raise :class:`AssertionError` with `message`, the broken clause, unless `fact` is true."""
    if not fact:
        raise AssertionError(message)


def require_object(thing: object) -> None:
    """Raise :class:`AssertionError` if `thing` is a class instead of an instance."""
    name = thing.__name__ if isinstance(thing, type) else ""
    require(not name, f"{name} is a class; check an object of it: {name}()")


def setting_of(kind: Callable[..., S], settings: Mapping[str, Any], **given: Any) -> S:
    """Return a `kind` of setting; raise :class:`ParameterError` for a field that it does not have."""
    valid = [name for name in signature(kind).parameters if name not in given]
    for name in settings:
        if name not in valid:
            raise ParameterError(f"a check has no setting {name!r}; {nearest(name, valid)}")
    return kind(**given, **settings)


@dataclass(frozen=True)
class Setting:
    """The experiment that a check plays.

    Parameters
    ----------
    arms : ArmSet
    horizon : int
        Rounds of each replication.
    steps : int
        Most plans to follow; limits policies that plan every round.
    replications : int
        Size of the batches.
    seed : int
    tolerance : float
        Largest difference between the probabilities of a batch and of its single runs. 0 asks for equality,
        which holds only if linear algebra is done for each replication separately.
    may_play_dropped : bool
        True for policies that still draw dropped arms, because they inform about the others.
    """

    arms: ArmSet
    horizon: int = 3000
    steps: int = 40
    replications: int = 3
    seed: int = 0
    tolerance: float = 0.0
    may_play_dropped: bool = False


@dataclass(frozen=True, eq=False)
class Step:
    """One plan with the state before it and the tallies observed under it; batch axes as in the state."""

    state: Any
    plan: Plan
    parts: tuple[Tally, ...]

    @cached_property
    def tally(self) -> Tally:
        """Sum of the parts."""
        return sum(self.parts[1:], start=self.parts[0])


class PlayRecord:
    """What a policy did in a setting: simulated at the first use, then kept.

    All checks can share one record, so that a policy is simulated once for all of them.
    """

    def __init__(self, policy: Policy[Any], setting: Setting) -> None:
        self._policy = policy
        self._setting = setting
        self._singles: dict[int, tuple[Step, ...]] = {}

    @cached_property
    def batch(self) -> tuple[Step, ...]:
        """The steps of the whole batch."""
        return tuple(self.play_again())

    def single(self, number: int) -> tuple[Step, ...]:
        """Return the steps of one replication that is run alone."""
        if number not in self._singles:
            self._singles[number] = tuple(play(self._policy, self._setting, np.asarray(number)))
        return self._singles[number]

    def play_again(self) -> Iterator[Step]:
        """Simulate the whole batch once more, ignoring what is kept."""
        return play(self._policy, self._setting, np.arange(self._setting.replications))


def play(policy: Policy[Any], setting: Setting, numbers: Whole) -> Iterator[Step]:
    """Follow the policy to the horizon; `numbers` () or (R,) name the replications and shape the batch."""
    count = len(setting.arms)
    batch = numbers.shape
    state = policy.start(setting.arms, batch, seed=setting.seed, replications=numbers)
    played = np.zeros(batch, dtype=np.int64)
    for _ in range(setting.steps):
        plan = policy.plan(state)
        rounds = np.asarray(np.minimum(plan.rounds, setting.horizon - played))
        if not rounds.any():
            return
        names = zip(numbers.reshape(-1).tolist(), played.reshape(-1).tolist(), strict=True)
        rows = zip(names, rounds.flat, plan.probabilities.reshape(-1, count), np.ndindex(batch), strict=True)
        seen = [
            _seen(setting, name, int(size), row, plan.centre and plan.centre.at(place))
            for name, size, row, place in rows
        ]
        step = Step(state, plan, tuple(_stacked(part, batch) for part in zip(*seen, strict=True)))
        yield step
        played = np.asarray(played + rounds)
        state = policy.observe(state, plan, step.tally)


def _seen(
    setting: Setting,
    name: tuple[int, int],
    rounds: int,
    probabilities: Array,
    centre: Centre | None,
) -> list[Tally]:
    """Play the next rounds of a replication, and return their tally in three parts.

    `name` holds the number of the replication and the rounds that it has played. Means are linear, the shift
    is a sine of the round and noise is normal; random numbers depend on `name` and the seed only. If the plan
    has a centre, its residuals are tallied, with a baseline forecast of 0.
    """
    arms = setting.arms
    seed = setting.seed
    theta = stream(seed, "contract theta").standard_normal(arms.features.shape[1])
    # Named by replication and first round: a batch and a single run must meet the same draws.
    drawn = draw_arms(stream(seed, "contract arms", *name), probabilities, rounds)
    noise = stream(seed, "contract noise", *name).standard_normal(rounds)
    shift = 1 + np.sin(2.0 * (name[1] + np.arange(rounds)))
    # Multiples of 2⁻¹⁰: sums are then exact in any order, and states can be compared bit by bit.
    rewards = np.round(((arms.features @ theta)[drawn] + shift + noise) * 1024) / 1024
    if centre is not None:
        rewards = centre.residuals(drawn, rewards)
    thirds = np.array_split(np.arange(rounds), 3)
    return [Tally.of(drawn[third], rewards[third], len(arms)) for third in thirds]


def _stacked(tallies: tuple[Tally, ...], batch: tuple[int, ...]) -> Tally:
    shape = (*batch, tallies[0].count)
    parts = ("counts", "sums", "squares", "largest")
    return Tally(*(np.stack([getattr(tally, part) for tally in tallies]).reshape(shape) for part in parts))
