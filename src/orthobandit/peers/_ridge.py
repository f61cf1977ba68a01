"""A ridge regression seen from the arms, inside compiled loops.

With V = λI + Σ xxᵀ, b = Σ xr and arms X (K, n), policies need the inner products P = XV⁻¹Xᵀ and the scores
s = XV⁻¹b. A round with x = Xᵀc changes V by rank one, so with g = Pc and q = cᵀPc (Sherman & Morrison 1950)

    P ← P − ggᵀ/(1 + q),    s ← s + g(r − cᵀs)/(1 + q):

O(K²) a round whatever the dimension. Both are computed afresh from V and b every `REFRESH` rounds, so
rounding cannot pile up.
"""

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import backward, cholesky_into, forward, whiten_into
from orthobandit._foundation.types import Array

REFRESH_ROUNDS = 256  # a fresh computation takes O(K²n), an update O(K²): at this distance it hardly counts


@compiled
def posterior_into(gram: Array, moment: Array, ridge: float, lower: Array, theta: Array) -> None:
    """Write L with LLᵀ = gram + ridge·I and θ̂ = (LLᵀ)⁻¹ moment."""
    size = moment.size
    shifted = gram.copy()
    for j in range(size):
        shifted[j, j] += ridge
        theta[j] = moment[j]
    cholesky_into(shifted, size, lower, 0.0)
    forward(lower, size, theta)
    backward(lower, size, theta)


@compiled
def scores_into(features: Array, theta: Array, scores: Array) -> None:
    """Write x_aᵀθ of every arm."""
    for a in range(features.shape[0]):
        total = 0.0
        for j in range(features.shape[1]):
            total += features[a, j] * theta[j]
        scores[a] = total


@compiled
def add_round(gram: Array, moment: Array, feature: Array, reward: float) -> None:
    """Add xxᵀ and xr."""
    for j in range(feature.size):
        moment[j] += feature[j] * reward
        for k in range(feature.size):
            gram[j, k] += feature[j] * feature[k]


@compiled
def update_arms(inner: Array, scores: Array, pull: Array, grown: float, surprise: float) -> None:
    """Change P and s by one round: pull = g, grown = 1 + q, surprise = r − cᵀs."""
    for a in range(scores.size):
        share = pull[a] / grown
        scores[a] += share * surprise
        for b in range(scores.size):
            inner[a, b] -= share * pull[b]


@compiled
def refresh_arms(
    features: Array, ridge: float, gram: Array, moment: Array, inner: Array, scores: Array
) -> None:
    """Compute P and s afresh from the sums."""
    count, size = features.shape
    lower = np.zeros((size, size))
    theta = np.empty(size)
    white = np.empty((size, count))
    posterior_into(gram, moment, ridge, lower, theta)
    whiten_into(lower, features, white)
    scores_into(features, theta, scores)
    for a in range(count):
        for b in range(a + 1):
            total = 0.0
            for j in range(size):
                total += white[j, a] * white[j, b]
            inner[a, b] = inner[b, a] = total
