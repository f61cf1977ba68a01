"""Augmented estimates of all pairs of arms: exactly unbiased under any shift, from (plan, tally) alone."""

from dataclasses import dataclass

import numpy as np

from orthobandit._compile import compiled
from orthobandit._linalg import whitened
from orthobandit._types import Array

CLOSEST = 1e-10  # distance of two arms, relative to theirs from the mean, that is told from none


@dataclass(frozen=True, eq=False)
class PairGeometry:
    """What a distribution p over arms can say about every pair, for one replication.

    For a pair (i, j) and y = x_i − x_j the weight function is g(a) = yᵀΣ⁺(x_a − μ) = H_ia − H_ja, with
    E g = 0, E[g·x_a] = y and E g² = v. Then ψ = values_i − values_j + g(a)·(residual) has mean yᵀθ,
    whatever the shift, for any baseline and any values = Xθ̂ + constant that were fixed before the draw (the
    bandit form of CUPED). Values that are not linear in the features would leave a bias.

    Attributes
    ----------
    inner : (K, K) array
        H, inner products of the whitened centred features.
    variance : (K, K) array
        v; +inf for pairs that p cannot estimate, 1 on the diagonal.
    """

    inner: Array
    variance: Array

    @classmethod
    def of(cls, positions: Array, probabilities: Array) -> "PairGeometry":
        """Compute from positions (K, r) and probabilities (K,)."""
        white, _ = whitened(positions, probabilities)
        outside = np.asarray(np.isinf(white).any(axis=1))
        white = np.where(outside[:, np.newaxis], 0.0, white)
        inner = white @ white.T
        sizes = np.diagonal(inner)
        variance = _distances(white)
        # Nearer than this to each other, two arms differ by little more than rounding.
        equal = variance <= CLOSEST**2 * np.maximum(sizes[:, np.newaxis], sizes)
        unknown = outside[:, np.newaxis] | outside | equal
        variance = np.where(unknown, np.inf, variance)
        np.fill_diagonal(variance, 1.0)
        return cls(inner, variance)

    def reach(self, probabilities: Array) -> Array:
        """Return max |g(a)| over the arms that can be drawn, for every pair (K, K); 1 on the diagonal."""
        out = _reach(self.inner[:, probabilities > 0])
        np.fill_diagonal(out, 1.0)
        return out

    def carried(self, squares: Array) -> Array:
        """Return Σ_a g(a)²·q_a of every pair (K, K) for squares q (K,) of the arms."""
        some = squares > 0
        return _squares(self.inner[:, some], squares[some])

    def sums(self, counts: Array, sums: Array, squares: Array, values: Array) -> tuple[Array, Array]:
        """Return Σψ (K, K), and Σ(ψ − predicted)² (K, K), of rounds tallied as residuals per arm (K,)."""
        pushed = self.inner @ sums
        difference = values[:, np.newaxis] - values
        totals = counts.sum() * difference + pushed[:, np.newaxis] - pushed
        return totals, self.carried(squares)


@compiled
def _distances(white: Array) -> Array:
    """Return ‖white_i − white_j‖² of all pairs, from differences: nothing cancels."""
    count, r = white.shape
    out = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            total = 0.0
            for k in range(r):
                total += (white[i, k] - white[j, k]) ** 2
            out[i, j] = total
            out[j, i] = total
    return out


@compiled
def _squares(inner: Array, squares: Array) -> Array:
    """Return Σ_a (H_ia − H_ja)²·q_a for all pairs; nothing cancels, however near two arms are."""
    count, seen = inner.shape
    out = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            total = 0.0
            for a in range(seen):
                total += (inner[i, a] - inner[j, a]) ** 2 * squares[a]
            out[i, j] = total
            out[j, i] = total
    return out


@compiled
def _reach(inner: Array) -> Array:
    count, drawn = inner.shape
    out = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            most = 0.0
            for a in range(drawn):
                most = max(most, abs(inner[i, a] - inner[j, a]))
            out[i, j] = most
            out[j, i] = most
    return out
