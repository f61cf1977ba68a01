"""Columns that grow: full chunks are packed into as few bytes as their numbers need."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

CHUNK = 1 << 15  # rows of a packed chunk


class Column:
    """Numbers of one type, appended at the end.

    What was appended since the last :meth:`settle` can be taken back; what is settled is packed: a chunk of
    equal numbers takes no room, one of whole numbers as many bytes as its largest needs.

    Parameters
    ----------
    dtype : type
        Of what is appended and given back.
    width : int or None
        Numbers a row; None for a plain column.

    Examples
    --------
    >>> column = Column(np.int64)
    >>> column.append([5, 6], 2); column.append(7, 1); column.read(1, 3)
    array([6, 7])
    """

    def __init__(self, dtype: Any, width: int | None = None) -> None:
        self._dtype = np.dtype(dtype)
        self._shape = () if width is None else (width,)
        self._packed: list[NDArray[Any]] = []
        self._tail = np.empty((16, *self._shape), self._dtype)
        self._used = 0  # rows of the tail

    def __len__(self) -> int:
        return len(self._packed) * CHUNK + self._used

    @property
    def nbytes(self) -> int:
        """Return the room of all chunks; equal numbers share their place."""
        return self._tail.nbytes + sum(chunk.nbytes if chunk.strides[0] else 8 for chunk in self._packed)

    @property
    def has_full_chunks(self) -> bool:
        """Return whether :meth:`settle` would pack anything."""
        return self._used >= CHUNK

    def append(self, values: Any, count: int) -> None:
        """Append `count` rows, of shape (count,) or (count, width), or one number as often."""
        needed = self._used + count
        if needed > len(self._tail):
            grown = np.empty((max(needed, 2 * len(self._tail)), *self._shape), self._dtype)
            grown[: self._used] = self._tail[: self._used]
            self._tail = grown
        self._tail[self._used : needed] = values
        self._used = needed

    def cut(self, length: int) -> None:
        """Take back all rows beyond `length`, none of them settled."""
        self._used = length - len(self._packed) * CHUNK

    def settle(self) -> None:
        """Pack the chunks that are full."""
        full = self._used // CHUNK
        if not full:
            return
        for start in range(0, full * CHUNK, CHUNK):
            self._packed.append(_packed(self._tail[start : start + CHUNK]))
        rest = self._tail[full * CHUNK : self._used]
        self._tail = np.empty((max(16, 2 * len(rest)), *self._shape), self._dtype)
        self._tail[: len(rest)] = rest
        self._used = len(rest)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return a copy of the rows from `start` up to `stop`."""
        parts = []
        settled = len(self._packed) * CHUNK
        for index in range(start // CHUNK, min(len(self._packed), -(-stop // CHUNK))):
            offset = index * CHUNK
            parts.append(self._packed[index][max(start - offset, 0) : stop - offset])
        if stop > settled:
            parts.append(self._tail[max(start - settled, 0) : stop - settled])
        if len(parts) == 1:
            return parts[0].astype(self._dtype)
        return np.concatenate(parts, dtype=self._dtype) if parts else np.empty((0, *self._shape), self._dtype)


def _packed(chunk: NDArray[Any]) -> NDArray[Any]:
    # Compared as bytes: a zero and its negative are not the same, and must not become so.
    if chunk[:1].tobytes() * len(chunk) == chunk.tobytes():
        return np.broadcast_to(chunk[:1].copy(), chunk.shape)
    if chunk.dtype.kind != "i":
        return chunk.copy()
    low, high = int(chunk.min()), int(chunk.max())
    return chunk.astype(np.min_scalar_type(high if low >= 0 else min(low, -high - 1)))
