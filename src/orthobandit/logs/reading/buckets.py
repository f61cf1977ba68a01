"""The one GROUP BY: a log in any engine becomes cells."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import InputError, ParameterError, RewardError
from orthobandit.logs.cells import Cells
from orthobandit.logs.question import Question
from orthobandit.logs.reading.arguments import check_question
from orthobandit.logs.reading.clock import Clock, clock_of, last_time, when_of
from orthobandit.logs.reading.engine import Opened
from orthobandit.logs.reading.keys import coded, first_row
from orthobandit.logs.reading.missing import refuse_missing
from orthobandit.logs.reading.moments import Moments, aggregates, moments, offsets, slopes
from orthobandit.logs.reading.plans import Drawn, drawn
from orthobandit.logs.reading.rows import Rows, rows_of
from orthobandit.logs.reading.units import UnitCounts, repeating_unit, units_of

MOST_SEGMENTS = 200
NO_SEGMENT = "(missing)"


@dataclass(frozen=True, eq=False)
class Gathered:
    """What was gathered of a log.

    Attributes
    ----------
    cells : Cells
    units : UnitCounts or None
        With a column of units.
    notes : tuple of str
        What a reader should know of how the log was read.
    is_binary : (q,) array of bool
        Whether a column holds only 0 and 1, so far as the log goes.
    end : float or None
        The last time of any row, where units have a window.
    is_boolean : (q,) array of bool or None
        Whether a column can hold nothing but 0 and 1, by its type; None if no type is known. Sums over the
        rows of a unit can be more.
    bucket_rule : dict
        What fixes the boundaries of all buckets: width, origin, and after how many widths from the origin on
        buckets double with time (None if never).
    longest : float
        Length of the longest bucket; 0 if not known.
    """

    cells: Cells
    units: UnitCounts | None
    notes: tuple[str, ...]
    is_binary: Mask
    end: float | None = None
    is_boolean: Mask | None = None
    bucket_rule: dict[str, Any] = field(default_factory=dict)
    longest: float = 0.0


def cells_of(opened: Opened, question: Question) -> Gathered:
    """Ask an opened log for its cells.

    Parameters
    ----------
    opened : Opened
        From :func:`~orthobandit.logs.reading.source.open_source`.
    question : Question

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
    offset = offsets(opened, question)
    guessed = slopes(opened, question)
    groups, rows = _grouped(opened, question, clock, (offset, guessed))
    found = moments(groups, rows, question)
    _check_groups(opened, question, groups)
    origin = drawn(opened, question, groups, found.rows)
    if not found.is_whole:
        refuse_missing(opened, question)
        groups, rows = _grouped(opened, question, clock, (offset, guessed), is_masked=True)
        found = moments(groups, rows, question)
        origin = drawn(opened, question, groups, found.rows)
    _check_size(question, found)
    cells = replace(_cells(question, clock, groups, found, origin), offset=offset, slopes=guessed)
    note = repeating_unit(opened, question, groups, found.rows)
    units = _unit_counts(question, groups, found)
    end = last_time(opened, question) if question.unit is not None and question.window is not None else None
    is_boolean = np.array(
        [question.unit is None and opened.schema[name].is_boolean() for name in question.columns]
    )
    notes = opened.notes + origin.notes + ((note,) if note else ())
    numbers = np.round((cells.times - clock.origin) / (clock.width or 1.0)).astype(np.int64)
    longest = clock.longest(numbers)
    return Gathered(cells, units, notes, _are_binary(cells), end, is_boolean, clock.rule, longest)


def _grouped(
    opened: Opened,
    question: Question,
    clock: Clock,
    guesses: tuple[Array, Array | None],
    *,
    is_masked: bool = False,
) -> tuple[Any, Rows]:
    """Return what the engine makes of the GROUP BY, as a pyarrow table, and the rows it was asked of."""
    rows = rows_of(opened, question, clock, is_masked=is_masked)
    if question.unit is not None:
        rows = units_of(rows, question.window)
    table = rows.table
    keys = list(rows.attributes)
    if clock.column is not None:
        table = table.mutate(bucket=clock.bucket(table.when))
        keys = ["bucket", *keys]
    wanted = aggregates(table, rows, question, *guesses)
    return opened.fetch(table.group_by(keys).aggregate(**wanted)), rows


def _check_groups(opened: Opened, question: Question, groups: Any) -> None:
    """Refuse rows without a time, units without a name, and units whose first row cannot be told."""
    if question.time is not None:
        empty = groups["bucket"].is_null().to_numpy()
        if np.any(empty):
            _refuse_times(opened, question.time)
    if question.unit is None:
        return
    if groups["nameless"].to_numpy().sum():
        where = first_row(opened, opened.table[question.unit].isnull())
        raise InputError(f"unit={question.unit!r} is empty in some rows{where}; every row needs its unit")
    several = int(groups["several"].to_numpy().sum())
    if several and question.time is None:
        raise ParameterError(
            f"unit={question.unit!r}: {several:,} units were seen in several arms, and without a time column"
            " nothing says which came first; name it with time"
        )


def _refuse_times(opened: Opened, name: str) -> None:
    when, is_clock = when_of(opened, name)
    bad = opened.table.filter(when.isnull())
    total = opened.fetch(bad.aggregate(n=bad.count(), empty=bad[name].isnull().cast("int32").sum()))
    count = total["n"][0].as_py()
    empty = int(total["empty"][0].as_py())
    where = first_row(opened, when.isnull())
    if count == empty:
        raise InputError(f"time={name!r} is missing in {count:,} rows{where}; mend these or leave them out")
    unread = bad.filter(bad[name].notnull())
    example = opened.fetch(unread.select(value=unread[name]).limit(1))["value"][0].as_py()
    form = "ISO times such as 2025-03-01 14:05:00" if is_clock else "finite numbers"
    raise InputError(
        f"time={name!r} cannot be read in {count - empty:,} rows (and is missing in {empty:,}){where}, such"
        f" as {example!r}; {form} are needed"
    )


def _check_size(question: Question, found: Moments) -> None:
    for place, name in enumerate(question.columns):
        if not np.all(np.isfinite(found.products[:, place, place]) & np.isfinite(found.sums[:, place])):
            raise RewardError(f"{name!r} has values whose squares are too large to add up; divide the column")


def _cells(question: Question, clock: Clock, groups: Any, found: Moments, origin: Drawn) -> Cells:
    size = len(groups)
    segments, segment = _segments(question, groups)
    buckets = np.zeros(1, dtype=np.int64)
    bucket = np.zeros(size, dtype=np.int64)
    if clock.column is not None:
        buckets, bucket = np.unique(groups["bucket"].to_numpy().astype(np.int64), return_inverse=True)
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
    )


def _segments(question: Question, groups: Any) -> tuple[tuple[str, ...], Whole]:
    if question.segment is None:
        return ("",), np.zeros(len(groups), dtype=np.int64)
    keys = coded(groups["segment"])
    if len(keys.texts) > MOST_SEGMENTS:
        raise InputError(
            f"segment={question.segment!r} has {len(keys.texts):,} values; at most {MOST_SEGMENTS} can be"
            " told apart: group them first"
        )
    if np.all(keys.codes >= 0):
        return keys.texts, keys.codes
    return (*keys.texts, NO_SEGMENT), np.where(keys.codes < 0, len(keys.texts), keys.codes)


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
