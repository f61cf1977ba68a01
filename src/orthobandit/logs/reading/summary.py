"""Aggregated data: a table of count, mean and variance per arm and period becomes cells without its rows.

A cell needs the count, Σv and Σv² of its rows, and these follow from count, mean and variance:
Σv = n·mean and Σ(v − c)² = (n − 1)·variance + n·(mean − c)². So the GROUP BY is skipped, and everything after
it is the same as for rows. Only the smallest and the largest value of a cell are unknown; see :func:`_ends`.

If nobody declared the split, each period and segment has the shares that were counted in it, and rows of
different periods are never added up: see :func:`_strata`.

Cumulative figures ("up to day 7") are differenced first. With A what came before, B the period and T both,
Σ(v − mean)² adds up as T = A + B + (mean_B − mean_A)²·n_A·n_B/n_T (Chan, Golub & LeVeque 1983), solved for B.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from orthobandit._foundation.extras import pyarrow
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import Argument, InputError, ParameterError
from orthobandit.estimate.follow.cells import time_words
from orthobandit.logs.question import OBSERVED, Question, Summary
from orthobandit.logs.reading.arguments import check_question
from orthobandit.logs.reading.clock import Clock, clock_of_periods, is_there, seconds_of, when_of
from orthobandit.logs.reading.group_by import Gathered, gather_groups, offset_of_range, round_offset
from orthobandit.logs.reading.printed_rates import Ones, Printed, half_unit, never_falling, ones_of_rates
from orthobandit.logs.reading.rows import attribute_columns, to_float
from orthobandit.logs.reading.source import Opened, encode_keys, ibis
from orthobandit.showing.numbers import number

MAX_SUMMARY_ROWS = 5_000_000  # of a summary, which is held in memory
NAMED_SNAPSHOTS = 3  # snapshots that a note names, of those that cannot be differenced
ROUNDING = 1e-9  # of a sum of squares: what differencing may leave below 0
ROUNDED_SHARE = 0.3  # of the standard error of all rows, from which on rounding is worth a note
SCATTERED = 0.5  # standard errors of a mean, in last digits, from which on its rounding is as good as random
ROUNDED_VARIANCE = 1e-3  # of the scatter of rates, from which on intervals allow for their rounding
# Σv² and Σv of zeros and ones are equal, but for the digits that means and variances were printed with.
TWO_VALUED_ROUNDING = 1e-4
FIGURES = ("seconds", "n", "mean", "variance", "std", "smallest", "largest")
# Columns of a GROUP BY, and how those of several rows are joined.
AGGREGATES = {
    "n": ("n", "sum"),
    "there": ("there", "sum"),
    "s0": ("s0", "sum"),
    "q0_0": ("q0_0", "sum"),
    "low0": ("low0", "min"),
    "high0": ("high0", "max"),
}


@dataclass(frozen=True, eq=False)
class Periods:
    """Rows of a summary, one per arm and period.

    Attributes
    ----------
    place : (G,) array of int
        The row of the table that each is taken from: its keys are those of that row.
    seconds : (G,) array
        Time of the period; 0 without time.
    counts, means, scatter : (G,) arrays
        n, mean and Σ(v − mean)².
    low, high : (G,) arrays or None
        Smallest and largest value, if they are known.
    rounding : (G,) array
        Variance that the rounding of rates adds to the sum of the values.
    error, square_error : (G,) arrays
        By how much rounding may have moved the sum of the values at most, and the sum of their squares around
        any value of the declared range.
    """

    place: Whole
    seconds: Array
    counts: Array
    means: Array
    scatter: Array
    low: Array | None
    high: Array | None
    rounding: Array
    error: Array
    square_error: Array

    def only(self, kept: Mask | Whole) -> "Periods":
        """Return some of the rows."""
        return Periods(
            self.place[kept],
            self.seconds[kept],
            self.counts[kept],
            self.means[kept],
            self.scatter[kept],
            None if self.low is None else self.low[kept],
            None if self.high is None else self.high[kept],
            self.rounding[kept],
            self.error[kept],
            self.square_error[kept],
        )

    def of_rates(self, ones: Ones) -> "Periods":
        """Return the rows of zeros and ones, given how many of each row's values are 1."""
        return replace(
            self,
            means=ones.counts / self.counts,
            scatter=ones.counts * (self.counts - ones.counts) / self.counts,
            rounding=ones.variance,
            # One value more or less moves (v − c)² by |1 − 2c|, which is at most 1.
            error=ones.error,
            square_error=ones.error,
        )

    def of_values(self, printed: Printed, declared: tuple[float, float]) -> "Periods":
        """Return the rows of values in a declared range, given how their figures were printed."""
        half = printed.means
        # Σ(v − c)² = (n − 1)·variance + n·(mean − c)², and c is in the range as well.
        reach = half * (2.0 * (declared[1] - declared[0]) + half)
        return replace(
            self,
            error=self.counts * half,
            square_error=(self.counts - 1.0) * printed.variances + self.counts * reach,
        )


