"""The one GROUP BY: a log in any engine becomes cells of counts, sums, products and ends."""

from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import Argument, InputError, ParameterError, RewardError
from orthobandit.estimate.follow.cells import MOST_FEEDS, MOST_NUMBERS, Cells
from orthobandit.logs.question import Quantile, Question
from orthobandit.logs.reading.arguments import check_question, refuse_missing
from orthobandit.logs.reading.clock import Clock, clock_of, when_of
from orthobandit.logs.reading.own_rows import read_own_rows
from orthobandit.logs.reading.plans import Drawn, read_draws
from orthobandit.logs.reading.rows import (
    MOST_EXACT,
    Rows,
    UnitCounts,
    repeated_rows,
    repeating_unit,
    rows_of,
    segments_of,
    units_of,
)
from orthobandit.logs.reading.source import SAMPLE_ROWS, Opened, first_row, ibis

MAX_SQUARE = 1e200  # of the squares of a cell: products of three such values must stay finite
OWN_SHARE = 0.5  # distinct distributions a row, from which on they are the rows' own
THRESHOLD_ROWS = 500  # the first in time, that choose where the distribution is looked at
# Thresholds around the quantile of these rows, and how many of its standard errors they reach to each side.
INNER_THRESHOLDS = 32
REACH_ERRORS = 4.0
# The same for a log that is looked at as a whole, where thresholds share nothing out.
WIDE_THRESHOLDS = 97
WIDE_REACH_ERRORS = 12.0
FAR_DEVIATIONS = 100.0  # standard deviations from 0 at which a level is taken off before squares are added up
# Rows from which that level is taken: few, so that it stays as the log grows, and certificates with it.
OFFSET_ROWS = 500


@dataclass(frozen=True, eq=False)
class Gathered:
    """A log after its GROUP BY.

    Attributes
    ----------
    cells : Cells
    units : UnitCounts or None
        With a column of units.
    notes : tuple of str
        What a reader should know of how the log was read.
    is_binary : (q,) array of bool
        Whether a column holds only 0 and 1 in this log.
    end : float or None
        The last time of any row, where units have a window.
    is_boolean : (q,) array of bool or None
        Whether a column can hold nothing but 0 and 1, by its type; None if no type is known. Sums over the
        rows of a unit can be more.
    bucket_rule : dict
        The rule for the boundaries of all buckets: width, origin, and the number of widths after which
        buckets double with time (None if never).
    longest : float
        Length of the longest bucket; 0 if not known.
    quantiles : tuple of Quantile
        With the thresholds at which rows were counted.
    quantiles_from : float
        Rows after this time count for quantiles; those before it chose the thresholds.
    rounding : float
        Most that the mean of an arm in a cell may be off by, if values have bounds and means were printed.
    """

    cells: Cells
    units: UnitCounts | None
    notes: tuple[str, ...]
    is_binary: Mask
    end: float | None = None
    is_boolean: Mask | None = None
    bucket_rule: dict[str, Any] = field(default_factory=dict)
    longest: float = 0.0
    quantiles: tuple[Quantile, ...] = ()
    quantiles_from: float = -np.inf
    rounding: float = 0.0


@dataclass(frozen=True)
class Moments:
    """Aggregates of G groups, named as in :class:`~orthobandit.estimate.follow.cells.Cells`.

    In addition, `rows` (G,) counts all rows, `there` (G,) those without NULL, and `raw` (G, q) has sums
    before caps, 0 where there is no cap.
    """

    counts: Whole
    rows: Whole
    there: Whole
    raw: Array
    missing: Whole
    sums: Array
    products: Array
    low: Array
    high: Array
    capped: Whole
    rest_low: Array | None
    rest_high: Array | None
    below: Whole | None

    @property
    def is_whole(self) -> bool:
        """Whether no value was missing or not finite."""
        is_there = np.array_equal(self.there, self.counts)
        ends = np.isfinite(self.raw) & np.isfinite(self.sums) & np.isfinite(self.low) & np.isfinite(self.high)
        return bool(is_there and np.all(ends))


