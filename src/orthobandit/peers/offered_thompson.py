"""Thompson sampling that no level can bias, for rounds with their own features."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_choice, check_fraction, check_positive, check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import cholesky_into
from orthobandit._foundation.random import fill_normals, starting_point
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import Argument, ParameterError
from orthobandit.estimate.forecast.baselines import ARMA, Baseline, RunningMean, check_baseline
from orthobandit.peers.semiparametric_ts import WEIGHTS
from orthobandit.peers.thompson_draws import count_wins
from orthobandit.policy.contextual.base import CompiledContextual, ObserveStep, PlanStep, ScoreStep
from orthobandit.policy.contextual.regression import (
    REFRESH,
    CentredMemory,
    add_outer,
    begin_centred,
    dot,
    invert,
    learn_centred,
    mean_into,
    scale_into,
    score_centred,
    scores_into,
    times,
    update_inverse,
)

FIRST = 10  # rounds whose residuals do not count for the scale


class SampledSettings(NamedTuple):
    """What the compiled steps read: the spread in units of the residuals' scale, and how many draws.

    `weight` is how often a round counts where rounds are added as published.
    """

    spread: float
    draws: int
    weight: float


@compiled
def wins_into(
    features: Array,
    theta: Array,
    covariance: Array,
    spread: float,
    draws: int,
    key: int,
    step: int,
    probabilities: Array,
) -> None:
    """Write how often each arm (K, d) is best among draws from N(θ, spread²·covariance)."""
    count, size = features.shape
    lower = np.zeros((size, size))
    cholesky_into(covariance, size, lower, 1e-300)
    scores = np.empty(count)
    scores_into(features, theta, scores)
    pairs = count + count % 2  # arms are compared in pairs; an odd one out has a partner that never wins
    white = np.zeros((size, pairs), dtype=np.float32)
    means = np.full(pairs, -np.inf, dtype=np.float32)
    for a in range(count):
        # Differences, since single precision would lose them in a common level.
        means[a] = np.float32(scores[a] - scores[0])
        for j in range(size):
            total = 0.0
            for k in range(j, size):
                total += features[a, k] * lower[k, j]
            white[j, a] = np.float32(spread * total)
    wins = np.zeros(pairs)
    count_wins(starting_point(key, step), white, means, draws, wins)
    for a in range(count):
        probabilities[a] = wins[a] / draws


@compiled
def plan_frequencies(
    settings: SampledSettings, memory: CentredMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Play each arm as often as it is best under N(θ̂, v²V⁻¹), counted over many draws: logged exactly."""
    scaled = np.empty(features.shape)
    scale_into(memory.units[i], features, scaled)
    probabilities[:] = 0.0
    if features.shape[0] == 1:
        probabilities[0] = 1.0
        return 0
    spread = settings.spread * np.sqrt(memory.variance[i])
    wins_into(
        scaled,
        memory.theta[i],
        memory.inverse[i],
        spread,
        settings.draws,
        memory.key[i],
        memory.rounds[i],
        probabilities,
    )
    return 0


@compiled
def follow_scale(memory: CentredMemory, i: int, residual: float) -> None:
    """Count a round, and follow the mean square of all residuals but the first."""
    memory.rounds[i] += 1
    # The first residuals hold what θ̂ did not know yet, not what rewards scatter.
    if memory.rounds[i] > FIRST:
        memory.squares[i] += residual * residual
        memory.variance[i] = memory.squares[i] / (memory.rounds[i] - FIRST)


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
    count, size = features.shape
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
    mean_into(scaled, probabilities, mean)
    # y = Bθ̂ before the round; B changes below.
    times(memory.gram[i], theta, moment)
    for k in range(size):
        centred[k] = scaled[arm, k] - mean[k]
        moment[k] += 2.0 * settings.weight * centred[k] * (reward - forecast)
    add_outer(memory.gram[i], centred, settings.weight)
    for a in range(count):
        if probabilities[a] > 0.0:
            for k in range(size):
                centred[k] = scaled[a, k] - mean[k]
            add_outer(memory.gram[i], centred, settings.weight * probabilities[a])
    invert(memory.gram[i], memory.inverse[i])
    times(memory.inverse[i], moment, theta)


class ChallengeSettings(NamedTuple):
    """What the compiled steps read: the spread in units of the residuals' scale, and the limits of π."""

    spread: float
    least: float
    most: float


