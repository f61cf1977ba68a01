"""Shifts ν_t by name: paths from formulas, from data, from chance and from other paths.

The contract of shifts, oblivious and adaptive (:mod:`orthobandit.simulation.adversaries`);
:func:`orthobandit.testing.check_shift` plays every clause on a shift of yours.

**Order.** The shift of a round is fixed before its arm is drawn and does not depend on it. An oblivious one
depends on time alone; an adaptive one on what :class:`~orthobandit.simulation.adversaries.Past` tells.

**In parts.** An oblivious path is the same however its rounds are cut into blocks, and whichever part is
asked for first.

**Repeated.** Asked again, a shift says the same: it keeps nothing between calls and changes no argument.

**Replications.** An adaptive shift treats each replication by itself, whichever others are at hand. A random
path is a function of (seed, replication, round); one that says `is_shared` is the same for all.

**Bounds.** Values are finite. An oblivious path never exceeds its `bound`, and is refused beyond its
`length`.

**Names.** ``repr`` says in one line what it is, the same in every process; a shift survives pickling.

**Compiled.** An adaptive shift may declare a compiled `step`, ``(settings, known) -> float``; its method
``values`` is what it means. The step is shown one replication of the same past as a
:class:`~orthobandit.simulation.adversaries.Known`, before the arm is drawn, writes to none of it, and answers
as ``values`` would, bit by bit. It keeps nothing: all it may remember is in `known`, and its ``settings``
are made once from the truth. Without a step the method is asked every round, with the same numbers.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_positive
from orthobandit._foundation.random import stream
from orthobandit._foundation.registry import WithOwn, make_named
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import Argument, ParameterError
from orthobandit.simulation.adversaries import Adaptive, CancelBest, PushLeader, ReactToLast

# Paths are made in aligned pieces of this many rounds, so that no way of cutting them changes a number.
# 2¹⁴ numbers are 128 kB, which stay in a processor's cache. Another size would change every random walk.
CHUNK_ROUNDS = 1 << 14
SPAN_CHUNKS = 256  # chunks that share one Gaussian sum in a random walk


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
            raise ParameterError(Argument("start", start), f" and count={count} must not be negative")
        self.require(start + count)
        chunks = range(start // CHUNK_ROUNDS, -(-(start + count) // CHUNK_ROUNDS))
        parts = [self.chunk(index, seed=seed, replication=replication) for index in chunks]
        offset = start - CHUNK_ROUNDS * chunks.start
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
        first = index * CHUNK_ROUNDS + 1
        return np.asarray(self.at(np.arange(first, first + CHUNK_ROUNDS, dtype=np.int64)), dtype=np.float64)


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
    """ν_t = step·(g_1 + … + g_t) with independent standard Gaussian g, one path per replication.

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
            raise ParameterError(Argument("step", self.step), " must not be negative")
        if self.limit is not None and not 0 < self.limit < np.inf:
            raise ParameterError(Argument("limit", self.limit), " must be a finite number > 0")

    @property
    def bound(self) -> float:  # noqa: D102
        return float("inf") if self.limit is None else self.limit

    def within(self, limit: float) -> Oblivious:  # noqa: D102
        return self if self.bound <= limit else replace(self, limit=limit)

    def chunk(self, index: int, *, seed: int = 0, replication: int = 0) -> Array:  # noqa: D102
        span, place = divmod(index, SPAN_CHUNKS)
        # From coarse to fine, each level given the sums of the one above: a chunk costs the same however
        # late it lies, but for one number a span.
        spans = stream(seed, "shift", replication, 0).standard_normal(span + 1) * np.sqrt(
            SPAN_CHUNKS * CHUNK_ROUNDS
        )
        generator = stream(seed, "shift", replication, 1, span)
        chunks = _given_sum(np.sqrt(CHUNK_ROUNDS) * generator.standard_normal(SPAN_CHUNKS), spans[span])
        generator = stream(seed, "shift", replication, 2, index)
        steps = _given_sum(generator.standard_normal(CHUNK_ROUNDS), chunks[place])
        path = self.step * (spans[:span].sum() + chunks[:place].sum() + np.cumsum(steps))
        return path if self.limit is None else _reflected(path, self.limit)


