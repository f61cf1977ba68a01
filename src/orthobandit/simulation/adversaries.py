"""Adaptive shifts: baselines that react to the past, but never see the arm of the current round."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled, typed
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import Argument, ParameterError

# A plan favours an arm when it gives it this much more than the plans before: far above the rounding of an
# average of equal probabilities, far below any change that a policy makes on purpose.
MIN_FAVOUR = 1e-9


@dataclass(frozen=True, eq=False)
class Past:
    """The history an adversary may read before an arm is drawn; n replications are the leading axis.

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


class Known(NamedTuple):
    """One replication of :class:`Past`, as a compiled step reads it.

    `counts`, `sums`, `probabilities`, `shares` and `means` are (K,) arrays of floats; a step must not write
    to them.
    """

    rounds: int
    last_arm: int
    last_reward: float
    counts: Array
    sums: Array
    probabilities: Array
    shares: Array
    means: Array


# (settings, known) -> ν of the coming round. STEP holds examples of what a step returns and takes: from these
# the compiler learns the types.
ShiftStep = Callable[[Array, Known], float]
STEP: Any = (0.0, (np.zeros(0), Known(0, 0, 0.0, *(np.zeros(0) for _ in range(5)))))


@compiled
def no_step(_settings: Array, _known: Known) -> float:
    """Do nothing; stands in where compiled code needs a step that it never calls."""
    return 0.0


class Adaptive(ABC):
    """A shift ν_t that may depend on the whole past.

    Derive from this class and write :meth:`values`. It is called once a round with all replications, and
    must treat each independently of the others.

    A shift with a compiled `step` is played without leaving compiled code: a function
    ``(settings, known) -> float``, compiled by ``numba.njit``, that returns what :meth:`values` would for one
    replication, `known` being a :class:`Known` and `settings` what :meth:`settings` returned. Declared in
    the class as ``step = staticmethod(function)``.
    """

    step: ClassVar[ShiftStep | None] = None

    @abstractmethod
    def values(self, past: Past) -> Array:
        """Return ν of the coming round, (n,)."""

    def settings(self, means: Array) -> Array:  # noqa: ARG002
        """Return the numbers (S,) that the compiled step reads; `means` (K,) is the truth."""
        return np.zeros(0)

    def within(self, limit: float) -> "Adaptive":
        """Return a shift of the same kind with |ν_t| ≤ limit; needs a dataclass with the field `limit`."""
        own: Any = self
        if "limit" not in getattr(own, "__dataclass_fields__", ()):
            raise ParameterError(f"{self!r} has no limit that could be set; bound its values yourself")
        found: Adaptive = replace(own, limit=min(own.limit, limit))
        return found


@compiled
def _cancel_best(settings: Array, known: Known) -> float:
    limit = float(settings[0])
    cancelled = float(settings[1])
    best = int(settings[2])
    favour = known.probabilities[best] - known.shares[best]
    if favour > MIN_FAVOUR:
        return -limit
    return limit if favour < -MIN_FAVOUR else cancelled


@dataclass(frozen=True)
class CancelBest(Adaptive):
    """Hide the best arm: rewards are low when the plan favours it and high when the plan avoids it.

    ν_t = −limit when the best arm has a larger probability than on average before, +limit when a smaller
    one; under an unchanged plan, where no shift can tell arms apart, ν_t = −x_*ᵀθ cut at ±limit cancels its
    mean. A learner that compares raw rewards sees the best arm up to 2·limit too low: of all shifts within
    ±limit, the sign of (probability − average) has the largest covariance with playing the best arm.
    """

    limit: float = 1.0
    step: ClassVar[ShiftStep | None] = staticmethod(_cancel_best)

    def __post_init__(self) -> None:
        _check_limit(self.limit)

    def values(self, past: Past) -> Array:  # noqa: D102
        limit, cancelled, best = self.settings(past.means)
        favour = (past.probabilities - past.shares)[:, int(best)]
        return np.asarray(
            np.where(favour > MIN_FAVOUR, -limit, np.where(favour < -MIN_FAVOUR, limit, cancelled))
        )

    def settings(self, means: Array) -> Array:  # noqa: D102
        best = int(np.argmax(means))
        return np.array([self.limit, np.clip(-means[best], -self.limit, self.limit), best])


@compiled
def _push_leader(settings: Array, known: Known) -> float:
    if known.rounds == 0:
        return 0.0
    leader = 0
    highest = -np.inf
    for i in range(known.counts.size):
        if known.counts[i] > 0:
            average = known.sums[i] / known.counts[i]
            if average > highest:
                leader = i
                highest = average
    is_behind = known.probabilities[leader] - known.shares[leader] < -MIN_FAVOUR
    return float(settings[0] if is_behind else -settings[0])


@dataclass(frozen=True)
class PushLeader(Adaptive):
    """Push against the arm with the highest average reward so far.

    ν_t = +limit when the plan gives the leader less than on average before, −limit otherwise, and 0 before
    the first reward.
    """

    limit: float = 1.0
    step: ClassVar[ShiftStep | None] = staticmethod(_push_leader)

    def __post_init__(self) -> None:
        _check_limit(self.limit)

    def values(self, past: Past) -> Array:  # noqa: D102
        average = np.full(past.sums.shape, -np.inf)
        np.divide(past.sums, past.counts, out=average, where=past.counts > 0)
        leader = np.argmax(average, axis=1)[:, np.newaxis]
        favour = np.take_along_axis(past.probabilities - past.shares, leader, axis=1)[:, 0]
        answer = np.where(favour < -MIN_FAVOUR, self.limit, -self.limit)
        return np.where(past.rounds > 0, answer, 0.0)

    def settings(self, means: Array) -> Array:  # noqa: ARG002, D102
        return np.array([float(self.limit)])


@compiled
def _react_to_last(settings: Array, known: Known) -> float:
    limit = settings[0]
    strength = settings[1]
    return float(min(max(-strength * known.last_reward, -limit), limit))


@dataclass(frozen=True)
class ReactToLast(Adaptive):
    """Answer each reward with its opposite: ν_t = −strength·r_{t−1} cut at ±limit, ν_1 = 0."""

    limit: float = 1.0
    strength: float = 1.0
    step: ClassVar[ShiftStep | None] = staticmethod(_react_to_last)

    def __post_init__(self) -> None:
        _check_limit(self.limit)
        if not np.isfinite(self.strength):
            raise ParameterError(Argument("strength", self.strength), " must be finite")

    def values(self, past: Past) -> Array:  # noqa: D102
        return np.clip(-self.strength * past.last_reward, -self.limit, self.limit)

    def settings(self, means: Array) -> Array:  # noqa: ARG002, D102
        return np.array([float(self.limit), float(self.strength)])


def step_of(shift: object, means: Array) -> tuple[ShiftStep, Array] | None:
    """Return the compiled step of a shift and its settings (S,), or None if it has to be asked in Python."""
    step = type(shift).step if isinstance(shift, Adaptive) else None
    if not isinstance(shift, Adaptive) or step is None:
        return None
    settings = np.array(shift.settings(means), dtype=np.float64)
    if settings.ndim != 1:
        raise ParameterError(
            f"settings of {shift!r} have shape {settings.shape}; its step reads a row of numbers"
        )
    step = typed(step, *STEP)
    if step is None:
        raise ParameterError(
            f"the step of {shift!r} is not a compiled function (settings, known) -> float;"
            " compile it by numba.njit"
        )
    return step, settings


def _check_limit(limit: float) -> None:
    if not 0 <= limit < np.inf:
        raise ParameterError(Argument("limit", limit), " must be a finite number ≥ 0")
