"""The affine hull of a set of points: its dimension, decided without units, and good coordinates on it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orthobandit._compile import compiled
from orthobandit._linalg import EPS

Array = NDArray[np.float64]

BLOCK_BYTES = 1 << 20
# A column that varies by less counts as constant: its squares would underflow.
SMALLEST = 1e-150
# What is left of a point counts as a new direction when it exceeds this many times its rounding error.
SIGNIFICANT = 8.0
# Below this relative eigenvalue of the Gram matrix the quick decision "full rank" is not taken.
CLEARLY_POSITIVE = 1e-10


@dataclass(frozen=True, eq=False)
class AffineFrame:
    """Coordinates on an affine hull: point x has coordinates (x − origin) @ transform.

    Attributes
    ----------
    origin : (d,) array
        One of the points.
    directions : (r, d) array
        Orthonormal rows that span the differences of the points.
    transform : (d, r) array
        Maps differences to coordinates of moderate size, one to one on the hull.
    is_delicate : bool
        True when the transform must be applied in doubled precision to keep its digits.
    """

    origin: Array
    directions: Array
    transform: Array
    is_delicate: bool

    def __post_init__(self) -> None:
        for array in (self.origin, self.directions, self.transform):
            array.flags.writeable = False

    @property
    def dimension(self) -> int:
        """The affine dimension r."""
        return int(self.directions.shape[0])

    def coordinates(self, points: Array) -> Array:
        """Return the coordinates (n, r) of points (n, d)."""
        if self.is_delicate:
            out = np.empty((len(points), self.dimension))
            _doubled_product(points, self.origin, self.transform, out)
            return out
        return np.asarray((points - self.origin) @ self.transform)


def block_rows(width: int) -> int:
    """How many rows of `width` numbers make a block that stays in cache."""
    return max(64, BLOCK_BYTES // (8 * max(width, 1)))


def affine_frame(points: Array) -> AffineFrame:
    """Find the affine dimension of points (K, d) and coordinates on their hull.

    The decision is free of units: columns are scaled so that all carry the same rounding error, and each
    point is compared with the error that its own digits and the origin's carry. Well-conditioned points
    are recognised from their Gram matrix in one pass; all others by elimination with running error bounds.
    """
    low, high = _column_range(points)
    if _is_clearly_full(points, low, high):
        return AffineFrame(points[0].copy(), np.eye(len(low)), np.diag(1.0 / (high - low)), False)
    size = np.maximum(np.abs(low), np.abs(high))
    origin = _least_point(points, size)
    unit = _column_units(size + np.abs(origin), high - low)
    inverse_unit = np.divide(1.0, unit, out=np.zeros(len(unit)), where=unit > 0)
    scaled = (points - origin) * inverse_unit
    noise = 0.5 * EPS * np.linalg.norm((np.abs(points) + np.abs(origin)) * inverse_unit, axis=1)
    pivots, basis = _eliminate(scaled.copy(), noise)
    return _frame_from_pivots(origin, unit, scaled[pivots], basis)


@compiled
def _column_range(points: Array) -> tuple[Array, Array]:
    low, high = points[0].copy(), points[0].copy()
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            value = points[i, j]
            low[j] = min(low[j], value)
            high[j] = max(high[j], value)
    return low, high


def _column_units(size: Array, spread: Array) -> Array:
    """Return `size`, to which rounding errors are proportional, and 0 for columns that count as constant.

    A column that varies by no more than its rounding error must not be scaled up: it would drown the
    others in its noise.
    """
    return np.where(spread > np.maximum(SMALLEST, SIGNIFICANT * 0.5 * EPS * size), size, 0.0)


def _least_point(points: Array, size: Array) -> Array:
    """Return the point of least magnitude in units of the columns' largest: it costs the fewest digits."""
    unit = np.where(size > 0, size, 1.0)
    return np.array(points[np.argmin(np.max(np.abs(points) / unit, axis=1))])


def _is_clearly_full(points: Array, low: Array, high: Array) -> bool:
    """Tell whether the Gram matrix alone proves that the points span all columns."""
    count, width = points.shape
    spread = high - low
    needed = np.maximum(1e-3 * np.maximum(np.abs(low), np.abs(high)), SMALLEST)
    if count <= width or np.any(spread <= needed):
        return False
    inverse_spread = 1.0 / spread
    gram, total = np.zeros((width, width)), np.zeros(width)
    rows = block_rows(width)
    for start in range(0, count, rows):
        block = (points[start : start + rows] - low) * inverse_spread
        gram += block.T @ block
        total += block.sum(axis=0)
    gram -= np.outer(total, total) / count
    variation = np.diagonal(gram)
    # Subtracting the mean leaves an error of about count·eps in every entry.
    if np.any(variation <= 1e6 * count * EPS):
        return False
    scale = np.sqrt(variation)
    values = np.linalg.eigvalsh(gram / scale / scale[:, np.newaxis])
    return bool(values[0] > max(CLEARLY_POSITIVE, 100 * count * EPS / variation.min()))