def _given_sum(draws: Array, total: float) -> Array:
    """Turn independent equal Gaussians into such Gaussians with the given sum."""
    # Given their sum, independent Gaussians of equal variance differ from it by a common amount only.
    return np.asarray(draws + (total - draws.sum()) / draws.size)


def _reflected(path: Array, limit: float) -> Array:
    # Two mirrors at ±limit: the path repeats every 4·limit, and runs backwards in the second half.
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
            raise ParameterError(Argument("limit", self.limit), " must be a finite number ≥ 0")
        _adopt(self, self.shift)

    @property
    def bound(self) -> float:  # noqa: D102
        return min(self.limit, self.shift.bound)

    def chunk(self, index: int, *, seed: int = 0, replication: int = 0) -> Array:  # noqa: D102
        path = self.shift.chunk(index, seed=seed, replication=replication)
        return np.clip(path, -self.limit, self.limit)


def _adopt(wrapper: Oblivious, shift: Any) -> None:
    if not isinstance(shift, Oblivious):
        raise ParameterError(
            Argument("shift", shift), " is not an oblivious shift; adaptive ones take their own limit"
        )
    object.__setattr__(wrapper, "is_shared", shift.is_shared)
    object.__setattr__(wrapper, "length", shift.length)


def check_finite(**settings: float | Sequence[float] | Array) -> None:
    """Raise unless every setting, a number or several, is finite."""
    for name, value in settings.items():
        if not np.all(np.isfinite(np.asarray(value, dtype=np.float64))):
            raise ParameterError(Argument(name, value), " must be finite")


Shift = Oblivious | Adaptive


@dataclass(frozen=True)
class Constant(Formula):
    """ν_t = level; the default is no shift."""

    level: float = 0.0

    def __post_init__(self) -> None:
        check_finite(level=self.level)

    @property
    def bound(self) -> float:  # noqa: D102
        return abs(self.level)

    def at(self, rounds: Whole) -> Array:  # noqa: D102
        return np.full(rounds.shape, float(self.level))


@dataclass(frozen=True)
class Sine(Formula):
    """ν_t = offset + amplitude·sin(frequency·t); the default is the paper's ν¹_t = 1 + sin(2t).

    ``Sine(offset=0)`` keeps the paper's bound |ν_t| ≤ 1, which ν¹ itself does not.
    """

    offset: float = 1.0
    amplitude: float = 1.0
    frequency: float = 2.0

    def __post_init__(self) -> None:
        check_finite(offset=self.offset, amplitude=self.amplitude, frequency=self.frequency)

    @property
    def bound(self) -> float:  # noqa: D102
        return abs(self.offset) + abs(self.amplitude)

    def at(self, rounds: Whole) -> Array:  # noqa: D102
        return np.asarray(self.offset + self.amplitude * np.sin(self.frequency * rounds))

    def chunk(self, index: int, *, seed: int = 0, replication: int = 0) -> Array:  # noqa: ARG002, D102
        # sin(a + b) = sin a cos b + cos a sin b with tabulated b: thirty times faster than a call per round.
        sine, cosine = _turn(self.frequency)
        start = self.frequency * (index * CHUNK_ROUNDS)
        wave = np.sin(start) * cosine + np.cos(start) * sine
        return np.asarray(self.offset + self.amplitude * wave)


@lru_cache(maxsize=8)
def _turn(frequency: float) -> tuple[Array, Array]:
    angles = frequency * np.arange(1, CHUNK_ROUNDS + 1)
    return np.sin(angles), np.cos(angles)


@dataclass(frozen=True)
class LogAlternating(Formula):
    """ν_t = ±max(log(t+1)/5, 2) with sign (−1)^(t mod 3), the paper's ν² as printed.

    The printed maximum is 2 until t ≈ 22 000; `form` = ``"min"`` is perhaps what the paper ran.
    """

    form: str = "max"

    def __post_init__(self) -> None:
        if self.form not in {"max", "min"}:
            raise ParameterError(f'form={self.form!r} must be "max" (as printed) or "min"')

    @property
    def bound(self) -> float:  # noqa: D102
        return 2.0 if self.form == "min" else float("inf")

    def at(self, rounds: Whole) -> Array:  # noqa: D102
        bound = np.maximum if self.form == "max" else np.minimum
        return np.asarray(bound(np.log(rounds + 1.0) / 5, 2.0) * np.where(rounds % 3 == 1, -1.0, 1.0))


