"""A log as tables of sums: cells of a GROUP BY, a series made from them, and both in the order of time.

A timeline has one step per bucket. Its tables have sums, squares and ends of the series by plan and arm. A
forecast is one number per bucket, so that tallies of residuals follow from these tables, whatever was
forecast.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Confidence, Tally
from orthobandit.estimate.confidence.evidence import Steps, step_numbers
from orthobandit.estimate.follow.row_file import RowFile

LIKE_A_ROW = 10.0  # rows whose worth the ridge of covariates has
MOST = 500_000  # numbers that a table of all contrasts and arms may have, so that it stays near the processor
MOST_FEEDS = 200_000  # plans of a bucket, summed over buckets
MOST_NUMBERS = 2_000_000  # of one kind, counts of each arm or sums: 64 MB for all four
ROUNDING = 1e-12  # part of a sum of squares


@dataclass(frozen=True, eq=False)
class Cells:
    """A log as a GROUP BY: one cell per (bucket, plan, arm, segment) that has rows; sorted by bucket.

    The whole analysis follows from these few numbers (docs/logs_derivations.md), so a billion rows are read
    once, by the engine that holds them. Values are counted from `offset`: a sum of squares keeps its digits
    whatever the level of a column.

    Attributes
    ----------
    arms : ArmSet
        K arms; one-hot without a file of features.
    plans : (P, K) array
        The distributions that arms were drawn from.
    times : (B,) array
        When each bucket begins: seconds since 1970 (UTC), or in units of the time column; ascending.
    width : float
        Length of a bucket, in the units of `times`; 0 if there is a single one without time.
    is_clock : bool
        Whether `times` are seconds since 1970.
    segments : tuple of str
        Names; ``("",)`` without segments.
    columns : tuple of str
        The q columns whose moments are kept: metrics first, then covariates.
    offset : (q,) array
        What was subtracted from each column before it was added up.
    bucket, plan, arm, segment : (G,) arrays of int
        Which bucket, plan, arm and segment a cell is.
    counts : (G,) array of int
        Rows (or units) whose columns are all there; sums are over these.
    missing : (G, q) array of int
        Rows of which a column was missing or not finite. Where missing values count as zero, these rows are
        in `counts` as well; where they are dropped, they are not.
    dropped : (G,) array of int
        Rows left out because a column was missing.
    sums : (G, q) array
        Σ(v − offset).
    products : (G, q, q) array
        Σ(v − offset)(v − offset)ᵀ; NaN for pairs that nobody asked for.
    low, high : (G, q) arrays
        Smallest and largest v − offset; 0 where `counts` is 0.
    capped : (G, q) array of int
        Rows whose value was cut to the cap.
    slopes : (q, q) array or None
        Guessed slopes of metrics (rows) on covariates, from a few rows.
    rest_low, rest_high : (G, q) arrays or None
        Smallest and largest v − slopes·v of each metric: with covariates a residual may be far smaller than
        the metric.
    below : (G, J) array of int or None
        Rows whose value is at most each threshold of each quantile that is asked for.
    own : RowFile or None
        The rows, if each has a distribution of its own. Then a plan of `plans` is the mean of those of one
        bucket and segment: right for what is linear in them, and all else asks the rows.
    is_part : bool
        Whether these are the cells of a single segment out of several.
    """

    arms: ArmSet
    plans: Array
    times: Array
    width: float
    is_clock: bool
    segments: tuple[str, ...]
    columns: tuple[str, ...]
    offset: Array
    bucket: Whole
    plan: Whole
    arm: Whole
    segment: Whole
    counts: Whole
    missing: Whole
    dropped: Whole
    sums: Array
    products: Array
    low: Array
    high: Array
    capped: Whole
    slopes: Array | None = None
    rest_low: Array | None = None
    rest_high: Array | None = None
    below: Whole | None = None
    own: RowFile | None = None
    is_part: bool = False

    @property
    def rows(self) -> int:
        """Rows that count."""
        return int(self.counts.sum())

    def time_words(self, time: float) -> str:
        """Return a time of the log in words: date and minute (UTC), or the number if there is no clock."""
        return time_words(time, is_clock=self.is_clock)

    def only(self, kept: Mask | slice) -> "Cells":
        """Return some of the cells (G,)."""
        parts = {name: getattr(self, name) for name in PER_CELL}
        return replace(self, **{name: part[kept] for name, part in parts.items() if part is not None})

    def with_counts(self) -> "Cells":
        """Return the cells with rows that count."""
        kept = self.counts > 0
        return self if kept.all() else self.only(kept)

    def of_segment(self, segment: int) -> "Cells":
        """Return the cells of one segment."""
        return replace(self.only(self.segment == segment), is_part=True)

    def of_indicator(self, place: int, name: str) -> "Cells":
        """Return the cells of a metric that is 1 where a value is at most a threshold, and 0 elsewhere.

        Parameters
        ----------
        place : int
            Of the threshold, in `below`.
        name : str
            Of the metric.
        """
        if self.below is None:
            raise AssertionError("a quantile was asked for")
        ones = self.below[:, place, np.newaxis].astype(np.float64)
        none = np.zeros_like(self.missing[:, :1])
        return replace(
            self,
            columns=(name,),
            offset=np.zeros(1),
            missing=none,
            sums=ones,
            products=ones[..., np.newaxis],
            low=(ones >= self.counts[:, np.newaxis]).astype(np.float64),
            high=(ones > 0).astype(np.float64),
            capped=none,
            slopes=None,
            rest_low=None,
            rest_high=None,
            below=None,
        )

    def with_rows(self, least: int) -> "Cells":
        """Return the cells with small buckets joined to those after them, to at least `least` rows."""
        rows = np.bincount(self.bucket, self.counts, minlength=len(self.times))
        joined = join_small_buckets(rows, least)
        return replace(self, bucket=joined[self.bucket])


PER_CELL = (
    "bucket",
    "plan",
    "arm",
    "segment",
    "counts",
    "missing",
    "dropped",
    "sums",
    "products",
    "low",
    "high",
    "capped",
    "rest_low",
    "rest_high",
    "below",
)


def join_small_buckets(rows: Array | Whole, least: int) -> Whole:
    """Return the bucket (B,) that each bucket is joined to, so that all but the last have `least` rows.

    Examples
    --------
    >>> join_small_buckets(np.array([1.0, 5.0, 2.0, 1.0, 3.0]), 4).tolist()
    [0, 0, 2, 2, 2]
    """
    # Joined forwards: which buckets are joined rests on earlier rows, and stays so as the log grows.
    joined = np.arange(len(rows))
    first = 0
    gathered = 0.0
    for bucket, count in enumerate(rows.tolist()):
        joined[bucket] = first if gathered else bucket
        first = int(joined[bucket])
        gathered = gathered + count
        if gathered >= least:
            gathered = 0.0
    return joined


def time_words(time: float, *, is_clock: bool) -> str:
    """Return a time in words: date and minute (UTC) of seconds since 1970, or the number it is."""
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}" if is_clock else f"{time:g}"


def totals_at(index: Whole, values: Array | Whole, length: int) -> Array:
    """Return the sums (length,) of values (n,) that have the same index."""
    return np.asarray(np.bincount(index, values, minlength=length), dtype=np.float64)


@dataclass(frozen=True)
class Measure:
    """How one metric is followed.

    Attributes
    ----------
    column : int
        Of the metric, or of the numerator of a ratio.
    denominator : int or None
        Of a ratio; what is followed is the numerator less `ratio` times it.
    covariates : tuple of int
    confidence : Confidence
        In units of the column as kept, less its offset.
    delta : float
        For all gaps of the metric to the reference arm together.
    baseline : str
    reference : int
    ratio : float
    is_recorded : bool
        Whether to keep the tallies for a certificate.
    is_two_valued : bool
        Whether all values of the log are 0 or 1, for intervals at one look.
    is_sequential : bool
        Whether the log may be looked at again when it has grown. Then a single bucket is the pilot of what
        comes, and not a log to be looked at as a whole.
    """

    column: int
    denominator: int | None
    covariates: tuple[int, ...]
    confidence: Confidence
    delta: float
    baseline: str
    reference: int
    ratio: float = 0.0
    is_recorded: bool = False
    is_two_valued: bool = False
    is_sequential: bool = False


class Series:
    """Rows of cells as one series y = cᵀ(v − offset): sums, squares and range of every cell.

    Parameters
    ----------
    cells : Cells
    step : (G,) array of int
        Of S steps in time, that each cell is of.
    coefficients : (S, q) array
        c, known before the rows of each step.
    metric : int
        The column that the others are taken from.
    means : (S, q) array
        Average of the columns before each step.

    Attributes
    ----------
    sums, squares, low, high : (G,) arrays
    taken : (S,) array
        What the other columns take off the level of the metric, as far as `means` tell: levels are forecast
        without it, for it changes with the coefficients.
    """

    def __init__(self, cells: Cells, step: Whole, coefficients: Array, metric: int, means: Array) -> None:
        used = np.flatnonzero(coefficients.any(axis=0))
        c = coefficients[step]
        # The level of the metric itself is forecast; what the other columns add to it is known from their
        # means.
        others = np.where(np.arange(c.shape[1]) == metric, 0.0, coefficients)
        self.taken = np.einsum("sq,sq->s", others, means)
        self.sums = np.einsum("gq,gq->g", cells.sums[:, used], c[:, used])
        products = cells.products[:, used[:, np.newaxis], used]
        self.squares = np.einsum("gi,gij,gj->g", c[:, used], products, c[:, used])
        self.low, self.high = _ends(cells.low, cells.high, c)
        # Ends of a sum are far apart where metric and covariate go together. The engine also has the ends of
        # what slopes guessed from a few rows leave; only the rest of the coefficients is added to these.
        if cells.slopes is not None and cells.rest_low is not None and cells.rest_high is not None:
            left = c + cells.slopes[metric]
            left[:, metric] = 0.0
            low, high = _ends(cells.low, cells.high, left)
            self.low = np.maximum(self.low, cells.rest_low[:, metric] + low)
            self.high = np.minimum(self.high, cells.rest_high[:, metric] + high)


def _ends(low: Array, high: Array, coefficients: Array) -> tuple[Array, Array]:
    """Return the range (G,) of cᵀv for v between `low` and `high`; c, `low` and `high` are (G, q)."""
    one = low * coefficients
    other = high * coefficients
    return np.minimum(one, other).sum(axis=1), np.maximum(one, other).sum(axis=1)


def slopes_before(cells: Cells, first: Whole, metric: int, covariates: Whole) -> Array:
    """Return regression slopes of a metric on covariates, within cells, from the rows before each step.

    Parameters
    ----------
    cells : Cells
        In the order of time, all with rows.
    first : (S,) array of int
        The first cell of each step.
    metric : int
        Its column.
    covariates : (c,) array of int
        Theirs.

    Returns
    -------
    (S + 1, c) array
        0 for covariates that do not vary; the last row is of all rows.
    """
    columns = np.append(covariates, metric).astype(np.int64)
    products = cells.products[:, columns[:, np.newaxis], columns]
    return slopes_within(cells.counts.astype(np.float64), cells.sums[:, columns], products, first)


def slopes_within(counts: Array, sums: Array, products: Array, first: Whole) -> Array:
    """Return regression slopes of the last column on the others, within groups of rows, before each step.

    Parameters
    ----------
    counts : (G,) array
        Rows of each group, above 0; groups are in the order of time.
    sums, products : (G, c + 1) and (G, c + 1, c + 1) arrays
        Σv and Σvvᵀ of each group.
    first : (S,) array of int
        The first group of each step.

    Returns
    -------
    (S + 1, c) array
        0 for columns that do not vary; the last row is of all rows.
    """
    # Around the means of each cell: arms and times that differ in level must not look like a slope.
    around = products - sums[:, :, np.newaxis] * (sums / counts[:, np.newaxis])[:, np.newaxis]
    scatter = running_sums(around, first)
    # A cell of n rows has n − 1 degrees of freedom around its own mean.
    rows = running_sums(np.maximum(counts - 1.0, 0.0), first)
    sizes = np.diagonal(scatter, axis1=1, axis2=2)[:, :-1]
    # What rounding leaves of a column that is constant in every group is no scatter.
    squares = running_sums(np.diagonal(products, axis1=1, axis2=2)[:, :-1], first)
    vary = (sizes > ROUNDING * squares) & (rows > 0)[:, np.newaxis]
    scale = np.sqrt(np.where(vary, sizes, 1.0))
    unit = scatter[:, :-1, :-1] / scale[:, np.newaxis] / scale[:, :, np.newaxis]
    unit = np.where(vary[:, np.newaxis] & vary[:, :, np.newaxis], unit, 0.0)
    # In units of each covariate's scatter, so that no unit matters; + 1 keeps covariates that do not vary
    # solvable.
    ridge = LIKE_A_ROW / np.maximum(rows, 1.0)[:, np.newaxis] + ~vary
    unit += ridge[:, np.newaxis] * np.eye(sums.shape[1] - 1)
    moment = np.where(vary, scatter[:, :-1, -1] / scale, 0.0)
    return np.asarray(np.linalg.solve(unit, moment[..., np.newaxis])[..., 0] / scale)


def sorted_keys(keys: Whole) -> tuple[Whole, Whole]:
    """Return distinct keys in ascending order, and the place of each key (G,) among them.

    Cells are mostly in the order of their keys, and then nothing has to be sorted.

    Examples
    --------
    >>> [part.tolist() for part in sorted_keys(np.array([2, 2, 5, 7, 7]))]
    [[2, 5, 7], [0, 0, 1, 2, 2]]
    >>> [part.tolist() for part in sorted_keys(np.array([7, 2]))]
    [[2, 7], [1, 0]]
    """
    steps = np.diff(keys)
    if len(keys) and steps.min(initial=0) >= 0:
        is_new = np.concatenate([[True], steps > 0])
        return keys[is_new], np.cumsum(is_new) - 1
    distinct, place = np.unique(keys, return_inverse=True)
    return distinct, place


def running_sums(values: Array, first: Whole) -> Array:
    """Return the sums (S + 1, ...) of values (G, ...) before each of S steps, and after the last.

    Examples
    --------
    >>> running_sums(np.array([1.0, 2.0, 3.0]), np.array([0, 2])).tolist()
    [0.0, 3.0, 6.0]
    """
    out = np.zeros((len(first) + 1, *values.shape[1:]))
    np.cumsum(np.add.reduceat(values, first, axis=0), axis=0, out=out[1:])
    return out


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
        keys, self._place = sorted_keys(step * len(cells.plans) + cells.plan)
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
        some = cells.with_counts()
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
        self._is_left_out = False
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
        few = self.count <= MOST_FEEDS and self.count * self._arms <= MOST_NUMBERS
        return few and not self._is_left_out

    def leave_out(self, count: int) -> None:
        """Keep none of the buckets to come, which have so many plans in all."""
        self.count = count
        self._is_left_out = True

    def add(self, counted: Counted, begins: Array, *, is_pilot: bool = False) -> None:
        """Add some buckets, and when each (S,) begins."""
        if self._is_left_out:
            return
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
