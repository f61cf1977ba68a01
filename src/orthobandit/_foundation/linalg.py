"""Factorisations, quadratic forms and distances: the only place of the package that inverts a matrix.

The functions at the end are for small systems inside compiled loops, one replication at a time.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import InputError

EPS = float(np.finfo(np.float64).eps)
BLOCK_POINTS = 512  # points whose distances are tabulated at a time
# Of a covariance with unit diagonal: pivots above the first span, those below the second are rounding. So are
# parts of a row outside the range below the third, relative to the row; above the fourth they are not.
SPANNING_PIVOT = 1e-6
ROUNDING_PIVOT = 1e-13
ROUNDING_PART = 1e-10
OUTSIDE_PART = 1e-6


@dataclass(frozen=True, eq=False)
class RangeFactor:
    """A positive semidefinite matrix factored on its range.

    The matrix is scaled to a unit diagonal first, A = S C S, so that the rank decision does not depend
    on the units of its rows; C = Q diag(λ) Qᵀ then gives the range (λ above rounding) and the null space.

    Attributes
    ----------
    scale : (..., n) array
        The diagonal of S; 1 where A has a zero row.
    vectors : (..., n, n) array
        Q, eigenvectors in columns.
    values : (..., n) array
        λ, ascending.
    inside : (..., n) array of bool
        Which eigenvectors span the range.

    Examples
    --------
    >>> factor = RangeFactor.of(np.diag([4.0, 0.0]))
    >>> float(factor.norm_squared(np.array([2.0, 0.0])))
    1.0
    >>> float(factor.norm_squared(np.array([2.0, 1.0])))
    inf
    """

    scale: Array
    vectors: Array
    values: Array
    inside: Mask

    @classmethod
    def of(cls, matrix: Array) -> "RangeFactor":
        """Factor one matrix (n, n) or a batch of them (..., n, n)."""
        matrix = np.asarray(matrix, dtype=np.float64)
        if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2]:
            raise InputError(f"matrix has shape {matrix.shape}; a square matrix (..., n, n) is needed")
        n = matrix.shape[-1]
        diagonal = np.diagonal(matrix, axis1=-2, axis2=-1)
        if not np.all(np.isfinite(matrix)):
            raise InputError("matrix has a non-finite entry")
        if np.any(diagonal < 0):
            raise InputError("matrix has a negative diagonal entry, so it is not positive semidefinite")
        scale = np.where(diagonal > 0, np.sqrt(diagonal), 1.0)
        unit = matrix / scale[..., :, np.newaxis] / scale[..., np.newaxis, :]
        values, vectors = np.linalg.eigh((unit + np.swapaxes(unit, -1, -2)) / 2)
        top = values[..., -1:] if n else np.zeros((*matrix.shape[:-2], 1))
        if np.any(values < -1e3 * n * EPS * np.maximum(top, 1.0)):
            raise InputError("matrix has a negative eigenvalue, so it is not positive semidefinite")
        return cls(scale, vectors, values, values > 4 * n * EPS * top)

    @cached_property
    def rank(self) -> Whole:
        """Dimension of the range, shape (...)."""
        return np.asarray(np.count_nonzero(self.inside, axis=-1))

    def whiten(self, z: Array) -> Array:
        """Return w (..., n) with ‖w‖² = zᵀA⁻¹z for z (..., n) in the range; +inf entries outside it."""
        rotated = self._rotated(z)
        return np.where(self._outside(rotated)[..., np.newaxis], np.inf, self._scaled(rotated))

    def whiten_inside(self, z: Array) -> Array:
        """Return the same for z that are known to lie in the range: what sticks out of it is rounding."""
        return self._scaled(self._rotated(z))

    def whiten_rows(self, rows: Array) -> Array:
        """Return :meth:`whiten` of rows (..., K, n), a matrix for each of the factor's."""
        scale = self.scale[..., np.newaxis, :]
        values = self.values[..., np.newaxis, :]
        each = RangeFactor(scale, self.vectors, values, self.inside[..., np.newaxis, :])
        rotated = (rows / each.scale) @ self.vectors
        return np.where(each._outside(rotated)[..., np.newaxis], np.inf, each._scaled(rotated))

    def _rotated(self, z: Array) -> Array:
        return np.asarray(np.einsum("...ij,...i->...j", self.vectors, z / self.scale))

    def _scaled(self, rotated: Array) -> Array:
        safe = np.where(self.inside, self.values, 1.0)
        return np.where(self.inside, rotated / np.sqrt(safe), 0.0)

    def norm_squared(self, z: Array) -> Array:
        """Return zᵀA⁻¹z as the limit of ridge → 0: finite exactly where z lies in the range.

        Parameters
        ----------
        z : (..., n) array
            Leading axes broadcast against the factor's.

        Returns
        -------
        (...) array
            +inf for vectors with a component outside the range.
        """
        white = self.whiten(np.asarray(z, dtype=np.float64))
        return np.asarray(np.einsum("...j,...j->...", white, white))

    def _outside(self, rotated: Array) -> Mask:
        null = np.linalg.norm(np.where(self.inside, 0.0, rotated), axis=-1)
        size = np.linalg.norm(rotated, axis=-1)
        # The computed null space tilts by about n·eps/λ_min; the floor forgives rounding in z itself.
        smallest = np.min(np.where(self.inside, self.values, np.inf), axis=-1, initial=np.inf)
        tilt = 8 * self.values.shape[-1] * EPS / np.minimum(smallest, 1.0)
        return np.asarray(null > np.maximum(1e-10, tilt) * size)


