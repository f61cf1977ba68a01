"""Cells of some buckets as tables, one row a bucket and plan, one column an arm; and tallies of residuals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate import Tally
from orthobandit.estimate.confidence.steps import Steps, owners
from orthobandit.logs.cells import Cells, totals_at
from orthobandit.logs.residuals import Series

MOST = 500_000  # numbers that a table of all contrasts and arms may have, so that it stays near the processor


@dataclass(frozen=True, eq=False)
class Line:
    """A series in the cells of a block: sums, squares and range (T, K)."""

    sums: Array
    squares: Array
    low: Array
    high: Array


@dataclass(frozen=True, eq=False)
class Block:
    """Some steps in a row: T pairs of a step and a plan, in the order of time.

    Attributes
    ----------
    start : int
        The first of its steps.
    plans : (T,) array of int
    first : (S,) array of int
        Where each step begins.
    counts : (T, K) array
    lines : tuple of Line
        The series that is followed and, beside it, the plain metric if covariates are taken from it.
    """

    start: int
    plans: Whole
    first: Whole
    counts: Array
    lines: tuple[Line, ...]

    @cached_property
    def step(self) -> Whole:
        """Which of its steps each pair (T,) is of."""
        return owners(self.first, len(self.plans))

    @cached_property
    def arms(self) -> Array:
        """Rows of every arm in each step (S, K)."""
        return np.asarray(np.add.reduceat(self.counts, self.first, axis=0))

    @property
    def stop(self) -> int:
        """The first step after it."""
        return self.start + len(self.first)

    def steps(self, probabilities: Array, forecasts: Array, values: Array, limit: float) -> Steps:
        """Return residuals of the series that is followed, under distributions (P, K) of all plans."""
        tally = self.tally(0, forecasts, values, limit)
        return Steps(probabilities[self.plans], tally.rounds, tally, values, self.first)

    def tally(self, line: int, forecasts: Array, values: Array, limit: float = np.inf) -> Tally:
        """Return the tally (T, K) of y − forecast − value.

        Parameters
        ----------
        line : int
        forecasts : (S,) array
        values : (S, K) array
        limit : float
            Magnitude that no residual exceeds; what rounding adds to it is cut.
        """
        one = self.lines[line]
        n = self.counts
        shift = forecasts[self.step, np.newaxis] + values[self.step]
        sums = one.sums - n * shift
        squares = one.squares - 2.0 * shift * one.sums + n * shift**2
        most = np.minimum(np.maximum(np.abs(one.low - shift), np.abs(one.high - shift)), limit)
        # Rounding may leave squares a little below what the mean alone gives, or above what is possible.
        least = np.divide(sums**2, n, out=np.zeros_like(sums), where=n > 0)
        squares = np.clip(squares, least, np.maximum(most**2 * n, least))
        most = np.maximum(most, np.sqrt(squares / np.maximum(n, 1.0)))
        return Tally(n.astype(np.int64), sums, squares, np.where(n > 0, most, 0.0))

    def ends(self, line: int, forecasts: Array, values: Array) -> tuple[Array, Array]:
        """Return the smallest and the largest y − forecast − value of each arm (K,); see :meth:`tally`."""
        one = self.lines[line]
        there = self.counts > 0
        shift = forecasts[self.step, np.newaxis] + values[self.step]
        low, high = one.low - shift, one.high - shift
        return low.min(axis=0, initial=0.0, where=there), high.max(axis=0, initial=0.0, where=there)

    def squared(self, line: int, forecasts: Sequence[Array], values: Array) -> list[Array]:
        """Return, for each of some forecasts (S,), the sum (S,) of squared residuals."""
        one = self.lines[line]
        n = self.counts
        v = values[self.step]
        parts = (one.sums - n * v, one.squares - 2.0 * v * one.sums + n * v**2)
        sums, squares = (np.add.reduceat(part.sum(axis=1), self.first) for part in parts)
        rows = self.arms.sum(axis=1)
        return [np.asarray(squares - 2.0 * m * sums + rows * m**2) for m in forecasts]


class Blocks:
    """Cells cut into blocks of steps.

    Parameters
    ----------
    cells : Cells
        In the order of time, all with rows.
    step : (G,) array of int
        Which step each cell is of, from 0 on.
    series : sequence of Series
    """

    def __init__(self, cells: Cells, step: Whole, series: Sequence[Series]) -> None:
        self._cells = cells
        self._series = series
        keys, self._place = np.unique(step * len(cells.plans) + cells.plan, return_inverse=True)
        self._plans = keys % len(cells.plans)
        owner = keys // len(cells.plans)
        steps = int(step[-1]) + 1
        self._first = np.searchsorted(owner, np.arange(steps + 1))
        self._cell = np.searchsorted(step, np.arange(steps + 1))

    def from_step(self, start: int, contrasts: int) -> Iterator[Block]:
        """Yield all steps from one on, as many at a time as a table of contrasts and arms has room for."""
        size = max(MOST // (contrasts * len(self._cells.arms)), 1)
        steps = len(self._first) - 1
        while start < steps:
            stop = int(np.searchsorted(self._first, self._first[start] + size, side="right")) - 1
            stop = min(max(stop, start + 1), steps)
            yield self.block(start, stop)
            start = stop

    def plans_of(self, stop: int) -> Whole:
        """Return the plans of the steps before one, each once."""
        return np.unique(self._plans[: self._first[stop]])

    def block(self, start: int, stop: int) -> Block:
        """Return the block of some steps."""
        begin, end = self._first[start], self._first[stop]
        some = slice(self._cell[start], self._cell[stop])
        count = len(self._cells.arms)
        at = (self._place[some] - begin) * count + self._cells.arm[some]
        size = (end - begin) * count
        shape = (int(end - begin), count)
        counts = totals_at(at, self._cells.counts[some], size).reshape(shape)
        lines = []
        for one in self._series:
            sums, squares = (
                totals_at(at, part[some], size).reshape(shape) for part in (one.sums, one.squares)
            )
            low, high = np.full(size, np.inf), np.full(size, -np.inf)
            np.minimum.at(low, at, one.low[some])
            np.maximum.at(high, at, one.high[some])
            ends = [np.where(counts > 0, part.reshape(shape), 0.0) for part in (low, high)]
            lines.append(Line(sums, squares, ends[0], ends[1]))
        return Block(start, self._plans[begin:end], self._first[start:stop] - begin, counts, tuple(lines))
