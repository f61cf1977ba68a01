"""The D-optimal solver: working set, exchanges, passes over all points, certificate."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orthobandit.design._interior import interior_weights
from orthobandit.design._kernels import exchange
from orthobandit.design._points import Points, View
from orthobandit.design._sparse import sparsest_support
from orthobandit.design.base import Progress
from orthobandit.errors import DesignError

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

PASSES = 200  # over all points; a few are enough unless the optimum is degenerate
FEW = 2000  # points that are looked at faster than bounded
COARSE = 0.02  # gap to which samples and first working sets are solved


@dataclass(frozen=True, eq=False)
class Weights:
    """A solution: `values` (m,) on the points `chosen` (m,), with the certified gap.

    The gap is over all points, from a factorisation made afresh for it.
    """

    chosen: Indices
    values: Array
    gap: float


def d_optimal(
    points: Points, tolerance: float, start: Array | None = None, progress: Progress | None = None
) -> Weights:
    """Maximise log det Σ p_i z_i z_iᵀ over distributions p, which minimises max_i ‖z_i‖²_{M⁻¹}.

    By Kiefer & Wolfowitz (1960) the optimum has max_i ‖z_i‖² = n, and no p does better. The gap of p is
    the excess over this optimum relative to it; with an intercept both are less by one, which leaves
    max_i ‖x_i − μ‖²/r − 1. Method: solve for a sample first, then vertex exchange on a working set, or an
    interior-point method where exchanges are slow; a pass over the points adds the violators, skipping
    those that provably are none; repeat until a pass over all points certifies the tolerance.

    Parameters
    ----------
    points : Points
        They span R^n.
    tolerance : float
        The gap to certify.
    start : (K,) array, optional
        Probabilities to start from, e.g. of an earlier design.
    progress : callable, optional
        Called after each pass with (passes so far, gap).
    """
    n = points.dimension
    view, sample = points.rough_view()
    chosen, weights = _first_working_set(points, view, sample, start)
    view = points.refined(view, chosen, weights)
    bounds, best, inner = _Bounds(points), np.inf, COARSE
    for passes in range(1, PASSES + 1):
        chosen, weights, view = _solve_working_set(points, view, chosen, weights, inner)
        gap = (bounds.updated(view, chosen, weights) - n) / points.rank
        if gap <= tolerance:
            chosen, weights, view = _sparse(points, view, chosen, weights)
            gap = (bounds.renewed(view) - n) / points.rank
        best = min(best, gap)
        if progress is not None:
            progress(passes, gap)
        if gap <= tolerance:
            return Weights(chosen, weights, max(gap, 0.0))
        known = len(chosen)
        chosen, weights = _with_violators(chosen, weights, bounds.values, n)
        # With no point to add, what is missing is missing inside the working set.
        share = 0.03 if len(chosen) > known else 0.01
        inner = max(min(inner, share * gap), 0.2 * tolerance)
    raise DesignError(
        f"the design reached a gap of {best:.2e} in {PASSES} passes; {tolerance:.2e} was asked for",
        gap=best,
        tolerance=tolerance,
    )


def is_sparse(start: Array, n: int) -> bool:
    """Tell whether a design for points of dimension n is on few enough of them to be worth starting from."""
    return bool(0 < np.count_nonzero(start) <= max(10 * n, n * (n + 1)))


def _first_working_set(
    points: Points, view: View, sample: Indices, start: Array | None
) -> tuple[Indices, Array]:
    """Start from an earlier design if it spans on few points, else from a solution for the sample.

    Where the sample is everything, from a spanning set and the farthest points.
    """
    n = points.dimension
    if start is not None and is_sparse(start, n):
        chosen = np.flatnonzero(start)
        if points.are_spanned(view, chosen, start[chosen]):
            return chosen, start[chosen]
    if len(sample) < len(points):
        try:
            found = d_optimal(points.only(sample), COARSE)
            return sample[found.chosen], found.values
        except DesignError:
            sample = np.arange(len(points))
    leverages = points.leverages(view)
    size = min(len(points), 10 * n)
    chosen = np.sort(np.argpartition(-leverages, size - 1)[:size])
    if not points.are_spanned(view, chosen, np.full(size, 1.0 / size), least=0.1):
        chosen = np.union1d(chosen, points.spanning(view, sample))
    return chosen, np.full(len(chosen), 1.0 / len(chosen))


def _solve_working_set(
    points: Points, view: View, chosen: Indices, weights: Array, tolerance: float
) -> tuple[Indices, Array, View]:
    """Move weight among the chosen points until their leverages agree to `tolerance`.

    `view` is refined to the weights, before and after.
    """
    columns = np.ascontiguousarray(points.lifted(view, chosen).T)
    leverages = np.einsum("ji,ji->i", columns, columns)
    weights = weights.copy()
    n, m = columns.shape
    most = 1000 + 5 * m + m * m // (2 * n)  # by then an interior-point method would have been as fast
    if exchange(columns, weights, np.eye(n), leverages, tolerance, most) == most:
        weights = interior_weights(columns.T, weights / weights.sum(), tolerance)
    weights /= weights.sum()
    # Points that lost their weight may come back by themselves only while they are nearly optimal.
    kept = (weights > 0) | (leverages > points.dimension * (1.0 - 5.0 * tolerance))
    chosen, weights = chosen[kept], weights[kept]
    return chosen, weights, points.refined(view, chosen, weights)


def _sparse(points: Points, view: View, chosen: Indices, weights: Array) -> tuple[Indices, Array, View]:
    """Drop the points without weight, and as many others as the same moments can do without."""
    carried = weights > 0
    chosen, weights = chosen[carried], weights[carried]
    weights = sparsest_support(points.lifted(view, chosen), weights)
    carried = weights > 0
    chosen, weights = chosen[carried], weights[carried] / weights.sum()
    return chosen, weights, points.refined(view, chosen, weights)


def _with_violators(chosen: Indices, weights: Array, bounds: Array, n: int) -> tuple[Indices, Array]:
    over = np.flatnonzero(bounds > n)
    most = 10 * n
    if len(over) > most:
        over = over[np.argpartition(-bounds[over], most - 1)[:most]]
    is_known = np.zeros(len(bounds), dtype=np.bool_)
    is_known[chosen] = True
    added = np.sort(over[~is_known[over]])
    return np.concatenate([chosen, added]), np.concatenate([weights, np.zeros(len(added))])


class _Bounds:
    """Upper bounds on all leverages, kept so that a pass looks only at points that may exceed n.

    Where M' ⪰ c·M, leverages grow at most by the factor 1/c from M to M'; c is the least eigenvalue of
    M' in the coordinates in which M is the identity.

    Attributes
    ----------
    values : (K,) array
        Exact wherever they exceed the dimension n.
    """

    def __init__(self, points: Points) -> None:
        self._points = points
        self._view: View | None = None
        self.values = np.full(len(points), np.inf)

    def updated(self, view: View, chosen: Indices, weights: Array) -> float:
        """Move on to the design that `view` was refined to; return its largest leverage."""
        if self._view is None or len(self.values) <= FEW:
            return self.renewed(view)
        seen = self._points.lifted(self._view, chosen)
        growth = np.linalg.eigvalsh((seen.T * weights) @ seen)[0]
        if growth <= 0:
            return self.renewed(view)
        self.values /= growth
        doubtful = np.flatnonzero(self.values > self._points.dimension)
        if len(doubtful) > 0.5 * len(self.values):
            return self.renewed(view)
        self._view = view
        self.values[doubtful] = self._points.leverages(view, doubtful)
        return float(self.values.max())

    def renewed(self, view: View) -> float:
        """Look at all points; return the largest leverage."""
        self._view = view
        self.values = self._points.leverages(view)
        return float(self.values.max())
