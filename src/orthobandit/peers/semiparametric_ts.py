"""Semiparametric Thompson sampling: a shift cannot bias it."""

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_choice, check_positive, check_whole
from orthobandit._foundation.compile import compiled, compiled_in_place
from orthobandit._foundation.linalg import whiten_into
from orthobandit._foundation.random import starting_point
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate.forecast.baselines import Baseline, RunningMean
from orthobandit.peers.centred_ts import CentredThompson, SampledSettings
from orthobandit.peers.regression import add_row, posterior_into
from orthobandit.peers.residual_scale import follow_scale
from orthobandit.peers.thompson_draws import frequencies_into
from orthobandit.policy.base import Decision
from orthobandit.policy.contextual.base import ObserveStep as OfferObserveStep
from orthobandit.policy.contextual.regression import (
    CentredMemory,
    add_outer,
    dot,
    invert,
    mean_into,
    scale_into,
    scores_into,
    times,
)
from orthobandit.policy.every_round import ObserveStep, PlanStep, RoundPolicy, RoundState, keys, open_decision

WEIGHTS = {"printed": 1.0, "released": 2.0}  # how often a round counts


class ThompsonSettings(NamedTuple):
    """Features on the arms' hull (K, r) and as given (K, d), v, M, and how often a round counts."""

    positions: Array
    features: Array
    spread: float
    draws: int
    weight: float


class ThompsonMemory(NamedTuple):
    """B − I (R, r, r), y (R, r), rounds in them (R,), and the key of the random numbers (R,).

    Where the level is subtracted, also Σ zzᵀ (R, d + 1, d + 1) and Σ zr (R, d + 1) of z = (1, x).
    """

    gram: Array
    moment: Array
    level_gram: Array
    level_moment: Array
    step: Whole
    key: Whole


@compiled
def plan_frequencies(settings: ThompsonSettings, memory: ThompsonMemory, i: int, probabilities: Array) -> int:
    """Play each arm with the frequency with which it is best among draws from the posterior."""
    positions = settings.positions
    (count, size) = settings.positions.shape
    lower = np.zeros((size, size))
    theta = np.empty(size)
    means = np.empty(count)
    posterior_into(memory.gram[i], memory.moment[i], 1.0, lower, theta)
    scores_into(positions, theta, means)
    white = np.empty((size, count))
    whiten_into(lower, positions, white)
    start = starting_point(memory.key[i], memory.step[i])
    frequencies_into(start, white, means, settings.spread, settings.draws, probabilities)
    return 1


@compiled_in_place
def add_spread(
    gram: Array, features: Array, probabilities: Array, arm: int, weight: float, mean: Array, centred: Array
) -> None:
    """Add w(x̃x̃ᵀ + Cov_π) to B; write μ = Σ π_b x_b, and x̃ = x_arm − μ to `centred`."""
    size = mean.size
    mean_into(features, probabilities, mean)
    for a in range(features.shape[0]):
        share = weight * (probabilities[a] + (1.0 if a == arm else 0.0))
        if share > 0.0:
            for k in range(size):
                centred[k] = features[a, k] - mean[k]
            add_outer(gram, centred, share)
    for k in range(size):
        centred[k] = features[arm, k] - mean[k]


@compiled
def observe_centred(
    settings: ThompsonSettings, memory: ThompsonMemory, i: int, probabilities: Array, arm: int, reward: float
) -> bool:
    """Add w(x̃x̃ᵀ + Cov_π) to B and 2wx̃(r − level) to y, w = 1 and level 0 in the paper."""
    size = settings.positions.shape[1]
    mean = np.empty(size)
    centred = np.empty(size)
    add_spread(memory.gram[i], settings.positions, probabilities, arm, settings.weight, mean, centred)
    level = 0.0
    if memory.level_moment.shape[1] > 0:
        level = _level(settings.features[arm], memory.level_gram[i], memory.level_moment[i], reward)
    for j in range(size):
        memory.moment[i, j] += 2.0 * settings.weight * centred[j] * (reward - level)
    memory.step[i] += 1
    return True


@compiled
def _level(feature: Array, gram: Array, moment: Array, reward: float) -> float:
    """Return the intercept of the ridge regression of past rewards on (1, x), then add this round to it."""
    size = moment.size
    lower = np.zeros((size, size))
    fitted = np.empty(size)
    lifted = np.ones(size)
    # Fitted before this round is added: the level must not know the reward that it is taken from.
    posterior_into(gram, moment, 1.0, lower, fitted)
    lifted[1:] = feature
    add_row(gram, moment, lifted, reward)
    return float(fitted[0])


