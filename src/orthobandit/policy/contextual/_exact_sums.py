"""The regression and the matrix W that both exact radii keep: sums, inverses, and the norm that follows.

A = ρI + Σ g·x̃x̃ᵀ and W are kept with their inverses, which are updated round by round, as are θ̂ = A⁻¹Σ g·x̃e
and M = A⁻¹WA⁻¹. Each radius has its own weight g of a round, and its own part of W.
"""

from typing import Any

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.policy.contextual.regression import add_outer, dot, invert, times, update_inverse

REFRESH = 512  # rounds after which inverses are computed afresh


def begin_sums(dimension: int, ridge: float, prior: float, keys: Whole) -> dict[str, Any]:
    """Return the arrays that every exact memory begins with, by name; W begins at `prior` times I."""
    count = len(keys)
    unit = np.broadcast_to(np.eye(dimension), (count, dimension, dimension))
    return {
        "gram": ridge * unit,
        "inverse": unit / ridge,
        "scatter": prior * unit,
        "scatter_inverse": unit / prior,
        "spread": unit * (prior / ridge**2),
        "theta": np.zeros((count, dimension)),
        "growth": np.zeros(count),
        "rounds": np.zeros(count, dtype=np.int64),
        "taught": np.zeros(count, dtype=np.int64),
        "key": np.asarray(keys, dtype=np.int64),
    }


@compiled
def exact_norm_into(settings: Any, memory: Any, i: int, norm: Array) -> None:
    """Write N with |zᵀ(θ̂ − θ)|² ≤ zᵀNz for all z at all times, with probability 1 − δ.

    |zᵀ(θ̂ − θ)| ≤ β‖z‖_M + √ρ·S‖z‖_{A⁻¹}, and (a + b)² ≤ (1 + k)a² + (1 + 1/k)b² for every k > 0.
    """
    radius = np.sqrt(2.0 * settings.log_inverse + memory.growth[i])
    bias = np.sqrt(settings.ridge) * settings.size
    # M is about `noise` times A⁻¹: this k makes both terms of the bound proportional.
    k = bias / (radius * np.sqrt(settings.noise))
    first = (1.0 + k) * radius * radius
    second = (1.0 + 1.0 / k) * bias * bias
    size = norm.shape[0]
    for a in range(size):
        for b in range(size):
            norm[a, b] = first * memory.spread[i, a, b] + second * memory.inverse[i, a, b]


@compiled
def add_exact_round(
    memory: Any,
    i: int,
    features: Array,
    mean: Array,
    probabilities: Array,
    arm: int,
    error: float,
    weight: float,
    planned: float,
    drawn: float,
) -> float:
    """Add a round to A and θ̂ with its weight g, and planned·Σ_t + drawn·x̃x̃ᵀ to W.

    `error` is the reward less the centre and x̃ᵀθ̂; `mean` (d,) is μ_t. Returns what log det A has grown by.
    """
    count, size = features.shape
    theta = memory.theta[i]
    inverse = memory.inverse[i]
    spread = memory.spread[i]
    centred = np.empty(size)
    pull = np.empty(size)
    other = np.empty(size)
    for k in range(size):
        centred[k] = features[arm, k] - mean[k]
    # A' = A + g·x̃x̃ᵀ turns M = A⁻¹WA⁻¹ into M − κ(uvᵀ + vuᵀ) + κ²s·uuᵀ with u = A⁻¹x̃, v = Mx̃, s = x̃ᵀMx̃.
    times(spread, centred, other)
    squared = dot(centred, other)
    grown = update_inverse(inverse, centred, weight, pull)
    share = weight / grown
    for a in range(size):
        theta[a] += pull[a] * share * error
        for b in range(size):
            spread[a, b] += share * (
                share * pull[a] * pull[b] * squared - pull[a] * other[b] - other[a] * pull[b]
            )
    add_outer(memory.gram[i], centred, weight)
    # One rank of W for every arm that could have been drawn.
    for a in range(count):
        gained = planned * probabilities[a]
        if a == arm:
            gained += drawn
        if gained > 0.0:
            for k in range(size):
                centred[k] = features[a, k] - mean[k]
            memory.growth[i] += np.log(update_inverse(memory.scatter_inverse[i], centred, gained, other))
            add_outer(memory.scatter[i], centred, gained)
            times(inverse, centred, pull)
            add_outer(spread, pull, gained)
    if memory.taught[i] % REFRESH == 0:
        refresh_inverses(memory.gram[i], memory.scatter[i], inverse, memory.scatter_inverse[i], spread)
    return float(np.log(grown))


@compiled
def refresh_inverses(
    gram: Array, scatter: Array, inverse: Array, scatter_inverse: Array, spread: Array
) -> None:
    """Compute A⁻¹, W⁻¹ and M = A⁻¹WA⁻¹ afresh from the sums A and W."""
    size = gram.shape[0]
    invert(gram, inverse)
    invert(scatter, scatter_inverse)
    half = np.zeros((size, size))
    for a in range(size):
        for k in range(size):
            for b in range(size):
                half[a, b] += inverse[a, k] * scatter[k, b]
    spread[:] = 0.0
    for a in range(size):
        for k in range(size):
            for b in range(size):
                spread[a, b] += half[a, k] * inverse[k, b]
