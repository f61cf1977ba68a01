"""Is an arm not worse than the reference arm by more than a margin? Shown, not yet, or refuted.

The intervals of a metric hold together, at all times or for one look, so that these claims need no δ of their
own: that an interval lies on one side of the margin is true whenever the interval is.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import copysign

from orthobandit.logs.results import Effect, MetricResult, NonInferiority
from orthobandit.showing.numbers import number


def judge_noninferiority(
    results: Sequence[MetricResult], margins: Mapping[str, float], in_points: Sequence[str]
) -> tuple[NonInferiority, ...]:
    """Return what is known of every arm by every metric with a margin.

    Parameters
    ----------
    results : sequence of MetricResult
    margins : mapping of str to float
        Margins of metrics that are no guardrails; see :class:`NonInferiority`.
    in_points : sequence of str
        Metrics that are shares, whose differences are said in percentage points.
    """
    return tuple(_claims(results, margins, in_points))


def _claims(
    results: Sequence[MetricResult], margins: Mapping[str, float], in_points: Sequence[str]
) -> Iterator[NonInferiority]:
    for metric in results:
        margin = metric.margin if metric.margin is not None else margins.get(metric.name)
        if margin is None:
            continue
        for one in metric.effects:
            if one.verdict != "reference":
                yield _claim(metric.name, one, margin, is_share=metric.name in in_points)


def _claim(name: str, effect: Effect, margin: float, *, is_share: bool) -> NonInferiority:
    """Return what is known of one arm."""
    # How much worse the arm is, at least and at most, whichever side is worse.
    low, high = effect.interval
    sign = copysign(1.0, margin)
    least, most = (low, high) if sign > 0 else (_negative(high), _negative(low))
    status = "not yet"
    if most is not None and most < abs(margin):
        status = "shown"
    elif least is not None and least > abs(margin):
        status = "refuted"
    words = (
        f"{effect.arm!r} is not worse than {effect.over!r} by more than {_size(abs(margin), is_share)} in"
        f" {name!r}: {status}{_detail(status, least, most, is_share)}."
    )
    return NonInferiority(effect.arm, effect.over, name, margin, status, words)


def _detail(status: str, least: float | None, most: float | None, is_share: bool) -> str:
    if status == "refuted" and least is not None:
        return f" (it is worse by at least {_size(least, is_share)})"
    if most is None:
        return " (too little is known)"
    if status == "shown":
        return (
            " (it is not worse at all)" if most <= 0 else f" (it is worse by at most {_size(most, is_share)})"
        )
    return f" (it may be worse by up to {_size(most, is_share)})"


def _size(value: float, is_share: bool) -> str:
    """Return a difference in words; those of shares in percentage points."""
    if not is_share:
        return number(value)
    points = number(100.0 * value)
    return f"{points} percentage point{'' if points == '1' else 's'}"


def _negative(value: float | None) -> float | None:
    return None if value is None else -value
