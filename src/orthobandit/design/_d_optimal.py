"""The D-optimal solver: working set, exchanges, passes over all points, certificate.

First the weights of few points, by exchange or by an interior-point method, and the sparsest with the same
moments; then the solver, which calls these on working sets and certifies what they return on all points.
"""

from dataclasses import dataclass, replace

import numpy as np
import scipy

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import solve_nearly_singular
from orthobandit._foundation.types import Array, Mask, Progress, Whole
from orthobandit.design._points import Points, View
from orthobandit.design.base import Approach
from orthobandit.errors import DesignError


@compiled
def _combination(points: Array, direction: Array, out: Array) -> None:
    """Write the inner product of every column of points (n, m) with `direction` (n,) to out (m,)."""
    out[:] = 0.0
    for j in range(points.shape[0]):
        factor = direction[j]
        for i in range(points.shape[1]):
            out[i] += points[j, i] * factor


@compiled
def _image(inverse: Array, points: Array, column: int, out: Array) -> None:
    """Write M⁻¹z of one column of points (n, m) to out (n,); the inverse (n, n) is symmetric."""
    out[:] = 0.0
    for j in range(points.shape[0]):
        factor = points[j, column]
        for i in range(points.shape[0]):
            out[i] += inverse[j, i] * factor


@compiled
def _best_amount(difference: float, curvature: float, most: float) -> float:
    """Return the α in [0, most] that maximises 1 + α·difference − α²·curvature."""
    if 2.0 * curvature * most > difference:
        return difference / (2.0 * curvature)
    return most


@compiled
def exchange(
    points: Array, weights: Array, inverse: Array, leverages: Array, tolerance: float, most: int
) -> int:
    """Move weight between pairs of points until the leverages agree.

    Maximises log det Σ w_i z_i z_iᵀ over w by vertex exchange (Böhning 1986): the point farthest from
    optimal, be it the one of largest leverage or the one of least leverage that has weight, trades with
    the partner that gains most, and by the best amount for the two: moving α from l to h multiplies the
    determinant by 1 + α(a − b) − α²(ab − c²), with a, b the leverages of h, l and c = z_hᵀM⁻¹z_l.
    Choosing the partner by gain lets near-duplicates trade all their weight at once.

    `points` (n, m) holds one point per column, so that all inner products run in vector registers.
    Updated in place: `weights` (m,), `inverse` = M⁻¹ (n, n), `leverages` (m,).

    Returns the number of exchanges made, at most `most`; fewer when every leverage is at most
    n(1 + tolerance) and every point with weight has at least n(1 − tolerance).
    """
    n, m = points.shape
    along = np.empty(m)
    across = np.empty(m)
    towards = np.empty(n)
    away = np.empty(n)
    for step in range(most):
        high, low = 0, -1
        for i in range(m):
            if leverages[i] > leverages[high]:
                high = i
            if weights[i] > 0.0 and (low < 0 or leverages[i] < leverages[low]):
                low = i
        over = leverages[high] - n
        under = n - leverages[low]
        if over <= n * tolerance and under <= n * tolerance:
            return step
        high_leads = over >= under
        leader = high if high_leads else low
        _image(inverse, points, leader, towards)
        _combination(points, towards, along)
        gain = -1.0
        amount = 0.0
        partner = -1
        for i in range(m):
            difference = leverages[leader] - leverages[i]
            available = weights[i]
            if not high_leads:
                difference = -difference
                available = weights[leader]
            if difference > 0.0 and available > 0.0:
                curvature = leverages[leader] * leverages[i] - along[i] * along[i]
                alpha = _best_amount(difference, curvature, available)
                found = alpha * (difference - alpha * curvature)
                if found > gain:
                    gain = found
                    amount = alpha
                    partner = i
        if partner < 0:
            return step
        _image(inverse, points, partner, away)
        _combination(points, away, across)
        a, b, c = leverages[leader], leverages[partner], along[partner]
        if not high_leads:
            amount = -amount
        giver = partner if high_leads else leader
        taker = leader if high_leads else partner
        moved = abs(amount)
        weights[giver] = 0.0 if moved >= weights[giver] else weights[giver] - moved
        weights[taker] += moved
        # Woodbury for M + amount·(z_leader z_leaderᵀ − z_partner z_partnerᵀ): a 2×2 system.
        determinant = 1.0 + amount * (a - b) - amount * amount * (a * b - c * c)
        p = amount * (1.0 - amount * b) / determinant
        q = -amount * (1.0 + amount * a) / determinant
        s = amount * amount * c / determinant
        for i in range(n):
            for j in range(n):
                inverse[i, j] -= towards[i] * (p * towards[j] + s * away[j]) + away[i] * (
                    q * away[j] + s * towards[j]
                )
        for i in range(m):
            leverages[i] -= p * along[i] ** 2 + q * across[i] ** 2 + 2.0 * s * along[i] * across[i]
    return most


