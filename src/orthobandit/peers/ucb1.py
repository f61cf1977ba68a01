"""UCB1 for the plain multi-armed bandit, blind to features and shifts."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.policy.base import Decision
from orthobandit.policy.every_round import (
    ObserveStep,
    PlanStep,
    RoundPolicy,
    RoundState,
    open_decision,
    play,
)


class UCB1Settings(NamedTuple):
    """`scale` is c of the bonus c√(2·log t/n)."""

    scale: float


class MeansMemory(NamedTuple):
    """How often each arm was played (R, K) and the sum of its rewards (R, K)."""

    counts: Whole
    sums: Array


@compiled
def plan_ucb(settings: UCB1Settings, memory: MeansMemory, i: int, probabilities: Array) -> int:
    """Play every arm once, then the largest mean + c√(2·log t/n), the first one on ties."""
    counts = memory.counts[i]
    sums = memory.sums[i]
    log_round = np.log(float(counts.sum()))
    best = -np.inf
    found = 0
    for a in range(counts.size):
        if counts[a] == 0:
            return play(a, probabilities)
        bound = sums[a] / counts[a] + settings.scale * np.sqrt(2.0 * log_round / counts[a])
        if bound > best:
            best = bound
            found = a
    return play(found, probabilities)


@compiled
def observe_mean(
    _settings: UCB1Settings, memory: MeansMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one reward to its arm."""
    memory.counts[i, arm] += 1
    memory.sums[i, arm] += reward
    return True


def means(memory: MeansMemory) -> Array:
    """Return the mean reward (..., K) of each arm; −inf before its first."""
    unknown = np.full(memory.sums.shape, -np.inf)
    return np.asarray(np.divide(memory.sums, memory.counts, out=unknown, where=memory.counts > 0))


@dataclass(frozen=True)
class UCB1(RoundPolicy):
    """UCB1 on the arms as they are, without features (Auer, Cesa-Bianchi & Fischer 2002).

    Plays every arm once and then argmax mean_a + c√(2·log t/n_a). Regret O(Σ log T/Δ_a) for independent
    rewards in [0, c]; under a shift, means depend on when arms were played. Departs: none.

    Parameters
    ----------
    scale : float
        c, the range of rewards; the paper has 1.

    Examples
    --------
    >>> policy = UCB1()
    >>> policy.plan(policy.start(ArmSet.one_hot(3))).probabilities.tolist()
    [1.0, 0.0, 0.0]
    """

    scale: float = 1.0

    plan_into: ClassVar[PlanStep] = staticmethod(plan_ucb)
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_mean)

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)

    def settings(self, arms: ArmSet) -> UCB1Settings:
        """Return what the compiled steps read."""
        del arms
        return UCB1Settings(float(self.scale))

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> MeansMemory:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        shape = (len(numbers), len(arms))
        return MeansMemory(np.zeros(shape, dtype=np.int64), np.zeros(shape))

    def decide(self, state: RoundState) -> Decision:
        """Return the arm of the largest mean; nothing is claimed."""
        return open_decision(state, means(state.memory), "none")
