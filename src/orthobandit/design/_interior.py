"""D-optimal weights by an interior-point method, for few points on which exchanges converge slowly."""

import numpy as np
import scipy.linalg

from orthobandit._linalg import solve_nearly_singular
from orthobandit._types import Array

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
    w, shrink = (1.0 - INTERIOR) * start + INTERIOR / m, SHRINK
    cross = _cross(points, w)
    s = np.maximum(n - np.diagonal(cross), 0.1 * n * INTERIOR)
    for _ in range(ITERATIONS):
        room, complementarity = n - np.diagonal(cross), float(s @ w)
        if max(float(np.abs(room - s).max()), complementarity) <= max(PRECISION * tolerance, ROUNDING) * n:
            break
        target = shrink * complementarity / m
        dw = solve_nearly_singular(cross**2 + np.diag(s / w), target / w - room)
        ds = (target - s * dw) / w - s
        length = min(1.0, MARGIN * min(_longest(w, dw), _longest(s, ds)))
        w, s = w + length * dw, s + length * ds
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