@dataclass(frozen=True)
class Trend(Formula):
    """ν_t = intercept + slope·t, without bound."""

    slope: float = 1e-3
    intercept: float = 0.0

    def __post_init__(self) -> None:
        check_finite(slope=self.slope, intercept=self.intercept)

    @property
    def bound(self) -> float:  # noqa: D102
        return float("inf") if self.slope else abs(self.intercept)

    def at(self, rounds: Whole) -> Array:  # noqa: D102
        return np.asarray(self.intercept + self.slope * rounds)


@dataclass(frozen=True)
class Seasonal(Formula):
    """A daily wave with a step at weekends: ν_t = amplitude·sin(2π(t−1)/day) + weekend on days 6 and 7.

    Bounded by the sum of the two magnitudes. `day` is the number of rounds in a day.
    """

    day: int = 1440
    amplitude: float = 1.0
    weekend: float = 0.0

    def __post_init__(self) -> None:
        check_finite(amplitude=self.amplitude, weekend=self.weekend)
        if self.day < 1:
            raise ParameterError(Argument("day", self.day), " must be at least one round")

    @property
    def bound(self) -> float:  # noqa: D102
        return abs(self.amplitude) + abs(self.weekend)

    def at(self, rounds: Whole) -> Array:  # noqa: D102
        day, moment = np.divmod(rounds - 1, self.day)
        wave = self.amplitude * np.sin(2 * np.pi / self.day * moment)
        return np.asarray(wave + self.weekend * (day % 7 >= 5))


@dataclass(frozen=True)
class Jumps(Formula):
    """Piecewise constant: each level in turn for `every` rounds, then from the first again."""

    every: int = 1000
    levels: tuple[float, ...] = (0.0, 1.0, -1.0, 0.5)

    def __post_init__(self) -> None:
        if self.every < 1 or not self.levels:
            raise ParameterError(
                Argument("every", self.every), f" and levels={self.levels}; both must hold at least one"
            )
        check_finite(levels=self.levels)

    @property
    def bound(self) -> float:  # noqa: D102
        return max(map(abs, self.levels))

    def at(self, rounds: Whole) -> Array:  # noqa: D102
        return np.asarray(self.levels, dtype=np.float64)[((rounds - 1) // self.every) % len(self.levels)]


# A shift that is named here is known to the command line, to studies and to the tests of all shifts.
SHIFTS: Mapping[str, Callable[..., Shift]] = {
    "none": Constant,
    "constant": partial(Constant, level=1.0),
    "sine": Sine,
    "log-alternating": LogAlternating,
    "log-alternating-min": partial(LogAlternating, form="min"),
    "trend": Trend,
    "daily": Seasonal,
    "weekly": partial(Seasonal, amplitude=0.5, weekend=-0.5),
    "random-walk": RandomWalk,
    "jumps": Jumps,
    "cancel-best": CancelBest,
    "push-leader": PushLeader,
    "react-to-last": ReactToLast,
}
SHIFTS = WithOwn("shift", SHIFTS, "orthobandit.shifts")


def named_shift(name: str, **settings: Any) -> Shift:
    """Return the shift of this name, a key of ``SHIFTS``, with the given settings.

    Examples
    --------
    >>> named_shift("sine", offset=0.0)
    Sine(offset=0.0, amplitude=1.0, frequency=2.0)
    """
    return make_named("shift", SHIFTS, name, settings)


def within(shift: Shift, limit: float = 1.0) -> Shift:
    """Return a shift of the same kind with |ν_t| ≤ limit; the paper's guarantees are for limit 1.

    One that keeps to the limit stays as it is; one with a known bound is scaled; a random walk is
    reflected, any other path cut; an adversary gets the smaller limit.

    Examples
    --------
    >>> within(Sine())
    Scaled(shift=Sine(offset=1.0, amplitude=1.0, frequency=2.0), factor=0.5, offset=0.0)
    """
    check_positive("limit", limit)
    return shift.within(limit)
