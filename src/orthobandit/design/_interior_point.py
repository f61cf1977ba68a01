"""The interior-point method behind all contrast designs, compiled: points and contrasts in, a saddle out."""

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import EPS, backward, cholesky_into, forward, whiten_into
from orthobandit._foundation.types import Array

MAX_ITERATIONS = 60  # each divides the complementarity by about 7, so that far fewer are usual
SHRINK = 0.15  # target complementarity of the next iterate, relative to this one's
MARGIN = 0.95  # how far towards the boundary a step may go
SHORTEST_STEP = 1e-12  # of the line search, before it gives up
LAPACK_SIZE = 32  # of a matrix from which on LAPACK factorises faster than a plain loop
GRAM_BLOCK = 128  # columns that are multiplied at a time
LEAST_PIVOT = 1e-14  # relative to the diagonal, of a moment matrix that counts as regular


@compiled
def solve_minmax(
    points: Array, contrasts: Array, asked: int, start: Array, tolerance: float
) -> tuple[Array, Array, float]:
    """Minimise max_y yᵀM_p⁻¹y over distributions p, with M_p = Σ p_i z_i z_iᵀ.

    yᵀM_p⁻¹y is convex and of degree −1 in p, so the problem is the same as to minimise Σ p_i subject to
    yᵀM_p⁻¹y + c_y = 1, c ≥ 0 and p ≥ 0, scaled afterwards. Primal–dual Newton steps on its optimality
    conditions, which need not hold the constraints on the way:

        1 − Σ_y λ_y (z_iᵀM⁻¹y)² = s_i,   λ_y c_y = τ,   s_i p_i = τ,   τ → 0.

    Parameters
    ----------
    points : (m, n) array
        z_i, in coordinates in which M_start is near the identity.
    contrasts : (q, n) array
        y, each scaled by the root of its weight.
    asked : int
        The certificate is about so many of the contrasts, the first; the others keep M_p regular.
    start : (m,) array
        A positive distribution.
    tolerance : float
        Certified relative gap at which to stop.

    Returns
    -------
    p : (m,) array
        A distribution over the points.
    multipliers : (q,) array
        A distribution over the contrasts.
    bound : float
        No distribution has a smaller maximum over the contrasts asked for; 0 if the method failed.
    """
    m = len(points)
    q = len(contrasts)
    white = np.empty((points.shape[1], m))
    cross = np.empty((q, m))
    values = np.empty(q)
    if not evaluate(points, contrasts, start, values, cross, white):
        return start, np.full(q, 1.0 / q), 0.0
    p = start * 1.1 * values.max()
    evaluate(points, contrasts, p, values, cross, white)
    target = 0.1 * p.sum() / (m + q)
    room = 1.0 - values
    multipliers = target / room
    slack = target / p
    bound = 0.0
    for _ in range(MAX_ITERATIONS):
        missed = values + room - 1.0
        ratio = multipliers / room
        squares = cross * cross
        bent = cross * np.sqrt(2.0 * multipliers).reshape(q, 1)
        steep = squares * np.sqrt(ratio).reshape(q, 1)
        matrix = _lower_gram(white) * _lower_gram(bent) + _lower_gram(steep)
        for i in range(m):
            matrix[i, i] += slack[i] / p[i]
        right = target / p - 1.0 + np.dot(squares.T, target / room + ratio * missed)
        dp = _solved(matrix, right)
        d_room = np.dot(squares, dp) - missed
        d_multipliers = (target - multipliers * d_room) / room - multipliers
        d_slack = (target - slack * dp) / p - slack
        length = _longest(p, dp, _longest(room, d_room, 1.0))
        length = _longest(multipliers, d_multipliers, _longest(slack, d_slack, length))
        allowed = max(2.0, 10.0 * values.max())
        # A step may neither leave the domain nor miss the constraints by far.
        while (
            not evaluate(points, contrasts, p + length * dp, values, cross, white) or values.max() > allowed
        ):
            length /= 2.0
            if length < SHORTEST_STEP:
                return p / p.sum(), multipliers / multipliers.sum(), 0.0
        p = p + length * dp
        room = room + length * d_room
        multipliers = multipliers + length * d_multipliers
        slack = slack + length * d_slack
        lower_bound = _lower_bound(values[:asked], cross[:asked], multipliers[:asked])
        bound = max(bound, lower_bound)
        if p.sum() * values[:asked].max() / lower_bound - 1.0 <= tolerance:
            break
        target = SHRINK * (np.dot(multipliers, room) + np.dot(slack, p)) / (m + q)
    return p / p.sum(), multipliers / multipliers.sum(), bound


