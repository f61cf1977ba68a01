"""LinUCB: optimism on linear rewards, for fixed arms and for offers; blind to shifts."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Baseline
from orthobandit.peers.regression import (
    ArmsView,
    FeaturesView,
    begin_arms_view,
    begin_features_view,
    learn_offered,
    learn_plain,
    look_at,
    score_offered,
)
from orthobandit.policy.base import Decision
from orthobandit.policy.contextual.base import CompiledContextual, ScoreStep
from orthobandit.policy.contextual.base import ObserveStep as OfferObserveStep
from orthobandit.policy.contextual.base import PlanStep as OfferPlanStep
from orthobandit.policy.every_round import (
    ObserveStep,
    PlanStep,
    RoundPolicy,
    RoundState,
    open_decision,
    play,
)


class UCBSettings(NamedTuple):
    """Features (K, d), λ, 2·log(1/δ), √λ·S, σ and c."""

    features: Array
    ridge: float
    log_inverse: float
    offset: float
    noise: float
    scale: float


class OfferedSettings(NamedTuple):
    """The radius in units of the residuals' scale."""

    radius: float


@compiled
def plan_optimistic(settings: UCBSettings, memory: ArmsView, i: int, probabilities: Array) -> int:
    """Play the arm of the largest upper bound, the first one on ties."""
    width = settings.noise * np.sqrt(settings.log_inverse + memory.growth[i]) + settings.offset
    width *= settings.scale
    most = -np.inf
    best = 0
    for a in range(probabilities.size):
        bound = memory.scores[i, a] + width * np.sqrt(max(memory.inner[i, a, a], 0.0))
        if bound > most:
            most = bound
            best = a
    return play(best, probabilities)


@compiled
def plan_offered(
    settings: OfferedSettings, memory: FeaturesView, i: int, features: Array, probabilities: Array
) -> int:
    """Play the offered arm of the largest upper bound, the first one on ties."""
    width = settings.radius * np.sqrt(memory.variance[i])
    theta = memory.theta[i]
    inverse = memory.inverse[i]
    pulled = np.empty(theta.size)
    most = -np.inf
    best = 0
    for a in range(features.shape[0]):
        score, squared = look_at(inverse, theta, features[a], pulled)
        bound = score + width * np.sqrt(max(squared, 0.0))
        if bound > most:
            most = bound
            best = a
    play(best, probabilities)
    return 0


@dataclass(frozen=True)
class LinUCB(RoundPolicy):
    """Optimism with the self-normalised ellipsoid: OFUL on a finite set (Abbasi-Yadkori et al. 2011).

    Plays argmax x_aᵀθ̂ + c√β_t·‖x_a‖_{V⁻¹} with V = λI + Σ xxᵀ, θ̂ = V⁻¹Σ xr and
    √β_t = σ√(2·log(1/δ) + log(det V/λᵈ)) + √λ·S. Regret Õ(d√T) with probability 1 − δ if rewards are linear
    with σ-sub-Gaussian noise and ‖θ‖ ≤ S. A shift of the baseline breaks that model, and estimates are then
    at the mercy of the correlation between the shift and the policy's own choices. Departs: none for c = 1.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    ridge : float
        λ.
    norm : float
        S.
    noise : float
        σ.
    scale : float
        c, a factor of the bound; the theorem has 1.

    Examples
    --------
    >>> policy = LinUCB()
    >>> policy.plan(policy.start(ArmSet([[0.0, 1.0], [2.0, 0.0]]))).probabilities.tolist()
    [0.0, 1.0]
    """

    delta: float = 0.05
    ridge: float = 1.0
    norm: float = 1.0
    noise: float = 1.0
    scale: float = 1.0

    plan_into: ClassVar[PlanStep] = staticmethod(plan_optimistic)
    observe_into: ClassVar[ObserveStep] = staticmethod(learn_plain)
    pair_bytes: ClassVar[float] = 24.0  # inner products, and what is made on the way to them

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        for name in ("ridge", "norm", "noise", "scale"):
            check_positive(name, getattr(self, name))

    def settings(self, arms: ArmSet) -> UCBSettings:
        """Return what the compiled steps read."""
        return UCBSettings(
            features=arms.features,
            ridge=float(self.ridge),
            log_inverse=-2 * math.log(self.delta),
            offset=math.sqrt(self.ridge) * self.norm,
            noise=float(self.noise),
            scale=float(self.scale),
        )

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> ArmsView:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        return begin_arms_view(arms.features, self.ridge, len(numbers))

    def decide(self, state: RoundState) -> Decision:
        """Return the arm of the largest estimate; nothing is claimed."""
        return open_decision(state, state.memory.scores, "none")


@dataclass(frozen=True)
class ContextualLinUCB(CompiledContextual):
    """LinUCB (Li et al. 2010): optimism in each round's features; breaks when the level follows its choices.

    Plays argmax xᵀθ̂ + c√s²·‖x‖_{V⁻¹} with V = λI + Σ xxᵀ, θ̂ = V⁻¹Σ xr. Departs: the radius is in units of the
    residuals' scale s, and a level that does not move may be fitted as one more coefficient.

    Parameters
    ----------
    radius : float
        c, the width of the bounds in units of the residuals' scale.
    intercept : bool
        Whether a level that does not move is fitted, too.
    ridge : float
        λ.

    Examples
    --------
    >>> from orthobandit.policy.contextual import Offer
    >>> policy = ContextualLinUCB(intercept=False)
    >>> policy.plan(policy.start(2), Offer([[0.0, 1.0], [2.0, 0.0]])).probabilities.tolist()
    [0.0, 1.0]
    """

    radius: float = 1.0
    intercept: bool = True
    ridge: float = 1.0

    baseline: ClassVar[Baseline | None] = None  # rewards are taken as they are
    plan_into: ClassVar[OfferPlanStep] = staticmethod(plan_offered)
    observe_into: ClassVar[OfferObserveStep] = staticmethod(learn_offered)
    score_of: ClassVar[ScoreStep] = staticmethod(score_offered)

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)
        check_positive("ridge", self.ridge)

    def settings(self, dimension: int) -> OfferedSettings:  # noqa: ARG002
        """Return what the compiled steps read."""
        return OfferedSettings(float(self.radius))

    def begin(self, dimension: int, keys: Whole) -> FeaturesView:
        """Return the memory before the first round."""
        return begin_features_view(keys, dimension + int(self.intercept), self.ridge)
