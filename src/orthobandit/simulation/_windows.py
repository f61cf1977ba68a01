"""Pieces of oblivious paths for a batch of replications: bounded memory, whatever the horizon."""

from collections import OrderedDict

import numpy as np

from orthobandit._types import Array, Whole
from orthobandit.errors import ParameterError
from orthobandit.simulation._kernels import Window
from orthobandit.simulation.adversaries import Adaptive
from orthobandit.simulation.paths import CHUNK, Oblivious

KEPT_CHUNKS = 32  # replications drift apart by whole plans; this many pieces of ν are kept for reuse


class PathWindows:
    """Cuts ν into chunks: made once for all replications that share a path, else one for each."""

    def __init__(self, shift: Oblivious, seed: int, replications: Whole) -> None:
        self._shift, self._seed, self._replications = shift, seed, replications
        size = replications.size
        self._kept: OrderedDict[int, Array] = OrderedDict()
        self._own = np.empty((0 if shift.is_shared else size, CHUNK))
        self._own_index = np.full(size, -1)

    def next(self, left: Whole, clock: Whole, end: Whole) -> Window:
        """Return a window in which at least the replications of `left` that are furthest behind can play."""
        index = clock // CHUNK
        if not self._shift.is_shared:
            for r in left[self._own_index[left] != index[left]]:
                self._own[r] = self._made(int(index[r]), int(self._replications[r]))
                self._own_index[r] = index[r]
            stop = np.minimum(end, (index + 1) * CHUNK)
            return Window(self._own, np.arange(end.size), index * CHUNK, stop)
        first = int(index[left].min())
        base = np.full(end.size, first * CHUNK)
        row = np.zeros(end.size, dtype=np.int64)
        return Window(self._shared(first), row, base, np.minimum(end, base + CHUNK))

    def _shared(self, index: int) -> Array:
        if index not in self._kept:
            self._kept[index] = self._made(index, 0)[np.newaxis]
            if len(self._kept) > KEPT_CHUNKS:
                self._kept.popitem(last=False)
        return self._kept[index]

    def _made(self, index: int, replication: int) -> Array:
        path = self._shift.chunk(index, seed=self._seed, replication=replication)
        return checked_shift(self._shift, path, CHUNK)


def checked_shift(shift: Oblivious | Adaptive, values: Array, count: int) -> Array:
    """Return the shift's values (count,), or raise when they are not that many finite numbers."""
    array = np.array(values, dtype=np.float64)
    if array.shape != (count,):
        raise ParameterError(f"{shift!r} returned values of shape {array.shape}; ({count},) is needed")
    if not np.all(np.isfinite(array)):
        raise ParameterError(f"{shift!r} returned a value that is not finite")
    return array