def cells_of(opened: Opened, question: Question, *, by_row: bool = False) -> Gathered:
    """Ask an opened log for its cells.

    Parameters
    ----------
    opened : Opened
        From :func:`~orthobandit.logs.reading.source.open_source`.
    question : Question
    by_row : bool
        Whether rows that have distributions of their own may stay in a file, beside cells that are grouped by
        bucket, arm and segment alone.

    Examples
    --------
    >>> import pyarrow
    >>> from orthobandit.logs.reading.source import open_source
    >>> rows = pyarrow.table({"arm": ["a", "b", "a"], "reward": [0.0, 1.0, 1.0]})
    >>> with open_source(rows) as opened:
    ...     found = cells_of(opened, Question("arm", "reward", split="equal"))
    >>> found.cells.counts.tolist(), found.cells.sums[:, 0].tolist(), found.is_binary.tolist()
    ([2, 1], [1.0, 1.0], [True])
    """
    check_question(opened, question)
    clock = clock_of(opened, question)
    if by_row and _have_own_rows(opened, question):
        kept = _gather_own_rows(opened, question, clock)
        if kept is not None:
            return kept
    question, quantiles_from = choose_thresholds(opened, question, clock)
    offset = find_offsets(opened, question)
    guessed = guess_slopes(opened, question)
    groups, rows = _ask_groups(opened, question, clock, (offset, guessed))
    found = read_moments(groups, question, is_masked=rows.is_masked)
    check_times_and_units(opened, question, groups)
    origin = read_draws(opened, question, groups, found.rows)
    # Asked first as if nothing were missing, which is the usual case; masks only if they are needed.
    if not found.is_whole:
        refuse_missing(opened, question)
        groups, rows = _ask_groups(opened, question, clock, (offset, guessed), is_masked=True)
        found = read_moments(groups, question, is_masked=rows.is_masked)
        origin = read_draws(opened, question, groups, found.rows)
    found_in_rows = (
        repeating_unit(opened, question, groups, found.rows),
        # Copies of a row are in one group with it: where no group has two rows there are none.
        repeated_rows(opened, int(found.rows.sum()))
        if question.unit is None and found.rows.max(initial=0) > 1
        else None,
    )
    gathered = _assemble(question, clock, groups, found, origin, offset, guessed)
    notes = opened.notes + gathered.notes + tuple(note for note in found_in_rows if note)
    is_boolean = _are_boolean(opened, question)
    return replace(gathered, notes=notes, is_boolean=is_boolean, quantiles_from=quantiles_from)


def _have_own_rows(opened: Opened, question: Question) -> bool:
    """Tell whether each row has its own distribution, and no option of the question needs groups of rows."""
    if not opened.is_ordered or question.time is None or len(question.probabilities) < 2:
        return False
    others = (question.arms, question.plan, question.plans, question.split, question.summary)
    if any(one is not None for one in others):
        return False
    if question.covariates or question.context or question.quantiles or question.ratios:
        return False
    sample = opened.sample
    names = [name for name in question.probabilities if name in sample.column_names]
    few = len(sample.group_by(names).aggregate([])) if names else 0
    if few < OWN_SHARE * len(sample):
        return False
    table = opened.table
    wanted = {f"d{place}": table[name].approx_nunique() for place, name in enumerate(names)}
    row = opened.fetch(table.aggregate(n=table.count(), **wanted)).to_pylist()[0]
    rows = int(row.pop("n"))
    # Of fewer rows a certificate can list all, and it does.
    is_many = rows > MOST_FEEDS or rows * len(question.probabilities) > MOST_NUMBERS
    return is_many and max(row.values()) >= OWN_SHARE * rows


def _are_boolean(opened: Opened, question: Question) -> Mask:
    """Return which columns (q,) can hold nothing but 0 and 1."""
    return np.array([question.unit is None and opened.schema[name].is_boolean() for name in question.columns])


def _gather_own_rows(opened: Opened, question: Question, clock: Clock) -> Gathered | None:
    """Return a log whose rows have distributions of their own; None if something is wrong with it."""
    found = read_own_rows(opened, question, clock, find_offsets(opened, question))
    if found is None:
        return None
    cells = found.cells
    if not _are_small(np.diagonal(cells.products, axis1=1, axis2=2), cells.sums):
        return None
    check_times_and_units(opened, question, found.groups)
    rows = int(found.counts.sum())
    found_in_rows = (
        repeating_unit(opened, question, found.groups, found.counts),
        repeated_rows(opened, rows)
        if question.unit is None and rows <= MOST_EXACT and found.have_copies()
        else None,
    )
    units = None
    if question.unit is not None:
        seen, several = (int(found.groups[name].to_numpy().sum()) for name in ("rows", "several"))
        units = UnitCounts(rows, seen, several)
    return Gathered(
        cells,
        units,
        (*opened.notes, *found.notes, *(note for note in found_in_rows if note)),
        _are_binary(cells),
        end=_last_time(found.groups),
        is_boolean=_are_boolean(opened, question),
        bucket_rule=clock.rule,
        longest=clock.longest(np.round((cells.times - clock.origin) / clock.width).astype(np.int64)),
    )


