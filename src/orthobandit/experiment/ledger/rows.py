"""Rows of numbers that wait in line: they come at the end and are taken from the front."""

import numpy as np

from orthobandit._foundation.types import Array

LEAST = 256  # rows that there is room for


class Rows:
    """Rows (n, m) in the order they came in; all have the same m.

    Examples
    --------
    >>> rows = Rows()
    >>> rows.add(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> rows.take(1).tolist(), len(rows)
    ([[1.0, 2.0]], 1)
    """

    def __init__(self) -> None:
        self._kept = np.empty((0, 0))
        self._head = self._end = 0

    def __len__(self) -> int:
        return self._end - self._head

    @property
    def array(self) -> Array:
        """All of them (n, m), as they are now: what is there is never written to again."""
        return self._kept[self._head : self._end]

    def add(self, rows: Array) -> None:
        """Add rows (n, m) at the end."""
        count = len(rows)
        if self._end + count > len(self._kept):
            kept = self.array
            self._kept = np.empty((max(LEAST, 2 * (len(kept) + count)), rows.shape[1]))
            self._kept[: len(kept)] = kept.reshape(len(kept), rows.shape[1])
            self._head = 0
            self._end = len(kept)
        self._kept[self._end : self._end + count] = rows
        self._end += count

    def take(self, count: int) -> Array:
        """Take so many rows (n, m) from the front."""
        taken = self._kept[self._head : self._head + count].copy()
        self._head += count
        return taken
