"""Weights of small contrast designs in microseconds: all points and contrasts at once, compiled."""

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import EPS, backward, cholesky_into, forward, whiten_into
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.design._contrast_optimal import MARGIN, MAX_ITERATIONS, SHRINK

MOST_ROWS = 128  # points, or contrasts, beyond which working sets pay
SPANNED_EIGENVALUE = 1e-8  # relative eigenvalue above which a direction counts
UNSPANNED_EIGENVALUE = 4.0 * EPS  # below which it does not; in between it is delicate
FAINT_SHARE = 1e-3  # weights below this share of the mean one are left out where nothing depends on them


def contrast_weights(
    rows: Array,
    contrasts: Array,
    *,
    costs: Array | None = None,
    start: Array | None = None,
    gap: float = 0.01,
) -> Array | None:
    """Minimise (Σ p_i·cost_i) × max_y yᵀΣ_p⁻¹y over distributions p on the rows, for a small problem.

    The same problem, method and certificate as :func:`contrast_design` and :func:`earning_design`, with all
    rows and contrasts in the working set from the start and without their checks: for policies, which ask
    for thousands of plans that are needed to a per cent.

    Parameters
    ----------
    rows : (m, r) array
        The arms that may be played, m ≤ 128.
    contrasts : (q, r) array
        Differences y, each scaled by the root of its weight; within the span of the rows' differences.
    costs : (m,) array, optional
        What a round costs, positive; all the same by default.
    start : (m,) array, optional
        A distribution to start from.
    gap : float
        Relative tolerance of the product.

    Returns
    -------
    (m,) array or None
        A distribution, or None where the problem is too large or too delicate for this.

    Examples
    --------
    >>> contrast_weights(np.array([[0.0], [1.0]]), np.array([[1.0]])).round(2).tolist()
    [0.5, 0.5]
    """
    if not 0 < len(contrasts) <= MOST_ROWS or len(rows) > MOST_ROWS:
        return None
    paid = np.ones(len(rows)) if costs is None else np.asarray(costs, dtype=np.float64)
    first = np.zeros(len(rows)) if start is None else np.asarray(start, dtype=np.float64)
    p, reached = _weights(np.ascontiguousarray(rows), np.ascontiguousarray(contrasts), paid, first, gap)
    return p if reached <= gap else None


def leader_weights(
    rows: Array,
    playable: Mask,
    leaders: Whole,
    weights: Array,
    *,
    costs: Array | None = None,
    starts: Array | None = None,
    gap: float = 0.01,
) -> tuple[Array, Mask]:
    """Solve :func:`contrast_weights` for R replications at once, each with the pairs of its leader.

    Parameters
    ----------
    rows : (K, r) array
        All arms.
    playable : (R, K) array of bool
        Those that each may play.
    leaders : (R,) array of int
    weights : (R, K) array
        Of the pairs of the leader with each arm; 0 where the pair is not asked for.
    costs, starts : (R, K) arrays, optional
        As for one; a start of zeros is none.
    gap : float

    Returns
    -------
    (R, K) array, (R,) array of bool
        Distributions, and which of them were found: the others are left to the general solver.
    """
    paid = np.ones(weights.shape) if costs is None else costs
    first = np.zeros(weights.shape) if starts is None else starts
    p, reached = _leader_weights(
        np.ascontiguousarray(rows), playable, leaders, np.sqrt(weights), paid, first, gap
    )
    return p, np.asarray(reached <= gap)


@compiled
def _leader_weights(rows, playable, leaders, roots, costs, starts, tolerance):  # type: ignore[no-untyped-def]
    """Return distributions (R, K) and certified gaps (R,), +inf where a problem is not for this solver."""
    runs, count = roots.shape
    out = np.zeros((runs, count))
    reached = np.full(runs, np.inf)
    for n in range(runs):
        left = np.flatnonzero(playable[n])
        asked = np.flatnonzero(roots[n] > 0.0)
        if len(asked) == 0 or max(len(left), len(asked)) > MOST_ROWS:
            continue
        contrasts = (rows[leaders[n]] - rows[asked]) * roots[n][asked].reshape(len(asked), 1)
        p, reached[n] = _weights(rows[left], contrasts, costs[n][left], starts[n][left], tolerance)
        for place in range(len(left)):
            out[n, left[place]] = p[place]
    return out, reached


@compiled
def _weights(rows, contrasts, costs, start, tolerance):  # type: ignore[no-untyped-def]
    """Return a distribution (m,) and its certified gap, +inf where the problem is too delicate."""
    m, r = rows.shape
    lifted = np.ones((m, r + 1))
    for k in range(r):
        lifted[:, k + 1] = rows[:, k] - rows[:, k].mean()
    lifted /= np.sqrt(costs).reshape(m, 1)
    asked = np.zeros((len(contrasts), r + 1))
    asked[:, 1:] = contrasts
    total = start.sum()
    first = 0.2 / m + 0.8 * start / total if total > 0.0 else np.full(m, 1.0 / m)
    transform, is_clear = _whitening(np.dot((lifted * first.reshape(m, 1)).T, lifted))
    if not is_clear:
        return first, np.inf
    points = np.dot(lifted, transform)
    seen = np.dot(asked, transform)
    # Guards as in the general solver, here against the first plan, of which every point has at least 1/5m.
    worst = 0.0
    for j in range(len(seen)):
        worst = max(worst, np.dot(seen[j], seen[j]))
    guards = np.eye(points.shape[1]) * np.sqrt(0.04 * tolerance * worst / m)
    p, reached = _solve(points, np.concatenate((seen, guards)), len(seen), first, tolerance)
    p = p / costs
    return p / p.sum(), reached


