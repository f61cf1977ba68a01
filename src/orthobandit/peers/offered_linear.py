"""LinUCB and linear Thompson sampling with features of each round: blind to a moving level."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import cholesky_into
from orthobandit._foundation.random import fill_normals, starting_point
from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate import Baseline
from orthobandit.policy.contextual.base import CompiledContextual, ObserveStep, PlanStep, ScoreStep
from orthobandit.policy.contextual.regression import add_outer, add_times, dot, invert, update_inverse

REFRESH = 1024  # rounds after which the inverse is computed afresh


class LinearSettings(NamedTuple):
    """What the compiled steps read: the radius in units of the residuals' scale."""

    radius: float


class LinearMemory(NamedTuple):
    """V (R, n, n), its inverse, θ̂ (R, n), the residuals' mean square (R,), rounds (R,) and keys (R,).

    n is d, or d + 1 with the level as the last coefficient.
    """

    gram: Array
    inverse: Array
    theta: Array
    variance: Array
    rounds: Whole
    key: Whole


@compiled
def _feature(features: Array, arm: int, out: Array) -> None:
    """Write an arm's features to `out`; one more place there is for an intercept, and gets 1."""
    size = features.shape[1]
    for k in range(size):
        out[k] = features[arm, k]
    if out.size > size:
        out[size] = 1.0


@compiled
def plan_optimistic(
    settings: LinearSettings, memory: LinearMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Play the arm of the largest upper bound, the first one on ties."""
    radius = settings.radius * np.sqrt(memory.variance[i])
    size = features.shape[1]
    theta = memory.theta[i]
    inverse = memory.inverse[i]
    pulled = np.empty(theta.size)
    most = -np.inf
    best = 0
    for a in range(features.shape[0]):
        feature = features[a]
        # V⁻¹x of x with a last entry of 1 where the level is a coefficient: its row, and those of features.
        if theta.size > size:
            for k in range(theta.size):
                pulled[k] = inverse[size, k]
        else:
            pulled[:] = 0.0
        add_times(inverse, feature, pulled)
        score = 0.0
        squared = pulled[size] if theta.size > size else 0.0
        for k in range(size):
            score += feature[k] * theta[k]
            squared += feature[k] * pulled[k]
        bound = score + radius * np.sqrt(max(squared, 0.0))
        if bound > most:
            most = bound
            best = a
    probabilities[:] = 0.0
    probabilities[best] = 1.0
    return 0


@compiled
def plan_sampled(
    settings: LinearSettings, memory: LinearMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Play the best arm under one draw from N(θ̂, v²V⁻¹)."""
    size = memory.theta.shape[1]
    normals = np.empty(size)
    lower = np.zeros((size, size))
    drawn = memory.theta[i].copy()
    feature = np.empty(size)
    fill_normals(starting_point(memory.key[i], memory.rounds[i]), normals)
    # V⁻¹ = LLᵀ, so L times standard normals has its covariance; the floor keeps a pivot from being 0.
    cholesky_into(memory.inverse[i], size, lower, 1e-300)
    spread = settings.radius * np.sqrt(memory.variance[i])
    for j in range(size):
        for k in range(j + 1):
            drawn[j] += spread * lower[j, k] * normals[k]
    most = -np.inf
    best = 0
    for a in range(features.shape[0]):
        _feature(features, a, feature)
        score = dot(feature, drawn)
        if score > most:
            most = score
            best = a
    probabilities[:] = 0.0
    probabilities[best] = 1.0
    return 0


@compiled
def observe_linear(
    _settings: Any,
    memory: LinearMemory,
    i: int,
    features: Array,
    _probabilities: Array,
    arm: int,
    reward: float,
    _forecast: float,
) -> None:
    """Add one round to the ridge regression on features as they are."""
    size = memory.theta.shape[1]
    feature = np.empty(size)
    pull = np.empty(size)
    theta = memory.theta[i]
    _feature(features, arm, feature)
    error = reward - dot(feature, theta)
    grown = update_inverse(memory.inverse[i], feature, 1.0, pull)
    for k in range(size):
        theta[k] += pull[k] / grown * error
    add_outer(memory.gram[i], feature, 1.0)
    memory.rounds[i] += 1
    memory.variance[i] += (error * error - memory.variance[i]) / (memory.rounds[i] + 1.0)
    if memory.rounds[i] % REFRESH == 0:
        invert(memory.gram[i], memory.inverse[i])


@compiled
def score_linear(_settings: Any, memory: LinearMemory, i: int, feature: Array) -> float:
    """Return xᵀθ̂ without the level."""
    return dot(feature, memory.theta[i, : feature.size])


@dataclass(frozen=True)
class ContextualLinUCB(CompiledContextual):
    """LinUCB (Li et al. 2010): optimism in each round's features; breaks when the level follows its choices.

    Parameters
    ----------
    radius : float
        Width of the bounds in units of the residuals' scale.
    intercept : bool
        Whether a level that does not move is fitted, too.
    ridge : float
        λ of V = λI + Σ xxᵀ.
    """

    radius: float = 1.0
    intercept: bool = True
    ridge: float = 1.0

    baseline: ClassVar[Baseline | None] = None  # rewards are taken as they are

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)
        check_positive("ridge", self.ridge)

    def settings(self, dimension: int) -> LinearSettings:  # noqa: ARG002, D102
        return LinearSettings(float(self.radius))

    def begin(self, dimension: int, keys: Whole) -> LinearMemory:  # noqa: D102
        size = dimension + int(self.intercept)
        unit = np.broadcast_to(np.eye(size), (len(keys), size, size))
        return LinearMemory(
            gram=self.ridge * unit,
            inverse=unit / self.ridge,
            theta=np.zeros((len(keys), size)),
            variance=np.ones(len(keys)),
            rounds=np.zeros(len(keys), dtype=np.int64),
            key=np.asarray(keys, dtype=np.int64),
        )

    plan_into: ClassVar[PlanStep] = staticmethod(plan_optimistic)
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_linear)
    score_of: ClassVar[ScoreStep] = staticmethod(score_linear)


@dataclass(frozen=True)
class ContextualLinTS(ContextualLinUCB):
    """Linear Thompson sampling (Agrawal & Goyal 2013): a posterior draw a round, blind to a moving level."""

    radius: float = 0.5

    plan_into: ClassVar[PlanStep] = staticmethod(plan_sampled)