def cells_of_summary(opened: Opened, question: Question) -> Gathered:
    """Return the cells of aggregated data.

    Parameters
    ----------
    opened : Opened
        A table with one row per arm and period (and plan and segment).
    question : Question
        With a :class:`~orthobandit.logs.question.Summary`.

    Examples
    --------
    >>> import pyarrow
    >>> from orthobandit.logs.reading.source import open_source
    >>> columns = {"arm": ["a", "b"], "n": [4, 2], "mean": [0.5, 1.0], "variance": [1 / 3, 0.0]}
    >>> with open_source(pyarrow.table(columns)) as opened:
    ...     asked = Question("arm", "mean", split="equal", summary=Summary("n", "mean", "variance"))
    ...     found = cells_of_summary(opened, asked)
    >>> found.cells.sums[:, 0].tolist(), found.is_binary.tolist()
    ([2.0, 2.0], [True])
    """
    check_question(opened, question)
    summary = question.summary
    if summary is None:
        raise AssertionError("the question is about a summary")
    when, is_clock = (
        (None, False) if question.time is None else when_of(opened, question.time, question.time_unit)
    )
    table = _fetch(opened, question, summary, when, is_clock=is_clock)
    periods, printed = _read_periods(opened, question, summary, table)
    variances = periods.scatter / np.maximum(periods.counts - 1.0, 1.0)
    ones = ones_of_rates(periods.counts, periods.means, variances, printed)
    declared = question.ranges.get(question.reward)
    if ones is not None:
        periods = periods.of_rates(ones)
    elif declared is not None:
        _check_spread(question, periods, declared, printed)
        periods = periods.of_values(printed, declared)
    is_exact = declared is not None and not question.asymptotic
    notes: tuple[str, ...] = ()
    is_cumulative = _is_cumulative(question, summary, table, periods)
    if is_cumulative:
        periods, notes = _difference(opened, question, table, periods, is_clock=is_clock)
    strata = None
    if question.split == OBSERVED:
        strata = _strata(table, periods)
        _check_one_row_each(opened, question, table, periods, strata)
    if is_exact:
        # What was declared holds for certain, so exact intervals allow for the worst.
        periods = replace(periods, rounding=np.maximum(periods.rounding, periods.square_error))
    elif not _allows_for_rounding(periods):
        periods = replace(periods, rounding=np.zeros(len(periods.counts)))
    moved = float(np.max(periods.error / periods.counts)) if is_exact else 0.0
    if ones is None or np.any(periods.error > 0):
        notes += _rounded(table, periods, printed, moved, is_cumulative=is_cumulative)
    is_two_valued = _is_two_valued(periods)
    offset = 0.0 if is_two_valued else offset_of_range(question, question.reward) or _offset_of(periods)
    clock = clock_of_periods(question, periods.seconds, is_clock=is_clock)
    groups = _groups(question, table, periods, clock, offset, strata, is_two_valued=is_two_valued)
    if not (is_two_valued or summary.has_ends or question.reward in question.ranges):
        notes += (
            "a summary does not show single values, so intervals take it that none is far beyond what the"
            " variances suggest; if a few huge values carry the metric, name the columns of the smallest and"
            " the largest value (smallest=, largest=) or declare bounds",
        )
    found = gather_groups(opened, question, clock, groups, offset=np.array([offset]))
    return replace(found, notes=found.notes + notes, rounding=moved)


