"""A tally: all that need be kept of the rounds played under one plan."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orthobandit.errors import RewardError, TallyError


@dataclass(frozen=True, eq=False)
class Tally:
    """Per-arm counts, sums and sums of squares of (reward − baseline) under ONE plan.

    While a plan is in force these three vectors are sufficient for the orthogonalised regression and for
    every contrast built on it. Tallies of the same plan merge with ``+``, in any order.

    Parameters
    ----------
    counts, sums, squares : array-like (..., K)
        How often each arm was played, and the sum and squared sum of what it returned.

    Examples
    --------
    >>> tally = Tally.of([0, 1, 1], [0.5, 2.0, 3.0], count=2)
    >>> tally.counts.tolist(), tally.sums.tolist(), tally.squares.tolist()
    ([1, 2], [0.5, 5.0], [0.25, 13.0])
    >>> int((tally + tally).rounds)
    6
    """

    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    squares: NDArray[np.float64]

    def __init__(self, counts: ArrayLike, sums: ArrayLike, squares: ArrayLike) -> None:
        n, s, q = _checked(counts, sums, squares)
        for name, array in (("counts", n), ("sums", s), ("squares", q)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def zeros(cls, count: int, batch: tuple[int, ...] = ()) -> "Tally":
        """Return the tally of no rounds for `count` arms."""
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
        played = np.atleast_1d(np.asarray(arms))
        values = _checked_rewards(rewards)
        if played.shape != values.shape or played.ndim != 1:
            raise TallyError(f"arms has shape {played.shape} and rewards {values.shape}; both must be (n,)")
        if played.size and played.dtype.kind not in "iu":
            raise TallyError(f"arms has type {played.dtype}; arm indices must be whole numbers")
        wrong = (played < 0) | (played >= count)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise TallyError(f"arms row {row} is {played[row]}; arms are numbered 0 to {count - 1}")
        index = played.astype(np.int64)
        return cls(
            np.bincount(index, minlength=count),
            np.bincount(index, values, minlength=count),
            np.bincount(index, values**2, minlength=count),
        )

    @property
    def count(self) -> int:
        """Number of arms K."""
        return int(self.counts.shape[-1])

    @property
    def rounds(self) -> NDArray[np.int64]:
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
        return Tally(self.counts + other.counts, self.sums + other.sums, self.squares + other.squares)

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly."""
        return {
            "counts": self.counts.tolist(),
            "sums": self.sums.tolist(),
            "squares": self.squares.tolist(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Tally":
        """Invert :meth:`to_json`."""
        return cls(data["counts"], data["sums"], data["squares"])


def _checked_rewards(rewards: ArrayLike) -> NDArray[np.float64]:
    try:
        values = np.atleast_1d(np.asarray(rewards, dtype=np.float64))
    except (TypeError, ValueError):
        raise RewardError("rewards are not numbers; every reward must be a finite number") from None
    bad = ~np.isfinite(values)
    if bad.any():
        row = int(np.argmax(bad))
        raise RewardError(f"rewards row {row} is {values.flat[row]}; every reward must be a finite number")
    return values


def _checked(
    counts: ArrayLike, sums: ArrayLike, squares: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    given = np.asarray(counts)
    s, q = np.array(sums, dtype=np.float64), np.array(squares, dtype=np.float64)
    if not given.ndim or given.shape != s.shape or given.shape != q.shape:
        raise TallyError(
            f"counts, sums and squares have shapes {given.shape}, {s.shape}, {q.shape};"
            " all three must be (..., K)"
        )
    if given.dtype.kind not in "iu":
        raise TallyError(f"counts has type {given.dtype}; counts must be whole numbers")
    n = given.astype(np.int64)
    if np.any(n < 0):
        raise TallyError(f"counts has the entry {n.min()}; counts must not be negative")
    if not (np.all(np.isfinite(s)) and np.all(np.isfinite(q))):
        raise RewardError("sums or squares are not finite; every reward must be a finite number")
    impossible = (s**2 > n * q * (1 + 1e-9) + 1e-300) | (q < 0) | ((n == 0) & (q != 0))
    if impossible.any():
        place = tuple(int(i) for i in np.argwhere(impossible)[0])
        raise TallyError(
            f"arm {place[-1]} has count {n[place]}, sum {s[place]:g} and squares {q[place]:g},"
            " which no rewards can give; sum² may not exceed count × squares"
        )
    return n, s, q
