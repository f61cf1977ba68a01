"""LinUCB and linear Thompson sampling: linear rewards, blind to shifts."""

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
from orthobandit.policy._ridge import (
    REFRESH_ROUNDS,
    add_round,
    posterior_into,
    refresh_arms,
    scores_into,
    update_arms,
)
from orthobandit.policy.base import Decision
from orthobandit.policy.every_round import ObserveStep, PlanStep, RoundPolicy, RoundState, keys, open_decision


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
def play(arm: int, probabilities: Array) -> int:
    """Play one arm this round."""
    probabilities[:] = 0.0
    probabilities[arm] = 1.0
    return 1


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