MAX_ITERATIONS = 60  # a full step divides the complementarity by 7 to 100, so that far fewer are usual
SHRINK = 0.15  # target complementarity of the next iterate, relative to this one's
SHRINK_FAST = 0.01  # after a step of almost full length
MARGIN = 0.95  # how far towards the boundary a step may go
INTERIOR_SHARE = 0.1  # share of the uniform distribution mixed into the start
PRECISION = 1e-5  # of the tolerance: low enough for the weights of idle points to vanish
ROUNDING = 1e-12  # below which leverages are not known
IDLE_TOLERANCES = 5.0  # points are, whose leverage is more than this many tolerances below n


def interior_weights(points: Array, start: Array, tolerance: float) -> Array:
    """Maximise log det M over distributions w, with M = Σ w_i z_i z_iᵀ.

    The same as to maximise log det M − n Σ w_i over w ≥ 0, since Σ w_i z_iᵀM⁻¹z_i = n. Primal–dual
    Newton steps on the optimality conditions

        n − z_iᵀM⁻¹z_i = s_i,   s_i w_i = τ,   τ → 0.

    Parameters
    ----------
    points : (m, n) array
        z_i, in coordinates in which the moment matrix of `start` is near the identity.
    start : (m,) array
        A distribution whose points span.
    tolerance : float
        Relative size of the largest leverage above n at which to stop.

    Returns
    -------
    (m,) array
        A distribution; idle points have weight zero.
    """
    m, n = points.shape
    w = (1.0 - INTERIOR_SHARE) * start + INTERIOR_SHARE / m
    shrink = SHRINK
    cross = _cross(points, w)
    s = np.maximum(n - np.diagonal(cross), 0.1 * n * INTERIOR_SHARE)
    for _ in range(MAX_ITERATIONS):
        room = n - np.diagonal(cross)
        complementarity = float(s @ w)
        if max(float(np.abs(room - s).max()), complementarity) <= max(PRECISION * tolerance, ROUNDING) * n:
            break
        target = shrink * complementarity / m
        dw = solve_nearly_singular(cross**2 + np.diag(s / w), target / w - room)
        ds = (target - s * dw) / w - s
        length = min(1.0, MARGIN * min(_longest(w, dw), _longest(s, ds)))
        w = w + length * dw
        s = s + length * ds
        shrink = SHRINK_FAST if length > 0.9 else SHRINK
        cross = _cross(points, w)
    w = np.where(s > IDLE_TOLERANCES * tolerance * n, 0.0, w)
    return np.asarray(w / w.sum())


def _cross(points: Array, w: Array) -> Array:
    """Return z_iᵀM⁻¹z_j, (m, m)."""
    lower = np.linalg.cholesky((points.T * w) @ points)
    white = scipy.linalg.solve_triangular(lower, points.T, lower=True, check_finite=False)
    return np.asarray(white.T @ white)


def _longest(value: Array, change: Array) -> float:
    """Return the longest step that keeps every value non-negative."""
    shrinking = change < 0
    return float(np.min(value[shrinking] / -change[shrinking], initial=np.inf))


