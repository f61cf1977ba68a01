"""The centred regression that ours, BOSE and Thompson sampling share, inside compiled loops.

With μ_t = Σ p x and x̃ = x_a − μ_t, e_t = r − m_t − μ_tᵀθ̂ has the mean x̃ᵀθ given the draw, plus a level that
is fixed before it: V = ρI + Σ x̃x̃ᵀ, θ̂ = V⁻¹ Σ x̃e estimates θ whatever the level does (docs/contextual.md).

Features are taken in units of their own spread, noted when a feature first differs between arms of an offer:
a ridge of ρ then means the same in any units.
"""

from typing import Any, NamedTuple

import numpy as np

from orthobandit._compile import compiled
from orthobandit._types import Array, Whole
from orthobandit.policy.contextual._moments import add_outer, dot, invert, mean_into, update_inverse

REFRESH = 1024  # rounds after which the inverse is computed afresh, so that rounding cannot pile up
UNSCALED = 10  # first rounds, which do not count for the scale of residuals: θ̂ and forecasts know nothing yet
PRIOR = 4.0  # residuals that the first estimate of their scale counts as


class CentredMemory(NamedTuple):
    """What R replications remember.

    `units` (R, d) of features, 0 until known; V (R, d, d) and its inverse; θ̂ (R, d) in these units; the mean
    square of residuals and how many it is of (R,); rounds, and those that taught something (R,); keys (R,).
    """

    units: Array
    gram: Array
    inverse: Array
    theta: Array
    variance: Array
    counted: Array
    rounds: Whole
    taught: Whole
    key: Whole


def begin_centred(dimension: int, ridge: float, keys: Whole) -> CentredMemory:
    """Return the memory before the first round of replications with these keys (R,)."""
    count = len(keys)
    # Features in units of their spread have a squared length of about d: so the ridge is per feature.
    prior = np.broadcast_to(ridge * dimension * np.eye(dimension), (count, dimension, dimension))
    return CentredMemory(
        units=np.zeros((count, dimension)),
        gram=prior.copy(),
        inverse=np.broadcast_to(np.eye(dimension) / (ridge * dimension), prior.shape).copy(),
        theta=np.zeros((count, dimension)),
        variance=np.ones(count),
        counted=np.zeros(count),
        rounds=np.zeros(count, dtype=np.int64),
        taught=np.zeros(count, dtype=np.int64),
        key=np.asarray(keys, dtype=np.int64),
    )


@compiled
def scale_into(units: Array, features: Array, scaled: Array) -> None:
    """Write features in units of their spread; note the unit of a feature that differs for the first time."""
    count, size = features.shape
    for k in range(size):
        if units[k] == 0.0:
            mean = 0.0
            for a in range(count):
                mean += features[a, k] / count
            squares = 0.0
            for a in range(count):
                squares += (features[a, k] - mean) ** 2 / count
            # Differences that rounding explains are none.
            if squares > 1e-24 * mean * mean:
                units[k] = np.sqrt(squares)
        # A feature that never differed has no effect to learn.
        factor = 1.0 / units[k] if units[k] > 0.0 else 0.0
        for a in range(count):
            scaled[a, k] = features[a, k] * factor


@compiled
def score_centred(_settings: object, memory: CentredMemory, i: int, feature: Array) -> float:
    """Return x ᵀθ̂; features whose unit is not known count as 0."""
    total = 0.0
    for k in range(feature.size):
        if memory.units[i, k] > 0.0:
            total += feature[k] / memory.units[i, k] * memory.theta[i, k]
    return total


@compiled
def learn_centred(
    memory: Any,  # a CentredMemory, or another with its fields
    i: int,
    scaled: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add one round to the regression and to the scale of residuals; `scaled` (K, d) are its features."""
    theta = memory.theta[i]
    size = theta.size
    memory.rounds[i] += 1
    residual = reward - forecast - dot(scaled[arm], theta)
    if memory.rounds[i] > UNSCALED:
        if memory.counted[i] == 0.0:
            memory.variance[i] = residual * residual
            memory.counted[i] = PRIOR
        memory.counted[i] += 1.0
        memory.variance[i] += (residual * residual - memory.variance[i]) / memory.counted[i]
    if probabilities[arm] >= 1.0:
        return  # nothing was drawn: the reward says nothing about differences
    memory.taught[i] += 1
    mean = np.empty(size)
    centred = np.empty(size)
    pull = np.empty(size)
    mean_into(scaled, probabilities, mean)
    for k in range(size):
        centred[k] = scaled[arm, k] - mean[k]
    error = reward - forecast - dot(mean, theta) - dot(centred, theta)
    grown = update_inverse(memory.inverse[i], centred, 1.0, pull)
    for k in range(size):
        theta[k] += pull[k] / grown * error
    add_outer(memory.gram[i], centred, 1.0)
    if memory.taught[i] % REFRESH == 0:
        invert(memory.gram[i], memory.inverse[i])