def _eliminate(residual: Array, noise: Array) -> tuple[list[int], Array]:
    """Pick points one by one, each with the most significant part outside the span of those before.

    What is left of a point is the point minus shares of the pivots. With `noise` (K,) the independent
    rounding errors of the points, what is left has the root of the sum of squares of its own error and
    its shares of the pivots'. Adding up absolute bounds instead would call weak directions noise.
    """
    count, width = residual.shape
    shares = np.zeros((count, min(count - 1, width)))
    basis = np.zeros((shares.shape[1], width))
    size, error = np.linalg.norm(residual, axis=1), noise.copy()
    pivots: list[int] = []
    for step in range(len(basis)):
        significance = np.divide(size, error, out=np.zeros(count), where=error > 0)
        significance[pivots] = 0.0
        pivot = int(np.argmax(significance))
        if significance[pivot] <= SIGNIFICANT:
            break
        direction = residual[pivot] / size[pivot]
        direction -= basis[:step].T @ (basis[:step] @ direction)
        direction /= np.linalg.norm(direction)
        pivots.append(pivot)
        basis[step] = direction
        _remove(residual, shares, pivot, direction, step)
        size, error = _sizes_and_errors(residual, shares, noise, noise[pivots])
    return pivots, basis[: len(pivots)]


@compiled
def _remove(residual: Array, shares: Array, pivot: int, direction: Array, step: int) -> None:
    """Take a direction out of every point; `shares` (K, ·) books it as shares of the pivots so far."""
    length = np.dot(residual[pivot], direction)
    passed_on = shares[pivot, :step].copy()
    for i in range(residual.shape[0]):
        component = np.dot(residual[i], direction)
        for j in range(direction.size):
            residual[i, j] -= component * direction[j]
        share = component / length
        for k in range(step):
            shares[i, k] -= share * passed_on[k]
        shares[i, step] = share


@compiled
def _sizes_and_errors(
    residual: Array, shares: Array, noise: Array, pivot_noise: Array
) -> tuple[Array, Array]:
    size, error = np.empty(noise.size), np.empty(noise.size)
    for i in range(noise.size):
        size[i] = np.sqrt(np.dot(residual[i], residual[i]))
        inherited = 0.0
        for k in range(pivot_noise.size):
            inherited += (shares[i, k] * pivot_noise[k]) ** 2
        error[i] = np.hypot(noise[i], np.sqrt(inherited))
    return size, error


def _frame_from_pivots(origin: Array, unit: Array, chosen: Array, basis: Array) -> AffineFrame:
    """Make the chosen points the unit vectors of the coordinates: chosen @ basisᵀ @ solve = I."""
    rank, width = basis.shape
    if not rank:
        return AffineFrame(origin, basis, np.zeros((width, 0)), False)
    triangle = np.tril(chosen @ basis.T)
    inverse = np.linalg.solve(triangle, np.eye(rank))
    scale = np.where(unit > 0, unit, 1.0)[:, np.newaxis]
    transform = basis.T @ inverse / scale
    directions = np.eye(width)
    if rank < width:
        # Orthonormal in the original units: long directions first, so that short ones keep their digits.
        raw = basis * unit
        order = np.argsort(-np.linalg.norm(raw, axis=1), kind="stable")
        directions = np.linalg.qr((raw[order] / np.linalg.norm(raw[order], axis=1, keepdims=True)).T)[0].T
    return AffineFrame(origin, directions, transform, True)


@compiled
def _doubled_product(points: Array, origin: Array, transform: Array, out: Array) -> None:
    """Write (points − origin) @ transform to `out`, accumulated in doubled precision (Dot2).

    Error-free sums after Knuth, error-free products after Dekker; Ogita, Rump & Oishi (2005), Alg. 5.3.
    """
    splitter = 134217729.0
    for i in range(points.shape[0]):
        for k in range(transform.shape[1]):
            high, low = 0.0, 0.0
            for j in range(points.shape[1]):
                a, b = points[i, j], -origin[j]
                difference = a + b
                part = difference - a
                rest = (a - (difference - part)) + (b - part)
                factor = transform[j, k]
                product = difference * factor
                t = splitter * difference
                x1 = t - (t - difference)
                x0 = difference - x1
                t = splitter * factor
                y1 = t - (t - factor)
                y0 = factor - y1
                error = ((x1 * y1 - product) + x1 * y0 + x0 * y1) + x0 * y0
                total = high + product
                part = total - high
                low += (high - (total - part)) + (product - part) + error + rest * factor
                high = total
            out[i, k] = high + low