@compiled
def _whitening(gram):  # type: ignore[no-untyped-def]
    """Return T with Tᵀ·gram·T = I on the range of the gram matrix (n, n), and whether that is clear-cut."""
    size = len(gram)
    scale = np.sqrt(np.diag(gram))
    for i in range(size):
        if not scale[i] > 0.0:
            scale[i] = 1.0
    values, vectors = np.linalg.eigh(gram / scale / scale.reshape(size, 1))
    outside = 0  # eigenvalues ascend
    while outside < size and not values[outside] > SPANNED_EIGENVALUE * values[-1]:
        outside += 1
    is_clear = outside == 0 or not values[outside - 1] > UNSPANNED_EIGENVALUE * size * values[-1]
    spanned = np.ascontiguousarray(vectors[:, outside:])
    return spanned / np.sqrt(values[outside:]) / scale.reshape(size, 1), is_clear


@compiled
def _evaluate(points, contrasts, p, values, cross, white):  # type: ignore[no-untyped-def]
    """Write yᵀM⁻¹y (q,), z_iᵀM⁻¹y (q, m) and M^{-1/2}z_i (n, m); tell whether M could be factorised."""
    m, n = points.shape
    gram = np.dot((points * p.reshape(m, 1)).T, points)
    lower = np.zeros((n, n))
    if not cholesky_into(gram, n, lower, 1e-14):
        return False
    whiten_into(lower, points, white)
    y = np.empty((n, len(contrasts)))
    whiten_into(lower, contrasts, y)
    cross[:] = np.dot(np.ascontiguousarray(y.T), white)
    for j in range(len(contrasts)):
        total = 0.0
        for i in range(n):
            total += y[i, j] * y[i, j]
        values[j] = total
    return True


@compiled
def _solved(matrix, right):  # type: ignore[no-untyped-def]
    """Return matrix⁻¹·right, with the least ridge that lets a nearly singular matrix be factorised."""
    size = len(matrix)
    scale = np.sqrt(np.diag(matrix))
    unit = matrix / scale / scale.reshape(size, 1)
    lower = np.zeros((size, size))
    ridge = size * EPS
    for i in range(size):
        unit[i, i] = 1.0 + ridge
    while not cholesky_into(unit, size, lower, 0.0):
        ridge *= 10.0
        for i in range(size):
            unit[i, i] = 1.0 + ridge
    out = right / scale
    forward(lower, size, out)
    backward(lower, size, out)
    return out / scale


@compiled
def _longest(value, change, length):  # type: ignore[no-untyped-def]
    """Return how far along the change, at most `length`, all values stay positive."""
    for i in range(len(value)):
        if change[i] < 0.0:
            length = min(length, -MARGIN * value[i] / change[i])
    return length


@compiled
def _certified(values, cross, multipliers, total, asked):  # type: ignore[no-untyped-def]
    """Return the gap to the bound φ²/max_i z_iᵀM⁻¹S_λM⁻¹z_i and the bound, of the contrasts asked for."""
    share = multipliers[:asked] / multipliers[:asked].sum()
    phi = np.dot(share, values[:asked])
    most = 0.0
    for i in range(cross.shape[1]):
        pull = 0.0
        for j in range(asked):
            pull += share[j] * cross[j, i] * cross[j, i]
        most = max(most, pull)
    bound = phi * phi / most
    return total * values[:asked].max() / bound - 1.0, bound


@compiled
def _solve(points, contrasts, asked, start, tolerance):  # type: ignore[no-untyped-def]
    """Return a distribution (m,) and its certified gap; see :func:`._contrast_optimal.solve_minmax`."""
    m = len(points)
    q = len(contrasts)
    white = np.empty((points.shape[1], m))
    cross = np.empty((q, m))
    values = np.empty(q)
    if not _evaluate(points, contrasts, start, values, cross, white):
        return start, np.inf
    p = start * 1.1 * values.max()
    _evaluate(points, contrasts, p, values, cross, white)
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
        matrix = np.dot(white.T, white) * np.dot(bent.T, bent) + np.dot(steep.T, steep)
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
            not _evaluate(points, contrasts, p + length * dp, values, cross, white) or values.max() > allowed
        ):
            length /= 2.0
            if length < 1e-12:
                return p / p.sum(), np.inf
        p = p + length * dp
        room = room + length * d_room
        multipliers = multipliers + length * d_multipliers
        slack = slack + length * d_slack
        reached, now = _certified(values, cross, multipliers, p.sum(), asked)
        bound = max(bound, now)
        if reached <= 0.5 * tolerance:
            break
        target = SHRINK * (np.dot(multipliers, room) + np.dot(slack, p)) / (m + q)
    return _thinned(points, contrasts[:asked], p / p.sum(), bound, tolerance)


@compiled
def _thinned(points, contrasts, p, bound, tolerance):  # type: ignore[no-untyped-def]
    """Return the distribution without points that nothing depends on, and its gap to the bound."""
    m = len(points)
    q = len(contrasts)
    white = np.empty((points.shape[1], m))
    cross = np.empty((q, m))
    values = np.empty(q)
    thin = np.where(p > FAINT_SHARE / m, p, 0.0)
    thin = thin / thin.sum()
    if _evaluate(points, contrasts, thin, values, cross, white):
        reached = values.max() / bound - 1.0
        if reached <= tolerance:
            return thin, max(reached, 0.0)
    if not _evaluate(points, contrasts, p, values, cross, white):
        return p, np.inf
    return p, max(values.max() / bound - 1.0, 0.0)
