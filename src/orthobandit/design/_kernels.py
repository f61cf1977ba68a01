"""Compiled inner loops of the design solvers."""

import numpy as np
from numpy.typing import NDArray

from orthobandit._compile import compiled

Array = NDArray[np.float64]


@compiled
def exchange(
    points: Array, weights: Array, inverse: Array, leverages: Array, tolerance: float, most: int
) -> int:
    """Move weight from the least to the most informative point until the leverages agree.

    Maximises log det Σ w_i z_i z_iᵀ over w by vertex exchange (Böhning 1986): the pair with the largest
    and smallest leverage trades the amount of weight that is best for the two of them. `points` (n, m)
    holds one point a column, which lets the update of all leverages run in vector registers. Updated in
    place: `weights` (m,), `inverse` = M⁻¹ (n, n), `leverages` (m,).

    Returns the number of exchanges made, at most `most`; fewer when every leverage is at most
    n(1 + tolerance) and every point with weight has at least n(1 − tolerance).
    """
    n, m = points.shape
    along, across = np.empty(m), np.empty(m)
    for step in range(most):
        high, low = 0, -1
        for i in range(m):
            if leverages[i] > leverages[high]:
                high = i
            if weights[i] > 0.0 and (low < 0 or leverages[i] < leverages[low]):
                low = i
        a, b = leverages[high], leverages[low]
        if a <= n * (1.0 + tolerance) and b >= n * (1.0 - tolerance):
            return step
        towards = inverse @ np.ascontiguousarray(points[:, high])
        away = inverse @ np.ascontiguousarray(points[:, low])
        along[:] = 0.0
        across[:] = 0.0
        for j in range(n):
            u, v = towards[j], away[j]
            for i in range(m):
                along[i] += points[j, i] * u
                across[i] += points[j, i] * v
        cross = along[low]
        curvature = 2.0 * (a * b - cross * cross)
        amount = weights[low]
        if curvature * amount > a - b:
            amount = (a - b) / curvature
            weights[low] -= amount
        else:
            weights[low] = 0.0
        weights[high] += amount
        # Woodbury for M + amount·(z_high z_highᵀ − z_low z_lowᵀ): a 2×2 system.
        determinant = (1.0 + amount * a) * (1.0 - amount * b) + (amount * cross) ** 2
        p = amount * (1.0 - amount * b) / determinant
        q = -amount * (1.0 + amount * a) / determinant
        s = amount * amount * cross / determinant
        for i in range(n):
            for j in range(n):
                inverse[i, j] -= towards[i] * (p * towards[j] + s * away[j]) + away[i] * (
                    q * away[j] + s * towards[j]
                )
        for i in range(m):
            leverages[i] -= p * along[i] ** 2 + q * across[i] ** 2 + 2.0 * s * along[i] * across[i]
    return most
