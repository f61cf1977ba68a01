"""Time of a log: read from timestamps, dates, text or numbers, and cut into buckets."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orthobandit._checks import check_choice, check_positive
from orthobandit._types import Array, Whole
from orthobandit.errors import InputError, ParameterError
from orthobandit.logs.question import Question
from orthobandit.logs.reading.engine import Opened, ibis

HOUR, DAY, WEEK = 3600.0, 86400.0, 604800.0
WIDTHS = {"minute": 60.0, "hour": HOUR, "day": DAY, "week": WEEK}
MONDAY = -3 * DAY  # 1970 began on a Thursday
MOST_HOURS = 10_000  # beyond which buckets are days
MOST_VALUES = 5000  # whole numbers that get a bucket each
PARTS = 500  # into which the span of other numbers is cut


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
    parts : int
        Into which the engine cuts each bucket; they are put together afterwards.
    is_guess : bool
        Whether the width is hours until the first and the last time are known, which come with the counts.
    """

    column: str | None
    is_clock: bool = False
    width: float = 0.0
    origin: float = 0.0
    parts: int = 1
    is_guess: bool = False

    def bucket(self, when: Any) -> Any:
        """Return the expression of the number of the bucket of times (see :func:`when_of`)."""
        seconds = seconds_of(when, is_clock=self.is_clock)
        moved = seconds - self.origin if self.origin else seconds
        return (moved / (self.width / self.parts)).floor().cast("int64")

    def ends(self, when: Any) -> dict[str, Any]:
        """Return the expressions of the first and the last time, if the width is a guess."""
        seconds = seconds_of(when, is_clock=self.is_clock)
        return {"begin": seconds.min(), "end": seconds.max()} if self.is_guess else {}

    def settled(self, groups: Any) -> "Clock":
        """Return the clock once :meth:`ends` of all groups (a pyarrow table) are known."""
        low, high = (groups[name].drop_null().to_numpy() for name in ("begin", "end"))
        width = _clock_width(float(high.max() - low.min())) if len(low) else self.width
        return replace(self, width=width, parts=max(round(width / self.width), 1), is_guess=False)

    def begins(self, buckets: Whole) -> Array:
        """Return when buckets (B,) begin."""
        return np.asarray(self.origin + buckets * self.width, dtype=np.float64)


def when_of(opened: Opened, name: str) -> tuple[Any, bool]:
    """Return an expression of times that can be ordered, NULL where there is none, and if it is a clock."""
    column, kind = opened.table[name], opened.schema[name]
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
    raise InputError(f"time={name!r} is of type {kind}; a timestamp, a date, ISO text or a number is needed")


def is_there(value: Any) -> Any:
    """Return whether floats are finite numbers.

    No comparison and no isnan: DuckDB answers these from the ends that a Parquet file states of a column, and
    these leave NaN out. The difference of a number and itself is 0 in every engine, of others NaN.
    """
    return ((value - value) == 0).fill_null(False)


def seconds_of(when: Any, *, is_clock: bool) -> Any:
    """Return times as numbers: seconds since 1970, or what they are."""
    return when.epoch_seconds().cast("float64") if is_clock else when


def clock_of(opened: Opened, question: Question) -> Clock:
    """Return how the times of a log are cut; asks for the first and last if no width is given.

    Of text they come with the counts: it would be parsed twice.
    """
    if question.time is None:
        return Clock(None)
    when, is_clock = when_of(opened, question.time)
    if is_clock and question.window is not None and question.window != int(question.window):
        raise ParameterError(f"window={question.window!r} must be a whole number of seconds")
    if question.bucket is not None:
        width = _given_width(question.bucket, is_clock=is_clock)
        return Clock(question.time, is_clock, width, MONDAY if is_clock and width == WEEK else 0.0)
    if is_clock and opened.is_text and question.unit is None:
        return Clock(question.time, True, HOUR, is_guess=True)
    times = opened.table.select(when=when)
    # Of the times as they are stored: Parquet files state the first and the last.
    ends = times.aggregate(low=times.when.min(), high=times.when.max())
    found = opened.fetch(
        ends.select(
            low=seconds_of(ends.low, is_clock=is_clock), high=seconds_of(ends.high, is_clock=is_clock)
        )
    )
    low, high = found["low"][0].as_py(), found["high"][0].as_py()
    if low is None:  # no time at all, which is refused when rows are counted
        return Clock(question.time, is_clock, HOUR)
    if is_clock:
        return Clock(question.time, True, _clock_width(high - low))
    return _numbers(opened, question.time, times, (low, high))


def last_time(opened: Opened, question: Question) -> float | None:
    """Return the last time of a log, in seconds or as the number it is; None without any."""
    if question.time is None:
        return None
    when, is_clock = when_of(opened, question.time)
    times = opened.table.select(when=when)
    last = times.aggregate(high=times.when.max())
    found = opened.fetch(last.select(high=seconds_of(last.high, is_clock=is_clock)))["high"][0].as_py()
    return None if found is None else float(found)


def _given_width(bucket: str | float, *, is_clock: bool) -> float:
    if isinstance(bucket, str):
        if not is_clock:
            raise ParameterError(f"bucket={bucket!r} is for times; the time column holds numbers: give one")
        return WIDTHS[check_choice("bucket", bucket, WIDTHS)]
    width = check_positive("bucket", bucket)
    if is_clock and width != int(width):
        raise ParameterError(f"bucket={bucket!r} must be a whole number of seconds")
    return width


def _clock_width(span: float) -> float:
    if span < DAY:
        return WIDTHS["minute"]
    return DAY if span > MOST_HOURS * HOUR else HOUR


def _numbers(opened: Opened, name: str, times: Any, ends: tuple[float, float]) -> Clock:
    """Cut numbers: one bucket a value if these are whole and few, else round parts of the span."""
    low, high = ends
    values = opened.fetch(times.distinct().limit(MOST_VALUES + 1))["when"].drop_null().to_numpy()
    if len(values) <= MOST_VALUES and np.all(values == np.floor(values)) and np.abs(values).max() < 2**53:
        steps = np.unique(np.diff(np.sort(values)).astype(np.int64))
        width = float(np.gcd.reduce(steps)) if steps.size else 1.0
        return Clock(name, False, width, low)
    return Clock(name, False, _round_up((high - low) / PARTS) if high > low else 1.0)


def _round_up(value: float) -> float:
    """Return the next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-12))
