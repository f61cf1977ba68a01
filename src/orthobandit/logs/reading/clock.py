"""Time of a log: read from timestamps, dates, text or numbers, and cut into buckets; notes on odd times.

The boundaries of buckets stay put as a log grows. Otherwise tomorrow's run would not continue today's
sequence, and somebody who looks daily and stops once it is decided would have more than one chance of being
wrong. So widths depend on the kind of the time column and on the first rows, which do not count, and never on
the span of the log or its number of rows.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_choice, check_positive
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import Argument, InputError, ParameterError
from orthobandit.estimate.follow.cells import Cells, time_words
from orthobandit.estimate.follow.rules import RuleCells
from orthobandit.logs.question import PER_SECOND, Question
from orthobandit.logs.reading.source import Opened, ibis

HOUR = 3600.0
DAY = 86400.0
WEEK = 604800.0
WIDTHS = {"minute": 60.0, "hour": HOUR, "day": DAY, "week": WEEK}
MONDAY = -3 * DAY  # 1970 began on a Thursday
UNIT_BUCKETS = 5000  # buckets of numbers that are one unit long; later ones double whenever time has doubled
FIRST_ROWS = 20  # rows whose times give the unit of times that are no whole numbers
ON_A_BOUNDARY = 1e-9  # of a bucket: what rounding may take from a time that begins one
MAX_DOUBLINGS = 50  # doublings at most: 10¹⁸ units
DAY_OR_MONTH = re.compile(r"\s*\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b")
MONTHS = 12
# Numbers that count time since 1970: how many of each are a second, and what they are called.
UNIT_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
# From the first of these years to the second, numbers are taken for times: seconds since 1970. The four units
# are a thousand apart, so no number fits two of them.
LIKELY_YEARS = (2000, 2100)
LIKELY_TIMES = tuple(datetime(year, 1, 1, tzinfo=UTC).timestamp() for year in LIKELY_YEARS)
# Dates that are written as one number, by how many digits they have.
WRITTEN_DATES = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
# Rows are stray if they are few and much further from all others than these are from each other.
STRAY_SHARE = 0.01
STRAY_RATIO = 10.0
LEAST_STRAY_DAYS = 30.0


@dataclass(frozen=True)
class Clock:
    """How times become buckets: bucket k begins at `origin` + k · `width`.

    Attributes
    ----------
    column : str or None
        None if there is no time, and a single bucket.
    is_clock : bool
        Whether times are seconds since 1970.
    width, origin : float
    doubles : bool
        Whether buckets get longer: from UNIT_BUCKETS·2^(L − 1) to UNIT_BUCKETS·2^L widths after the origin
        each takes 2^L of them, and k is its first. So a log may go on for ever in a number of buckets that
        grows with the logarithm of its length, and no boundary ever moves.
    """

    column: str | None
    is_clock: bool = False
    width: float = 0.0
    origin: float = 0.0
    doubles: bool = False

    def bucket(self, when: Any) -> Any:
        """Return the expression of the number of the bucket of times (see :func:`when_of`)."""
        seconds = seconds_of(when, is_clock=self.is_clock)
        moved = seconds - self.origin if self.origin else seconds
        unit = (moved / self.width).floor()
        if not self.doubles:
            return unit.cast("int64")
        cases = [
            (unit < UNIT_BUCKETS * 2.0**level, (unit / 2.0**level).floor() * 2.0**level)
            for level in range(MAX_DOUBLINGS)
        ]
        last = 2.0**MAX_DOUBLINGS
        return ibis().cases(*cases, else_=(unit / last).floor() * last).cast("int64")

    def numbers(self, seconds: Array) -> Whole:
        """Return the bucket number of times (n,), as :meth:`bucket` has it in an engine."""
        # Times such as 0.1 + 0.2 must not fall short of the boundary that they stand for.
        unit = np.floor((seconds - self.origin) / self.width + ON_A_BOUNDARY)
        if self.doubles:
            level = np.maximum(np.floor(np.log2(np.maximum(unit, 1.0) / UNIT_BUCKETS)) + 1.0, 0.0)
            unit = np.floor(unit / 2.0**level) * 2.0**level
        return np.asarray(unit, dtype=np.int64)

    def begins(self, buckets: Whole) -> Array:
        """Return when buckets (B,) begin."""
        return np.asarray(self.origin + buckets * self.width, dtype=np.float64)

    def longest(self, buckets: Whole) -> float:
        """Return the length of the longest of some buckets (B,)."""
        if not self.doubles or not len(buckets):
            return self.width
        return self.width * 2.0 ** max(
            0, math.floor(math.log2(max(float(buckets.max()), 1.0) / UNIT_BUCKETS)) + 1
        )

    @property
    def rule(self) -> dict[str, Any]:
        """The rule that fixes every boundary, in plain values."""
        if self.column is None:
            return {}
        return {
            "width": self.width,
            "origin": self.origin,
            "doubles_after": UNIT_BUCKETS if self.doubles else None,
        }


def when_of(opened: Opened, name: str, unit: str | None = None) -> tuple[Any, bool]:
    """Return an expression of the time of each row (NULL if missing), and whether it is a time of the clock.

    With `unit` numbers become seconds since 1970; without it they stay as they are, whatever they look like:
    a rule that guessed would move the buckets of analyses that have begun.
    """
    column = opened.table[name]
    kind = opened.schema[name]
    if unit is not None:
        if not kind.is_numeric():
            raise ParameterError(
                Argument("time_unit", unit),
                " is for times given as numbers; ",
                Argument("time", name),
                f" is of type {kind}: leave it out",
            )
        column = column.cast("float64")
        return ibis().ifelse(is_there(column), column / PER_SECOND[unit], None), True
    if kind.is_timestamp():
        return column, True
    if kind.is_date():
        return column.cast("timestamp"), True
    if kind.is_string():
        # Stripped first: DuckDB has its reader of CSV do a bare cast, and that stops at text that is no time.
        return column.strip().try_cast("timestamp('UTC')"), True
    if kind.is_floating():
        column = column.cast("float64")
        return ibis().ifelse(is_there(column), column, None), False
    if kind.is_integer() or kind.is_decimal():
        return column.cast("float64"), False
    raise InputError(
        Argument("time", name), f" is of type {kind}; a timestamp, a date, ISO text or a number is needed"
    )


def is_there(value: Any) -> Any:
    """Return whether floats are finite numbers.

    Comparisons and isnan cannot be used: DuckDB answers them from the minimum and maximum that a Parquet file
    states for a column, which leave NaN out. A number minus itself is 0 in every engine; for other floats it
    is NaN.
    """
    return ((value - value) == 0).fill_null(False)


def seconds_of(when: Any, *, is_clock: bool) -> Any:
    """Return times as numbers: seconds since 1970 for timestamps, unchanged for numbers."""
    return when.epoch_seconds().cast("float64") if is_clock and when.type().is_timestamp() else when


def likely_unit(first: float, last: float) -> str | None:
    """Return the unit in which numbers between two ends would be times in the years 2000 to 2100, if any.

    Examples
    --------
    >>> likely_unit(1_740_960_000_000, 1_742_169_600_000), likely_unit(0, 5_000)
    ('ms', None)
    """
    begin, end = LIKELY_TIMES
    return next(
        (unit for unit, many in PER_SECOND.items() if begin * many <= first and last <= end * many), None
    )


def day_or_month(opened: Opened, question: Question) -> tuple[str, ...]:
    """Return a note if dates of a text file begin with the day or with the month, and none tells which.

    DuckDB takes the first way that all dates fit, without a word.
    """
    name = question.time
    text = "" if name is None else opened.first_row.get(name, "")
    if name is None or not DAY_OR_MONTH.match(text) or not opened.schema[name].is_temporal():
        return ()
    column = opened.table[name]
    found = opened.fetch(opened.table.aggregate(told=(column.day() > MONTHS).sum())).to_pylist()[0]
    if found["told"]:
        return ()
    first = opened.sample[name][0].as_py()
    return (
        f"{name!r} is written with the day or the month first, and no date of the log tells which: {text!r}"
        f" was read as {first.day} {first:%B %Y}. If that is wrong, write ISO times such as 2025-03-01"
        " 14:05:00",
    )


def clock_of(opened: Opened, question: Question) -> Clock:
    """Return how times are cut into buckets; numbers without a given width need the first rows."""
    if question.time is None:
        return Clock(None)
    when, is_clock = when_of(opened, question.time, question.time_unit)
    if is_clock and question.window is not None and question.window != int(question.window):
        raise ParameterError(Argument("window", question.window), " must be a whole number of seconds")
    if question.bucket is not None:
        width = _given_width(question.bucket, is_clock=is_clock)
        return Clock(question.time, is_clock, width, MONDAY if is_clock and width == WEEK else 0.0)
    if is_clock:
        return Clock(question.time, True, HOUR)
    return _numbers(opened, question.time, when)


def clock_of_periods(question: Question, seconds: Array, *, is_clock: bool) -> Clock:
    """Return how the periods of a summary are cut into buckets; by default each is one.

    Parameters
    ----------
    question : Question
    seconds : (n,) array
        When periods are, in any order.
    is_clock : bool
        Whether these are seconds since 1970.
    """
    if question.time is None:
        return Clock(None)
    if question.bucket is not None:
        width = _given_width(question.bucket, is_clock=is_clock)
        return Clock(question.time, is_clock, width, MONDAY if is_clock and width == WEEK else 0.0)
    if is_clock:
        return Clock(question.time, True, DAY if np.all(seconds % DAY == 0) else HOUR)
    times = np.unique(seconds)
    if np.all(times == np.floor(times)):
        return Clock(question.time, False, 1.0, float(times[0]), doubles=True)
    # The first two periods fix the width: no boundary moves when others follow.
    width = float(times[1] - times[0]) if len(times) > 1 else 1.0
    return Clock(question.time, False, width, float(times[0]), doubles=True)


def _given_width(bucket: str | float, *, is_clock: bool) -> float:
    """Return the width of a bucket that was asked for by name or as a number."""
    if isinstance(bucket, str):
        if not is_clock:
            raise ParameterError(
                Argument("bucket", bucket), " is for times; the time column holds numbers: give one"
            )
        return WIDTHS[check_choice("bucket", bucket, WIDTHS)]
    width = check_positive("bucket", bucket)
    if is_clock and width != int(width):
        raise ParameterError(Argument("bucket", bucket), " must be a whole number of seconds")
    return width


def _numbers(opened: Opened, name: str, when: Any) -> Clock:
    """Cut numbers, from the first on: whole ones into units, others by what the first rows span.

    The first FIRST_ROWS rows are the pilot and do not count, so their unit is fixed before any claim.
    """
    times = opened.table.select(when=when)
    times = times.filter(times.when.notnull())
    first = opened.fetch(times.order_by("when").limit(FIRST_ROWS))["when"].to_numpy()
    if not len(first):  # no time at all, which is refused when rows are counted
        return Clock(name, False, 1.0)
    low = float(first[0])
    if opened.schema[name].is_integer():
        return Clock(name, False, 1.0, low, doubles=True)
    span = float(first[-1]) - low
    if span == 0:  # the first rows are of one time: up to the next
        later = times.filter(times.when > low)
        after = opened.fetch(later.aggregate(when=later.when.min()))["when"][0].as_py()
        return Clock(name, False, 1.0 if after is None else float(after) - low, low, doubles=True)
    return Clock(name, False, _round_up(span / 4.0), low, doubles=True)


def _round_up(value: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-12))


def time_notes(question: Question, cells: Cells | RuleCells) -> Iterator[str]:
    """Yield what a reader should know of how times were read."""
    if question.time is None or not len(cells.times):
        return
    if cells.is_clock:
        yield from _stray_times(question.time, cells)
    else:
        yield from _likely_times(question.time, cells)
        yield from _written_dates(question.time, cells)


def _likely_times(name: str, cells: Cells | RuleCells) -> Iterator[str]:
    """Say that plain numbers look like times since 1970, and how to have them read so."""
    first = float(cells.times[0])
    last = float(cells.times[-1])
    unit = likely_unit(first, last)
    if unit is None:
        return
    begin, end = (time_words(one / PER_SECOND[unit], is_clock=True) for one in (first, last))
    yield (
        f"{name!r} looks like {UNIT_WORDS[unit]} since 1970 ({begin} to {end}), but nobody said so:"
        f" it is read as plain numbers, and the first buckets are {cells.width:,g} long. Say"
        f" time_unit={unit!r} (--time-unit {unit}) for hours of the clock and a baseline that knows the time"
        " of day. Say so from the first look on: other buckets are another sequence of looks, with its own δ"
    )


def _written_dates(name: str, cells: Cells | RuleCells) -> Iterator[str]:
    """Say that plain numbers look like dates such as 20260301, between which numbers leave holes."""
    digits = f"{cells.times[0]:.0f}"
    form = WRITTEN_DATES.get(len(digits))
    if form is None or len(f"{cells.times[-1]:.0f}") != len(digits):
        return
    try:
        moment = datetime.strptime(digits, form)
    except ValueError:
        return
    begin, end = LIKELY_YEARS
    if not begin <= moment.year < end:
        return
    yield (
        f"{name!r} looks like dates written as numbers ({digits} for {moment:%Y-%m-%d %H:%M}), and is read as"
        " plain numbers: buckets are not of one length then. Write ISO times such as 2025-03-01 14:05:00 for"
        " hours of the clock and a baseline that knows the time of day"
    )


def _stray_times(name: str, cells: Cells | RuleCells) -> Iterator[str]:
    """Say that a few rows are far from all others in time, as if a clock had been wrong."""
    times = np.asarray(cells.times, dtype=np.float64)
    if len(times) < 2:
        return
    rows = np.bincount(cells.bucket, cells.counts, minlength=len(times))
    place = int(np.argmax(np.diff(times)))
    parts = (slice(0, place + 1), slice(place + 1, None))
    few, most = sorted(parts, key=lambda part: rows[part].sum())
    apart = float(times[place + 1] - times[place])
    spread = float(np.ptp(times[most])) + cells.width
    is_stray = rows[few].sum() <= STRAY_SHARE * rows.sum()
    if not (is_stray and apart > STRAY_RATIO * spread and apart >= LEAST_STRAY_DAYS * DAY):
        return
    side = "before" if few.start == 0 else "after"
    begin = time_words(float(times[few][0]), is_clock=True)
    yield (
        f"{int(rows[few].sum()):,} of {int(rows.sum()):,} rows have a time in {name!r} that is"
        f" {apart / DAY:,.0f} days {side} all others ({begin}): was a clock wrong? They count as they are"
    )
