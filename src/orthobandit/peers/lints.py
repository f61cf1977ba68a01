"""Linear Thompson sampling, for fixed arms and for offers; blind to shifts."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import backward, cholesky_into, solve_ridge
from orthobandit._foundation.random import fill_normals, starting_point
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.peers.linucb import ContextualLinUCB, OfferedSettings
from orthobandit.peers.regression import FeaturesView, Sums, begin_sums, learn_sums, posterior_into
from orthobandit.policy.base import Decision
from orthobandit.policy.contextual.base import PlanStep as OfferPlanStep
from orthobandit.policy.contextual.regression import dot, scores_into
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


@compiled
def plan_sampled(settings: LinTSSettings, memory: Sums, i: int, probabilities: Array) -> int:
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
def plan_offered(
    settings: OfferedSettings, memory: FeaturesView, i: int, features: Array, probabilities: Array
) -> int:
    """Draw θ̃ ~ N(θ̂, v²V⁻¹) and play its best arm of the offer, the first one on ties."""
    size = memory.theta.shape[1]
    known = features.shape[1]
    normals = np.empty(size)
    lower = np.zeros((size, size))
    drawn = memory.theta[i].copy()
    fill_normals(starting_point(memory.key[i], memory.step[i]), normals)
    # V⁻¹ = LLᵀ, so L times standard normals has its covariance; the floor keeps a pivot from being 0.
    cholesky_into(memory.inverse[i], size, lower, 1e-300)
    spread = settings.radius * np.sqrt(memory.variance[i])
    for j in range(size):
        for k in range(j + 1):
            drawn[j] += spread * lower[j, k] * normals[k]
    most = -np.inf
    best = 0
    for a in range(features.shape[0]):
        score = dot(features[a], drawn[:known])
        if score > most:
            most = score
            best = a
    play(best, probabilities)
    return 0


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
    observe_into: ClassVar[ObserveStep] = staticmethod(learn_sums)

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

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> Sums:
        """Return the memory before the first round."""
        return begin_sums(keys(seed, "linear thompson", numbers), arms.features.shape[1])

    def decide(self, state: RoundState) -> Decision:
        """Return the arm of the largest estimate; nothing is claimed."""
        theta = solve_ridge(state.memory.gram, state.memory.moment, self.ridge)
        scores = (theta[..., np.newaxis, :] @ state.arms.features.T)[..., 0, :]
        return open_decision(state, scores, "none")


@dataclass(frozen=True)
class ContextualLinTS(ContextualLinUCB):
    """Linear Thompson sampling (Agrawal & Goyal 2013): a posterior draw a round, blind to a moving level.

    Departs: v is in units of the residuals' scale, and a level that does not move may be fitted, too.

    Parameters
    ----------
    radius : float
        v in units of the residuals' scale.
    intercept, ridge
        As in :class:`~orthobandit.peers.ContextualLinUCB`.

    Examples
    --------
    >>> from orthobandit.policy.contextual import Offer
    >>> policy = ContextualLinTS()
    >>> float(policy.plan(policy.start(1), Offer([[0.0], [1.0]])).probabilities.max())
    1.0
    """

    radius: float = 0.5

    plan_into: ClassVar[OfferPlanStep] = staticmethod(plan_offered)
