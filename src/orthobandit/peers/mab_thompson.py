"""Thompson sampling for the plain multi-armed bandit, blind to features and shifts."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_choice, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.random import beta_at, fill_normals, starting_point
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.policy.base import Decision
from orthobandit.policy.every_round import (
    ObserveStep,
    PlanStep,
    RoundPolicy,
    RoundState,
    keys,
    open_decision,
    play,
)


class MABSettings(NamedTuple):
    """Which posterior, σ, and the range of rewards."""

    is_beta: bool
    noise: float
    low: float
    high: float


class MABMemory(NamedTuple):
    """Plays (R, K), sums of rewards (R, K), rounds (R,) and the key of the random numbers (R,)."""

    counts: Whole
    sums: Array
    step: Whole
    key: Whole


@compiled
def plan_posterior(settings: MABSettings, memory: MABMemory, i: int, probabilities: Array) -> int:
    """Draw every arm's mean from its posterior and play the best."""
    counts = memory.counts[i]
    sums = memory.sums[i]
    drawn = np.empty(counts.size)
    start = starting_point(memory.key[i], memory.step[i])
    if not settings.is_beta:
        fill_normals(start, drawn)
    for a in range(counts.size):
        if settings.is_beta:
            # Rewards as shares of the range: a Beta posterior counts successes.
            good = (sums[a] - counts[a] * settings.low) / (settings.high - settings.low)
            drawn[a] = beta_at(start, a, 1.0 + good, 1.0 + counts[a] - good)
        else:
            drawn[a] = sums[a] / (counts[a] + 1) + settings.noise * drawn[a] / np.sqrt(counts[a] + 1.0)
    return play(int(np.argmax(drawn)), probabilities)


@compiled
def observe_reward(
    settings: MABSettings, memory: MABMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one reward to its arm, unless a Beta posterior cannot hold it."""
    if settings.is_beta and not settings.low <= reward <= settings.high:
        return False
    memory.counts[i, arm] += 1
    memory.sums[i, arm] += reward
    memory.step[i] += 1
    return True


@dataclass(frozen=True)
class MABThompson(RoundPolicy):
    """Thompson sampling on the arms as they are, without features (Agrawal & Goyal 2012, 2013).

    "gaussian": mean_a ~ N(Σr/(n+1), σ²/(n+1)). "beta": mean_a ~ Beta(1 + Σy, 1 + n − Σy) with
    y = (r − low)/(high − low). The best of the drawn means is played. Regret O(Σ log T/Δ_a) for independent
    rewards (in [low, high] for "beta"); blind to shifts. Departs: rewards strictly inside the range count as
    fractions of a success instead of being rounded to 0 or 1 at random.

    Parameters
    ----------
    posterior : {"gaussian", "beta"}
    noise : float
        σ of the Gaussian posterior.
    low, high : float
        Range of rewards for the Beta posterior; :class:`~orthobandit.errors.RewardError` outside it.

    Examples
    --------
    >>> policy = MABThompson(posterior="beta")
    >>> float(policy.plan(policy.start(ArmSet.one_hot(3))).probabilities.max())
    1.0
    """

    posterior: str = "gaussian"
    noise: float = 1.0
    low: float = 0.0
    high: float = 1.0

    plan_into: ClassVar[PlanStep] = staticmethod(plan_posterior)
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_reward)

    def __post_init__(self) -> None:
        check_choice("posterior", self.posterior, ("gaussian", "beta"))
        check_positive("noise", self.noise)
        if not -np.inf < self.low < self.high < np.inf:
            raise ParameterError(Argument("low", self.low), f" must lie below high={self.high}, both finite")

    def settings(self, arms: ArmSet) -> MABSettings:
        """Return what the compiled steps read."""
        del arms
        return MABSettings(self.posterior == "beta", float(self.noise), float(self.low), float(self.high))

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> MABMemory:
        """Return the memory before the first round."""
        shape = (len(numbers), len(arms))
        return MABMemory(
            counts=np.zeros(shape, dtype=np.int64),
            sums=np.zeros(shape),
            step=np.zeros(len(numbers), dtype=np.int64),
            key=keys(seed, "multi-armed thompson", numbers),
        )

    def decide(self, state: RoundState) -> Decision:
        """Return the arm of the largest posterior mean; nothing is claimed."""
        counts = state.memory.counts
        sums = state.memory.sums
        if self.posterior == "beta":
            good = (sums - counts * self.low) / (self.high - self.low)
            return open_decision(state, (1 + good) / (2 + counts), "none")
        return open_decision(state, sums / (counts + 1), "none")
