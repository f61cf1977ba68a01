"""Augmented estimates, exactly unbiased under any shift, from (plan, tally) alone.

For all pairs of arms at once; and how each draw pulls on any contrast: the weights g(a) of the arms.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._compile import compiled
from orthobandit._linalg import RangeFactor, whitened
from orthobandit._types import Array, Mask, Whole

CLOSEST = 1e-10  # distance of two arms, relative to theirs from the mean, that is told from none
LEAST = 1e-300  # so that nothing is divided by zero where a distribution tells nothing


@dataclass(frozen=True, eq=False)
class PairGeometry:
    """What a distribution p over arms can say about every pair; leading axes (...) are replications.

    For a pair (i, j) and y = x_i − x_j the weight function is g(a) = yᵀΣ⁺(x_a − μ) = H_ia − H_ja, with
    E g = 0, E[g·x_a] = y and E g² = v. Then ψ = values_i − values_j + g(a)·(residual) has mean yᵀθ,
    whatever the shift, for any baseline and any values = Xθ̂ + constant that were fixed before the draw (the
    bandit form of CUPED). Values that are not linear in the features would leave a bias.

    Attributes
    ----------
    inner : (..., K, K) array
        H, inner products of the whitened centred features.
    variance : (..., K, K) array
        v; +inf for pairs that p cannot estimate, 1 on the diagonal.
    """

    inner: Array
    variance: Array

    @classmethod
    def of(cls, positions: Array, probabilities: Array) -> "PairGeometry":
        """Compute from positions (K, r) and probabilities (..., K)."""
        white, _ = whitened(positions, probabilities)
        outside = np.asarray(np.isinf(white).any(axis=-1))
        white = np.where(outside[..., np.newaxis], 0.0, white)
        inner = white @ np.swapaxes(white, -1, -2)
        sizes = np.diagonal(inner, axis1=-2, axis2=-1)
        variance = _for_each(_distances, white)
        # Nearer than this to each other, two arms differ by little more than rounding.
        equal = variance <= CLOSEST**2 * np.maximum(sizes[..., np.newaxis], sizes[..., np.newaxis, :])
        unknown = outside[..., np.newaxis] | outside[..., np.newaxis, :] | equal
        return cls(inner, with_diagonal(np.where(unknown, np.inf, variance), 1.0))

    def reach(self, probabilities: Array) -> Array:
        """Return max |g(a)| over arms that can be drawn, for every pair (..., K, K); 1 on the diagonal."""
        return with_diagonal(_for_each(_reach, self.inner, probabilities), 1.0)

    def carried(self, squares: Array) -> Array:
        """Return Σ_a g(a)²·q_a of every pair (..., K, K) for squares q (..., K) of the arms."""
        return _for_each(_squares, self.inner, squares)

    def sums(self, counts: Array, sums: Array, squares: Array, values: Array) -> tuple[Array, Array]:
        """Return Σψ, and Σ(ψ − predicted)², (..., K, K), of rounds tallied as residuals per arm (..., K)."""
        pushed = (self.inner @ sums[..., np.newaxis])[..., 0]
        rounds = counts.sum(axis=-1)[..., np.newaxis, np.newaxis]
        totals = rounds * _differences(values) + _differences(pushed)
        return totals, self.carried(squares)


def with_diagonal(pairs: Array, values: ArrayLike) -> Array:
    """Return pairs (..., K, K) with other values (..., K) on the diagonal."""
    out, every = np.array(pairs), np.arange(pairs.shape[-1])
    out[..., every, every] = values
    return out


def _differences(values: Array) -> Array:
    """Return values_i − values_j (..., K, K)."""
    return np.asarray(values[..., np.newaxis] - values[..., np.newaxis, :])


def _for_each(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a compiled function of replications (n, K, ...) to arrays with any leading axes."""
    batch = arrays[0].shape[:-2]
    flat = [np.ascontiguousarray(one).reshape(-1, *one.shape[len(batch) :]) for one in arrays]
    out = function(*flat)
    return out.reshape(*batch, *out.shape[1:])


