"""Rows of a log in a temporary file, in the order of time: where each has a distribution of its own.

Such rows cannot be grouped, and they are gone through several times: by each metric, each segment and each
check. A file keeps memory bounded however many rows there are.
"""

import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from orthobandit._foundation.types import Array, Whole

CHUNK_ROWS = 65_536  # rows that are in memory at a time
NUMBER = 8  # bytes


@dataclass(eq=False)
class RowFile:
    """Rows in the order of buckets and, within a bucket, of segments: B·S cells, one after the other.

    A row is 1 + K + q numbers, or one more where values are missing: the number a of its arm, or −1 − a if it
    does not count; the probabilities of the K arms; the q columns as kept in
    :class:`~orthobandit.estimate.follow.cells.Cells`, 0 where a value is missing; and Σ 2^c over the columns
    c that are missing.

    Attributes
    ----------
    counts : (B, S) array of int
        Rows of each cell.
    arms, columns : int
        K and q.
    is_masked : bool
        Whether there is the number for missing columns.
    blind : (B·S, K) array
        Rows that count and cannot tell an arm from the reference arm; in the reference arm's column, rows
        under which some arm could not be drawn.
    """

    counts: Whole
    arms: int
    columns: int
    is_masked: bool
    blind: Array
    edges: Whole = field(init=False)

    def __post_init__(self) -> None:
        self.edges = np.append(0, np.cumsum(self.counts.ravel()))
        self._filled = self.edges[:-1].copy()
        self._file = tempfile.TemporaryFile(prefix="orthobandit-", buffering=0)  # noqa: SIM115 - kept open
        weakref.finalize(self, self._file.close)
        self._first = 0
        self._held = np.zeros((0, self.width))

    @property
    def width(self) -> int:
        """Numbers of a row."""
        return 1 + self.arms + self.columns + self.is_masked

    @property
    def segments(self) -> int:
        """Number of segments S."""
        return int(self.counts.shape[1])

    @property
    def rows(self) -> int:
        """Number of rows, including those that do not count."""
        return int(self.edges[-1])

    @property
    def is_filled(self) -> bool:
        """Whether every cell has got the rows that it was announced with."""
        return bool(np.array_equal(self._filled, self.edges[1:]))

    def write(self, cell: Whole, rows: Array) -> None:
        """Add rows (n, width) of cells (n,), in any order; within a cell their order is kept.

        Raises
        ------
        ValueError
            If a cell gets more rows than it was announced with.
        """
        if not len(rows):
            return
        if np.any(np.diff(cell) < 0):
            order = np.argsort(cell, kind="stable")
            cell, rows = cell[order], rows[order]
        begins = np.flatnonzero(np.diff(cell, prepend=-1))
        sizes = np.diff(np.append(begins, len(cell)))
        owners = cell[begins]
        targets = self._filled[owners]
        self._filled[owners] += sizes
        if np.any(self._filled[owners] > self.edges[owners + 1]):
            raise ValueError("the log has changed while it was read")
        # Runs that lie side by side in the file are written at once: all of them, of a log in order of time.
        is_apart = np.append(True, targets[1:] != targets[:-1] + sizes[:-1])
        starts = np.append(begins[is_apart], len(cell))
        for place, target in enumerate(targets[is_apart].tolist()):
            self._file.seek(target * self.width * NUMBER)
            part = np.ascontiguousarray(rows[starts[place] : starts[place + 1]]).data.cast("B")
            while len(part):
                part = part[self._file.write(part) :]

    def read(self, begin: int, end: int) -> Array:
        """Return rows (end − begin, width), at most CHUNK_ROWS; more are read along for the next call."""
        last = self._first + len(self._held)
        if not (self._first <= begin and end <= last):
            held = np.empty((min(CHUNK_ROWS, self.rows - begin), self.width))
            self._file.seek(begin * self.width * NUMBER)
            room = held.data.cast("B")
            while len(room):
                room = room[self._file.readinto(room) :]
            self._first = begin
            self._held = held
        return self._held[begin - self._first : end - self._first]

    def ranges(self, first: int, last: int, segment: int | None) -> list[tuple[int, int]]:
        """Return where the rows of buckets `first` to `last` − 1 are, of one segment or of all (None)."""
        if segment is None:
            return [(int(self.edges[first * self.segments]), int(self.edges[last * self.segments]))]
        cells = np.arange(first, last) * self.segments + segment
        places = zip(self.edges[cells].tolist(), self.edges[cells + 1].tolist(), strict=True)
        return [(begin, end) for begin, end in places if begin < end]

    def parts(self, ranges: Sequence[tuple[int, int]]) -> Iterator[Array]:
        """Yield the rows of some ranges, at most CHUNK_ROWS at a time."""
        for begin, end in ranges:
            start = begin
            while start < end:
                stop = min(start + CHUNK_ROWS, end)
                yield self.read(start, stop)
                start = stop