def gather_groups(
    opened: Opened, question: Question, clock: Clock, groups: Any, *, offset: Array, is_masked: bool = False
) -> Gathered:
    """Return the log from groups that were made elsewhere: by a warehouse, or from a summary.

    Parameters
    ----------
    opened : Opened
        For messages.
    question : Question
    clock : Clock
    groups : pyarrow.Table
        Under the names of :func:`list_aggregates`.
    offset : (q,) array
        What was subtracted from each column.
    is_masked : bool
        Whether groups count missing values.
    """
    found = read_moments(groups, question, is_masked=is_masked)
    if not found.is_whole:
        gone = int((found.rows - found.there).sum())
        raise RewardError(
            f"a metric or covariate is missing or not finite in {gone:,} of {int(found.rows.sum()):,} rows:"
            " choose ",
            Argument("missing", "zero"),
            " or ",
            Argument("missing", "drop"),
            ", and print and run the SQL again",
        )
    check_units(question, groups)
    origin = read_draws(opened, question, groups, found.rows)
    gathered = _assemble(question, clock, groups, found, origin, offset, None)
    return replace(gathered, notes=opened.notes + gathered.notes)


def _assemble(
    question: Question,
    clock: Clock,
    groups: Any,
    found: Moments,
    origin: Drawn,
    offset: Array,
    guessed: Array | None,
) -> Gathered:
    """Return the log from the result of its GROUP BY."""
    _check_size(question, found)
    cells = replace(_arrange_cells(question, clock, groups, found, origin), offset=offset, slopes=guessed)
    units = _unit_counts(question, groups, found)
    numbers = np.round((cells.times - clock.origin) / (clock.width or 1.0)).astype(np.int64)
    return Gathered(
        cells,
        units,
        origin.notes,
        _are_binary(cells),
        end=_last_time(groups),
        bucket_rule=clock.rule,
        longest=clock.longest(numbers),
        quantiles=question.quantiles,
    )


def _last_time(groups: Any) -> float | None:
    """Return the last time of any row, whether it counts or not; None unless units have a window."""
    if "last" not in groups.column_names:
        return None
    times = groups["last"].drop_null().to_numpy()
    return float(times.max()) if len(times) else None


def _ask_groups(
    opened: Opened,
    question: Question,
    clock: Clock,
    guesses: tuple[Array, Array | None],
    *,
    is_masked: bool = False,
) -> tuple[Any, Rows]:
    """Run the GROUP BY; return its result as a pyarrow table, and the rows it grouped."""
    groups, rows = group_rows(opened, question, clock, guesses, is_masked=is_masked)
    return opened.fetch(groups), rows


def group_rows(
    opened: Opened,
    question: Question,
    clock: Clock,
    guesses: tuple[Array, Array | None],
    *,
    is_masked: bool = False,
) -> tuple[Any, Rows]:
    """Return the GROUP BY as an Ibis expression, and the rows that it groups; nothing is read yet.

    Parameters
    ----------
    opened : Opened
    question : Question
    clock : Clock
    guesses : ((q,) array, (q, q) array or None)
        Offsets and slopes, from the first rows.
    is_masked : bool
        Whether some values are missing.
    """
    rows = rows_of(opened, question, clock, is_masked=is_masked)
    if question.unit is not None:
        rows = units_of(rows, question.window)
    table = rows.table
    # All that was fixed when the arm was drawn: rows alike in it were drawn alike.
    keys = list(rows.attributes)
    if clock.column is not None:
        table = table.mutate(bucket=clock.bucket(table.when))
        keys = ["bucket", *keys]
    wanted = list_aggregates(table, rows, question, *guesses)
    return table.group_by(keys).aggregate(**wanted), rows