def _fetch(opened: Opened, question: Question, summary: Summary, when: Any, *, is_clock: bool) -> Any:
    """Return keys, times and figures of a summary as a pyarrow table, in the order of its rows."""
    source = opened.table
    parts = attribute_columns(opened, question)
    if when is not None:
        parts["seconds"] = seconds_of(when, is_clock=is_clock)
    for role, name in summary.columns.items():
        value = to_float(source[name], opened.schema[name])
        parts[role] = ibis().ifelse(is_there(value), value, None)
    table = opened.fetch(source.select(**parts).limit(MAX_SUMMARY_ROWS + 1))
    if len(table) > MAX_SUMMARY_ROWS:
        raise InputError(
            f"{opened.name} has more than {MAX_SUMMARY_ROWS:,} rows: is it a log of single rows? Then name"
            " the column of rewards (",
            Argument("reward"),
            "), and neither n nor mean",
        )
    return table


def _read_periods(
    opened: Opened, question: Question, summary: Summary, table: Any
) -> tuple[Periods, Printed]:
    """Check the figures, and see how they were printed; rows whose count is 0 are left out."""

    def column(role: str) -> Array:
        # NULL becomes NaN, which every check below refuses.
        return np.asarray(table[role].to_numpy(zero_copy_only=False), dtype=np.float64)

    def refuse(role: str, bad: Mask, words: str) -> None:
        if np.any(bad):
            row = int(np.argmax(bad))
            value = column(role)[row]
            held = "is missing" if np.isnan(value) else f"is {value:g}"
            where = f" in row {row + 1}" if opened.is_ordered else ""
            raise InputError(
                Argument(role, summary.columns[role]),
                f" {held}{where} ({int(bad.sum()):,} such rows); {words}",
            )

    counts = column("n")
    refuse("n", ~(counts >= 0) | (counts != np.floor(counts)), "a count is a whole number of at least 0")
    seconds = column("seconds") if question.time is not None else np.zeros(len(table))
    some = counts > 0
    timeless = int((some & np.isnan(seconds)).sum())
    if timeless:
        raise InputError(
            Argument("time", question.time),
            f" is missing or cannot be read in {timeless:,} rows; every period needs its time",
        )
    means = column("mean")
    refuse("mean", some & ~np.isfinite(means), "a period with rows has a mean")
    spread = "variance" if summary.variance is not None else "std"
    values = column(spread)
    # Engines have no sample variance of a single row.
    values = np.where((counts == 1) & np.isnan(values), 0.0, values)
    refuse(spread, some & ~(values >= 0), f"a {spread} is at least 0")
    variances = values if spread == "variance" else values**2
    low = column("smallest") if summary.smallest is not None else None
    high = column("largest") if summary.largest is not None else None
    slack = ROUNDING * (1.0 + np.abs(means))
    if low is not None:
        refuse("smallest", some & ~(low <= means + slack), "it cannot be above the mean")
    if high is not None:
        refuse("largest", some & ~(high >= means - slack), "it cannot be below the mean")
    if not np.any(some):
        raise InputError(Argument("n", summary.n), " is 0 in all rows; there is nothing to analyse")
    half = half_unit(values[some])
    printed = Printed(
        half_unit(means[some]),
        np.full(int(some.sum()), half) if spread == "variance" else half * (2.0 * values[some] + half),
    )
    scatter = (counts - 1.0) * variances
    none = np.zeros(len(table))
    periods = Periods(np.arange(len(table)), seconds, counts, means, scatter, low, high, none, none, none)
    return periods.only(some), printed