@dataclass(frozen=True)
class SemiparametricTS(RoundPolicy):
    """Contextual Thompson sampling for semiparametric rewards (Kim & Paik 2019, Algorithm 1).

    Every round: π_a is the frequency with which arm a is best among M draws θ̃ ~ N(θ̂, v²B⁻¹); the arm is drawn
    from π. With x̃ = x_a − Σ π_b x_b: B = I + Σ (x̃x̃ᵀ + Cov_π), y = 2Σ x̃r, θ̂ = B⁻¹y. Regret Õ(d^{3/2}√T).

    "released" is the rule of the authors' public code, which is not the paper's: every round counts twice,
    B = I + 2Σ (x̃x̃ᵀ + Cov_π), y = 4Σ x̃(r − ĉ), where ĉ is the intercept of an ordinary ridge regression of
    the past rewards on (1, x). Doubling changes no estimate but for the prior, which it halves, and draws θ̃
    with v/√2 for v; ĉ is fixed before the arm is drawn, so it is a forecast of the level that takes noise
    out and lets no shift in.

    Departs: the paper plays the arm that a first draw makes best and estimates its probability by M further
    ones; here the arm is drawn from the frequencies themselves, so the logged probabilities are exact. d is
    the affine dimension r, which changes no contrast. Scores of draws are compared in single precision.
    The authors' public code carries a note that they claim a US patent on the method; using this class may
    need their permission.

    Parameters
    ----------
    horizon : int
        T in v = c√(r·log T). Playing on after it is allowed.
    scale : float
        c.
    draws : int
        M, Monte-Carlo draws of a plan.
    rule : {"printed", "released"}
        What a round adds to B and y.

    Examples
    --------
    >>> policy = SemiparametricTS(horizon=100)
    >>> state = policy.start(ArmSet([[0.0], [1.0]]), seed=4)
    >>> bool(abs(policy.plan(state).probabilities[0] - 0.5) < 0.1)
    True
    """

    horizon: int
    scale: float = 1.0
    draws: int = 1000
    rule: str = "printed"

    plan_into: ClassVar[PlanStep] = staticmethod(plan_frequencies)
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_centred)

    def __post_init__(self) -> None:
        check_whole("horizon", self.horizon, least=2)
        check_positive("scale", self.scale)
        check_whole("draws", self.draws)
        check_choice("rule", self.rule, WEIGHTS)

    def spread(self, arms: ArmSet) -> float:
        """Return v = c√(r·log T)."""
        return self.scale * math.sqrt(max(arms.dimension, 1) * math.log(self.horizon))

    def settings(self, arms: ArmSet) -> ThompsonSettings:
        """Return what the compiled steps read."""
        return ThompsonSettings(
            positions=np.ascontiguousarray(arms.positions),
            features=np.ascontiguousarray(arms.features),
            spread=self.spread(arms),
            draws=self.draws,
            weight=WEIGHTS[self.rule],
        )

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> ThompsonMemory:
        """Return the memory before the first round."""
        size = len(numbers)
        r = arms.dimension
        lifted = arms.features.shape[1] + 1 if self.rule == "released" else 0
        return ThompsonMemory(
            gram=np.zeros((size, r, r)),
            moment=np.zeros((size, r)),
            level_gram=np.zeros((size, lifted, lifted)),
            level_moment=np.zeros((size, lifted)),
            step=np.zeros(size, dtype=np.int64),
            key=keys(seed, "semiparametric thompson", numbers),
        )

    def decide(self, state: RoundState) -> Decision:
        """Return the arm that is played most; nothing is claimed."""
        return open_decision(state, state.probabilities, "none")


@compiled
def observe_published(
    settings: SampledSettings,
    memory: CentredMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add one round as published: B += w(x̃x̃ᵀ + Σ_t), y += 2wx̃r, θ̂ = B⁻¹y."""
    size = features.shape[1]
    scaled = np.empty(features.shape)
    scale_into(memory.units[i], features, scaled)
    theta = memory.theta[i]
    follow_scale(memory, i, reward - forecast - dot(scaled[arm], theta))
    if probabilities[arm] >= 1.0:
        return
    memory.taught[i] += 1
    mean = np.empty(size)
    centred = np.empty(size)
    moment = np.empty(size)
    # y = Bθ̂ before the round; B changes below.
    times(memory.gram[i], theta, moment)
    add_spread(memory.gram[i], scaled, probabilities, arm, settings.weight, mean, centred)
    for k in range(size):
        moment[k] += 2.0 * settings.weight * centred[k] * (reward - forecast)
    invert(memory.gram[i], memory.inverse[i])
    times(memory.inverse[i], moment, theta)


@dataclass(frozen=True)
class ContextualSemiparametricTS(CentredThompson):
    """Semiparametric Thompson sampling (Kim & Paik 2019), contextual as published.

    B = I + Σ x̃x̃ᵀ + Σ Cov_π, y = 2Σ x̃r, θ̂ = B⁻¹y, θ̃ ~ N(θ̂, v²B⁻¹); each arm is played as often as it is best
    in `draws` samples. The authors state in their code that a US patent is claimed on the method.
    Departs: v is in units of the residuals' scale, and a running mean is taken off rewards
    (``baseline=NoBaseline()`` takes none off).

    Parameters
    ----------
    spread : float
        v in units of the residuals' scale.
    draws : int
        Samples of the posterior a round.
    ridge : float
        Per feature, in units of each feature's spread.
    baseline : Baseline
        Forecast of the level.
    rule : {"printed", "released"}
        What a round adds: as in the paper, or twice that, as in the code that the authors released. That code
        also takes the intercept of a ridge regression off rewards, where `baseline` stands here.
    """

    spread: float = 2.0
    baseline: Baseline = RunningMean()  # noqa: RUF009
    rule: str = "printed"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("rule", self.rule, WEIGHTS)

    def settings(self, dimension: int) -> SampledSettings:  # noqa: ARG002
        """Return what the compiled steps read."""
        return SampledSettings(float(self.spread), int(self.draws), WEIGHTS[self.rule])

    observe_into: ClassVar[OfferObserveStep] = staticmethod(observe_published)