def check_times_and_units(opened: Opened, question: Question, groups: Any) -> None:
    """Refuse rows without a time, units without a name, and units whose first row is ambiguous."""
    if question.time is not None:
        empty = groups["bucket"].is_null().to_numpy()
        if np.any(empty):
            _refuse_times(opened, question.time, question.time_unit)
    if question.unit is not None and groups["nameless"].to_numpy().sum():
        where = first_row(opened, opened.table[question.unit].isnull())
        raise InputError(
            Argument("unit", question.unit), f" is empty in some rows{where}; every row needs its unit"
        )
    check_units(question, groups)


def check_units(question: Question, groups: Any) -> None:
    """Refuse units whose first row is ambiguous."""
    if question.unit is None:
        return
    several = int(groups["several"].to_numpy().sum())
    if several and question.time is None:
        raise ParameterError(
            Argument("unit", question.unit),
            f": {several:,} units were seen in several arms, and without a time column"
            " nothing says which came first; name it with time",
        )


def _refuse_times(opened: Opened, name: str, unit: str | None) -> None:
    """Raise the error for rows whose time is missing or cannot be read."""
    when, is_clock = when_of(opened, name, unit)
    bad = opened.table.filter(when.isnull())
    total = opened.fetch(bad.aggregate(n=bad.count(), empty=bad[name].isnull().cast("int32").sum()))
    count = total["n"][0].as_py()
    empty = int(total["empty"][0].as_py())
    where = first_row(opened, when.isnull())
    if count == empty:
        raise InputError(
            Argument("time", name), f" is missing in {count:,} rows{where}; mend these or leave them out"
        )
    unread = bad.filter(bad[name].notnull())
    example = opened.fetch(unread.select(value=unread[name]).limit(1))["value"][0].as_py()
    form = "ISO times such as 2025-03-01 14:05:00" if is_clock and unit is None else "finite numbers"
    raise InputError(
        Argument("time", name),
        f" cannot be read in {count - empty:,} rows (and is missing in {empty:,}){where}, such"
        f" as {example!r}; {form} are needed",
    )


def _check_size(question: Question, found: Moments) -> None:
    for place, name in enumerate(question.columns):
        if not _are_small(found.products[:, place, place], found.sums[:, place]):
            raise RewardError(f"{name!r} has values whose squares are too large to add up; divide the column")


def _are_small(squares: Array, sums: Array) -> bool:
    """Tell whether values can be added up, given sums of squares and sums of the values."""
    return bool(np.all((squares <= MAX_SQUARE) & np.isfinite(sums)))


def _arrange_cells(question: Question, clock: Clock, groups: Any, found: Moments, origin: Drawn) -> Cells:
    """Return the groups as cells, sorted by bucket, plan, arm and segment."""
    size = len(groups)
    segments, segment = segments_of(question, groups)
    buckets = np.zeros(1, dtype=np.int64)
    bucket = np.zeros(size, dtype=np.int64)
    if clock.column is not None:
        buckets, bucket = np.unique(groups["bucket"].to_numpy().astype(np.int64), return_inverse=True)
    # Engines return groups in any order; what follows needs that of time, and the same in every run.
    sizes = (len(buckets), len(origin.plans), len(origin.arms), len(segments))
    if prod(sizes) < 2**63:
        # One number for all four: it is sorted several times as fast.
        one = ((bucket * sizes[1] + origin.plan) * sizes[2] + origin.arm) * sizes[3] + segment
        order = np.argsort(one, kind="stable")
    else:
        order = np.lexsort((segment, origin.arm, origin.plan, bucket))
    return Cells(
        arms=origin.arms,
        plans=origin.plans,
        times=clock.begins(buckets) if clock.column else np.zeros(1),
        width=clock.width,
        is_clock=clock.is_clock,
        segments=segments,
        columns=question.columns,
        offset=np.zeros(len(question.columns)),
        bucket=bucket[order].astype(np.int64),
        plan=origin.plan[order],
        arm=origin.arm[order],
        segment=segment[order],
        counts=found.counts[order],
        missing=found.missing[order],
        dropped=(found.rows - found.counts)[order],
        sums=found.sums[order],
        products=found.products[order],
        low=found.low[order],
        high=found.high[order],
        capped=found.capped[order],
        rest_low=None if found.rest_low is None else found.rest_low[order],
        rest_high=None if found.rest_high is None else found.rest_high[order],
        below=None if found.below is None else found.below[order],
    )