@compiled
def _distances(white: Array) -> Array:
    """Return ‖white_i − white_j‖² of all pairs (n, K, K), from differences (n, K, r): nothing cancels."""
    runs, count, r = white.shape
    out = np.zeros((runs, count, count))
    for n in range(runs):
        for i in range(count):
            for j in range(i):
                total = 0.0
                for k in range(r):
                    total += (white[n, i, k] - white[n, j, k]) ** 2
                out[n, i, j] = total
                out[n, j, i] = total
    return out


@compiled
def _squares(inner: Array, squares: Array) -> Array:
    """Return Σ_a (H_ia − H_ja)²·q_a for all pairs (n, K, K); nothing cancels, however near two arms are."""
    runs, count, _ = inner.shape
    out = np.zeros((runs, count, count))
    for n in range(runs):
        some = np.flatnonzero(squares[n] > 0)
        for i in range(count):
            for j in range(i):
                total = 0.0
                for a in some:
                    total += (inner[n, i, a] - inner[n, j, a]) ** 2 * squares[n, a]
                out[n, i, j] = total
                out[n, j, i] = total
    return out


@compiled
def _reach(inner: Array, probabilities: Array) -> Array:
    """Return max_a |H_ia − H_ja| over arms that can be drawn, for all pairs (n, K, K)."""
    runs, count, _ = inner.shape
    out = np.zeros((runs, count, count))
    for n in range(runs):
        drawn = np.flatnonzero(probabilities[n] > 0)
        for i in range(count):
            for j in range(i):
                most = 0.0
                for a in drawn:
                    most = max(most, abs(inner[n, i, a] - inner[n, j, a]))
                out[n, i, j] = most
                out[n, j, i] = most
    return out


@dataclass(frozen=True, eq=False)
class Pulls:
    """Weights of m contrasts under G distributions p over K arms.

    For a contrast y of the arms, g(a) = yᵀΣ⁺(x_a − μ) with the mean μ and the covariance Σ of the features
    under p: E g = 0, E[g·x_a] = y and E g² = v, so that g(a)·residual is unbiased for yᵀθ whatever the shift.

    Attributes
    ----------
    pull : (G, m, K) array
        g(a); 0 for arms that cannot be drawn, and where p cannot estimate the contrast.
    variance : (G, m) array
        v; 1 where p cannot estimate the contrast.
    reach : (G, m) array
        max |g(a)|, above 0.
    known : (G, m) array of bool
        Whether p can estimate the contrast.
    """

    pull: Array
    variance: Array
    reach: Array
    known: Mask

    @classmethod
    def of(cls, positions: Array, coefficients: Array, probabilities: Array) -> "Pulls":
        """Compute from positions (K, r), contrasts of the arms (m, K) and distributions (G, K)."""
        # Around an arm that is drawn first: what all drawn arms share is then 0, and not rounding.
        around = positions - positions[np.argmax(probabilities, axis=1)][:, np.newaxis]
        centred = around - probabilities[:, np.newaxis] @ around
        weighted = centred * probabilities[..., np.newaxis]
        # One axis more, over which contrasts and arms of a distribution share its factor.
        factor = RangeFactor.of((np.swapaxes(weighted, -1, -2) @ centred)[:, np.newaxis])
        seen = factor.whiten(coefficients @ positions)
        known = np.isfinite(seen).all(axis=-1) & np.any(seen != 0, axis=-1)
        seen = np.where(known[..., np.newaxis], seen, 0.0)
        drawn = (probabilities > 0)[..., np.newaxis]
        white = np.where(drawn, factor.whiten_inside(centred), 0.0)
        pull = seen @ np.swapaxes(white, -1, -2)
        variance = np.where(known, np.einsum("...j,...j->...", seen, seen), 1.0)
        return cls(pull, variance, np.maximum(np.abs(pull).max(axis=-1, initial=0.0), LEAST), known)

    def of_plans(self, chosen: Whole) -> "Pulls":
        """Return those of some distributions, given by their places (n,)."""
        return Pulls(self.pull[chosen], self.variance[chosen], self.reach[chosen], self.known[chosen])
