"""How often each arm is best among draws from a posterior, in single precision."""

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import cholesky_into
from orthobandit._foundation.random import GAMMA, fill_normals, starting_point
from orthobandit._foundation.types import Array
from orthobandit.policy.contextual.regression import scores_into

Singles = NDArray[np.float32]
LANES = 512  # draws scored at a time, at most: their normals for 20 features fill 40 kB, which stay in cache


@compiled
def _score(white: Singles, means: Singles, arm: int, normals: Singles, scores: Singles) -> None:
    """Write means[a] + w_a·z of two arms from `arm` on for every draw z, the columns of `normals` (r, draws).

    Two arms and four features at a time: a normal is then loaded once for eight operations.
    """
    size, lanes = normals.shape
    for k in range(lanes):
        scores[0, k] = means[arm]
        scores[1, k] = means[arm + 1]
    j = 0
    while j + 3 < size:
        a = white[j, arm]
        b = white[j + 1, arm]
        c = white[j + 2, arm]
        d = white[j + 3, arm]
        e = white[j, arm + 1]
        f = white[j + 1, arm + 1]
        g = white[j + 2, arm + 1]
        h = white[j + 3, arm + 1]
        for k in range(lanes):
            p = normals[j, k]
            q = normals[j + 1, k]
            r = normals[j + 2, k]
            s = normals[j + 3, k]
            scores[0, k] += (a * p + b * q) + (c * r + d * s)
            scores[1, k] += (e * p + f * q) + (g * r + h * s)
        j += 4
    while j < size:
        a = white[j, arm]
        e = white[j, arm + 1]
        for k in range(lanes):
            scores[0, k] += a * normals[j, k]
            scores[1, k] += e * normals[j, k]
        j += 1


@compiled
def _keep_better(scores: Singles, arm: np.float32, best: Singles, winner: Singles) -> None:
    for k in range(scores.size):
        is_better = scores[k] > best[k]
        best[k] = scores[k] if is_better else best[k]
        winner[k] = arm if is_better else winner[k]


@compiled
def count_wins(start: np.uint64, white: Singles, means: Singles, draws: int, wins: Array) -> None:
    """Count how often each arm has the largest score means[a] + white[:, a]·z over independent normal z.

    The first of equal arms wins. Draws and scores are in single precision. Arms go in pairs: an odd one
    out is paired with a last column of `white` (r, K or K + 1) whose mean is −inf.
    """
    size, count = white.shape
    blocks = (draws + LANES - 1) // LANES
    lanes = ((draws + blocks - 1) // blocks + 15) // 16 * 16  # whole vectors
    normals = np.empty((size, lanes), dtype=np.float32)
    scores = np.empty((2, lanes), dtype=np.float32)
    best = np.empty(lanes, dtype=np.float32)
    winner = np.empty(lanes, dtype=np.float32)
    for first in range(0, draws, lanes):
        fill_normals(start, normals.reshape(size * lanes))
        start += GAMMA * np.uint64(size * lanes)
        best[:] = -np.inf
        winner[:] = 0.0
        for a in range(0, count, 2):
            _score(white, means, a, normals, scores)
            _keep_better(scores[0], np.float32(a), best, winner)
            _keep_better(scores[1], np.float32(a + 1), best, winner)
        for k in range(min(lanes, draws - first)):
            wins[int(winner[k])] += 1.0


@compiled
def frequencies_into(
    start: np.uint64, white: Array, means: Array, spread: float, draws: int, probabilities: Array
) -> None:
    """Write how often each arm is best among draws means[a] + spread·white[:, a]·z; white is (n, K)."""
    size, count = white.shape
    pairs = count + count % 2
    singles = np.zeros((size, pairs), dtype=np.float32)
    centre = np.full(pairs, -np.inf, dtype=np.float32)
    for a in range(count):
        centre[a] = np.float32(means[a])
        for j in range(size):
            singles[j, a] = np.float32(spread * white[j, a])
    wins = np.zeros(pairs)
    count_wins(start, singles, centre, draws, wins)
    for a in range(count):
        probabilities[a] = wins[a] / draws


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
    means = np.empty(count)
    scores_into(features, theta, means)
    # Differences, since single precision would lose them in a common level.
    first = means[0]
    white = np.empty((size, count))
    for a in range(count):
        means[a] -= first
        for j in range(size):
            total = 0.0
            for k in range(j, size):
                total += features[a, k] * lower[k, j]
            white[j, a] = total
    frequencies_into(starting_point(key, step), white, means, spread, draws, probabilities)