def _unit_counts(question: Question, groups: Any, found: Moments) -> UnitCounts | None:
    if question.unit is None:
        return None
    rows, several = (int(groups[name].to_numpy().sum()) for name in ("rows", "several"))
    return UnitCounts(int(found.rows.sum()), rows, several)


def _are_binary(cells: Cells) -> Mask:
    """Return which columns hold only 0 and 1: then, and only then, Σv² = Σv with v in [0, 1]."""
    offset = cells.offset
    kept = cells.counts > 0
    own = np.diagonal(cells.products, axis1=1, axis2=2)
    squares = own + 2 * offset * cells.sums + cells.counts[:, np.newaxis] * offset**2
    sums = cells.sums + cells.counts[:, np.newaxis] * offset
    low, high = (cells.low + offset)[kept], (cells.high + offset)[kept]
    within = np.all(low >= 0, axis=0) & np.all(high <= 1, axis=0)
    return np.asarray(within & np.all(squares == sums, axis=0))


def choose_thresholds(opened: Opened, question: Question, clock: Clock) -> tuple[Question, float]:
    """Return the question with thresholds of all quantiles, and the time after which rows count for them.

    By default thresholds are chosen from the first rows in time. The buckets of these rows do not count, so
    thresholds are fixed before anything is claimed and stay put as the log grows.
    """
    if all(one.thresholds for one in question.quantiles):
        return question, -np.inf
    rows = rows_of(opened, question, clock)
    if question.unit is not None:
        rows = units_of(rows, question.window)
    table = rows.table
    until = -np.inf
    if clock.column is not None:
        table = table.filter(table.when.notnull()).order_by("when")
        table = table.mutate(bucket=clock.bucket(table.when))
    chosen: list[Quantile] = []
    first = opened.fetch(table.limit(THRESHOLD_ROWS if clock.column is not None else SAMPLE_ROWS))
    if clock.column is not None and len(first):
        until = float(clock.begins(first["bucket"].to_numpy().max()))
    for one in question.quantiles:
        place = question.columns.index(one.metric)
        values = first[f"x{place}"].drop_null().to_numpy().astype(np.float64)
        values = np.minimum(values[np.isfinite(values)], (question.caps or {}).get(one.metric, np.inf))
        if not one.thresholds and not len(values):
            raise InputError(
                f"the first rows have no value of {one.metric!r}; give thresholds of its quantile"
            )
        is_whole = clock.column is None
        points = one.thresholds or _grid(values, one.level, is_whole=is_whole)
        chosen.append(replace(one, thresholds=points))
    return replace(question, quantiles=tuple(chosen)), until


def _grid(values: Array, level: float, *, is_whole: bool) -> tuple[float, ...]:
    """Return thresholds around a quantile of values: close where it is likely to be, wider further away.

    Parameters
    ----------
    values : (n,) array
    level : float
    is_whole : bool
        Whether the values are the whole log rather than its first rows.
    """
    reach = (WIDE_REACH_ERRORS if is_whole else REACH_ERRORS) * np.sqrt(level * (1.0 - level) / len(values))
    near = np.quantile(values, np.clip([level - reach, level + reach], 0.0, 1.0))
    inner = np.linspace(near[0], near[1], WIDE_THRESHOLDS if is_whole else INNER_THRESHOLDS)
    further = reach * np.array([-8.0, -4.0, -2.0, 2.0, 4.0, 8.0])
    around = np.quantile(values, np.clip(level + further, 0.0, 1.0))
    # The level may move by several times of what the first rows have shown.
    span = max(float(near[1] - near[0]), float(values.std()), 1e-9 * (1.0 + abs(float(near[0]))))
    away = span * np.array([0.25, 0.5, 1.0, 2.0, 4.0])
    outer = [*(near[0] - away), *(near[1] + away)]
    # A few digits are enough, and read better.
    digits = 10.0 ** (np.floor(np.log10(span)) - 3.0)
    points = np.round(np.concatenate([inner, around, outer]) / digits) * digits
    return tuple(sorted({float(f"{one:.12g}") for one in points}))


