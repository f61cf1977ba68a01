"""Weights of small contrast designs in microseconds: all points and contrasts at once, compiled."""

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import EPS
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.design._interior_point import evaluate, solve_minmax

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
    guarded = np.concatenate((seen, guards))
    p, _, bound = solve_minmax(points, guarded, len(seen), first, 0.5 * tolerance)
    if not bound > 0.0:
        return first, np.inf
    p, reached = _thinned(points, seen, p, bound, tolerance)
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
def _thinned(points, contrasts, p, bound, tolerance):  # type: ignore[no-untyped-def]
    """Return the distribution without points that nothing depends on, and its gap to the bound."""
    m = len(points)
    q = len(contrasts)
    white = np.empty((points.shape[1], m))
    cross = np.empty((q, m))
    values = np.empty(q)
    thin = np.where(p > FAINT_SHARE / m, p, 0.0)
    thin = thin / thin.sum()
    if evaluate(points, contrasts, thin, values, cross, white):
        reached = values.max() / bound - 1.0
        if reached <= tolerance:
            return thin, max(reached, 0.0)
    if not evaluate(points, contrasts, p, values, cross, white):
        return p, np.inf
    return p, max(values.max() / bound - 1.0, 0.0)
