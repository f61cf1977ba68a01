"""LinUCB: optimism on linear rewards, blind to shifts."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.peers._ridge import (
    REFRESH_ROUNDS,
    add_round,
    refresh_arms,
    update_arms,
)
from orthobandit.policy.base import Decision
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


class UCBMemory(NamedTuple):
    """Σ xxᵀ (R, d, d), Σ xr (R, d), rounds (R,), log(det V/λᵈ) (R,), and P (R, K, K), s (R, K)."""

    gram: Array
    moment: Array
    step: Whole
    growth: Array
    inner: Array
    scores: Array


@compiled
def plan_optimistic(settings: UCBSettings, memory: UCBMemory, i: int, probabilities: Array) -> int:
    """Play the arm of the largest upper bound, the first one on ties."""
    width = settings.noise * np.sqrt(settings.log_inverse + memory.growth[i]) + settings.offset
    width *= settings.scale
    best = -np.inf
    found = 0
    for a in range(probabilities.size):
        bound = memory.scores[i, a] + width * np.sqrt(max(memory.inner[i, a, a], 0.0))
        if bound > best:
            best = bound
            found = a
    return play(found, probabilities)


@compiled
def observe_linear(
    settings: UCBSettings, memory: UCBMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one round to the regression."""
    inner = memory.inner[i]
    scores = memory.scores[i]
    features = settings.features
    gram = memory.gram[i]
    moment = memory.moment[i]
    add_round(gram, moment, features[arm], reward)
    grown = 1.0 + inner[arm, arm]
    # det(V + xxᵀ) = det V·(1 + xᵀV⁻¹x): the determinant is followed without being computed.
    memory.growth[i] += np.log(grown)
    memory.step[i] += 1
    if memory.step[i] % REFRESH_ROUNDS == 0:
        refresh_arms(features, settings.ridge, gram, moment, inner, scores)
    else:
        update_arms(inner, scores, inner[arm].copy(), grown, reward - scores[arm])
    return True


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
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_linear)
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

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> UCBMemory:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        size = len(numbers)
        (count, width) = arms.features.shape
        inner = arms.features @ arms.features.T / self.ridge
        return UCBMemory(
            gram=np.zeros((size, width, width)),
            moment=np.zeros((size, width)),
            step=np.zeros(size, dtype=np.int64),
            growth=np.zeros(size),
            inner=np.tile((inner + inner.T) / 2, (size, 1, 1)),
            scores=np.zeros((size, count)),
        )

    def decide(self, state: RoundState) -> Decision:
        """Return the arm of the largest estimate; nothing is claimed."""
        return open_decision(state, state.memory.scores, "none")