@compiled
def plan_challenge(
    settings: ChallengeSettings, memory: CentredMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Let the best other arm of one draw challenge the first arm with its clipped probability."""
    count, size = features.shape
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features, scaled)
    probabilities[:] = 0.0
    if count == 1:
        probabilities[0] = 1.0
        return 0
    inverse = memory.inverse[i]
    lower = np.zeros((size, size))
    normals = np.empty(size)
    drawn = memory.theta[i].copy()
    fill_normals(starting_point(memory.key[i], memory.rounds[i]), normals)
    cholesky_into(inverse, size, lower, 1e-300)
    spread = settings.spread * np.sqrt(memory.variance[i])
    for j in range(size):
        for k in range(j + 1):
            drawn[j] += spread * lower[j, k] * normals[k]
    challenger = 1
    most = -np.inf
    for a in range(1, count):
        score = dot(scaled[a], drawn)
        if score > most:
            most = score
            challenger = a
    difference = scaled[challenger] - scaled[0]
    pulled = np.empty(size)
    times(inverse, difference, pulled)
    lead = dot(difference, memory.theta[i])
    width = spread * np.sqrt(max(dot(difference, pulled), 0.0))
    # P(sᵀθ > 0) of a normal law; equal features leave it at ½.
    chance = 0.5 * math.erfc(-lead / (math.sqrt(2.0) * width)) if width > 0.0 else 0.5
    chance = min(max(chance, settings.least), settings.most)
    probabilities[challenger] = chance
    probabilities[0] = 1.0 - chance
    return 0


@compiled
def observe_challenge(
    _settings: Any,
    memory: CentredMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add π(1 − π)ssᵀ to B and s(1{challenger} − π)r to b, whichever of the two arms was played."""
    count, size = features.shape
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features, scaled)
    theta = memory.theta[i]
    follow_scale(memory, i, reward - forecast - dot(scaled[arm], theta))
    if probabilities[arm] >= 1.0:
        return
    memory.taught[i] += 1
    challenger = 0
    for a in range(1, count):
        if probabilities[a] > 0.0:
            challenger = a
    chance = probabilities[challenger]
    difference = scaled[challenger] - scaled[0]
    push = ((1.0 if arm == challenger else 0.0) - chance) * (reward - forecast)
    moment = np.empty(size)
    pull = np.empty(size)
    # b = Bθ̂ before the round; B changes below.
    times(memory.gram[i], theta, moment)
    for k in range(size):
        moment[k] += difference[k] * push
    weight = chance * (1.0 - chance)
    add_outer(memory.gram[i], difference, weight)
    update_inverse(memory.inverse[i], difference, weight, pull)
    if memory.taught[i] % REFRESH == 0:
        invert(memory.gram[i], memory.inverse[i])
    times(memory.inverse[i], moment, theta)


