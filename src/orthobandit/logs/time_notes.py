"""Notes on times of a log that may not be what they seem: numbers that look like dates, and stray clocks."""

from collections.abc import Iterator
from datetime import datetime

import numpy as np

from orthobandit.estimate.follow.cells import Cells, time_words
from orthobandit.estimate.follow.rules import RuleCells
from orthobandit.logs.question import Question
from orthobandit.logs.reading.clock import DAY, PER_SECOND, UNIT_WORDS, likely_unit

# Dates that are written as one number, by how many digits they have.
WRITTEN_DATES = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
LIKELY_YEARS = (2000, 2100)
# Rows are stray if they are few and much further from all others than these are from each other.
STRAY_SHARE = 0.01
STRAY_RATIO = 10.0
LEAST_STRAY_DAYS = 30.0


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