def _is_cumulative(question: Question, summary: Summary, table: Any, periods: Periods) -> bool:
    """Tell whether figures are cumulative, as was said; raise an error if they look so and nobody said."""
    if summary.cumulative is not None:
        if summary.cumulative and question.time is None:
            raise ParameterError(
                Argument("cumulative", True),
                " needs the time up to which rows were counted; name it: ",
                Argument("time"),
            )
        return summary.cumulative
    if question.time is None or not _look_cumulative(_series_of(table, periods), periods):
        return False
    raise InputError(
        "the counts in ",
        Argument("n", summary.n),
        " never fall with time, for any arm, and means and variances fit cumulative figures: say ",
        Argument("cumulative", True),
        " if each row counts everything up to its time, or ",
        Argument("cumulative", False),
        " if each row counts its own period alone",
    )


def _series_of(table: Any, periods: Periods) -> Whole:
    """Return the series number of each row; a series is one arm in one segment."""
    codes = encode_keys(table["arm"]).codes[periods.place]
    if "segment" not in table.column_names:
        return codes
    segments = encode_keys(table["segment"]).codes[periods.place]
    return np.asarray(np.unique(np.stack([segments, codes], axis=1), axis=0, return_inverse=True)[1].ravel())


def _strata(table: Any, periods: Periods) -> Whole:
    """Return the stratum of each row, one for each period and segment, in the order of time.

    Without a declared split, the shares of arms are those counted in the stratum. Scores then compare the
    means of arms within it, so that its level drops out whatever the shares were. With shares counted over
    several periods, periods with more rows of an arm would give that arm their level
    (docs/logs_derivations.md).
    """
    keys = [periods.seconds]
    if "segment" in table.column_names:
        keys.append(encode_keys(table["segment"]).codes[periods.place].astype(np.float64))
    return np.asarray(np.unique(np.stack(keys, axis=1), axis=0, return_inverse=True)[1].ravel())


def _check_one_row_each(
    opened: Opened, question: Question, table: Any, periods: Periods, strata: Whole
) -> None:
    """Refuse several rows of an arm in one stratum: whether their shares are alike cannot be tested."""
    arms = encode_keys(table["arm"])
    keys = np.stack([strata, arms.codes[periods.place]], axis=1)
    distinct, first, counts = np.unique(keys, axis=0, return_index=True, return_counts=True)
    if len(distinct) == len(keys):
        return
    several = int(np.argmax(counts > 1))
    label = arms.texts[distinct[several, 1]]
    where = f" (row {periods.place[first[several]] + 1} is the first)" if opened.is_ordered else ""
    free = [name for name in ("time", "segment") if getattr(question, name) is None]
    names = [word for name in free for word in (" or ", Argument(name))][1:]
    remedy = ("name the column that tells these rows apart (", *names, "), or ") if names else ()
    raise InputError(
        f"the arm {label!r} has {counts[several]:,} rows{'' if question.time is None else ' of one time'}"
        f"{where}, and nobody declared the split: if shares of arms differ between these rows, adding them up"
        " would mistake their levels for an effect; ",
        *remedy,
        "declare the split (",
        Argument("split"),
        ")",
    )


def _look_cumulative(series: Whole, periods: Periods) -> bool:
    """Tell whether all series could be cumulative: counts never fall, and no variance would be below 0.

    Counts of single periods grow as well while an experiment ramps up. But the difference of two periods of
    about the same size would be a few rows with a large scatter, which soon comes out negative.
    """
    is_told = False
    for one in np.unique(series):
        own = periods.only(series == one)
        own = own.only(np.argsort(own.seconds, kind="stable"))
        if np.any(np.diff(own.seconds) <= 0):
            return False
        if len(own.counts) == 1:  # of a single period both are the same
            continue
        is_told = True
        places = np.arange(len(own.counts))
        rows, _, scatter = _less(own.only(places[:-1]), own.only(places[1:]))
        if np.any(rows < 0) or np.any(scatter < -ROUNDING * own.scatter[1:]):
            return False
        # Figures that stand still for most of the time are those of equal periods.
        if 2 * np.sum(rows > 0) < len(rows):
            return False
    return is_told


def _less(before: Periods, after: Periods) -> tuple[Array, Array, Array]:
    """Return count, mean and scatter between two cumulative figures; the scatter may be negative."""
    rows = after.counts - before.counts
    some = np.where(rows > 0, rows, 1.0)
    # Means are differenced around the later one, so that their digits are kept.
    means = after.means + (after.means - before.means) * before.counts / some
    between = (means - before.means) ** 2 * before.counts * rows / np.maximum(after.counts, 1.0)
    return rows, means, after.scatter - before.scatter - np.where(rows > 0, between, 0.0)