@compiled
def observe_debiased(
    _settings: Any,
    memory: CentredMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add the debiased outcome of one round with the weight π(1 − π).

    With the model m + x_aᵀθ̂ of both arms' rewards, b gains π(1 − π)s·(sᵀθ̂ + (1{challenger} − π)e/(π(1 − π))),
    e = r − m − x_aᵀθ̂; as B gains π(1 − π)ssᵀ, θ̂ = B⁻¹b moves by B⁻¹s(1{challenger} − π)e.
    """
    count, size = features.shape
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features, scaled)
    theta = memory.theta[i]
    error = reward - forecast - dot(scaled[arm], theta)
    follow_scale(memory, i, error)
    if probabilities[arm] >= 1.0:
        return
    memory.taught[i] += 1
    challenger = 0
    for a in range(1, count):
        if probabilities[a] > 0.0:
            challenger = a
    chance = probabilities[challenger]
    difference = scaled[challenger] - scaled[0]
    pull = np.empty(size)
    weight = chance * (1.0 - chance)
    grown = update_inverse(memory.inverse[i], difference, weight, pull)
    add_outer(memory.gram[i], difference, weight)
    # `pull` is B⁻¹s before the round; after it, B⁻¹s is smaller by the factor by which det B grew.
    push = ((1.0 if arm == challenger else 0.0) - chance) * error / grown
    for k in range(size):
        theta[k] += pull[k] * push
    if memory.taught[i] % REFRESH == 0:
        invert(memory.gram[i], memory.inverse[i])


@dataclass(frozen=True)
class CentredThompson(CompiledContextual):
    """Thompson sampling on the centred regression: our estimator with the posterior N(θ̂, v²V⁻¹).

    Each arm is played as often as it is best in `draws` samples, so that propensities are exact.

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
    """

    spread: float = 0.8
    draws: int = 64
    ridge: float = 1.0
    baseline: Baseline = ARMA()  # noqa: RUF009

    def __post_init__(self) -> None:
        check_positive("spread", self.spread)
        check_whole("draws", self.draws, least=2)
        check_positive("ridge", self.ridge)
        check_baseline(self.baseline)

    def settings(self, dimension: int) -> SampledSettings:  # noqa: ARG002, D102
        return SampledSettings(float(self.spread), int(self.draws), 1.0)

    def begin(self, dimension: int, keys: Whole) -> CentredMemory:  # noqa: D102
        return begin_centred(dimension, self.ridge, keys)

    plan_into: ClassVar[PlanStep] = staticmethod(plan_frequencies)
    observe_into: ClassVar[ObserveStep] = staticmethod(learn_centred)
    score_of: ClassVar[ScoreStep] = staticmethod(score_centred)


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

    def settings(self, dimension: int) -> SampledSettings:  # noqa: ARG002, D102
        return SampledSettings(float(self.spread), int(self.draws), WEIGHTS[self.rule])

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_published)


@dataclass(frozen=True)
class ContextualActionCentredTS(CompiledContextual):
    """Action-centred Thompson sampling (Greenewald, Tewari, Klasnja & Murphy 2017), contextual as published.

    The first arm of every offer is the reference ("do nothing"). With s_a = x_a − x_0, θ̃ ~ N(θ̂, v²B⁻¹) names
    the challenger ā = argmax_{a≠0} s_aᵀθ̃; it is played with probability π = clip(P(s_āᵀθ > 0), π_min, π_max)
    and the reference otherwise. After every round, also when the reference is played, B += π(1 − π)ssᵀ and
    b += s(1{challenger} − π)r with s = s_ā. Its regret is against the best policy with probabilities in
    [π_min, π_max]; against the best arm it grows with every round.
    Departs: v is in units of the residuals' scale, and a running mean is taken off rewards.

    Parameters
    ----------
    spread : float
        v in units of the residuals' scale.
    least, most : float
        π_min and π_max, strictly between 0 and 1.
    ridge : float
        Per feature, in units of each feature's spread.
    baseline : Baseline
        Forecast of the level.

    Examples
    --------
    >>> from orthobandit.policy.contextual import Offer
    >>> policy = ContextualActionCentredTS()
    >>> policy.plan(policy.start(1), Offer([[0.0], [1.0]])).probabilities.tolist()
    [0.5, 0.5]
    """

    spread: float = 1.0
    least: float = 0.1
    most: float = 0.9
    ridge: float = 1.0
    baseline: Baseline = RunningMean()  # noqa: RUF009

    def __post_init__(self) -> None:
        check_positive("spread", self.spread)
        check_fraction("least", self.least)
        check_fraction("most", self.most)
        check_positive("ridge", self.ridge)
        check_baseline(self.baseline)
        if self.least > self.most:
            raise ParameterError(Argument("least", self.least), f" must not exceed most={self.most}")

    def settings(self, dimension: int) -> ChallengeSettings:  # noqa: ARG002, D102
        return ChallengeSettings(float(self.spread), float(self.least), float(self.most))

    def begin(self, dimension: int, keys: Whole) -> CentredMemory:  # noqa: D102
        return begin_centred(dimension, self.ridge, keys)

    plan_into: ClassVar[PlanStep] = staticmethod(plan_challenge)
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_challenge)
    score_of: ClassVar[ScoreStep] = staticmethod(score_centred)


@dataclass(frozen=True)
class DebiasedThompson(ContextualActionCentredTS):
    """Thompson sampling with a debiased outcome and a learnt baseline, after RoME (Huch et al. 2024).

    Arms are chosen as in action-centred Thompson sampling: the best other arm of one draw challenges the
    first arm, the reference. A model that learns from round to round forecasts the level from what is known
    of the visitor, and with θ̂ gives both arms' expected rewards f_0 and f_1. The outcome
    f_1 − f_0 + (1{challenger} − π)(r − f_a)/(π(1 − π)), whose mean is the true difference however wrong the
    model is, enters the regression with the weight π(1 − π).

    Departs: RoME also has random effects of users and of time, which a network may tie together; here effects
    are those of the features (:class:`SemiGraphTS` has users). Its models are refitted out of fold; here each
    round is forecast before it is learnt from, to the same end. v is in units of the residuals' scale.

    ``baseline=OnlineRegression(make)`` takes any model with ``predict_one`` and ``learn_one``, such as
    river's; the model then sees the visitor's context.

    Parameters
    ----------
    spread, least, most, ridge
        As in :class:`ContextualActionCentredTS`.
    baseline : Baseline
        The model of the level; autoregressive by default.

    Examples
    --------
    >>> from orthobandit.estimate import OnlineRegression
    >>> class Mean:
    ...     total, count = 0.0, 0
    ...     def predict_one(self, x): return self.total / max(self.count, 1)
    ...     def learn_one(self, x, y): self.total += y; self.count += 1
    >>> policy = DebiasedThompson(baseline=OnlineRegression(Mean))
    >>> policy.start(2).dimension
    2
    """

    baseline: Baseline = ARMA()  # noqa: RUF009

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_debiased)
