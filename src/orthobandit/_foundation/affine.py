"""The affine hull of a set of points: its dimension, decided without units, and good coordinates on it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import EPS
from orthobandit._foundation.types import Array, Whole

BLOCK_BYTES = 1 << 20
SAMPLE_ROWS = 4096
DELICATE_GROWTH = 1e4  # growth of intermediate terms beyond which coordinates need doubled precision
# A column that varies by less counts as constant: its squares would underflow.
LEAST_SPREAD = 1e-150
# A residual counts as a new direction when it exceeds this many times the arm's own rounding error.
SIGNIFICANT_ROUNDINGS = 8.0
# Pivots have at least this share of the longest residual, so that no point is many times its pivots.
MIN_PIVOT_SHARE = 0.1
FAR_COORDINATE = 100.0  # coordinates beyond which a point should have been a pivot
# Below this relative eigenvalue of the Gram matrix the quick decision "full rank" is not taken.
MIN_CLEAR_EIGENVALUE = 1e-10


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


def affine_frame(points: Array, *, through_zero: bool = False) -> AffineFrame:
    """Find the affine dimension of points (K, d) and coordinates on their hull.

    With `through_zero` the hull is made to contain the zero vector, which becomes the origin: the
    dimension is then the linear rank of the points.

    The decision is free of units: columns are scaled so that all carry the same rounding error, and each
    point is compared with the error that its own digits and the origin's carry. Well-conditioned points
    are recognised from the Gram matrix of a sample or of all; the others by elimination with running
    error bounds.
    """
    width = points.shape[1]
    low, high = _column_range(points)
    sample = _sampled(points)
    is_full = _is_clearly_full(sample, low, high)
    if is_full or (len(sample) < len(points) and _is_clearly_full(points, low, high)):
        first = np.zeros(width) if through_zero else points[0].copy()
        return AffineFrame(first, np.eye(width), np.diag(1.0 / (high - low)), False)
    size = np.maximum(np.abs(low), np.abs(high))
    origin = np.zeros(width) if through_zero else _least_point(points, size)
    spread = np.maximum(high, origin) - np.minimum(low, origin)
    scaling = _Scaling(origin, _column_units(size + np.abs(origin), spread))
    pivots, basis = _spanning_points(points, scaling)
    return _frame_from_pivots(scaling, scaling.scaled(points[pivots]), basis, size)


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
    return np.where(spread > np.maximum(LEAST_SPREAD, SIGNIFICANT_ROUNDINGS * 0.5 * EPS * size), size, 0.0)


def _blocks(points: Array) -> Iterator[tuple[int, Array]]:
    """Yield (first row, rows) block by block."""
    rows = block_rows(points.shape[1])
    for start in range(0, len(points), rows):
        yield start, points[start : start + rows]


def _sampled(points: Array) -> Array:
    """Return at least SAMPLE_ROWS rows spread evenly over the points, or all of them."""
    return points[:: max(1, len(points) // SAMPLE_ROWS)]


def _least_point(points: Array, size: Array) -> Array:
    """Return the point of least magnitude in units of the columns' largest: it costs the fewest digits."""
    unit = np.where(size > 0, size, 1.0)
    largest = np.concatenate([np.max(np.abs(block) / unit, axis=1) for _, block in _blocks(points)])
    return np.array(points[np.argmin(largest)])


@dataclass(frozen=True, eq=False)
class _Scaling:
    """Differences to an origin (w,), in units (w,) of each column; columns of unit 0 count as constant."""

    origin: Array
    unit: Array

    @property
    def inverse(self) -> Array:
        return np.divide(1.0, self.unit, out=np.zeros(len(self.unit)), where=self.unit > 0)

    def scaled(self, points: Array) -> Array:
        return np.asarray((points - self.origin) * self.inverse)

    def noise(self, points: Array) -> Array:
        """Return the size (n,) of the rounding errors that points and origin carry."""
        size = (np.abs(points) + np.abs(self.origin)) * self.inverse
        return np.asarray(0.5 * EPS * np.linalg.norm(size, axis=1))


