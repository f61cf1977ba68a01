"""Contrasts: what a user may ask for, and sets to price: a listed few, or all pairs without listing them."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from orthobandit._foundation.affine import AffineFrame, affine_frame
from orthobandit._foundation.checks import check_pairs
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError

BLOCK = 512


class Contrasts(Protocol):
    """Weighted differences whose largest squared norm a design should make small."""

    def worst(self, transform: Array, most: int) -> tuple[float, Array]:
        """Price every contrast y ↦ ‖y @ transform‖², weights included.

        Returns the largest value and up to `most` contrasts (q, r) of the largest values, each scaled
        by the root of its weight, in the coordinates before the transform.
        """
        ...

    def spanning(self, transform: Array) -> Array:
        """Return a few contrasts, as in :meth:`worst`, that span all of them."""
        ...


@dataclass(frozen=True, eq=False)
class Listed:
    """Contrasts given one by one, already scaled by the roots of their weights: (m, r)."""

    rows: Array

    def worst(self, transform: Array, most: int) -> tuple[float, Array]:
        """See :class:`Contrasts`."""
        seen = self.rows @ transform
        values = np.einsum("ij,ij->i", seen, seen)
        return float(values.max()), distinct(self.rows[largest(values, most)])

    def spanning(self, transform: Array) -> Array:
        """See :class:`Contrasts`."""
        return self.rows[_independent(self.rows @ transform)]


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Every difference between two of the rows (K, r), with weight 1."""

    rows: Array

    def worst(self, transform: Array, most: int) -> tuple[float, Array]:
        """See :class:`Contrasts`; one pass over the pairs, the farthest partner of each row."""
        seen = self.rows @ transform
        values, partners = farthest_partners(seen)
        # Of the rows with the same partner only the farthest counts: in clusters the others say the same.
        order = np.argsort(-values, kind="stable")
        first = order[np.unique(partners[order], return_index=True)[1]]
        chosen = first[largest(values[first], most)]
        return float(values.max()), distinct(self.rows[chosen] - self.rows[partners[chosen]])

    def spanning(self, transform: Array) -> Array:
        """See :class:`Contrasts`."""
        differences = self.rows - self.rows[0]
        return np.asarray(differences[_independent(differences @ transform)])


def _independent(vectors: Array) -> Whole:
    """Return the positions of linearly independent rows of vectors (m, r) that span them all."""
    triangle, order = scipy.linalg.qr(vectors.T, mode="r", pivoting=True)
    sizes = np.abs(np.diagonal(triangle))
    return np.asarray(order[: np.count_nonzero(sizes > 1e-9 * sizes[0])], dtype=np.int64)


def distinct(rows: Array) -> Array:
    """Return rows (q', r) without repetitions; y and −y count as the same contrast."""
    leading = np.argmax(rows != 0, axis=1)
    signs = np.sign(rows[np.arange(len(rows)), leading])
    return np.unique(rows * signs[:, np.newaxis], axis=0)


def largest(values: Array, most: int) -> Whole:
    """Return the positions of the `most` largest positive values, in a fixed order."""
    positive = np.flatnonzero(values > 0)
    if len(positive) > most:
        positive = positive[np.argpartition(-values[positive], most - 1)[:most]]
    return np.sort(positive)


def farthest_partners(points: Array) -> tuple[Array, Whole]:
    """Return for each of K points the squared distance (K,) to its farthest partner, and which (K,).

    Ties go to the next point in cyclic order, so that symmetric sets give every point its own partner
    rather than all points the same one.
    """
    count = len(points)
    squares = np.einsum("ij,ij->i", points, points)
    values = np.full(count, -np.inf)
    partners = np.zeros(count, dtype=np.int64)
    # A partner j of point i is (j − i) mod K steps ahead: a handicap far below any tolerance decides ties.
    step = 1e-10 * squares.max() / count
    handicap = step * np.tile(np.arange(count), 2)
    turned = 2.0 * handicap - step * count  # what is missing when i is looked at as the partner of j
    for i in range(0, count, BLOCK):
        rows = slice(i, min(i + BLOCK, count))
        for j in range(i, count, BLOCK):
            columns = slice(j, min(j + BLOCK, count))
            table = points[rows] @ (-2.0 * points[columns].T)
            table += squares[rows, np.newaxis]
            table += squares[columns]
            table -= _shifted(handicap, count + j - i, table.shape)
            _keep(values[rows], partners[rows], table.argmax(axis=1), table, j, axis=1)
            if j > i:
                table += _shifted(turned, count + j - i, table.shape)
                _keep(values[columns], partners[columns], table.argmax(axis=0), table, i, axis=0)
    difference = points - points[partners]
    return np.einsum("ij,ij->i", difference, difference), partners


def _shifted(line: Array, first: int, shape: tuple[int, ...]) -> Array:
    """Return a view T with T[a, b] = line[first + b − a]."""
    step = line.strides[0]
    return np.lib.stride_tricks.as_strided(line[first:], shape, (-step, step), writeable=False)


