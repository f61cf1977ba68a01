"""Thompson sampling that no level can bias, for rounds with their own features."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_positive, check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import cholesky_into
from orthobandit._foundation.random import starting_point
from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate.forecast.baselines import ARMA, Baseline, RunningMean, check_baseline
from orthobandit.policy.contextual._regression import (
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
)
from orthobandit.policy.contextual.base import CompiledContextual, ObserveStep, PlanStep, ScoreStep
from orthobandit.policy.thompson import count_wins

FIRST = 10  # rounds whose residuals do not count for the scale


class SampledSettings(NamedTuple):
    """What the compiled steps read: the spread in units of the residuals' scale, and how many draws."""

    spread: float
    draws: int


@compiled
def plan_frequencies(
    settings: SampledSettings, memory: CentredMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Play each arm as often as it is best under N(θ̂, v²V⁻¹), counted over many draws: logged exactly."""
    count, size = features.shape
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features, scaled)
    probabilities[:] = 0.0
    if count == 1:
        probabilities[0] = 1.0
        return 0
    lower = np.zeros((size, size))
    cholesky_into(memory.inverse[i], size, lower, 1e-300)
    spread = settings.spread * np.sqrt(memory.variance[i])
    scores = np.empty(count)
    scores_into(scaled, memory.theta[i], scores)
    pairs = count + count % 2  # arms are compared in pairs; an odd one out has a partner that never wins
    white = np.zeros((size, pairs), dtype=np.float32)
    means = np.full(pairs, -np.inf, dtype=np.float32)
    for a in range(count):
        # Differences, since single precision would lose them in a common level.
        means[a] = np.float32(scores[a] - scores[0])
        for j in range(size):
            total = 0.0
            for k in range(j, size):
                total += scaled[a, k] * lower[k, j]
            white[j, a] = np.float32(spread * total)
    wins = np.zeros(pairs)
    count_wins(starting_point(memory.key[i], memory.rounds[i]), white, means, settings.draws, wins)
    for a in range(count):
        probabilities[a] = wins[a] / settings.draws
    return 0


@compiled
def observe_published(
    _settings: Any,
    memory: CentredMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add one round as published: B += x̃x̃ᵀ + Σ_t, y += 2x̃r, θ̂ = B⁻¹y."""
    count, size = features.shape
    scaled = np.empty(features.shape)
    scale_into(memory.units[i], features, scaled)
    theta = memory.theta[i]
    residual = reward - forecast - dot(scaled[arm], theta)
    memory.rounds[i] += 1
    # The first residuals hold what θ̂ did not know yet, not what rewards scatter.
    if memory.rounds[i] > FIRST:
        memory.squares[i] += residual * residual
        memory.variance[i] = memory.squares[i] / (memory.rounds[i] - FIRST)
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
        moment[k] += 2.0 * centred[k] * (reward - forecast)
    add_outer(memory.gram[i], centred, 1.0)
    for a in range(count):
        if probabilities[a] > 0.0:
            for k in range(size):
                centred[k] = scaled[a, k] - mean[k]
            add_outer(memory.gram[i], centred, probabilities[a])
    invert(memory.gram[i], memory.inverse[i])
    times(memory.inverse[i], moment, theta)


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
        return SampledSettings(float(self.spread), int(self.draws))

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
    """

    spread: float = 2.0
    baseline: Baseline = RunningMean()  # noqa: RUF009

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_published)
