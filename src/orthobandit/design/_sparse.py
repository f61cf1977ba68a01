"""Fewer points, same moments: Carathéodory's theorem as an algorithm."""

import numpy as np
import scipy.linalg

from orthobandit._compile import compiled
from orthobandit._types import Array, Whole


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
    basic, other = weights[order[:rank]], weights[order[rank:]]
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
        leaving, step, sign = -1, other[j], 1.0
        if table[j].sum() > 1.0:
            step, sign = np.inf, -1.0
        for i in range(rank):
            change = sign * table[j, i]
            if change < -1e-12 and basic[i] < -step * change:
                leaving, step = i, basic[i] / -change
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
