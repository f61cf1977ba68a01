"""Shifts ν_t by name, and those whose path is a formula in t.

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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_positive
from orthobandit._foundation.registry import WithOwn, make_named
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import ParameterError
from orthobandit.simulation.adversaries import Adaptive, CancelBest, PushLeader, ReactToLast
from orthobandit.simulation.paths import CHUNK, Formula, Oblivious, RandomWalk, check_finite

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
        # sin(a + b) = sin a cos b + cos a sin b with tabulated b: thirty times faster than a call a round.
        sine, cosine = _turn(self.frequency)
        start = self.frequency * (index * CHUNK)
        wave = np.sin(start) * cosine + np.cos(start) * sine
        return np.asarray(self.offset + self.amplitude * wave)


@lru_cache(maxsize=8)
def _turn(frequency: float) -> tuple[Array, Array]:
    angles = frequency * np.arange(1, CHUNK + 1)
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
            raise ParameterError(f"day={self.day} must be at least one round")

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
            raise ParameterError(f"every={self.every} and levels={self.levels}; both must hold at least one")
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