def _difference(
    opened: Opened, question: Question, table: Any, periods: Periods, *, is_clock: bool
) -> tuple[Periods, tuple[str, ...]]:
    """Return the periods between cumulative figures, and notes on figures that cannot be differenced.

    A period must cover the same time for every arm, so the figures of one time are used for all arms of a
    segment or for none. A period that cannot be used is joined to the next one. Without a declared split both
    are left out, as shares of arms may have differed between them.
    """
    is_split_known = question.split != OBSERVED
    arms = encode_keys(table["arm"])
    segment = np.zeros(len(table), dtype=np.int64)
    if "segment" in table.column_names:
        segment = encode_keys(table["segment"]).codes
    found: list[Periods] = []
    problems: list[str] = []
    snapshots = 0
    for code in np.unique(segment[periods.place]):
        part = periods.only(segment[periods.place] == code)
        arm = arms.codes[part.place]
        rows_of = {
            arms.texts[one]: _climbing(_in_time(opened, question, arms.texts[one], part.only(arm == one)))
            for one in np.unique(arm)
        }
        last = {label: _before(rows) for label, rows in rows_of.items()}
        is_joined = False
        times = np.unique(part.seconds)
        snapshots += len(times)
        for time in times:
            # An arm that has not begun, or is no longer reported, has nothing to add.
            now = {
                label: rows.only(rows.seconds == time)
                for label, rows in rows_of.items()
                if rows.seconds[0] <= time <= rows.seconds[-1]
            }
            words = [_why_not(label, last[label], here) for label, here in now.items()]
            problem = next((one for one in words if one), "")
            if problem:
                problems.append(f"{time_words(float(time), is_clock=is_clock)} ({problem})")
                is_joined = True
                continue
            for label, here in now.items():
                rows, means, scatter = _less(last[label], here)
                fresh = replace(
                    here,
                    counts=rows,
                    means=means,
                    scatter=np.maximum(scatter, 0.0),
                    rounding=here.rounding + last[label].rounding,
                    error=here.error + last[label].error,
                    square_error=here.square_error + last[label].square_error,
                )
                if is_split_known or not is_joined:
                    found.append(fresh.only(rows > 0))
                last[label] = here
            is_joined = False
    if len(problems) * 2 > snapshots:
        raise InputError(
            f"{len(problems):,} of {snapshots:,} cumulative figures cannot be differenced, the first at"
            f" {problems[0]}; are they cumulative? If each row counts its own period, say ",
            Argument("cumulative", False),
        )
    if problems and question.split is None:
        raise InputError(
            f"the cumulative figures at {problems[0]} cannot be differenced, and joining them to the period"
            " after could mix rows that were drawn with different probabilities; mend these rows"
        )
    return _concatenate(found), _account(problems, snapshots, is_split_known=is_split_known)


def _account(problems: list[str], snapshots: int, *, is_split_known: bool) -> tuple[str, ...]:
    """Say how many cumulative figures were differenced, and which could not be."""
    periods = snapshots - len(problems)
    said = f"cumulative figures of {snapshots:,} times were differenced into {periods:,} periods"
    if not problems:
        return (said,)
    shown = "; ".join(problems[:NAMED_SNAPSHOTS]) + ("; …" if len(problems) > NAMED_SNAPSHOTS else "")
    fate = (
        "joined to the period after"
        if is_split_known
        else "left out with the period after, as nobody declared the split"
    )
    return (f"{said}; {len(problems):,} cannot be differenced and are {fate}: {shown}",)


def _allows_for_rounding(periods: Periods) -> bool:
    """Tell whether the rounding of rates matters beside their scatter, so that intervals allow for it."""
    return float(periods.rounding.sum()) >= ROUNDED_VARIANCE * float(periods.scatter.sum())


