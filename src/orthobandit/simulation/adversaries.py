"""Adaptive shifts: baselines that react to the past, but never see the arm of the current round."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from orthobandit._types import Array, Whole
from orthobandit.errors import ParameterError

# What an adaptive shift with a compiled step looks at; any other is asked round by round in Python.
PYTHON, PLAN, LEADER, LAST_REWARD = range(4)

# A plan favours an arm when it gives it this much more than the plans before.
FAVOUR = 1e-9


@dataclass(frozen=True, eq=False)
class Past:
    """What is known before an arm is drawn; the leading axis runs over n replications.

    Attributes
    ----------
    rounds : (n,) array of int
        Rounds played.
    last_arm, last_reward : (n,) arrays
        The latest round; −1 and 0 before the first.
    counts, sums : (n, K) arrays
        How often each arm was played, and the sum of its rewards.
    probabilities : (n, K) array
        The plan in force.
    shares : (n, K) array
        Average probability of each arm over the rounds before this plan; 1/K for the first plan.
    means : (K,) array
        The truth x_iᵀθ: an adversary may know it.
    """

    rounds: Whole
    last_arm: Whole
    last_reward: Array
    counts: Whole
    sums: Array
    probabilities: Array
    shares: Array
    means: Array


class Adaptive(ABC):
    """A shift ν_t that may depend on the whole past.

    Derive from this class and write :meth:`values`; it is called once a round for all replications at
    hand, and must treat each by itself. The built-in kinds also have a compiled step.
    """

    kind: ClassVar[int] = PYTHON

    @property
    def parameters(self) -> tuple[float, float]:
        """Limit and strength for the compiled step."""
        return (0.0, 0.0)

    @abstractmethod
    def values(self, past: Past) -> Array:
        """Return ν of the coming round, (n,)."""

    def within(self, limit: float) -> "Adaptive":
        """Return a shift of the same kind with |ν_t| ≤ limit; needs a dataclass with the field `limit`."""
        own: Any = self
        if "limit" not in getattr(own, "__dataclass_fields__", ()):
            raise ParameterError(f"{self!r} has no limit that could be set; bound its values yourself")
        found: Adaptive = replace(own, limit=min(own.limit, limit))
        return found

    def answers(self, probabilities: Array, shares: Array, means: Array) -> Array:  # noqa: ARG002
        """Return what ν is under each plan while arm i leads, (n, K); arguments as in :class:`Past`."""
        return np.zeros(probabilities.shape)


@dataclass(frozen=True)
class CancelBest(Adaptive):
    """Hides the best arm: rewards are low when the plan favours it and high when the plan avoids it.

    ν_t = −limit when the best arm has a larger probability than on average before, +limit when a smaller
    one; under an unchanged plan, where no shift can tell arms apart, ν_t = −x_*ᵀθ cut at ±limit cancels its
    mean. A learner that compares raw rewards sees the best arm up to 2·limit too low: of all shifts within
    ±limit, the sign of (probability − average) has the largest covariance with playing the best arm.
    """

    limit: float = 1.0
    kind: ClassVar[int] = PLAN

    def __post_init__(self) -> None:
        _check_limit(self.limit)

    def values(self, past: Past) -> Array:  # noqa: D102
        return self.answers(past.probabilities, past.shares, past.means)[:, 0]

    def answers(self, probabilities: Array, shares: Array, means: Array) -> Array:  # noqa: D102
        best = int(np.argmax(means))
        favour = (probabilities - shares)[:, best, np.newaxis]
        cancelled = np.clip(-means[best], -self.limit, self.limit)
        shift = np.where(favour > FAVOUR, -self.limit, np.where(favour < -FAVOUR, self.limit, cancelled))
        return np.repeat(shift, means.size, axis=1)


@dataclass(frozen=True)
class PushLeader(Adaptive):
    """Pushes against the arm with the highest average reward so far.

    ν_t = +limit when the plan gives the leader less than on average before, −limit otherwise, and 0 before
    the first reward.
    """

    limit: float = 1.0
    kind: ClassVar[int] = LEADER

    def __post_init__(self) -> None:
        _check_limit(self.limit)

    def values(self, past: Past) -> Array:  # noqa: D102
        average = np.full(past.sums.shape, -np.inf)
        np.divide(past.sums, past.counts, out=average, where=past.counts > 0)
        leader = np.argmax(average, axis=1)[:, np.newaxis]
        answers = self.answers(past.probabilities, past.shares, past.means)
        return np.where(past.rounds > 0, np.take_along_axis(answers, leader, axis=1)[:, 0], 0.0)

    def answers(self, probabilities: Array, shares: Array, means: Array) -> Array:  # noqa: ARG002, D102
        return np.where(probabilities - shares < -FAVOUR, self.limit, -self.limit)


@dataclass(frozen=True)
class ReactToLast(Adaptive):
    """Answers each reward with its opposite: ν_t = −strength·r_{t−1} cut at ±limit, ν_1 = 0."""

    limit: float = 1.0
    strength: float = 1.0
    kind: ClassVar[int] = LAST_REWARD

    def __post_init__(self) -> None:
        _check_limit(self.limit)
        if not np.isfinite(self.strength):
            raise ParameterError(f"strength={self.strength} must be finite")

    @property
    def parameters(self) -> tuple[float, float]:  # noqa: D102
        return (float(self.limit), float(self.strength))

    def values(self, past: Past) -> Array:  # noqa: D102
        return np.clip(-self.strength * past.last_reward, -self.limit, self.limit)


def _check_limit(limit: float) -> None:
    if not 0 <= limit < np.inf:
        raise ParameterError(f"limit={limit} must be a finite number ≥ 0")
