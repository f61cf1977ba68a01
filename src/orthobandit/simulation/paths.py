"""Oblivious shifts ν_t: what a path of the baseline is, and paths from data, chance and other paths."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.random import stream
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import ParameterError
from orthobandit.simulation._kernels import Window

# Paths are made in aligned pieces of this many rounds, so that no way of cutting them changes a number.
CHUNK = 1 << 14
SPAN = 256  # chunks that share one Gaussian sum in a random walk
KEPT_CHUNKS = 32  # replications drift apart by whole plans; this many pieces of ν are kept for reuse


class Oblivious(ABC):
    """A path ν_1, ν_2, … that does not look at what is played.

    A path in closed form derives from :class:`Formula`; a random one implements :meth:`chunk` and sets
    ``is_shared = False``.

    Attributes
    ----------
    is_shared : bool
        True when all replications see the same path.
    length : int or None
        Rounds for which the path is known; None for ever.

    Examples
    --------
    >>> Replay([0.5, -0.5], repeats=True).values(10, 3).tolist()
    [0.5, -0.5, 0.5]
    """

    is_shared: bool = True
    length: int | None = None

    @property
    def bound(self) -> float:
        """A number that no |ν_t| exceeds; +inf when none is known."""
        return float("inf")

    @abstractmethod
    def chunk(self, index: int, *, seed: int = 0, replication: int = 0) -> Array:
        """Return ν (CHUNK,) at rounds index·CHUNK + 1, …, (index + 1)·CHUNK."""

    def values(self, start: int, count: int, *, seed: int = 0, replication: int = 0) -> Array:
        """Return ν at rounds start + 1, …, start + count, the same however the rounds are cut.

        Parameters
        ----------
        start, count : int
            Rounds already played, and how many to return.
        seed, replication : int
            Name the stream of a random path.

        Returns
        -------
        (count,) array
        """
        if start < 0 or count < 0:
            raise ParameterError(f"start={start} and count={count} must not be negative")
        self.require(start + count)
        chunks = range(start // CHUNK, -(-(start + count) // CHUNK))
        parts = [self.chunk(index, seed=seed, replication=replication) for index in chunks]
        offset = start - CHUNK * chunks.start
        return np.concatenate([np.empty(0), *parts])[offset : offset + count]

    def within(self, limit: float) -> "Oblivious":
        """Return a path of the same kind with |ν_t| ≤ limit: itself, scaled if its bound is known, or cut."""
        if self.bound <= limit:
            return self
        return Scaled(self, limit / self.bound) if self.bound < np.inf else Limited(self, limit)

    def require(self, rounds: int) -> None:
        """Raise unless the path is known for this many rounds."""
        if self.length is not None and rounds > self.length:
            raise ParameterError(f"{self!r} is known for {self.length} rounds; {rounds} are asked for")


class Formula(Oblivious):
    """A path given by a formula in t, the same in every replication."""

    @abstractmethod
    def at(self, rounds: Whole) -> Array:
        """Return ν at the given rounds (n,), numbered from 1."""

    def chunk(self, index: int, *, seed: int = 0, replication: int = 0) -> Array:  # noqa: ARG002, D102
        first = index * CHUNK + 1
        return np.asarray(self.at(np.arange(first, first + CHUNK, dtype=np.int64)), dtype=np.float64)


class Replay(Formula):
    """ν_t read from an array, e.g. a recorded baseline; known only for as many rounds as it has.

    Parameters
    ----------
    path : array-like (n,)
        ν_1, …, ν_n, all finite.
    repeats : bool
        Start again from the first value after the last.
    """

    def __init__(self, path: ArrayLike, *, repeats: bool = False) -> None:
        try:
            array = np.array(path, dtype=np.float64)
        except (TypeError, ValueError):
            raise ParameterError("path is not a list of numbers") from None
        if array.ndim != 1 or not array.size:
            raise ParameterError(f"path has shape {array.shape}; (n,) with n ≥ 1 is needed")
        check_finite(path=array)
        array.flags.writeable = False
        self.path = array
        self.repeats = repeats
        self.length = None if repeats else array.size

    def __repr__(self) -> str:
        return f"Replay({self.path.size} values, repeats={self.repeats})"

    @property
    def bound(self) -> float:  # noqa: D102
        return float(np.abs(self.path).max())

    def at(self, rounds: Whole) -> Array:  # noqa: D102
        # Rounds past the end are never played (see `require`); a chunk may still ask for them.
        return np.asarray(self.path[(rounds - 1) % self.path.size])


@dataclass(frozen=True)
class RandomWalk(Oblivious):
    """ν_t = step·(g_1 + … + g_t) with independent standard Gaussian g, one path a replication.

    Any part of a path can be made without the parts before it: Gaussian sums over long spans are drawn
    first, then the sums over chunks given those of the spans, then the rounds given those of the chunks.

    Parameters
    ----------
    step : float
        Standard deviation of a step.
    limit : float, optional
        Reflect the path at ±limit.
    """

    step: float = 0.01
    limit: float | None = None
    is_shared = False

    def __post_init__(self) -> None:
        check_finite(step=self.step)
        if self.step < 0:
            raise ParameterError(f"step={self.step} must not be negative")
        if self.limit is not None and not 0 < self.limit < np.inf:
            raise ParameterError(f"limit={self.limit} must be a finite number > 0")

    @property
    def bound(self) -> float:  # noqa: D102
        return float("inf") if self.limit is None else self.limit

    def within(self, limit: float) -> Oblivious:  # noqa: D102
        return self if self.bound <= limit else replace(self, limit=limit)

    def chunk(self, index: int, *, seed: int = 0, replication: int = 0) -> Array:  # noqa: D102
        span, place = divmod(index, SPAN)
        spans = stream(seed, "shift", replication, 0).standard_normal(span + 1) * np.sqrt(SPAN * CHUNK)
        generator = stream(seed, "shift", replication, 1, span)
        chunks = _given_sum(np.sqrt(CHUNK) * generator.standard_normal(SPAN), spans[span])
        generator = stream(seed, "shift", replication, 2, index)
        steps = _given_sum(generator.standard_normal(CHUNK), chunks[place])
        path = self.step * (spans[:span].sum() + chunks[:place].sum() + np.cumsum(steps))
        return path if self.limit is None else _reflected(path, self.limit)


def _given_sum(draws: Array, total: float) -> Array:
    """Turn independent equal Gaussians into such Gaussians with the given sum."""
    return np.asarray(draws + (total - draws.sum()) / draws.size)


def _reflected(path: Array, limit: float) -> Array:
    folded = (path + limit) % (4 * limit)
    return np.minimum(folded, 4 * limit - folded) - limit


@dataclass(frozen=True)
class Scaled(Oblivious):
    """offset + factor·ν_t of another path: an affine map keeps its form."""

    shift: Oblivious
    factor: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        check_finite(factor=self.factor, offset=self.offset)
        _adopt(self, self.shift)

    @property
    def bound(self) -> float:  # noqa: D102
        return abs(self.offset) + abs(self.factor) * self.shift.bound if self.factor else abs(self.offset)

    def chunk(self, index: int, *, seed: int = 0, replication: int = 0) -> Array:  # noqa: D102
        return self.offset + self.factor * self.shift.chunk(index, seed=seed, replication=replication)


@dataclass(frozen=True)
class Limited(Oblivious):
    """Another path cut at ±limit: |ν_t| ≤ limit always, and nothing changes where that already held."""

    shift: Oblivious
    limit: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.limit < np.inf:
            raise ParameterError(f"limit={self.limit} must be a finite number ≥ 0")
        _adopt(self, self.shift)

    @property
    def bound(self) -> float:  # noqa: D102
        return min(self.limit, self.shift.bound)

    def chunk(self, index: int, *, seed: int = 0, replication: int = 0) -> Array:  # noqa: D102
        path = self.shift.chunk(index, seed=seed, replication=replication)
        return np.clip(path, -self.limit, self.limit)


def _adopt(wrapper: Oblivious, shift: Any) -> None:
    if not isinstance(shift, Oblivious):
        raise ParameterError(f"shift={shift!r} is not an oblivious shift; adaptive ones take their own limit")
    object.__setattr__(wrapper, "is_shared", shift.is_shared)
    object.__setattr__(wrapper, "length", shift.length)


class PathWindows:
    """Cuts ν into chunks: made once for all replications that share a path, else one for each."""

    def __init__(self, shift: Oblivious, seed: int, replications: Whole) -> None:
        self._shift = shift
        self._seed = seed
        self._replications = replications
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


def checked_shift(shift: object, values: Array, count: int) -> Array:
    """Return the shift's values (count,), or raise when they are not that many finite numbers."""
    array = np.array(values, dtype=np.float64)
    if array.shape != (count,):
        raise ParameterError(f"{shift!r} returned values of shape {array.shape}; ({count},) is needed")
    if not np.all(np.isfinite(array)):
        raise ParameterError(f"{shift!r} returned a value that is not finite")
    return array


def check_finite(**settings: float | Sequence[float] | Array) -> None:
    """Raise unless every setting, a number or several, is finite."""
    for name, value in settings.items():
        if not np.all(np.isfinite(np.asarray(value, dtype=np.float64))):
            raise ParameterError(f"{name}={value!r} must be finite")