def find_offsets(opened: Opened, question: Question) -> Array:
    """Return an offset for each column (q,), usually 0, that keeps its sums of squares precise.

    The offset must not change as the log grows, or tomorrow's certificate would not continue today's. So it
    follows from the declared range, or else from the first rows.
    """
    found = np.zeros(len(question.columns))
    for place, name in enumerate(question.columns):
        found[place] = offset_of_range(question, name)
        if found[place]:
            continue
        values = opened.sample[name].cast("float64", safe=False).to_numpy()
        totals = question.unit is not None and name in question.measured
        values = _totals(opened, question.unit, values) if totals and question.unit else values
        found[place] = _offset(values[np.isfinite(values)][:OFFSET_ROWS])
    return found


def offset_of_range(question: Question, name: str) -> float:
    """Return the offset of a metric by its declared range; 0 without one, or for a range near 0."""
    low, high = question.ranges.get(name, (0.0, 0.0))
    return round_offset((low + high) / 2.0, high - low)


def _totals(opened: Opened, unit: str, values: Array) -> Array:
    codes = opened.sample[unit].combine_chunks().dictionary_encode().indices.fill_null(0).to_numpy()
    return np.asarray(
        np.bincount(codes, weights=np.where(np.isfinite(values), values, 0.0)), dtype=np.float64
    )


def _offset(values: Array) -> float:
    """Return the offset of a column from its first values."""
    # 0 and 1 stay as they are, so that sums are counts and can be seen to be.
    if not values.size or np.all((values == 0) | (values == 1)):
        return 0.0
    with np.errstate(over="ignore"):
        middle = float(np.median(values))
        spread = float(values.std())
    return round_offset(middle, spread)


def round_offset(middle: float, spread: float) -> float:
    """Return the number to subtract from values around `middle` so that their squares keep their digits."""
    if abs(middle) <= FAR_DEVIATIONS * spread:
        return 0.0
    if spread == 0:
        return middle
    # Any number near the middle would do; a round one reads better.
    unit = 10.0 ** np.floor(np.log10(spread))
    return float(np.round(middle / unit) * unit)


def guess_slopes(opened: Opened, question: Question) -> Array | None:
    """Return guessed slopes (q, q) of metrics on covariates, from the first rows; None without covariates.

    None with units as well: their metrics are sums over rows, which are not gathered for a guess.
    """
    if not question.covariates or question.unit is not None:
        return None
    q = len(question.columns)
    measured = len(question.measured)
    values = np.stack(
        [opened.sample[name].cast("float64", safe=False).to_numpy() for name in question.columns], axis=1
    )
    for place, name in enumerate(question.columns):
        values[:, place] = np.minimum(values[:, place], (question.caps or {}).get(name, np.inf))
    values = values[np.isfinite(values).all(axis=1)]
    out = np.zeros((q, q))
    if len(values) > q:
        around = values - values.mean(axis=0)
        # A guess is enough: it only makes the ends of residuals closer, which hold for any slope.
        found = np.linalg.lstsq(around[:, measured:], around[:, :measured], rcond=None)[0]
        out[:measured, measured:] = np.where(np.isfinite(found), found, 0.0).T
    return out


def product_pairs(question: Question) -> list[tuple[int, int]]:
    """Return the pairs (i ≤ j) of columns whose products are needed."""
    names = question.columns
    measured = len(question.measured)
    pairs = []
    for i in range(len(names)):
        pairs += [(i, j) for j in range(i, len(names)) if i == j or j >= measured]
    for ratio in question.ratios:
        i, j = sorted((names.index(ratio.numerator), names.index(ratio.denominator)))
        pairs += [] if (i, j) in pairs else [(i, j)]
    return pairs