def sparsest_support(points: Array, weights: Array) -> Array:
    """Return weights on at most n(n+1)/2 of the points with the same Σ w_i z_i z_iᵀ and no larger Σ w_i.

    Each z zᵀ is a vector of n(n+1)/2 numbers; any more of them than their rank are linearly dependent,
    and moving along the dependency until a weight is zero removes one (Carathéodory). Of the two ways to
    move, one does not add weight. All dependencies come from one pivoted QR factorisation and are then
    walked like the pivots of a simplex method.

    Parameters
    ----------
    points : (m, n) array
        In coordinates in which the moment matrix is near the identity.
    weights : (m,) array
        Positive.

    Returns
    -------
    (m,) array
        Non-negative, zero outside the new support.
    """
    m, n = points.shape
    upper = np.triu_indices(n)
    if m <= len(upper[0]):
        return weights
    products = points[:, upper[0]] * points[:, upper[1]]
    triangle, order = scipy.linalg.qr(products.T, mode="r", pivoting=True)
    pivots = np.abs(np.diagonal(triangle))
    rank = int(np.count_nonzero(pivots > 1e-11 * pivots[0]))
    table = scipy.linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    basic = weights[order[:rank]]
    other = weights[order[rank:]]
    rows, columns = order[:rank].copy(), order[rank:].copy()
    _walk(np.ascontiguousarray(table.T), basic, other, rows, columns)
    out = np.zeros(m)
    out[rows] = basic
    return out


@compiled
def _walk(table: Array, basic: Array, other: Array, rows: Whole, columns: Whole) -> None:
    """Bring every weight outside the basis to zero; `table` (k, rank) holds B⁻¹c of each such point.

    Taking weight from point j adds `table[j]` times as much to the basis. If that is more in total, point
    j gets weight instead, until a point of the basis has none and leaves.
    """
    count, rank = table.shape
    for j in range(count):
        leaving = -1
        step = other[j]
        sign = 1.0
        if table[j].sum() > 1.0:
            step = np.inf
            sign = -1.0
        for i in range(rank):
            change = sign * table[j, i]
            if change < -1e-12 and basic[i] < -step * change:
                leaving = i
                step = basic[i] / -change
        for i in range(rank):
            basic[i] = max(basic[i] + sign * step * table[j, i], 0.0)
        if leaving < 0:
            continue
        # The leaving point has weight zero; point j takes its place in the basis.
        basic[leaving] = other[j] - sign * step
        rows[leaving], columns[j] = columns[j], rows[leaving]
        pivot = table[j, leaving]
        for k in range(j + 1, count):
            factor = table[k, leaving] / pivot
            if factor != 0.0:
                for i in range(rank):
                    table[k, i] -= factor * table[j, i]
                table[k, leaving] = factor


MAX_PASSES = 200  # over all points; a few are enough unless the optimum is degenerate
FAR_GAP = 1e4  # a gap that no sample of like points leaves
FEW_POINTS = 2000  # points that are looked at faster than bounded
COARSE_GAP = 0.02  # gap to which samples and first working sets are solved


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
    inner = COARSE_GAP
    approach = Approach(progress, tolerance)
    for passes in range(1, MAX_PASSES + 1):
        now = now.solved(inner)
        gap = (bounds.updated(now) - n) / points.rank
        if gap <= tolerance:
            now = now.thinned()
            gap = (bounds.renewed(now) - n) / points.rank
        best = min(best, gap)
        approach.reached(gap)
        if gap <= tolerance:
            return Weights(now.chosen, now.weights, max(gap, 0.0))
        if passes == 1 and gap > FAR_GAP:
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
        f"the design reached a gap of {best:.2e} in {MAX_PASSES} passes; {tolerance:.2e} was asked for",
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
            found = d_optimal(points.only(sample), COARSE_GAP)
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
        if self._view is None or len(self.values) <= FEW_POINTS:
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