def whitened(points: Array, weights: Array, drawn: Whole | None = None) -> tuple[Array, RangeFactor]:
    """Return points (..., K, r) around their mean in units of their covariance, and the factor of that.

    With μ = Σ w_i x_i and Σ = Σ w_i (x_i−μ)(x_i−μ)ᵀ, Euclidean distances between the rows are distances in
    Σ⁻¹; rows outside the range of Σ are +inf.

    Parameters
    ----------
    points : (K, r) array
    weights : (..., K) array
        Distributions over the points.
    drawn : (m,) array of int, optional
        Where the weights (..., m) are, if not on all points.
    """
    seen = slice(None) if drawn is None else drawn
    # Around a point that is drawn first: what all drawn points share is then 0, and not rounding.
    points = points - points[seen][np.argmax(weights, axis=-1)][..., np.newaxis, :]
    centred = points - weights[..., np.newaxis, :] @ points[..., seen, :]
    inside = centred[..., seen, :]
    factor = RangeFactor.of(np.swapaxes(inside * weights[..., np.newaxis], -1, -2) @ inside)
    return factor.whiten_rows(centred), factor


def whiten_runs(points: Array, weights: Array) -> tuple[Array, Mask]:
    """Return :func:`whitened` points (..., K, r) and which of them (..., K) are out of range, those as 0.

    Up to a rotation, which changes no distance and no inner product: compiled, by Cholesky factors, and by
    eigenvectors only where the rank is not clear-cut.

    Parameters
    ----------
    points : (K, r) array
    weights : (..., K) array
        Distributions over the points.
    """
    flat = np.ascontiguousarray(weights).reshape(-1, len(points))
    white, outside, is_clear = _whiten_runs(np.ascontiguousarray(points), flat)
    if not is_clear.all():
        exact, _ = whitened(points, flat[~is_clear])
        beyond = np.asarray(np.isinf(exact).any(axis=-1))
        white[~is_clear] = np.where(beyond[..., np.newaxis], 0.0, exact)
        outside[~is_clear] = beyond
    return white.reshape(*weights.shape, points.shape[1]), outside.reshape(weights.shape)


def diameter(points: Array) -> float:
    """Return max_{i,j} ‖z_i − z_j‖ for points (K, r).

    Points are sorted by distance from their mean; two blocks are compared only if the farthest members
    of both could beat the best pair so far (triangle inequality), so clouds cost much less than K².
    """
    if len(points) < 2 or not points.shape[1]:
        return 0.0
    centred = points - points.mean(axis=0)
    squares = np.einsum("ij,ij->i", centred, centred)
    order = np.argsort(-squares, kind="stable")
    centred = centred[order]
    squares = squares[order]
    sizes = np.sqrt(squares)
    best = 0.0
    for i in range(0, len(centred), BLOCK_POINTS):
        if 2 * sizes[i] <= best:
            break
        for j in range(i, len(centred), BLOCK_POINTS):
            if sizes[i] + sizes[j] <= best:
                break
            distances = squares[i : i + BLOCK_POINTS, np.newaxis] + squares[j : j + BLOCK_POINTS]
            distances -= 2.0 * (centred[i : i + BLOCK_POINTS] @ centred[j : j + BLOCK_POINTS].T)
            best = max(best, float(np.sqrt(distances.max(initial=0.0))))
    return best


