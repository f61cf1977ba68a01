"""Values of the flags of `orthobandit analyse`: lengths of time, probabilities by arm, margins, caps."""

import shlex
from argparse import ArgumentTypeError
from collections.abc import Sequence
from fractions import Fraction
from math import isfinite

from orthobandit.errors import ParameterError
from orthobandit.experiment.settings import Guardrail, seconds
from orthobandit.logs.question import Ratio

BUCKETS = ("minute", "hour", "day", "week")


def duration(text: str) -> float:
    """Return a length of time: seconds of ``7d``, or a plain number in the units of the time column.

    Examples
    --------
    >>> duration("30m"), duration("2w"), duration("250")
    (1800.0, 1209600.0, 250.0)
    """
    try:
        return seconds(_number_or_text(text))
    except ParameterError:
        raise ArgumentTypeError(
            f"{text!r} is no length of time; write 30m, 12h, 7d or 2w, or a number above 0 in the units of"
            " the time column"
        ) from None


def bucket(text: str) -> str | float:
    """Return the name of a bucket, or its length as :func:`duration`."""
    if text in BUCKETS:
        return text
    try:
        return duration(text)
    except ArgumentTypeError:
        raise ArgumentTypeError(
            f"{text!r} is no bucket of time; write {', '.join(BUCKETS)}, a length such as 15m or 6h, or a"
            " number above 0 in the units of the time column"
        ) from None


def probabilities(text: str) -> dict[str, float]:
    """Return probabilities by arm, of ``a=.5 b=.5``, ``a=1/3, b=2/3`` or ``'"blue button"=.5 b=.5'``.

    Examples
    --------
    >>> probabilities('"blue button"=3/4 b=.25')
    {'blue button': 0.75, 'b': 0.25}
    """
    words = shlex.shlex(text, posix=True)
    words.whitespace = " ,\t\n"
    words.whitespace_split = True
    words.commenters = ""
    try:
        items = list(words)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} has a quotation mark that is not closed") from None
    found: dict[str, float] = {}
    for item in items:
        arm, _, share = item.rpartition("=")
        if arm in found:
            raise ArgumentTypeError(f"{text!r} names the arm {arm!r} twice; once is enough")
        found[arm] = _share(text, item, arm, share)
    if not found:
        raise ArgumentTypeError(f"{text!r} names no arm; write arm=probability, as in 'a=.5 b=.5'")
    return found


def split(text: str) -> dict[str, float] | str:
    """Return probabilities by arm, or the word ``equal``."""
    return text if text == "equal" else probabilities(text)


def guardrail(text: str) -> Guardrail:
    """Return the guardrail of ``latency:0.5``, or of ``visits:0.1:lower``."""
    given, _, worse = text.rpartition(":") if text.endswith((":higher", ":lower")) else (text, "", "higher")
    metric, _, margin = given.rpartition(":")
    value = _finite(margin)
    if not metric or value is None or value < 0:
        raise ArgumentTypeError(
            f"{text!r} must be METRIC:MARGIN with the harm that is borne, 0 or more, as in latency:0.5; where"
            " less is worse, visits:0.1:lower"
        )
    return Guardrail(metric, value, worse)


def ratio(text: str) -> Ratio:
    """Return the ratio of ``revenue/clicks``."""
    numerator, slash, denominator = text.partition("/")
    if not (numerator and slash and denominator) or "/" in denominator:
        raise ArgumentTypeError(f"{text!r} must be two columns with a / between them, as in revenue/clicks")
    return Ratio(numerator, denominator)


def cap(text: str) -> tuple[str, float]:
    """Return the metric and the largest value that counts of ``revenue=500``."""
    metric, _, largest = text.rpartition("=")
    value = _finite(largest)
    if not metric or value is None:
        raise ArgumentTypeError(
            f"{text!r} must be METRIC=VALUE with the largest value that counts, as in revenue=500"
        )
    return metric, value


def value_range(text: str) -> tuple[str, tuple[float, float]]:
    """Return the metric and where its values must lie of ``clicked=0:1``.

    Examples
    --------
    >>> value_range("clicked=0:1")
    ('clicked', (0.0, 1.0))
    """
    metric, _, ends = text.rpartition("=")
    low, high = (_finite(end) for end in (ends.partition(":")[0], ends.partition(":")[2]))
    if not metric or low is None or high is None or low >= high:
        raise ArgumentTypeError(
            f"{text!r} must be METRIC=LOW:HIGH with the ends of what its values can be, as in clicked=0:1"
        )
    return metric, (low, high)


def ranges_of(pairs: Sequence[tuple[str, tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """Return declared ranges by metric; a metric has one."""
    ranges: dict[str, tuple[float, float]] = {}
    for metric, ends in pairs:
        if ranges.setdefault(metric, ends) != ends:
            raise ParameterError(
                f"two ranges are given for {metric!r}; a metric has one: keep --range or --bounds"
            )
    return ranges


def caps_of(pairs: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return caps by metric; a metric has one."""
    caps = dict(pairs)
    if len(caps) < len(pairs):
        names = [metric for metric, _ in pairs]
        twice = next(metric for metric in names if names.count(metric) > 1)
        raise ParameterError(f"--cap is given twice for {twice!r}; a metric has one largest value")
    return caps


def _share(text: str, item: str, arm: str, share: str) -> float:
    try:
        value = float(Fraction(share))
    except (ValueError, ZeroDivisionError, OverflowError):
        value = -1.0
    if not arm or not 0 <= value <= 1:
        raise ArgumentTypeError(
            f"{text!r}: {item!r} must be arm=probability with a number from 0 to 1, as in 'a=.5 b=.5' or"
            " 'a=1/3 b=2/3'; labels with spaces stand in quotation marks"
        )
    return value


def _finite(text: str) -> float | None:
    value = _number_or_text(text)
    return value if isinstance(value, float) and isfinite(value) else None


def _number_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
