"""Sums over rounds of centred features, inside compiled loops: inverse, coefficients, scores and widths.

Loops run along the last axis, so that they are vectorised without reordering any sum.
"""

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import backward, cholesky_into, forward
from orthobandit._foundation.types import Array


@compiled
def times(matrix: Array, vector: Array, out: Array) -> None:
    """Write matrix·vector for a symmetric matrix."""
    size = vector.size
    for k in range(size):
        out[k] = 0.0
    for j in range(size):
        for k in range(size):
            out[k] += matrix[j, k] * vector[j]


@compiled
def dot(a: Array, b: Array) -> float:
    """Return aᵀb."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@compiled
def add_outer(matrix: Array, vector: Array, weight: float) -> None:
    """Add weight·vvᵀ."""
    for j in range(vector.size):
        share = weight * vector[j]
        for k in range(vector.size):
            matrix[j, k] += share * vector[k]


@compiled
def update_inverse(inverse: Array, vector: Array, weight: float, pull: Array) -> float:
    """Turn V⁻¹ into (V + weight·vvᵀ)⁻¹ (Sherman & Morrison 1950); write pull = V⁻¹v of before.

    Returns 1 + weight·vᵀV⁻¹v, by which the determinant has grown.
    """
    times(inverse, vector, pull)
    grown = 1.0 + weight * dot(vector, pull)
    add_outer(inverse, pull, -weight / grown)
    return grown


@compiled
def invert(matrix: Array, inverse: Array) -> None:
    """Write the inverse of a positive definite matrix, afresh."""
    size = matrix.shape[0]
    lower = np.zeros((size, size))
    column = np.empty(size)
    cholesky_into(matrix, size, lower, 0.0)
    for k in range(size):
        column[:] = 0.0
        column[k] = 1.0
        forward(lower, size, column)
        backward(lower, size, column)
        for j in range(size):
            inverse[j, k] = column[j]


@compiled
def mean_into(features: Array, probabilities: Array, mean: Array) -> None:
    """Write μ = Σ p_a x_a."""
    mean[:] = 0.0
    for a in range(features.shape[0]):
        if probabilities[a] > 0.0:
            for k in range(mean.size):
                mean[k] += probabilities[a] * features[a, k]


@compiled
def scores_into(features: Array, theta: Array, scores: Array) -> None:
    """Write x_aᵀθ of every row."""
    for a in range(features.shape[0]):
        scores[a] = dot(features[a], theta)


@compiled
def pair_widths_into(features: Array, norm: Array, widths: Array) -> None:
    """Write (x_a − x_b)ᵀN(x_a − x_b) for all pairs (K, K) of a positive semi-definite N (d, d)."""
    count, size = features.shape
    pulled = np.zeros((count, size))
    turned = np.empty((size, count))
    for a in range(count):
        for k in range(size):
            turned[k, a] = features[a, k]
        for j in range(size):
            for k in range(size):
                pulled[a, k] += features[a, j] * norm[j, k]
    for a in range(count):
        for b in range(count):
            widths[a, b] = 0.0
        for k in range(size):
            for b in range(count):
                widths[a, b] += pulled[a, k] * turned[k, b]
    for a in range(count):
        for b in range(a):
            squared = widths[a, a] + widths[b, b] - 2.0 * widths[a, b]
            widths[a, b] = squared if squared > 0.0 else 0.0
    for a in range(count):
        widths[a, a] = 0.0
        for b in range(a):
            widths[b, a] = widths[a, b]