def list_aggregates(
    table: Any, rows: Rows, question: Question, offset: Array, guessed: Array | None
) -> dict[str, Any]:
    """Return the expressions to aggregate, by the names under which :func:`read_moments` finds them."""
    package = ibis()
    out = {"n": table.count()}
    caps = question.caps or {}
    names = question.columns
    kept: Any = None
    if rows.is_masked and question.missing == "drop":
        kept = table.m0 == 0
        for place in range(1, rows.columns):
            kept = kept & (table[f"m{place}"] == 0)
        out["kept"] = kept.cast("int32").sum()
    values = []
    for place, name in enumerate(names):
        value = table[f"x{place}"]
        # Caps before offsets: users give them in the units of the column.
        if name in caps:
            over = value > caps[name] if kept is None else (value > caps[name]) & kept
            out[f"k{place}"] = over.fill_null(False).cast("int32").sum()
            out[f"raw{place}"] = value.sum()  # NaN and infinite values show here alone
            value = package.ifelse(value > caps[name], caps[name], value)
        value = value - offset[place] if offset[place] else value
        value = value if kept is None else package.ifelse(kept, value, None)
        values.append(value)
        out |= {f"s{place}": value.sum(), f"low{place}": value.min(), f"high{place}": value.max()}
        if rows.is_masked:
            out[f"m{place}"] = table[f"m{place}"].sum()
    if not rows.is_masked:  # a sum with NULL is NULL
        out["there"] = sum((table[f"x{place}"] for place in range(1, rows.columns)), table.x0).count()
    out |= {f"q{i}_{j}": (values[i] * values[j]).sum() for i, j in product_pairs(question)}
    if guessed is not None:
        for i in range(len(question.measured)):
            rest = values[i]
            for j in np.flatnonzero(guessed[i]):
                rest = rest - float(guessed[i, j]) * values[j]
            out |= {f"restlow{i}": rest.min(), f"resthigh{i}": rest.max()}
    for number, one in enumerate(question.quantiles):
        place = names.index(one.metric)
        for step, threshold in enumerate(one.thresholds):
            is_below = values[place] <= threshold - float(offset[place])
            out[f"b{number}_{step}"] = is_below.fill_null(False).cast("int32").sum()
    if "last" in table.columns:
        out["last"] = table["last"].max()
    return out | {name: table[name].sum() for name in rows.extra}


def read_moments(groups: Any, question: Question, *, is_masked: bool) -> Moments:
    """Return the result of the GROUP BY (a pyarrow table of G rows) as arrays."""
    q = len(question.columns)

    def whole(name: str) -> Whole:
        return np.asarray(groups[name].to_numpy().astype(np.int64))

    def each(letter: str, absent: float) -> Array:
        """Return the aggregates of all columns under one letter (G, q), `absent` where there are none."""
        names = [f"{letter}{place}" for place in range(q)]
        found = [
            groups[name].cast("float64").to_numpy()
            if name in groups.column_names
            else np.full(len(groups), absent)
            for name in names
        ]
        return np.stack(found, axis=1)

    products = np.full((len(groups), q, q), np.nan)
    for i, j in product_pairs(question):
        # A product that nobody asked for stays NaN: whoever uses it by mistake sees it.
        products[:, i, j] = products[:, j, i] = groups[f"q{i}_{j}"].cast("float64").to_numpy()
    counts = whole("kept") if "kept" in groups.column_names else whole("n")
    empty = (counts == 0)[:, np.newaxis]  # sums over no rows are NULL
    products[(counts == 0)[:, np.newaxis, np.newaxis] & ~_unasked(question)] = 0.0
    return Moments(
        counts,
        whole("n"),
        counts if is_masked else whole("there"),
        each("raw", 0.0),
        each("m", 0).astype(np.int64) if is_masked else np.zeros((len(groups), q), dtype=np.int64),
        np.where(empty, 0.0, each("s", 0.0)),
        products,
        np.where(empty, 0.0, each("low", 0.0)),
        np.where(empty, 0.0, each("high", 0.0)),
        each("k", 0).astype(np.int64),
        np.where(empty, 0.0, each("restlow", 0.0)) if "restlow0" in groups.column_names else None,
        np.where(empty, 0.0, each("resthigh", 0.0)) if "resthigh0" in groups.column_names else None,
        _read_below(groups, question),
    )


def _read_below(groups: Any, question: Question) -> Whole | None:
    """Return the rows (G, J) at or below each threshold, those of all quantiles side by side."""
    names = [
        f"b{number}_{step}"
        for number, one in enumerate(question.quantiles)
        for step in range(len(one.thresholds))
    ]
    if not names:
        return None
    return np.stack([groups[name].fill_null(0).to_numpy().astype(np.int64) for name in names], axis=1)


def _unasked(question: Question) -> Mask:
    """Return which products (q, q) were not asked for."""
    q = len(question.columns)
    unasked = np.ones((q, q), dtype=bool)
    for i, j in product_pairs(question):
        unasked[i, j] = unasked[j, i] = False
    return unasked
