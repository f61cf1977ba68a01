"""Weights of few points: D-optimal ones by exchange or by an interior-point method, and the sparsest.

The design solvers call these on working sets; what they return is certified on all points by the caller.
"""

import numpy as np
import scipy

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import solve_nearly_singular
from orthobandit._foundation.types import Array, Whole


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

    `points` (n, m) holds one point a column, so that all inner products run in vector registers.
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


ITERATIONS = 60
SHRINK = 0.15  # target complementarity of the next iterate, relative to this one's
SHRINK_FAST = 0.01  # after a step of almost full length
MARGIN = 0.95  # how far towards the boundary a step may go
INTERIOR = 0.1  # share of the uniform distribution mixed into the start
PRECISION = 1e-5  # of the tolerance: low enough for the weights of idle points to vanish
ROUNDING = 1e-12  # below which leverages are not known
IDLE = 5.0  # points are, whose leverage is more than this many tolerances below n


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
    w = (1.0 - INTERIOR) * start + INTERIOR / m
    shrink = SHRINK
    cross = _cross(points, w)
    s = np.maximum(n - np.diagonal(cross), 0.1 * n * INTERIOR)
    for _ in range(ITERATIONS):
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
    w = np.where(s > IDLE * tolerance * n, 0.0, w)
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
