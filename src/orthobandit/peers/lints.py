"""Linear Thompson sampling, blind to shifts."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import backward, solve_ridge
from orthobandit._foundation.random import fill_normals, starting_point
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.peers._ridge import (
    add_round,
    posterior_into,
    scores_into,
)
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


class LinTSSettings(NamedTuple):
    """Features (K, d), λ, v (0: by theory), σ√(9d) and log(1/δ)."""

    features: Array
    ridge: float
    spread: float
    factor: float
    log_inverse: float


class LinTSMemory(NamedTuple):
    """Σ xxᵀ (R, d, d), Σ xr (R, d), rounds (R,) and the key of the random numbers (R,)."""

    gram: Array
    moment: Array
    step: Whole
    key: Whole


@compiled
def plan_sampled(settings: LinTSSettings, memory: LinTSMemory, i: int, probabilities: Array) -> int:
    """Draw θ̃ ~ N(θ̂, v²V⁻¹) and play its best arm, the first one on ties."""
    count, size = settings.features.shape
    lower = np.zeros((size, size))
    theta = np.empty(size)
    posterior_into(memory.gram[i], memory.moment[i], settings.ridge, lower, theta)
    spread = settings.spread
    if spread == 0.0:
        spread = settings.factor * np.sqrt(np.log(memory.step[i] + 1.0) + settings.log_inverse)
    noise = np.empty(size)
    scores = np.empty(count)
    fill_normals(starting_point(memory.key[i], memory.step[i]), noise)
    # V = LLᵀ, so L⁻ᵀ times standard normals has the covariance V⁻¹.
    backward(lower, size, noise)
    for j in range(size):
        theta[j] += spread * noise[j]
    scores_into(settings.features, theta, scores)
    return play(int(np.argmax(scores)), probabilities)


@compiled
def observe_sampled(
    settings: LinTSSettings, memory: LinTSMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one round to the regression."""
    add_round(memory.gram[i], memory.moment[i], settings.features[arm], reward)
    memory.step[i] += 1
    return True


@dataclass(frozen=True)
class LinTS(RoundPolicy):
    """Thompson sampling with linear rewards (Agrawal & Goyal 2013, Algorithm 1).

    Draws θ̃ ~ N(θ̂, v²V⁻¹), V = λI + Σ xxᵀ, θ̂ = V⁻¹Σ xr, and plays argmax x_aᵀθ̃. Regret Õ(d^{3/2}√T) with
    v = σ√(9d·log(t/δ)) if rewards are linear with σ-sub-Gaussian noise; blind to shifts of the baseline. The
    draw is made when the plan is, so plans put all probability on one arm. Departs: none for λ = 1.

    Parameters
    ----------
    spread : float, optional
        v. By default that of the theorem, which explores a lot; 1 is the Bayesian posterior of unit noise.
    delta, noise : float
        δ and σ of the theorem's v.
    ridge : float
        λ.

    Examples
    --------
    >>> policy = LinTS(spread=1.0)
    >>> float(policy.plan(policy.start(ArmSet.one_hot(3))).probabilities.max())
    1.0
    """

    spread: float | None = None
    delta: float = 0.05
    noise: float = 1.0
    ridge: float = 1.0

    plan_into: ClassVar[PlanStep] = staticmethod(plan_sampled)
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_sampled)

    def __post_init__(self) -> None:
        if self.spread is not None:
            check_positive("spread", self.spread)
        check_fraction("delta", self.delta)
        check_positive("noise", self.noise)
        check_positive("ridge", self.ridge)

    def settings(self, arms: ArmSet) -> LinTSSettings:
        """Return what the compiled steps read."""
        return LinTSSettings(
            features=arms.features,
            ridge=float(self.ridge),
            spread=float(self.spread or 0.0),
            factor=self.noise * math.sqrt(9 * arms.features.shape[1]),
            log_inverse=-math.log(self.delta),
        )

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> LinTSMemory:
        """Return the memory before the first round."""
        size = len(numbers)
        width = arms.features.shape[1]
        return LinTSMemory(
            gram=np.zeros((size, width, width)),
            moment=np.zeros((size, width)),
            step=np.zeros(size, dtype=np.int64),
            key=keys(seed, "linear thompson", numbers),
        )

    def decide(self, state: RoundState) -> Decision:
        """Return the arm of the largest estimate; nothing is claimed."""
        theta = solve_ridge(state.memory.gram, state.memory.moment, self.ridge)
        scores = (theta[..., np.newaxis, :] @ state.arms.features.T)[..., 0, :]
        return open_decision(state, scores, "none")