def _spanning_points(points: Array, scaling: _Scaling) -> tuple[Whole, Array]:
    """Return points (r,) that span all others to rounding, and the orthonormal basis (r, w) they give.

    Found among an evenly spread sample first; a pass over all points adds those that stick out.
    """
    candidates = np.arange(0, len(points), max(1, len(points) // SAMPLE_ROWS))
    while True:
        chosen = points[candidates]
        positions, basis = _eliminate(scaling.scaled(chosen), scaling.noise(chosen))
        pivots = candidates[positions]
        if len(candidates) == len(points):
            return pivots, basis
        sticking_out = _sticking_out(points, scaling, pivots, basis)
        fresh = sticking_out[~np.isin(sticking_out, candidates)]
        if not fresh.size:
            return pivots, basis
        candidates = np.union1d(candidates, fresh[:SAMPLE_ROWS])


def _sticking_out(points: Array, scaling: _Scaling, pivots: Whole, basis: Array) -> Whole:
    """Return the points outside the pivots' span or far beyond the pivots, the worst first."""
    corners = scaling.scaled(points[pivots])
    variance = scaling.noise(points[pivots]) ** 2
    to_mixture = np.linalg.solve(np.tril(corners @ basis.T), np.eye(len(pivots)))
    excess = np.empty(len(points))
    for start, block in _blocks(points):
        scaled = scaling.scaled(block)
        inside = scaled @ basis.T
        mixture = np.square(inside @ to_mixture)
        doubt = np.sqrt(scaling.noise(block) ** 2 + mixture @ variance)
        outside = np.linalg.norm(scaled - inside @ basis, axis=1)
        significance = np.divide(outside, doubt, out=np.zeros(len(block)), where=doubt > 0)
        reach = np.sqrt(mixture.max(axis=1, initial=0.0))
        excess[start : start + len(block)] = np.maximum(
            significance / SIGNIFICANT_ROUNDINGS, reach / FAR_COORDINATE
        )
    found = np.flatnonzero(excess > 1.0)
    return found[np.argsort(-excess[found], kind="stable")]


def _is_clearly_full(points: Array, low: Array, high: Array) -> bool:
    """Tell whether the Gram matrix alone proves that the points span all columns.

    `low` and `high` are the ranges of these points, or of more: then these span in spite of being few.
    """
    count, width = points.shape
    spread = high - low
    needed = np.maximum(1e-3 * np.maximum(np.abs(low), np.abs(high)), LEAST_SPREAD)
    if count <= width or np.any(spread <= needed):
        return False
    inverse_spread = 1.0 / spread
    gram = np.zeros((width, width))
    total = np.zeros(width)
    for _, rows in _blocks(points):
        block = (rows - low) * inverse_spread
        gram += block.T @ block
        total += block.sum(axis=0)
    gram -= np.outer(total, total) / count
    variation = np.diagonal(gram)
    # Subtracting the mean leaves an error of about count·eps in every entry.
    if np.any(variation <= 1e6 * count * EPS):
        return False
    scale = np.sqrt(variation)
    values = np.linalg.eigvalsh(gram / scale / scale[:, np.newaxis])
    return bool(values[0] > max(MIN_CLEAR_EIGENVALUE, 100 * count * EPS / variation.min()))


def _eliminate(residual: Array, noise: Array) -> tuple[list[int], Array]:
    """Pick points one by one, each with a long and most significant part outside the span of those before.

    `noise` (K,) is the rounding error of each point. A point that is Σ c_k·pivot_k up to its residual
    inherits the independent errors of the pivots, so its residual counts as significant against
    √(noise² + Σ c_k² noise_k²). `residual` (K, w) is overwritten.
    """
    count, width = residual.shape
    most = min(count, width)
    basis = np.zeros((most, width))
    mixture = np.zeros((count, most))
    variance = noise**2
    pivots: list[int] = []
    for rank in range(most):
        size = np.linalg.norm(residual, axis=1)
        inherited = np.square(mixture[:, :rank]) @ variance[pivots]
        doubt = np.sqrt(variance + inherited)
        significance = np.divide(size, doubt, out=np.zeros(count), where=doubt > 0)
        significance[pivots] = 0.0
        significance[significance <= SIGNIFICANT_ROUNDINGS] = 0.0
        significance[size < MIN_PIVOT_SHARE * np.max(size, where=significance > 0, initial=0.0)] = 0.0
        pivot = int(np.argmax(significance))
        if not significance[pivot]:
            break
        direction = residual[pivot] / size[pivot]
        direction -= basis[:rank].T @ (basis[:rank] @ direction)
        direction /= np.linalg.norm(direction)
        component = residual @ direction
        residual -= np.outer(component, direction)
        share = component / component[pivot]
        mixture[:, :rank] -= np.outer(share, mixture[pivot, :rank].copy())
        mixture[:, rank] = share
        basis[rank] = direction
        pivots.append(pivot)
    return pivots, basis[: len(pivots)]


def _frame_from_pivots(scaling: _Scaling, chosen: Array, basis: Array, size: Array) -> AffineFrame:
    """Make the chosen points the unit vectors of the coordinates: chosen @ basisᵀ @ solve = I."""
    rank, width = basis.shape
    if not rank:
        return AffineFrame(scaling.origin, basis, np.zeros((width, 0)), False)
    triangle = np.tril(chosen @ basis.T)
    inverse = np.linalg.solve(triangle, np.eye(rank))
    transform = scaling.inverse[:, np.newaxis] * (basis.T @ inverse)
    directions = np.eye(width)
    if rank < width:
        # Orthonormal in the original units: long directions first, so that short ones keep their digits.
        raw = basis * scaling.unit
        order = np.argsort(-np.linalg.norm(raw, axis=1), kind="stable")
        directions = np.linalg.qr((raw[order] / np.linalg.norm(raw[order], axis=1, keepdims=True)).T)[0].T
    # Coordinates are of order one; plain arithmetic loses as many digits as the terms are larger.
    growth = float(np.max((size + np.abs(scaling.origin)) @ np.abs(transform)))
    return AffineFrame(scaling.origin, directions, transform, is_delicate=growth > DELICATE_GROWTH)


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