@compiled
def evaluate(points: Array, contrasts: Array, p: Array, values: Array, cross: Array, white: Array) -> bool:
    """Write yᵀM⁻¹y (q,), z_iᵀM⁻¹y (q, m) and M^{-1/2}z_i (n, m); tell whether M could be factorised."""
    m = len(points)
    gram = np.dot((points * p.reshape(m, 1)).T, points)
    lower, is_regular = _factorised(gram, LEAST_PIVOT)
    if not is_regular:
        return False
    whiten_into(lower, points, white)
    y = np.empty((points.shape[1], len(contrasts)))
    whiten_into(lower, contrasts, y)
    cross[:] = np.dot(np.ascontiguousarray(y.T), white)
    for j in range(len(contrasts)):
        total = 0.0
        for i in range(len(y)):
            total += y[i, j] * y[i, j]
        values[j] = total
    return True


@compiled
def _lower_gram(columns: Array) -> Array:
    """Return columnsᵀ·columns (m, m) of columns (n, m) in blocks, without those above the diagonal ones."""
    m = columns.shape[1]
    if m <= GRAM_BLOCK:
        return np.asarray(np.dot(columns.T, columns))
    out = np.zeros((m, m))
    for start in range(0, m, GRAM_BLOCK):
        block = np.ascontiguousarray(columns[:, start : start + GRAM_BLOCK])
        out[start:, start : start + GRAM_BLOCK] = np.dot(np.ascontiguousarray(columns[:, start:]).T, block)
    return out


@compiled
def _factorised(matrix: Array, least: float) -> tuple[Array, bool]:
    """Return L with LLᵀ = matrix (n, n), and whether every pivot is above `least` times its diagonal entry.

    Only the lower triangle of the matrix is read.
    """
    size = len(matrix)
    lower = np.zeros((size, size))
    if size <= LAPACK_SIZE:
        return lower, cholesky_into(matrix, size, lower, least)
    try:
        lower[:] = np.linalg.cholesky(matrix)
    except Exception:  # compiled code can name no other
        return lower, False
    for i in range(size):
        if not lower[i, i] * lower[i, i] > least * matrix[i, i]:
            return lower, False
    return lower, True


@compiled
def _solved(matrix: Array, right: Array) -> Array:
    """Return matrix⁻¹·right, with the least ridge that lets a nearly singular matrix be factorised."""
    size = len(matrix)
    scale = np.sqrt(np.diag(matrix))
    unit = matrix / scale / scale.reshape(size, 1)
    ridge = size * EPS
    is_regular = False
    while not is_regular:
        for i in range(size):
            unit[i, i] = 1.0 + ridge
        lower, is_regular = _factorised(unit, 0.0)
        ridge *= 10.0
    out = right / scale
    forward(lower, size, out)
    backward(lower, size, out)
    return out / scale


@compiled
def _longest(value: Array, change: Array, length: float) -> float:
    """Return how far along the change, at most `length`, all values stay positive."""
    for i in range(len(value)):
        if change[i] < 0.0:
            length = min(length, -MARGIN * value[i] / change[i])
    return length


@compiled
def _lower_bound(values: Array, cross: Array, multipliers: Array) -> float:
    """Return φ²/max_i z_iᵀM⁻¹S_λM⁻¹z_i, in which φ = Σ λ_y yᵀM⁻¹y and Σ λ_y = 1."""
    share = multipliers / multipliers.sum()
    phi = np.dot(share, values)
    most = 0.0
    for i in range(cross.shape[1]):
        pull = 0.0
        for j in range(len(share)):
            pull += share[j] * cross[j, i] * cross[j, i]
        most = max(most, pull)
    return float(phi * phi / most)