def _rounded(
    table: Any, periods: Periods, printed: Printed, moved: float, *, is_cumulative: bool
) -> tuple[str, ...]:
    """Return a note if means were printed with so few digits that rounding matters beside the scatter.

    Exact intervals allow for the most that a mean may have `moved` by.
    """
    rows = float(periods.counts.sum())
    error = float(np.sqrt(periods.scatter.sum())) / max(rows, 1.0)
    if not printed.means or not error:
        return ()
    # A rounded value is off by a uniform variable. What cumulative figures are off by does not average out.
    arms = len(set(table["arm"].to_pylist()))
    share = arms if is_cumulative else len(periods.counts)
    off = moved or 2.0 * printed.means / np.sqrt(12.0 * share)
    extent, effect = ("up to", "widens intervals") if moved else ("about", "intervals do not allow for")
    if not moved and np.any(np.sqrt(periods.scatter) < SCATTERED * 2.0 * printed.means * periods.counts):
        # Means that scatter by less than a digit are rounded to the same side in every period.
        off = printed.means
        extent, effect = "up to", "intervals do not allow for"
    elif np.any(periods.rounding > 0):
        effect = "widens intervals"
    if off < ROUNDED_SHARE * error:
        return ()
    digits = round(-np.log10(2.0 * printed.means))
    return (
        f"means have {digits} digits after the point: rounding moves them by {extent} {number(off)}, which"
        f" {effect}, beside a standard error of {number(error)}; give more digits",
    )


def _in_time(opened: Opened, question: Question, label: str, rows: Periods) -> Periods:
    """Return the rows of one arm in the order of time; raise if there are two of one time."""
    rows = rows.only(np.argsort(rows.seconds, kind="stable"))
    twice = np.flatnonzero(np.diff(rows.seconds) == 0)
    if len(twice):
        first, second = sorted(rows.place[twice[0] : twice[0] + 2] + 1)
        where = f" (rows {first} and {second})" if opened.is_ordered else ""
        remedy = () if question.segment else (": name what tells them apart with ", Argument("segment"))
        raise InputError(
            f"arm {label!r} has two rows of the same time{where}; cumulative figures need one row per arm and"
            " time",
            *remedy,
        )
    return rows


def _before(rows: Periods) -> Periods:
    """Return the figures of an arm before its first row."""
    first = rows.only(np.zeros(1, dtype=np.int64))
    none = np.zeros(1)
    return replace(first, counts=none, scatter=none, rounding=none, error=none, square_error=none)


def _climbing(rows: Periods) -> Periods:
    """Return the cumulative figures of an arm; rounded rates become those of counts that never fall."""
    if not np.any(rows.rounding > 0):
        return rows
    return rows.of_rates(never_falling(Ones(np.rint(rows.counts * rows.means), rows.error), rows.counts))


def _why_not(label: str, before: Periods, here: Periods) -> str:
    """Say why the figures of an arm cannot be differenced; nothing if they can."""
    if not len(here.counts):
        return f"a gap: no row of {label!r}"
    rows, _, scatter = _less(before, here)
    if rows[0] < 0:
        return f"the count of {label!r} falls from {before.counts[0]:,.0f} to {here.counts[0]:,.0f}"
    if rows[0] == 0:
        has_moved = abs(here.means[0] - before.means[0]) > ROUNDING * (1.0 + abs(here.means[0]))
        return f"the mean of {label!r} changes without new rows" if has_moved else ""
    if scatter[0] < -ROUNDING * here.scatter[0]:
        return f"the variance of {label!r} would be negative"
    return ""


def _concatenate(parts: list[Periods]) -> Periods:
    def joined(name: str) -> Any:
        values = [getattr(one, name) for one in parts]
        return None if values[0] is None else np.concatenate(values)

    return Periods(*(joined(field.name) for field in fields(Periods)))


def _is_two_valued(periods: Periods) -> bool:
    """Tell whether all values are 0 or 1, up to rounding of the figures: then Σv² = Σv."""
    sums = periods.counts * periods.means
    squares = periods.scatter + periods.means * sums
    is_within = np.all((periods.means >= 0) & (periods.means <= 1))
    return bool(is_within and np.all(np.abs(squares - sums) <= TWO_VALUED_ROUNDING * sums))


