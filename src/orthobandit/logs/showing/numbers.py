"""Numbers for people: digits that mean something, ends that are not known, shares, rows and times."""

import math
from datetime import UTC, datetime

from orthobandit.logs.results import Interval
from orthobandit.showing.text import is_known, places_of, span

HOUR = 3600.0
DAY = 86400.0


def number(value: float | None, places: int | None = None, sign: str = "") -> str:
    """Return a number with these decimal places; in powers of ten, or as many as it has, without.

    Examples
    --------
    >>> number(1234.56, 1), number(0.25, 3, "+"), number(None), number(1234567.0)
    ('1,234.6', '+0.250', '', '1.235e+06')
    """
    if value is None or not math.isfinite(value):
        return ""
    shown = f"{value:{sign}.4g}" if places is None else f"{value:{sign},.{places}f}"
    return shown.replace("-", "", 1) if value and shown.strip("-0.") == "" else shown


def estimate_words(estimate: float | None, interval: Interval) -> str:
    """Return an estimate with the digits of its interval, or of its own if that is not known.

    Examples
    --------
    >>> estimate_words(0.0312, (0.01, 0.05)), estimate_words(0.0312, (None, None))
    ('+0.031', '+0.031')
    """
    return number(estimate, places_of(interval if any(map(is_known, interval)) else [estimate]), "+")


def span_words(interval: Interval, sign: str = "+") -> str:
    """Return an interval with digits of its own."""
    places = places_of(interval)
    return span(*_ends(interval), lambda end: number(end, places, sign))


def lift_words(lift: Interval) -> str:
    """Return a relative lift in per cent; nothing if neither end is known.

    Examples
    --------
    >>> lift_words((0.012, 0.081)), lift_words((None, 0.5)), lift_words((None, None))
    ('+1.2 to +8.1 %', '−∞ to +50 %', '')
    """
    low, high = _ends(lift)
    if low is None and high is None:
        return ""
    places = places_of([None if end is None else 100.0 * end for end in (low, high)])
    return f"{span(low, high, lambda end: number(100.0 * end, places, '+'))} %"


def half_width(interval: Interval) -> str:
    """Return half the length of an interval; nothing if an end is not known."""
    low, high = _ends(interval)
    if low is None or high is None:
        return ""
    half = (high - low) / 2.0
    return number(half, places_of([half]))


def rows_words(rows: float) -> str:
    """Return a number of rows to two digits.

    Examples
    --------
    >>> rows_words(417.0), rows_words(41_700.0), rows_words(float("inf"))
    ('420', '42k', '∞')
    """
    if not math.isfinite(rows):
        return "∞"
    for size, name in ((1e15, "e15"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rows >= 0.995 * size:
            return f"{_two_digits(rows / size)}{name}"
    return _two_digits(max(rows, 1.0))


def more_words(more: tuple[float, float, float] | None) -> str:
    """Return how many further rows would decide, with the range that holds in 80 % of logs.

    Examples
    --------
    >>> more_words((41_000.0, 12_000.0, float("inf")))
    '41k (12k to ∞)'
    """
    if more is None:
        return ""
    likely, few, many = more
    return f"{rows_words(likely)} ({rows_words(few)} to {rows_words(many)})"


def share_words(share: float) -> str:
    """Return a share in per cent, with digits for small ones.

    Examples
    --------
    >>> share_words(0.5), share_words(0.4987), share_words(0.00042), share_words(1.0)
    ('50 %', '49.9 %', '0.042 %', '100 %')
    """
    return f"{100.0 * share:.3g} %" if is_known(share) else ""


def time_words(time: float, room: float, is_clock: bool) -> str:
    """Return a time on an axis that is `room` long: a date, with the hour where that matters.

    Examples
    --------
    >>> time_words(90_000.0, 4000.0, True), time_words(90_000.0, 1e7, True), time_words(3.0, 10.0, False)
    ('2 Jan 01:00', '2 Jan 1970', '3')
    """
    if not is_clock:
        return number(time, places_of([0.0, room])) if room else f"{time:.6g}"
    try:
        moment = datetime.fromtimestamp(time, UTC)
    except (OverflowError, ValueError, OSError):  # before the year 1 or after 9999
        return f"{time:.6g}"
    if room <= HOUR:
        return f"{moment:%H:%M:%S}"
    day = f"{moment.day} {moment:%b}"
    return f"{day} {moment:%H:%M}" if room <= 3 * DAY else f"{day} {moment.year}"


def _two_digits(value: float) -> str:
    """Return a number of at least 1 to two digits, without powers of ten."""
    return f"{float(f'{value:.2g}'):.{1 if value < 9.95 else 0}f}"


def _ends(interval: Interval) -> Interval:
    """Return the ends, None also for those that are infinite."""
    low, high = (end if is_known(end) else None for end in interval)
    return low, high
