"""Sets of contrasts to price: a listed few, or all pairs of arms without ever listing them."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.linalg

from orthobandit._types import Array, Whole

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
    values, partners = np.full(count, -np.inf), np.zeros(count, dtype=np.int64)
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