def _offset_of(periods: Periods) -> float:
    # The first figures alone, so that the offset stays as the table grows.
    periods = periods.only(periods.seconds == periods.seconds.min())
    rows = periods.counts.sum()
    middle = float(periods.counts @ periods.means / rows)
    between = periods.counts @ (periods.means - middle) ** 2
    return round_offset(middle, float(np.sqrt((periods.scatter.sum() + between) / rows)))


def _groups(
    question: Question,
    table: Any,
    periods: Periods,
    clock: Clock,
    offset: float,
    strata: Whole | None,
    *,
    is_two_valued: bool,
) -> Any:
    """Return the table that the GROUP BY of the rows would have returned, of strata if there are such."""
    package = pyarrow()[0]
    n = periods.counts
    means = periods.means - offset
    low, high = _ends(question, periods, is_two_valued=is_two_valued)
    columns: dict[str, Any] = {
        name: table[name].take(periods.place) for name in table.column_names if name not in FIGURES
    }
    if clock.column is not None:
        columns["bucket"] = clock.numbers(periods.seconds)
    if strata is not None:
        columns["stratum"] = strata
    columns |= {
        "n": n.astype(np.int64),
        "there": n.astype(np.int64),
        "s0": n * means,
        "q0_0": (n * means if is_two_valued else periods.scatter + n * means**2) + periods.rounding,
        "low0": low - offset,
        "high0": high - offset,
    }
    groups = package.table(columns)
    keys = [name for name in groups.column_names if name not in AGGREGATES]
    # Several rows of a bucket, of hours in a day or of countries, are one cell.
    return groups.group_by(keys).aggregate(list(AGGREGATES.values())).rename_columns([*keys, *AGGREGATES])


def _ends(question: Question, periods: Periods, *, is_two_valued: bool) -> tuple[Array, Array]:
    """Return the smallest and the largest value of each row, as far as they are known.

    Zeros and ones are known from the mean. Then come columns of the summary, then the declared range. Without
    any of these, they are assumed to be √(2·log n) standard deviations from the mean, as for a normal
    variable: the asymptotic mode cannot see rare, huge values in a summary.
    """
    means = periods.means
    if is_two_valued:
        is_sure = periods.error == 0
        return ((means >= 1.0) & is_sure).astype(np.float64), ((means > 0.0) | ~is_sure).astype(np.float64)
    n = periods.counts
    away = np.sqrt(periods.scatter / n * 2.0 * np.log(np.maximum(n, 1.0)))
    declared = question.ranges.get(question.reward)
    low = means - away
    high = means + away
    if declared is not None:
        # A cell without scatter has one value. A mean outside of the range is refused with that range.
        is_single = periods.scatter <= 0
        low = np.where(is_single, means, np.minimum(declared[0], means))
        high = np.where(is_single, means, np.maximum(declared[1], means))
    return low if periods.low is None else periods.low, high if periods.high is None else periods.high


def _check_spread(
    question: Question, periods: Periods, declared: tuple[float, float], printed: Printed
) -> None:
    """Refuse a variance that no values within the declared range have (Bhatia & Davis 2000).

    Figures are given as much room as the digits leave that they were printed with.
    """
    low, high = declared
    most = periods.counts * (high - periods.means) * (periods.means - low)
    room = printed.variances + (np.abs(high + low - 2.0 * periods.means) + printed.means) * printed.means
    most_printed = most * (1.0 + TWO_VALUED_ROUNDING) + ROUNDING + periods.counts * room
    bad = (periods.scatter > most_printed) & (most >= 0)
    if np.any(bad):
        row = int(np.argmax(bad))
        raise InputError(
            Argument("bounds", declared),
            f" do not hold {question.reward!r}: in row {periods.place[row] + 1} a mean of"
            f" {periods.means[row]:g} with {periods.counts[row]:,.0f} values in that range cannot have a"
            f" variance of {periods.scatter[row] / max(periods.counts[row] - 1.0, 1.0):g}; declare a range"
            " that holds all values",
        )
