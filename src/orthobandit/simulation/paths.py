"""Oblivious shifts made from data, from chance and from other shifts."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._random import stream
from orthobandit._types import Array, Whole
from orthobandit.errors import ParameterError
from orthobandit.simulation.shifts import CHUNK, Formula, Oblivious, check_finite

SPAN = 256  # chunks that share one Gaussian sum in a random walk


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