def solve_ridge(gram: Array, moment: Array, ridge: Array | float) -> Array:
    """Return (gram + ridge·I)⁻¹ moment.

    Rows are scaled to a unit diagonal before the factorisation, which makes the solution as accurate as
    the best diagonal scaling allows (van der Sluis 1969).

    Parameters
    ----------
    gram : (..., n, n) array
        Positive semidefinite.
    moment : (..., n) array
        Right-hand sides.
    ridge : (...) array or float
        Non-negative; with 0 the matrix must be positive definite.
    """
    n = gram.shape[-1]
    shifted = gram + np.asarray(ridge, dtype=np.float64)[..., np.newaxis, np.newaxis] * np.eye(n)
    diagonal = np.diagonal(shifted, axis1=-2, axis2=-1)
    if np.any(diagonal <= 0):
        raise InputError("gram has a direction without data and ridge is 0; use a positive ridge")
    scale = np.sqrt(diagonal)
    unit = shifted / scale[..., :, np.newaxis] / scale[..., np.newaxis, :]
    try:
        np.linalg.cholesky(unit)
    except np.linalg.LinAlgError:
        raise InputError("gram + ridge·I is not positive definite; use a larger ridge") from None
    return np.asarray(np.linalg.solve(unit, (moment / scale)[..., np.newaxis])[..., 0] / scale)


def ridge_norms(gram: Array, rows: Array, ridge: Array | float) -> Array:
    """Return √(zᵀ(gram + ridge·I)⁻¹z) (..., m) of rows z (..., m, n).

    Parameters
    ----------
    gram : (..., n, n) array
        Positive semidefinite.
    rows : (..., m, n) array
    ridge : (...) array or float
        Such that the sum is positive definite.
    """
    n = gram.shape[-1]
    shifted = gram + np.asarray(ridge, dtype=np.float64)[..., np.newaxis, np.newaxis] * np.eye(n)
    scale = np.sqrt(np.diagonal(shifted, axis1=-2, axis2=-1))
    lower = np.linalg.cholesky(shifted / scale[..., :, np.newaxis] / scale[..., np.newaxis, :])
    white = np.linalg.solve(lower, np.swapaxes(rows / scale[..., np.newaxis, :], -1, -2))
    return np.asarray(np.sqrt(np.einsum("...ji,...ji->...i", white, white)))


def inverse_root(gram: Array) -> Array:
    """Return T (n, n) with Tᵀ gram T = I, for a positive definite (n, n) gram.

    Rows z of data with Gram matrix `gram` are whitened by z @ T. Raises numpy's LinAlgError when the
    matrix is singular to working precision, in whatever units its rows are.
    """
    if not len(gram):
        return np.zeros((0, 0))  # LAPACK complains about empty matrices on the terminal
    diagonal = np.diagonal(gram)
    if np.any(diagonal <= 0):
        raise np.linalg.LinAlgError("zero row")
    scale = np.sqrt(diagonal)
    upper, failed = scipy.linalg.lapack.dpotrf(gram / scale[:, np.newaxis] / scale)
    if failed or np.min(np.diagonal(upper), initial=1.0) ** 2 <= 16 * len(gram) * EPS:
        raise np.linalg.LinAlgError("singular to working precision")
    inverse, _ = scipy.linalg.lapack.dtrtri(upper)
    return np.asarray(inverse / scale[:, np.newaxis])


def solve_nearly_singular(matrix: Array, right: Array) -> Array:
    """Return a solution of matrix·x = right for a positive semidefinite matrix (n, n) that may be singular.

    After scaling to a unit diagonal, the least ridge (from rounding size upwards) that admits a Cholesky
    factorisation is added. Meant for Newton directions, whose use is checked by what follows.
    """
    scale = np.sqrt(np.diagonal(matrix))
    unit = matrix / scale[:, np.newaxis] / scale
    ridge = len(matrix) * EPS
    while True:
        unit[np.diag_indices(len(unit))] = 1.0 + ridge
        try:
            lower = np.linalg.cholesky(unit)
        except np.linalg.LinAlgError:
            ridge *= 10.0
            continue
        return np.asarray(scipy.linalg.cho_solve((lower, True), right / scale, check_finite=False) / scale)


@compiled
def cholesky_into(matrix: Array, size: int, lower: Array, floor: float) -> bool:
    """Write L with LLᵀ = matrix[:size, :size] to the lower triangle of `lower`.

    Returns False as soon as a pivot is not above `floor` times its diagonal entry: the matrix is then
    singular to that precision and `lower` is not to be used.
    """
    for i in range(size):
        for j in range(i + 1):
            total = matrix[i, j]
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            if i > j:
                lower[i, j] = total / lower[j, j]
            elif total > floor * matrix[i, i]:
                lower[i, i] = np.sqrt(total)
            else:
                return False
    return True


