"""Compiled inner loops of the design solvers."""

import numpy as np

from orthobandit._compile import compiled
from orthobandit._types import Array


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
    along, across = np.empty(m), np.empty(m)
    towards, away = np.empty(n), np.empty(n)
    for step in range(most):
        high, low = 0, -1
        for i in range(m):
            if leverages[i] > leverages[high]:
                high = i
            if weights[i] > 0.0 and (low < 0 or leverages[i] < leverages[low]):
                low = i
        over, under = leverages[high] - n, n - leverages[low]
        if over <= n * tolerance and under <= n * tolerance:
            return step
        high_leads = over >= under
        leader = high if high_leads else low
        _image(inverse, points, leader, towards)
        _combination(points, towards, along)
        gain, amount, partner = -1.0, 0.0, -1
        for i in range(m):
            difference = leverages[leader] - leverages[i]
            available = weights[i]
            if not high_leads:
                difference, available = -difference, weights[leader]
            if difference > 0.0 and available > 0.0:
                curvature = leverages[leader] * leverages[i] - along[i] * along[i]
                alpha = _best_amount(difference, curvature, available)
                found = alpha * (difference - alpha * curvature)
                if found > gain:
                    gain, amount, partner = found, alpha, i
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
