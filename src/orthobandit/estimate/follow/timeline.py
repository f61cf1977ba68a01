"""A metric in the order of time: one step per bucket, tables of some steps, and what was counted of them.

A table has sums, squares and ends of the series by plan and arm. A forecast is one number per bucket, so that
tallies of residuals follow from these tables, whatever was forecast.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate import Tally
from orthobandit.estimate.confidence.evidence import Steps, step_numbers
from orthobandit.estimate.follow.cells import Cells, Measure, Series, running_sums, slopes_before, totals_at

MOST = 500_000  # numbers that a table of all contrasts and arms may have, so that it stays near the processor
MOST_FEEDS = 200_000  # plans of a bucket, summed over buckets
MOST_NUMBERS = 2_000_000  # of one kind, counts of each arm or sums: 64 MB for all four


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
        """The step number of each pair (T,)."""
        return step_numbers(self.first, len(self.plans))

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
        # Σ(y − m)² = Σy² − 2mΣy + nm²: the forecast m is one number in a cell, so its sums are enough.
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
        # One number for a (step, plan), ascending in time, so that both are read off by division.
        keys, self._place = np.unique(step * len(cells.plans) + cells.plan, return_inverse=True)
        self._plans = keys % len(cells.plans)
        owner = keys // len(cells.plans)
        steps = int(step[-1]) + 1
        self._first = np.searchsorted(owner, np.arange(steps + 1))
        self._cell = np.searchsorted(step, np.arange(steps + 1))

    def from_step(self, start: int, contrasts: int) -> Iterator[Block]:
        """Yield blocks of steps from `start` on, each small enough for a table of contrasts and arms."""
        # A step is never cut in two: residuals of one time have one forecast.
        size = max(MOST // (contrasts * len(self._cells.arms)), 1)
        steps = len(self._first) - 1
        while start < steps:
            stop = int(np.searchsorted(self._first, self._first[start] + size, side="right")) - 1
            stop = min(max(stop, start + 1), steps)
            yield self.block(start, stop)
            start = stop

    def plans_of(self, stop: int) -> Whole:
        """Return the distinct plans of the steps before `stop`."""
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


class Timeline:
    """The buckets of a log that have rows, as steps 0 to S − 1.

    What is followed is the metric less its covariates, each times a slope from earlier buckets, or less a
    ratio times another column; with covariates the plain metric is beside it. These are the lines.

    Parameters
    ----------
    cells : Cells
        Some with rows.
    measure : Measure
    is_once : bool
        Whether slopes come from all rows, for a log that is looked at as a whole.

    Attributes
    ----------
    buckets : (S,) array of int
        In the cells.
    times, rows : (S,) arrays
        When each begins, and how many rows it has.
    sums, taken : lists of (S,) arrays
        Of each line: the sum of its rows, and what was taken off its level (:class:`Series`).
    squares : (S,) array
        Sum of squares of the first line.
    blocks : Blocks
    """

    def __init__(self, cells: Cells, measure: Measure, *, is_once: bool = False) -> None:
        some = cells.only(cells.counts > 0)
        self.buckets, first, step = np.unique(some.bucket, return_index=True, return_inverse=True)
        if is_once:
            self.buckets = self.buckets[:1]
            first = first[:1]
            step = np.zeros_like(step)
        self.times = cells.times[self.buckets]
        rows = running_sums(some.counts.astype(np.float64), first)
        sums = running_sums(some.sums, first)
        self.rows = np.diff(rows)
        means = sums / np.maximum(rows, 1.0)[:, np.newaxis]
        # Row s of running sums is what came before step s; the last row is of everything.
        known = slice(1, None) if is_once else slice(-1)  # with the rows of the step, or without
        series = [
            Series(some, step, c[known], measure.column, means[known])
            for c in coefficients_of(some, first, measure)
        ]
        self.sums = [np.add.reduceat(one.sums, first) for one in series]
        self.squares = np.add.reduceat(series[0].squares, first)
        self.taken = [one.taken for one in series]
        self.blocks = Blocks(some, step, series)

    def levels(self, step: int, moved: float) -> list[float]:
        """Return the mean of every line in a step, less its part of `moved`, the rows' summed arm values."""
        return [float((sums[step] - moved) / self.rows[step]) for sums in self.sums]


def coefficients_of(cells: Cells, first: Whole, measure: Measure) -> list[Array]:
    """Return c (S + 1, q) of the series, and of the plain metric if covariates are taken from it."""
    c = np.zeros((len(first) + 1, len(cells.columns)))
    c[:, measure.column] = 1.0
    if measure.denominator is not None:
        c[:, measure.denominator] -= measure.ratio
    if not measure.covariates:
        return [c]
    adjusted = c.copy()
    covariates = np.array(measure.covariates, dtype=np.int64)
    adjusted[:, covariates] -= slopes_before(cells, first, measure.column, covariates)
    return [adjusted, c]


@dataclass(frozen=True, eq=False)
class Counted:
    """Buckets as they were counted, one step each, with their plans (G,) and forecasts (S,).

    Attributes
    ----------
    plans : (G,) array of int
    forecasts : (S,) array
    steps : Steps
    sums : (G, K) array
        Of the values, before anything was taken off.
    ends : (K,) arrays, twice
        Smallest and largest residual of each arm.
    """

    plans: Whole
    forecasts: Array
    steps: Steps
    sums: Array
    ends: tuple[Array, Array]


class Bucket(NamedTuple):
    """One bucket as it was counted: when it begins, plans (G,), arm values (K,), tally (G, K)."""

    begins: float
    plans: Whole
    values: Array
    tally: Tally


class Feeds:
    """Plans, values of the arms and tallies of all buckets, in the order of time.

    Attributes
    ----------
    count : int
        Plans of a bucket, summed over buckets.
    """

    def __init__(self) -> None:
        self.count = 0
        self._arms = 0
        self._pilot = list[tuple[Counted, Array]]()
        self._counted = list[tuple[Counted, Array]]()

    def __iter__(self) -> Iterator[tuple[Whole, Array, Tally]]:
        """Yield plans (G,), values (K,) of the arms and tally (G, K) of each bucket that counted."""
        for bucket in self.counted():
            yield bucket.plans, bucket.values, bucket.tally

    def pilot(self) -> Iterator[Bucket]:
        """Yield the buckets before the first that counted; their residuals are around their own means."""
        return _buckets(self._pilot)

    def counted(self) -> Iterator[Bucket]:
        """Yield the buckets that counted."""
        return _buckets(self._counted)

    @property
    def are_kept(self) -> bool:
        """Whether there were few enough to keep; otherwise none is kept."""
        return self.count <= MOST_FEEDS and self.count * self._arms <= MOST_NUMBERS

    def add(self, counted: Counted, begins: Array, *, is_pilot: bool = False) -> None:
        """Add some buckets, and when each (S,) begins."""
        self.count = self.count + len(counted.plans)
        self._arms = counted.steps.tally.count
        if self.are_kept:
            (self._pilot if is_pilot else self._counted).append((counted, begins))
        else:
            self._pilot.clear()
            self._counted.clear()


def _buckets(kept: list[tuple[Counted, Array]]) -> Iterator[Bucket]:
    for one, begins in kept:
        edges = np.append(one.steps.first, len(one.plans)).tolist()
        rows = zip(begins.tolist(), one.steps.values, pairwise(edges), strict=True)
        for start, values, (begin, end) in rows:
            yield Bucket(start, one.plans[begin:end], values, one.steps.tally[begin:end])
