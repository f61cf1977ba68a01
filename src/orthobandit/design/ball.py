"""The smallest ball around a set of points, solved exactly through its dual."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import backward, cholesky_into, forward
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import DesignError, FeatureError

TOLERANCE = 1e-8  # largest relative KKT residual that is ever returned
TARGET = 1e-12  # relative residual at which the search stops looking for points outside
DEPENDENT = 1e-11  # a point this close (squared, relative) to the hull of the support lies in it


@dataclass(frozen=True, eq=False)
class Ball:
    """The smallest ball that holds all points.

    Attributes
    ----------
    probabilities : (n,) array
        The dual solution p: positive on points of the sphere only, at most r + 1 of them.
    centre : (r,) array
        Σ p_i y_i.
    squared_radius : float
        Σ p_i ‖y_i − centre‖².
    residual : float
        max_i ‖y_i − centre‖² / squared_radius − 1, at most the tolerance.
    """

    probabilities: Array
    centre: Array
    squared_radius: float
    residual: float


def enclosing_ball(points: ArrayLike, tolerance: float = TOLERANCE) -> Ball:
    """Maximise Σ p_i ‖y_i − Σ_j p_j y_j‖² over distributions p on the points.

    The maximum is the squared radius of the smallest enclosing ball (its dual problem); p is optimal
    exactly when no point is farther from Σ p_j y_j than that radius. Method: an active set as in Wolfe
    (1976) and Fischer, Gärtner & Kutz (2003): solve on the affine hull of the support, drop points whose
    probability would turn negative, let in the farthest point outside, until there is none. Every step
    increases the dual, so no support returns and the search is finite; it does not approximate.

    Parameters
    ----------
    points : array-like (n, r)
        May hold duplicates and lie in a flat.
    tolerance : float
        Relative KKT residual; :class:`DesignError` if rounding keeps it from being met.

    Examples
    --------
    >>> ball = enclosing_ball([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]])
    >>> ball.probabilities.tolist(), ball.squared_radius
    ([0.5, 0.5, 0.0], 1.0)
    """
    check_positive("tolerance", tolerance)
    rows = np.array(points, dtype=np.float64)
    if rows.ndim != 2 or not len(rows) or not np.all(np.isfinite(rows)):
        raise FeatureError(f"points have shape {rows.shape}; a table (n, r) of finite numbers is needed")
    moved = rows - rows.mean(axis=0)
    scale = np.max(np.abs(moved), initial=0.0)
    moved /= scale or 1.0
    probabilities = np.zeros(len(rows))
    residual = ball_into(moved @ moved.T, np.arange(len(rows)), probabilities)
    if not residual <= tolerance:
        raise unsolved(residual, tolerance)
    centre = probabilities @ rows
    squares = np.sum((rows - centre) ** 2, axis=1)
    return Ball(probabilities, centre, float(probabilities @ squares), residual)


def unsolved(residual: float, tolerance: float = TOLERANCE) -> DesignError:
    """Return the error of a ball that rounding has kept from its tolerance."""
    message = f"the enclosing ball reached a residual of {residual:.2e}; {tolerance:.2e} was asked for"
    return DesignError(message, gap=residual, tolerance=tolerance)


class _Work(NamedTuple):
    """The support (n + 1,) with its probabilities (n + 1,), and space for solving on it."""

    support: Whole
    p: Array
    gram: Array
    lower: Array
    right: Array


@compiled
def ball_into(inner: Array, among: Whole, probabilities: Array) -> float:
    """Solve for the points `among` (m,) of which `inner` (n, n) holds the inner products.

    What `probabilities` (n,) holds on entry is where the search starts, if it is positive on some of the
    points; it is overwritten by the solution. Returns the relative residual, 0 if all points coincide.
    """
    n = among.size + 1
    work = _Work(np.empty(n, np.int64), np.empty(n), np.empty((n, n)), np.empty((n, n)), np.empty(n))
    size = _begin(inner, among, probabilities, work)
    best = 0.0
    stalls = 0
    while True:
        size = _settle(inner, work, size)
        farthest, squared_radius, residual = _farthest(inner, among, work, size)
        # The dual rises with every step until rounding stops it; the residual then says how near it came.
        stalls = 0 if squared_radius > best * (1.0 + 1e-15) else stalls + 1
        best = max(best, squared_radius)
        if residual <= TARGET or stalls > 10:
            break
        size = _admit(inner, work, size, farthest)
    probabilities[:] = 0.0
    for k in range(size):
        probabilities[work.support[k]] = work.p[k]
    return residual


@compiled
def squared_distance(inner: Array, i: int, j: int) -> float:
    """Return ‖y_i − y_j‖² from the inner products."""
    return float(inner[i, i] - 2.0 * inner[i, j] + inner[j, j])


@compiled
def _inner_from(inner: Array, a: int, b: int, base: int) -> float:
    """Return (y_a − y_base)·(y_b − y_base)."""
    return float(inner[a, b] - inner[a, base] - inner[base, b] + inner[base, base])


@compiled
def _begin(inner: Array, among: Whole, start: Array, work: _Work) -> int:
    """Take over the support of an earlier solution, or the point farthest from the first and its opposite."""
    size = 0
    total = 0.0
    for a in among:
        if start[a] > 0.0:
            work.support[size] = a
            work.p[size] = start[a]
            total += start[a]
            size += 1
    if size and total > 1e-3:
        for k in range(size):
            work.p[k] /= total
        return size
    first = _opposite(inner, among, among[0])
    second = _opposite(inner, among, first)
    work.support[0] = first
    if first == second:
        work.p[0] = 1.0
        return 1
    work.support[1] = second
    work.p[0] = work.p[1] = 0.5
    return 2


@compiled
def _opposite(inner: Array, among: Whole, point: int) -> int:
    found = point
    largest = 0.0
    for a in among:
        distance = squared_distance(inner, a, point)
        if distance > largest:
            found = a
            largest = distance
    return found


@compiled
def _factor_hull(inner: Array, work: _Work, size: int) -> bool:
    """Factor the inner products of y_k − y_0, k = 1 … size − 1; False if they are dependent."""
    support = work.support
    for i in range(1, size):
        for j in range(1, i + 1):
            work.gram[i - 1, j - 1] = _inner_from(inner, support[i], support[j], support[0])
    return cholesky_into(work.gram, size - 1, work.lower, 1e-14)


@compiled
def _affine(work: _Work, size: int) -> None:
    """Turn coefficients of y_k − y_0 in right[: size − 1] into affine coefficients right[:size]."""
    rest = 1.0
    for k in range(size - 1, 0, -1):
        work.right[k] = work.right[k - 1]
        rest -= work.right[k]
    work.right[0] = rest


@compiled
def _settle(inner: Array, work: _Work, size: int) -> int:
    """Move p to the best distribution on the hull of the support; points it would make negative leave.

    On the hull the dual is concave with its maximum where all distances agree; the step towards it is cut
    at the first probability that reaches zero. Returns the size of what is left of the support.
    """
    p = work.p
    right = work.right
    while size > 1:
        if not _factor_hull(inner, work, size):
            # Rounding has made the support dependent: its last point can be let in again later.
            size = _without(work, size, size - 1)
            continue
        for k in range(size - 1):
            right[k] = 0.5 * work.gram[k, k]
        forward(work.lower, size - 1, right)
        backward(work.lower, size - 1, right)
        _affine(work, size)
        step = 1.0
        blocking = -1
        for k in range(size):
            if right[k] <= 0.0:
                share = p[k] / (p[k] - right[k]) if p[k] > 0.0 else 0.0
                if share < step or blocking < 0:
                    step = share
                    blocking = k
        for k in range(size):
            p[k] += step * (right[k] - p[k])
        if blocking < 0:
            return size
        size = _without(work, size, blocking)
    p[0] = 1.0
    return size


@compiled
def _without(work: _Work, size: int, dropped: int) -> int:
    """Drop one point and hand its rounding-sized probability to the others."""
    support = work.support
    p = work.p
    for k in range(dropped, size - 1):
        support[k] = support[k + 1]
        p[k] = p[k + 1]
    total = 0.0
    for k in range(size - 1):
        p[k] = max(p[k], 0.0)
        total += p[k]
    for k in range(size - 1):
        p[k] = p[k] / total if total > 0.0 else 1.0 / (size - 1)
    return size - 1


@compiled
def _farthest(inner: Array, among: Whole, work: _Work, size: int) -> tuple[int, float, float]:
    """Return the point farthest from the centre, the squared radius, and the relative excess over it."""
    support = work.support
    p = work.p
    base = work.support[0]
    # Distances to the centre c: ‖y − y_0‖² − 2(y − y_0)·(c − y_0) + ‖c − y_0‖².
    squared = 0.0
    radius = 0.0
    for k in range(size):
        radius += p[k] * squared_distance(inner, support[k], base)
        for m in range(size):
            squared += p[k] * p[m] * _inner_from(inner, support[k], support[m], base)
    radius -= squared
    found = base
    largest = -np.inf
    for a in among:
        along = 0.0
        for k in range(size):
            along += p[k] * _inner_from(inner, a, support[k], base)
        distance = squared_distance(inner, a, base) - 2.0 * along + squared
        if distance > largest:
            found = a
            largest = distance
    if radius <= 0.0:
        return found, 0.0, (np.inf if largest > 0.0 else 0.0)
    return found, radius, largest / radius - 1.0


@compiled
def _admit(inner: Array, work: _Work, size: int, point: int) -> int:
    """Let a point outside the ball into the support and return its size.

    If the point is an affine combination Σ α_k y_k of the support, moving probability from α to the point
    leaves the centre where it is and raises the dual, until some probability reaches zero: that one leaves.
    """
    support = work.support
    p = work.p
    right = work.right
    if size > 1 and not _factor_hull(inner, work, size):
        size = _without(work, size, size - 1)
    else:
        reached = 0.0
        for k in range(1, size):
            right[k - 1] = _inner_from(inner, support[k], point, support[0])
        forward(work.lower, size - 1, right)
        for k in range(size - 1):
            reached += right[k] ** 2
        apart = squared_distance(inner, point, support[0])
        if apart - reached <= DEPENDENT * apart:
            backward(work.lower, size - 1, right)
            _affine(work, size)
            leaving = -1
            step = np.inf
            for k in range(size):
                if right[k] > 0.0 and p[k] < step * right[k]:
                    leaving = k
                    step = p[k] / right[k]
            for k in range(size):
                p[k] -= step * right[k]
            support[leaving] = point
            p[leaving] = step
            return size
    support[size] = point
    p[size] = 0.0
    return size + 1