@compiled
def forward(lower: Array, size: int, right: Array) -> None:
    """Overwrite right[:size] with L⁻¹ right."""
    for i in range(size):
        total = right[i]
        for k in range(i):
            total -= lower[i, k] * right[k]
        right[i] = total / lower[i, i]


@compiled
def backward(lower: Array, size: int, right: Array) -> None:
    """Overwrite right[:size] with L⁻ᵀ right."""
    for i in range(size - 1, -1, -1):
        total = right[i]
        for k in range(i + 1, size):
            total -= lower[k, i] * right[k]
        right[i] = total / lower[i, i]


@compiled
def whiten_into(lower: Array, rows: Array, out: Array) -> None:
    """Write L⁻¹ x of every row x of `rows` (K, n) to the columns of `out` (n, K)."""
    count, size = rows.shape
    for i in range(size):
        for a in range(count):
            out[i, a] = rows[a, i]
        # Along the arms, so that each step is one vector operation over all of them.
        for k in range(i):
            share = lower[i, k]
            for a in range(count):
                out[i, a] -= share * out[k, a]
        scale = 1.0 / lower[i, i]
        for a in range(count):
            out[i, a] *= scale


@compiled
def _whiten_runs(points: Array, weights: Array) -> tuple[Array, Mask, Mask]:
    """Return whitened points (n, K, r), masks of those out of range (n, K) and of runs that are certain (n,).

    The covariance is scaled to a unit diagonal and factored with pivots: PᵀCP = LLᵀ, L being (r, rank). A row
    z of the range is Lw, so that ‖w‖² = zᵀC⁺z.
    """
    runs, count = weights.shape
    r = points.shape[1]
    white = np.zeros((runs, count, r))
    outside = np.zeros((runs, count), dtype=np.bool_)
    is_clear = np.ones(runs, dtype=np.bool_)
    centred = np.empty((count, r))
    lower = np.empty((r, r))
    order = np.empty(r, dtype=np.int64)
    for n in range(runs):
        p = weights[n]
        # Around a point that is drawn first: what all drawn points share is then 0, and not rounding.
        origin = points[np.argmax(p)]
        for k in range(r):
            mean = 0.0
            for a in range(count):
                centred[a, k] = points[a, k] - origin[k]
                mean += p[a] * centred[a, k]
            for a in range(count):
                centred[a, k] -= mean
        drawn = centred[p > 0.0]
        matrix = np.dot((drawn * p[p > 0.0].reshape(len(drawn), 1)).T, drawn)
        scale = np.sqrt(np.diag(matrix))
        for k in range(r):
            order[k] = k
            if not scale[k] > 0.0:
                scale[k] = 1.0
        matrix = matrix / scale / scale.reshape(r, 1)
        rank = _pivoted_cholesky(matrix, lower, order)
        if rank < 0:
            is_clear[n] = False
            continue
        for a in range(count):
            w = white[n, a]
            size = 0.0
            beyond = 0.0
            for i in range(r):
                z = centred[a, order[i]] / scale[order[i]]
                size += z * z
                for k in range(min(i, rank)):
                    z -= lower[i, k] * w[k]
                if i < rank:
                    w[i] = z / lower[i, i]
                else:
                    beyond += z * z
            if beyond > ROUNDING_PART**2 * size:
                outside[n, a] = True
                w[:] = 0.0
                if beyond < OUTSIDE_PART**2 * size:
                    is_clear[n] = False
    return white, outside, is_clear


@compiled
def _pivoted_cholesky(matrix: Array, lower: Array, order: Whole) -> int:
    """Factor a matrix (r, r) of unit diagonal, overwriting it; return its rank, −1 where it is not clear.

    Writes L to the first columns of `lower`, rows in the order of the pivots, and that order to `order`.
    """
    r = len(matrix)
    for k in range(r):
        best = k
        for i in range(k + 1, r):
            if matrix[i, i] > matrix[best, best]:
                best = i
        pivot = matrix[best, best]
        if not pivot > SPANNING_PIVOT:
            return k if pivot < ROUNDING_PIVOT else -1
        if best != k:
            order[k], order[best] = order[best], order[k]
            for j in range(k):
                lower[k, j], lower[best, j] = lower[best, j], lower[k, j]
            for j in range(r):
                matrix[k, j], matrix[best, j] = matrix[best, j], matrix[k, j]
            for j in range(r):
                matrix[j, k], matrix[j, best] = matrix[j, best], matrix[j, k]
        root = np.sqrt(pivot)
        lower[k, k] = root
        for i in range(k + 1, r):
            lower[i, k] = matrix[i, k] / root
        for i in range(k + 1, r):
            for j in range(k + 1, r):
                matrix[i, j] -= lower[i, k] * lower[j, k]
    return r