def _keep(
    values: Array,
    partners: Whole,
    best: Whole,
    table: Array,
    offset: int,
    *,
    axis: int,
) -> None:
    found = np.take_along_axis(table, np.expand_dims(best, axis), axis).squeeze(axis)
    better = found > values
    values[better] = found[better]
    partners[better] = best[better] + offset


def support_mask(arms: ArmSet, support: ArrayLike | None) -> Mask:
    """Return which arms (K,) may be played."""
    count = len(arms)
    if support is None:
        return np.ones(count, dtype=np.bool_)
    given = np.asarray(support)
    if given.dtype == np.bool_ and given.shape == (count,):
        mask = given.copy()
    elif given.dtype.kind in "iu" and given.ndim == 1 and np.all((given >= 0) & (given < count)):
        mask = np.zeros(count, dtype=np.bool_)
        mask[given] = True
    else:
        raise ParameterError(f"support must be a mask of {count} booleans or arm numbers 0 to {count - 1}")
    if not mask.any():
        raise ParameterError("support is empty; at least one arm must be played")
    return mask


@dataclass(frozen=True, eq=False)
class Request:
    """What is to be estimated: pairs of arms (m, 2), vectors (m, d), all differences to an arm, or all pairs.

    `weights` (m,) are of the squared norms; with a reference m = K.
    """

    pairs: ArrayLike | None = None
    vectors: ArrayLike | None = None
    reference: int | None = None
    weights: ArrayLike | None = None

    @property
    def is_open(self) -> bool:
        """Whether nothing in particular was asked for: all pairs."""
        return self.pairs is None and self.vectors is None and self.reference is None


def contrast_set(arms: ArmSet, request: Request, allowed: Mask) -> tuple[Array, Contrasts] | None:
    """Return all arms (K, r) and the contrasts in the same coordinates, or None if all contrasts are zero."""
    features = arms.features
    asked = (request.pairs, request.vectors, request.reference)
    if sum(one is not None for one in asked) > 1:
        raise ParameterError("give one of pairs, vectors and reference, not several")
    everywhere = bool(allowed.all())
    frame = arms.frame if everywhere else affine_frame(features[allowed])
    if request.pairs is None and request.vectors is None and not everywhere:
        _require_range(frame, features[allowed], features - features[allowed][0], "arm")
    rows = frame.coordinates(features)
    if request.is_open:
        if request.weights is not None:
            raise ParameterError("weights need pairs, vectors or a reference to belong to")
        return (rows, AllPairs(rows)) if frame.dimension else None
    if request.reference is not None:
        listed = rows - rows[request.reference]
    elif request.pairs is not None:
        listed = _of_pairs(frame, features, rows, check_pairs(request.pairs, len(arms)), allowed)
    else:
        listed = _of_vectors(frame, features, np.asarray(request.vectors), allowed)
    scaled = listed * np.sqrt(_checked_weights(request.weights, len(listed)))[:, np.newaxis]
    scaled = scaled[np.any(scaled != 0, axis=1)]
    return (rows, Listed(scaled)) if len(scaled) else None


def _of_pairs(frame: AffineFrame, features: Array, rows: Array, pairs: Whole, allowed: Mask) -> Array:
    first, second = pairs[:, 0], pairs[:, 1]
    if not allowed.all():
        _require_range(frame, features[allowed], features[first] - features[second], "contrast")
    return np.asarray(rows[first] - rows[second])


def _of_vectors(frame: AffineFrame, features: Array, given: NDArray[np.generic], allowed: Mask) -> Array:
    width = features.shape[1]
    if given.dtype.kind not in "iuf" or given.ndim != 2 or not len(given) or given.shape[1] != width:
        raise ParameterError(
            f"vectors have shape {given.shape} and type {given.dtype}; differences of features (m, {width}),"
            " one or more, are needed"
        )
    vectors = given.astype(np.float64)
    if not np.all(np.isfinite(vectors)):
        raise ParameterError("vectors have a non-finite entry")
    _require_range(frame, features[allowed], vectors, "contrast")
    return replace(frame, origin=np.zeros(width)).coordinates(vectors)


def _require_range(frame: AffineFrame, played: Array, differences: Array, what: str) -> None:
    """Refuse differences that the played arms cannot estimate."""
    spread = played - played[0]
    together = affine_frame(np.concatenate([spread, differences]), through_zero=True)
    if together.dimension == frame.dimension:
        return
    for row, difference in enumerate(differences):
        if affine_frame(np.vstack([spread, difference]), through_zero=True).dimension > frame.dimension:
            raise ParameterError(
                f"{what} {row} lies outside what the playable arms span, so no design estimates it;"
                " allow more arms or leave it out"
            )


def _checked_weights(weights: ArrayLike | None, count: int) -> Array:
    if weights is None:
        return np.ones(count)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (count,):
        raise ParameterError(
            f"weights have shape {array.shape}; one for each of the {count} contrasts is needed"
        )
    if not np.all(np.isfinite(array) & (array >= 0)):
        raise ParameterError("weights must be finite and not negative")
    return array
