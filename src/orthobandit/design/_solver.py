"""The D-optimal solver: working set, exchanges, passes over all points, certificate."""

from dataclasses import dataclass, replace

import numpy as np

from orthobandit._foundation.types import Array, Mask, Progress, Whole
from orthobandit.design._points import Points, View
from orthobandit.design._weights import exchange, interior_weights, sparsest_support
from orthobandit.design.base import Approach
from orthobandit.errors import DesignError

PASSES = 200  # over all points; a few are enough unless the optimum is degenerate
FAR = 1e4  # a gap that no sample of like points leaves
FEW = 2000  # points that are looked at faster than bounded
COARSE = 0.02  # gap to which samples and first working sets are solved


@dataclass(frozen=True, eq=False)
class Weights:
    """A solution: `values` (m,) on the points `chosen` (m,), with the certified gap.

    The gap is over all points, from a factorisation made afresh for it.
    """

    chosen: Whole
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
        Called at the start and after each pass with (done, total), factors of ten from a gap of 1.
    """
    n = points.dimension
    now = _begin(points, start)
    bounds = _Bounds(points)
    best = np.inf
    inner = COARSE
    approach = Approach(progress, tolerance)
    for passes in range(1, PASSES + 1):
        now = now.solved(inner)
        gap = (bounds.updated(now) - n) / points.rank
        if gap <= tolerance:
            now = now.thinned()
            gap = (bounds.renewed(now) - n) / points.rank
        best = min(best, gap)
        approach.reached(gap)
        if gap <= tolerance:
            return Weights(now.chosen, now.weights, max(gap, 0.0))
        if passes == 1 and gap > FAR:
            # Neither sample nor start knew of points this far out.
            now = _farthest(points)
            bounds = _Bounds(points)
            continue
        known = len(now.chosen)
        now = now.extended(bounds.values)
        # With no point to add, what is missing is missing inside the working set.
        share = 0.03 if len(now.chosen) > known else 0.001
        inner = max(min(inner, share * gap), 0.2 * tolerance)
    raise DesignError(
        f"the design reached a gap of {best:.2e} in {PASSES} passes; {tolerance:.2e} was asked for",
        gap=best,
        tolerance=tolerance,
    )


def is_sparse(start: Array, n: int) -> bool:
    """Tell whether a design for points of dimension n is on few enough of them to be worth starting from."""
    return bool(0 < np.count_nonzero(start) <= max(10 * n, n * (n + 1)))


def _begin(points: Points, start: Array | None) -> "_WorkingSet":
    """Start from an earlier design if it spans on few points, else from a solution for a sample."""
    view, sample = points.rough_view()
    if start is not None and is_sparse(start, points.dimension):
        chosen = np.flatnonzero(start)
        if points.are_spanned(view, chosen, start[chosen]):
            return _WorkingSet.of(points, view, chosen, start[chosen])
    if len(sample) < len(points):
        try:
            found = d_optimal(points.only(sample), COARSE)
            return _WorkingSet.of(points, view, sample[found.chosen], found.values)
        except DesignError:
            pass
    return _farthest(points)


def _farthest(points: Points) -> "_WorkingSet":
    """Start from the farthest of all points, and a spanning set if these do not span well."""
    view, everything = points.rough_view(of_all=True)
    leverages = points.leverages(view)
    size = min(len(points), 10 * points.dimension)
    chosen = np.sort(np.argpartition(-leverages, size - 1)[:size])
    if not points.are_spanned(view, chosen, np.full(size, 1.0 / size), least=0.1):
        chosen = np.union1d(chosen, points.spanning(view, everything))
    return _WorkingSet.of(points, view, chosen, np.full(len(chosen), 1.0 / len(chosen)))


@dataclass(frozen=True, eq=False)
class _WorkingSet:
    """Weights (m,) of the chosen points (m,), and the view that is refined to them.

    `is_slow` says that exchanges did not converge the last time.
    """

    points: Points
    chosen: Whole
    weights: Array
    view: View
    is_slow: bool = False

    @classmethod
    def of(cls, points: Points, view: View, chosen: Whole, weights: Array) -> "_WorkingSet":
        return cls(points, chosen, weights, points.refined(view, chosen, weights))

    def solved(self, tolerance: float) -> "_WorkingSet":
        """Move weight among the points until their leverages agree to `tolerance`."""
        columns = np.ascontiguousarray(self.points.lifted(self.view, self.chosen).T)
        leverages = np.einsum("ji,ji->i", columns, columns)
        weights = self.weights.copy()
        n, m = columns.shape
        # By then an interior-point method would have been as fast.
        most = m if self.is_slow else 1000 + 5 * m + m * m // (2 * n)
        is_slow = exchange(columns, weights, np.eye(n), leverages, tolerance, most) == most
        if is_slow:
            weights = interior_weights(columns.T, weights / weights.sum(), tolerance)
        # Points that lost their weight may come back by themselves only while they are nearly optimal.
        kept = (weights > 0) | (leverages > n * (1.0 - 5.0 * tolerance))
        return self._with(kept, weights, is_slow=is_slow)

    def thinned(self) -> "_WorkingSet":
        """Drop the points without weight, and as many others as the same moments can do without."""
        carried = self.weights > 0
        weights = np.zeros(len(carried))
        lifted = self.points.lifted(self.view, self.chosen[carried])
        weights[carried] = sparsest_support(lifted, self.weights[carried])
        return self._with(weights > 0, weights)

    def extended(self, bounds: Array) -> "_WorkingSet":
        """Add the worst violators without weight; `bounds` (K,) are exact above the dimension n."""
        n = self.points.dimension
        over = np.flatnonzero(bounds > n)
        most = 10 * n
        if len(over) > most:
            over = over[np.argpartition(-bounds[over], most - 1)[:most]]
        is_known = np.zeros(len(bounds), dtype=np.bool_)
        is_known[self.chosen] = True
        added = np.sort(over[~is_known[over]])
        weights = np.concatenate([self.weights, np.zeros(len(added))])
        return replace(self, chosen=np.concatenate([self.chosen, added]), weights=weights)

    def _with(self, kept: Mask, weights: Array, *, is_slow: bool = False) -> "_WorkingSet":
        chosen = self.chosen[kept]
        weights = weights[kept] / weights[kept].sum()
        view = self.points.refined(self.view, chosen, weights)
        return _WorkingSet(self.points, chosen, weights, view, is_slow)


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

    def updated(self, now: _WorkingSet) -> float:
        """Move on to another design; return its largest leverage."""
        if self._view is None or len(self.values) <= FEW:
            return self.renewed(now)
        seen = self._points.lifted(self._view, now.chosen)
        growth = np.linalg.eigvalsh((seen.T * now.weights) @ seen)[0]
        if growth <= 0:
            return self.renewed(now)
        self.values /= growth
        doubtful = np.flatnonzero(self.values > self._points.dimension)
        if len(doubtful) > 0.5 * len(self.values):
            return self.renewed(now)
        self._view = now.view
        self.values[doubtful] = self._points.leverages(now.view, doubtful)
        return float(self.values.max())

    def renewed(self, now: _WorkingSet) -> float:
        """Look at all points; return the largest leverage."""
        self._view = now.view
        self.values = self._points.leverages(now.view)
        return float(self.values.max())
