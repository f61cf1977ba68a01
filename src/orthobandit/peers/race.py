"""What LUCB and action elimination share: a race of means over all rounds, whenever those were."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.peers._linear_rounds import stopped_decision
from orthobandit.policy.base import Decision
from orthobandit.policy.every_round import PlanStep, RoundPolicy, RoundState, play, settle_on

LIL = 0.01  # ε of the law of the iterated logarithm's bound, as in the survey's experiments
UNBOUNDED = 1e300  # stands in for a bound that is not known yet


class RaceSettings(NamedTuple):
    """δ/K, and the factor of the bound: σ for LUCB, 2σ for action elimination."""

    share: float
    scale: float


class RaceMemory(NamedTuple):
    """Plays and sums of rewards (R, K), arms still in (R, K), the next arm, the one after, the declared (R,).

    The arm after the next is −1 if it is not chosen yet.
    """

    counts: Whole
    sums: Array
    active: Mask
    upcoming: Whole
    second: Whole
    declared: Whole


@compiled
def iterated_logarithm_bound(count: int, share: float) -> float:
    """Return 2(1 + √ε)√((1 + ε)·log(log((1 + ε)n + 2)/share)/(2n)), for noise of scale 1."""
    logs = np.log(np.log((1.0 + LIL) * count + 2.0) / share)
    return float(2.0 * (1.0 + np.sqrt(LIL)) * np.sqrt((1.0 + LIL) * max(logs, 0.0) / (2.0 * count)))


@compiled
def means_and_bounds(settings: RaceSettings, memory: RaceMemory, i: int) -> tuple[Array, Array]:
    """Return every arm's mean and the width of its bound (K,)."""
    counts = memory.counts[i]
    means = memory.sums[i] / counts
    bounds = np.empty(counts.size)
    for a in range(counts.size):
        bounds[a] = settings.scale * iterated_logarithm_bound(counts[a], settings.share)
    return means, bounds


@compiled
def plan_race(_settings: RaceSettings, memory: RaceMemory, i: int, probabilities: Array) -> int:
    """Play the arm that is next; the declared one for ever."""
    if memory.declared[i] >= 0:
        return settle_on(memory.declared[i], probabilities)
    return play(memory.upcoming[i], probabilities)


@dataclass(frozen=True)
class RacePolicy(RoundPolicy):
    """What LUCB and action elimination share: settings, memory and decisions."""

    delta: float = 0.05
    noise: float = 1.0

    plan_into: ClassVar[PlanStep] = staticmethod(plan_race)
    factor: ClassVar[float] = 1.0  # of the bound

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_positive("noise", self.noise)

    def settings(self, arms: ArmSet) -> RaceSettings:
        """Return what the compiled steps read."""
        return RaceSettings(self.delta / len(arms), self.factor * self.noise)

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> RaceMemory:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        size = len(numbers)
        shape = (size, len(arms))
        return RaceMemory(
            counts=np.zeros(shape, dtype=np.int64),
            sums=np.zeros(shape),
            active=np.ones(shape, dtype=np.bool_),
            upcoming=np.zeros(size, dtype=np.int64),
            second=np.full(size, -1, dtype=np.int64),
            declared=np.full(size, 0 if len(arms) == 1 else -1, dtype=np.int64),
        )

    def decide(self, state: RoundState) -> Decision:
        """Return the largest mean and the declared arm; nothing is claimed: a shift may have made them."""
        memory = state.memory
        means = np.divide(
            memory.sums, memory.counts, out=np.full(memory.sums.shape, -UNBOUNDED), where=memory.counts > 0
        )
        return stopped_decision(state, memory.active, means, memory.declared)
