"""Numbers as text: meaningful digits, intervals with unknown ends, shares, counts and times.

Text and pages use the same functions, so a number looks the same wherever it stands. Here a minus is the
keyboard's, which can be pasted into a program; pages set it as a minus sign (`minus` in
:mod:`~orthobandit.showing.html`).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeGuard

FINEST = 7  # decimal places beyond which powers of ten are easier to read
LARGE = 1e9  # as are numbers from here on
SMALLEST_CHANCE = 1e-300  # a p-value below it is too small for a floating-point number
MINUTE = 60.0
HOUR = 3600.0
DAY = 86400.0

Interval = tuple[float | None, float | None]  # None for an end that is not known


def is_known(value: float | None) -> TypeGuard[float]:
    """Whether a number is there and finite."""
    return value is not None and math.isfinite(value)


def finite(value: float | None) -> float | None:
    """Return a number, or None for one that is not finite, so that nothing is known."""
    return float(value) if is_known(value) else None


def number(value: float | None, places: int | None = None, sign: str = "") -> str:
    """Return a number with thousands separators and this many decimal places, or four digits if None.

    A number that is rounded to 0 has no sign; one that is not known is an empty string.

    Examples
    --------
    >>> number(1234.56, 1), number(0.25, 3, "+"), number(None), number(1234567.0)
    ('1,234.6', '+0.250', '', '1.235e+06')
    >>> number(-0.0004, 2, "+"), number(5000.0)
    ('0.00', '5,000')
    """
    if not is_known(value):
        return ""
    shown = f"{value:{sign},.4g}" if places is None else f"{value:{sign},.{places}f}"
    is_zero = not shown.strip("+-0.")
    return shown.lstrip("+-") if is_zero else shown


def places_of(values: Iterable[float | None]) -> int | None:
    """Return how many decimal places show the range of these numbers to two digits; None for powers of ten.

    Examples
    --------
    >>> places_of([0.0112, 0.0593]), places_of([100.0, 900.0]), places_of([1e-12, 3e-12])
    (3, 0, None)

    A number that is not 0 does not look like 0, if at most two more places prevent it:

    >>> places_of([-0.0002, 0.0593])
    4
    """
    known = [value for value in values if is_known(value)]
    apart = (max(known) - min(known) or max(map(abs, known))) if known else 0.0
    if not apart or not math.isfinite(apart):
        return None if apart else 0
    places = max(1 - int(f"{apart:.1e}".partition("e")[2]), 0)
    least = min(abs(value) for value in known if value)
    places = next((more for more in range(places, places + 3) if round(least, more)), places)
    return None if places > FINEST or max(map(abs, known)) >= LARGE else places


def span(low: float | None, high: float | None, shown: Callable[[float], str]) -> str:
    """Return an interval in words; None is an end that is not known.

    Examples
    --------
    >>> span(None, 0.5, "{:+.2f}".format), span(None, None, str)
    ('−∞ to +0.50', 'not known yet')
    """
    if low is None and high is None:
        return "not known yet"
    return f"{'−∞' if low is None else shown(low)} to {'∞' if high is None else shown(high)}"


def span_words(interval: Interval, sign: str = "+") -> str:
    """Return an interval with as many digits as its width makes meaningful.

    Examples
    --------
    >>> span_words((-0.069412, 0.077)), span_words((None, 1200.0)), span_words((None, None))
    ('-0.07 to +0.08', '−∞ to +1,200', 'not known yet')
    """
    places = places_of(interval)
    return span(*_known_ends(interval), lambda end: number(end, places, sign))


def estimate_words(estimate: float | None, interval: Interval) -> str:
    """Return an estimate with the digits of its interval, or of its own if that is not known.

    Examples
    --------
    >>> estimate_words(0.0312, (0.01, 0.05)), estimate_words(0.0312, (None, None))
    ('+0.031', '+0.031')
    """
    return number(estimate, places_of(interval if any(map(is_known, interval)) else [estimate]), "+")


def percent_words(interval: Interval, sign: str = "") -> str:
    """Return an interval of shares in per cent; nothing if neither end is known.

    Examples
    --------
    >>> percent_words((0.0912, 0.1141)), percent_words((-0.01, 0.2), "+"), percent_words((None, None))
    ('9.1 to 11.4 %', '-1 to +20 %', '')
    """
    low, high = _known_ends(interval)
    if low is None and high is None:
        return ""
    places = places_of([None if end is None else 100.0 * end for end in (low, high)])
    return f"{span(low, high, lambda end: number(100.0 * end, places, sign))} %"


def percent_estimate(share: float | None, interval: Interval, sign: str = "") -> str:
    """Return a share in per cent with the digits of its interval, or three if that is not known.

    Examples
    --------
    >>> percent_estimate(0.1021, (0.0912, 0.1141)), percent_estimate(0.1021, (None, None))
    ('10.2 %', '10.2 %')
    """
    if not is_known(share):
        return ""
    ends = [None if end is None else 100.0 * end for end in _known_ends(interval)]
    if not any(map(is_known, ends)):
        return f"{100.0 * share:{sign}.3g} %"
    return f"{number(100.0 * share, places_of(ends), sign)} %"


def lift_words(lift: Interval) -> str:
    """Return a relative lift in per cent; nothing if neither end is known.

    Examples
    --------
    >>> lift_words((0.012, 0.081)), lift_words((None, 0.5)), lift_words((None, None))
    ('+1.2 to +8.1 %', '−∞ to +50 %', '')
    """
    return percent_words(lift, "+")


def half_width(interval: Interval) -> str:
    """Return half the length of an interval; nothing if an end is not known."""
    low, high = _known_ends(interval)
    if low is None or high is None:
        return ""
    half = (high - low) / 2.0
    return number(half, places_of([half]))


def share_words(share: float | None) -> str:
    """Return a share in per cent, with digits for small ones.

    Examples
    --------
    >>> share_words(0.5), share_words(0.4987), share_words(0.00042), share_words(1.0)
    ('50 %', '49.9 %', '0.042 %', '100 %')
    """
    return f"{100.0 * share:.3g} %" if is_known(share) else ""


def shares_words(shares: Sequence[float]) -> list[str]:
    """Return the shares of a column in per cent, all with the same decimal places unless some are tiny.

    There is one place where one is needed, and more only where a share would look like 0.

    Examples
    --------
    >>> shares_words([0.303, 0.413, 0.284, 0.0]), shares_words([0.5, 0.5]), shares_words([1.0, 0.00000042])
    (['30.3 %', '41.3 %', '28.4 %', '0.0 %'], ['50 %', '50 %'], ['100 %', '4.2e-05 %'])
    >>> shares_words([0.00794, 0.49603, 0.49603]), shares_words([0.0004, 0.9996])
    (['0.8 %', '49.6 %', '49.6 %'], ['0.04 %', '99.96 %'])
    """
    alone = [share_words(share) for share in shares]
    if any("e" in words for words in alone):
        return alone
    places = int(any("." in words for words in alone))
    least = min((share for share in shares if share > 0.0), default=1.0)
    while not float(f"{100.0 * least:.{places}f}"):
        places += 1
    return [f"{100.0 * share:.{places}f} %" for share in shares]


def chance_number(p_value: float) -> str:
    """Return a p-value; what is below the smallest number is not 0.

    Examples
    --------
    >>> chance_number(0.0123), chance_number(0.0)
    ('0.012', '< 1e-300')
    """
    return f"{p_value:.2g}" if p_value >= SMALLEST_CHANCE else f"< {SMALLEST_CHANCE:g}"


def chance_words(p_value: float) -> str:
    """Return a p-value with a sign of comparison; what is below the smallest number is not 0.

    Examples
    --------
    >>> chance_words(0.0123), chance_words(0.0)
    ('= 0.012', '< 1e-300')
    """
    number = chance_number(p_value)
    return f"= {number}" if p_value >= SMALLEST_CHANCE else number


def risk_percent(share: float) -> str:
    """Return the largest share of errors in per cent, rounded up to three digits so that it still holds.

    Examples
    --------
    >>> risk_percent(0.05), risk_percent(0.05 / 3), risk_percent(0.0125)
    ('5 %', '1.67 %', '1.25 %')
    """
    return f"{_risk(share):.10g} %"


def sure_percent(share: float) -> str:
    """Return the certainty in per cent that goes with the largest share of errors.

    Examples
    --------
    >>> sure_percent(0.05), sure_percent(0.05 / 3), sure_percent(0.05 / 70)
    ('95 %', '98.33 %', '99.9285 %')
    """
    return f"{100.0 - _risk(share):.10g} %"


def _risk(share: float) -> float:
    """Return a share in per cent with three digits, rounded up."""
    percent = 100.0 * share
    if percent <= 0.0:
        return 0.0
    shown = float(f"{percent:.3g}")
    step = 10.0 ** (math.floor(math.log10(percent)) - 2)
    # Rounding of floats must not add a step of its own.
    return shown if shown >= percent * (1.0 - 1e-9) else float(f"{shown + step:.3g}")


def duration_words(seconds: float) -> str:
    """Return a length of time in the largest unit that it is a whole number of; seconds otherwise.

    Examples
    --------
    >>> duration_words(7 * 86400.0), duration_words(3600.0), duration_words(5400.0), duration_words(0.5)
    ('7 days', '1 hour', '90 minutes', '0.5 seconds')
    """
    for size, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (1.0, "second")):
        if seconds >= size and seconds % size == 0.0:
            count = seconds / size
            return f"{count:,.0f} {name}{'' if count == 1.0 else 's'}"
    return f"{seconds:,.6g} seconds"


def about(count: float) -> str:
    """Return a count rounded to two digits, for forecasts.

    Examples
    --------
    >>> about(1692), about(70), about(7.4), about(2_345_678)
    ('1,700', '70', '7', '2,300,000')
    """
    return f"{float(f'{count:.2g}'):,.0f}"


def rows_words(rows: float) -> str:
    """Return a count rounded to two digits in compact form.

    Examples
    --------
    >>> rows_words(417.0), rows_words(41_700.0), rows_words(float("inf"))
    ('420', '42k', '∞')
    """
    if not math.isfinite(rows):
        return "∞"
    for size, name in ((1e15, "e15"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        # 995 would be rounded to 1000: it is written as 1.0k.
        if rows >= 0.995 * size:
            return f"{_two_digits(rows / size)}{name}"
    return _two_digits(max(rows, 1.0))


def more_words(more: tuple[float, float, float] | None) -> str:
    """Return how many further rows decide in 3 of 4 cases: from 5 % to 80 % of them.

    There is no range while intervals wait for large values, and no text if no number can be foreseen.

    Examples
    --------
    >>> more_words((41_000.0, 12_000.0, float("inf"))), more_words((230.0, 230.0, 230.0))
    ('12k to ∞', 'about 230')
    """
    if more is None or not math.isfinite(more[1]):
        return ""
    _, few, many = more
    if rows_words(few) == rows_words(many):
        return f"about {rows_words(few)}"
    return f"{rows_words(few)} to {rows_words(many)}"


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


def _known_ends(interval: Interval) -> Interval:
    """Return the ends, None also for those that are infinite."""
    low, high = (end if is_known(end) else None for end in interval)
    return low, high
