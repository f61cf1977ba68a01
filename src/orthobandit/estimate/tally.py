"""A tally: all that need be kept of the rounds played under one plan."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.json_arrays import brief
from orthobandit._foundation.linalg import EPS
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import MAX_MAGNITUDE
from orthobandit.errors import RewardError, TallyError

FINITE = f"every reward must be a finite number of magnitude at most {MAX_MAGNITUDE:g}"


@dataclass(frozen=True, eq=False)
class Tally:
    """Per-arm counts, sums, sums of squares and largest sizes of (reward − baseline) under ONE plan.

    While a plan is in force the first three vectors are sufficient for the orthogonalised regression and for
    every contrast built on it; the fourth tells how much a single round may weigh in them. Tallies of the
    same plan merge with ``+``, in any order.

    Parameters
    ----------
    counts : array-like (..., K) of int
        How often each arm was played.
    sums : array-like (..., K)
        Sum of what each arm returned.
    squares : array-like (..., K)
        Sum of the squares of what each arm returned.
    largest : array-like (..., K), optional
        The largest magnitude that each arm returned, or anything above it. Where it is not known,
        √squares, the most that it can be: the whole tally then counts as one round where rounds are judged
        by their size.

    Examples
    --------
    >>> tally = Tally.of([0, 1, 1], [0.5, 2.0, 3.0], count=2)
    >>> tally.counts.tolist(), tally.sums.tolist(), tally.squares.tolist()
    ([1, 2], [0.5, 5.0], [0.25, 13.0])
    >>> int((tally + tally).rounds)
    6
    """

    counts: Whole
    sums: Array
    squares: Array
    largest: Array

    __repr__ = brief

    def __init__(
        self, counts: ArrayLike, sums: ArrayLike, squares: ArrayLike, largest: ArrayLike | None = None
    ) -> None:
        n, s, q = _checked(counts, sums, squares)
        most = _checked_largest(largest, n, q)
        for name, array in (("counts", n), ("sums", s), ("squares", q), ("largest", most)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def zeros(cls, count: int, batch: tuple[int, ...] = ()) -> "Tally":
        """Return the tally of no rounds for `count` arms."""
        _check_count(count)
        shape = (*batch, count)
        return cls(np.zeros(shape, dtype=np.int64), np.zeros(shape), np.zeros(shape))

    @classmethod
    def of(cls, arms: ArrayLike, rewards: ArrayLike, count: int) -> "Tally":
        """Tally individual rounds.

        Parameters
        ----------
        arms : array-like (n,) of int
            The arm played in each round, in [0, count).
        rewards : array-like (n,)
            Reward minus baseline of each round, finite.
        count : int
            Number of arms K.
        """
        _check_count(count)
        values = _checked_rewards(rewards)
        try:
            played = np.atleast_1d(np.asarray(arms))
        except ValueError:
            raise TallyError("arms is ragged; give one arm per round, (n,)") from None
        if played.shape != values.shape or played.ndim != 1:
            raise TallyError(f"arms has shape {played.shape} and rewards {values.shape}; both must be (n,)")
        if played.size and played.dtype.kind not in "iu":
            raise TallyError(f"arms has type {played.dtype}; arm indices must be whole numbers")
        wrong = (played < 0) | (played >= count)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise TallyError(f"arms row {row} is {played[row]}; arms are numbered 0 to {count - 1}")
        index = played.astype(np.int64)
        largest = np.zeros(count)
        np.maximum.at(largest, index, np.abs(values))
        return cls(
            np.bincount(index, minlength=count),
            np.bincount(index, values, minlength=count),
            np.bincount(index, values**2, minlength=count),
            largest,
        )

    @property
    def count(self) -> int:
        """Number of arms K."""
        return int(self.counts.shape[-1])

    @property
    def rounds(self) -> Whole:
        """Number of rounds tallied, shape (...)."""
        return np.asarray(self.counts.sum(axis=-1))

    def __add__(self, other: "Tally") -> "Tally":
        if not isinstance(other, Tally):
            return NotImplemented
        if self.counts.shape != other.counts.shape:
            raise TallyError(
                f"tallies of shape {self.counts.shape} and {other.counts.shape} cannot be merged;"
                " both must be of the same plan and arms"
            )
        return Tally(
            self.counts + other.counts,
            self.sums + other.sums,
            self.squares + other.squares,
            np.maximum(self.largest, other.largest),
        )

    def gathered(self, first: Whole) -> "Tally":
        """Return the sums (S, K) over parts of a leading axis (G, K), of one plan or of several.

        Parameters
        ----------
        first : (S,) array of int
            Where each part begins, ascending from 0; none is empty.
        """
        if len(first) == len(self.counts):
            return self
        out = object.__new__(Tally)
        for name in ("counts", "sums", "squares", "largest"):
            gather = np.maximum if name == "largest" else np.add
            object.__setattr__(out, name, _fixed(gather.reduceat(getattr(self, name), first, axis=0)))
        return out

    def __getitem__(self, place: Any) -> "Tally":
        """Return the tallies of some replications; `place` indexes the leading axes."""
        return self._changed(lambda part: part[place])

    def _changed(self, change: Callable[[Any], Any]) -> "Tally":
        """Return a tally whose parts are made from these in a way that keeps them possible."""
        out = object.__new__(Tally)
        for name in ("counts", "sums", "squares", "largest"):
            object.__setattr__(out, name, _fixed(np.array(change(getattr(self, name)))))
        return out

    def without(self, mask: Mask) -> "Tally":
        """Return the tallies with no rounds where `mask` (...), over the leading axes, is true."""
        keep = ~mask[..., np.newaxis]
        return self._changed(lambda part: np.where(keep, part, part.dtype.type(0)))

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly."""
        return {
            "counts": self.counts.tolist(),
            "sums": self.sums.tolist(),
            "squares": self.squares.tolist(),
            "largest": self.largest.tolist(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Tally":
        """Invert :meth:`to_json`."""
        return cls(data["counts"], data["sums"], data["squares"], data["largest"])


def _fixed(array: Any) -> Any:
    array.flags.writeable = False
    return array


def _check_count(count: int) -> None:
    if count < 1:
        raise TallyError(f"count={count}; a tally needs at least one arm")


def _checked_rewards(rewards: ArrayLike) -> Array:
    try:
        values = np.atleast_1d(np.asarray(rewards)).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise RewardError(f"rewards {_first_wrong(rewards)}; {FINITE}") from None
    bad = ~(np.abs(values) <= MAX_MAGNITUDE)
    if bad.any():
        row = int(np.argmax(bad))
        raise RewardError(f"rewards row {row} is {values.flat[row]:g}; {FINITE}")
    return values


def _first_wrong(rewards: ArrayLike) -> str:
    """Say which of several rewards is not a real number."""
    for row, value in enumerate(rewards if isinstance(rewards, Iterable) else [rewards]):
        if not isinstance(value, Real):
            return f"row {row} is {value!r}"
    return f"have type {np.asarray(rewards).dtype}"


def _checked(counts: ArrayLike, sums: ArrayLike, squares: ArrayLike) -> tuple[Whole, Array, Array]:
    try:
        given = np.asarray(counts)
        s = np.array(sums)
        q = np.array(squares)
    except ValueError:
        raise TallyError("counts, sums or squares are ragged; all three must be (..., K)") from None
    if not given.ndim or not given.shape[-1] or given.shape != s.shape or given.shape != q.shape:
        raise TallyError(
            f"counts, sums and squares have shapes {given.shape}, {s.shape}, {q.shape};"
            " all three must be (..., K)"
        )
    if given.dtype.kind not in "iu":
        raise TallyError(f"counts has type {given.dtype}; counts must be whole numbers")
    n = given.astype(np.int64)
    if np.any(n < 0):
        place = tuple(int(i) for i in np.argwhere(n < 0)[0])
        raise TallyError(f"{_where(place)} has count {n[place]}; counts must not be negative")
    if s.dtype.kind not in "iuf" or q.dtype.kind not in "iuf":
        raise RewardError(f"sums and squares have types {s.dtype}, {q.dtype}; both must be real numbers")
    s = s.astype(np.float64)
    q = q.astype(np.float64)
    _check_possible(n, s, q)
    return n, s, q


def _checked_largest(largest: ArrayLike | None, n: Whole, q: Array) -> Array:
    """Return the largest magnitudes; refuse those that cannot belong to counts and squares."""
    most = np.sqrt(q)
    if largest is None:
        return np.asarray(most)
    try:
        given = np.array(largest).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise TallyError("largest is not a table of real numbers; it must be (..., K)") from None
    if given.shape != q.shape:
        raise TallyError(f"largest has shape {given.shape} but squares {q.shape}; both must be (..., K)")
    # The largest is at least the root mean square. What is larger than √squares is no news, and is cut.
    # Squares that underflowed have lost their digits.
    least = most / np.sqrt(np.maximum(n, 1)) * (1 - 1e-9 - 4 * EPS * n) - 1e-150
    wrong = ~(given >= least)
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise TallyError(
            f"{_where(place)} has largest {given[place]:g}, below the root mean square {least[place]:g};"
            " largest is of magnitudes |value|, over all rounds of the tally"
        )
    return np.minimum(given, most)


def _where(place: tuple[int, ...]) -> str:
    return f"arm {place[-1]}" + (f" of replication {place[:-1]}" if place[:-1] else "")


def _check_possible(n: Whole, s: Array, q: Array) -> None:
    """Refuse what no rewards can give: sum² ≤ count × squares, up to the rounding of `count` additions."""
    finite = np.isfinite(s) & np.isfinite(q)
    slack = 1 + 1e-9 + 4 * EPS * n
    # Roots, because squares of large sums overflow; the floor forgives squares that underflowed.
    most = np.sqrt(n) * np.sqrt(np.where(finite, np.maximum(q, 0), 0)) * slack + 1e-150
    wrong = ~finite | (np.abs(s) > most) | (q < 0) | ((n == 0) & (q != 0))
    if wrong.any():
        place = tuple(int(i) for i in np.argwhere(wrong)[0])
        text = f"{_where(place)} has count {n[place]}, sum {s[place]:g} and squares {q[place]:g}"
        if not finite[place]:
            raise RewardError(f"{text}; {FINITE}")
        raise TallyError(f"{text}, which no rewards can give; sum² may not exceed count × squares")
