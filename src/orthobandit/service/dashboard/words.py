"""Reports in the words of pages: states, advice, intervals and their bars."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from orthobandit.experiment import Guardrail, Metric
from orthobandit.experiment.ledger.guardrails import rail_words
from orthobandit.experiment.report.overview import Glance
from orthobandit.experiment.report.report import MetricReport, Report
from orthobandit.showing.text import places_of, span

TINY = 1e-12  # differences below this are rounding


class State(NamedTuple):
    """What an experiment is doing: a word, and the class that colours it."""

    word: str
    kind: str


def state_of(report: Report) -> State:
    """Return what an experiment is doing, in a word."""
    if report.declared is not None:
        return State("winner declared", "won")
    if report.status == "paused":
        return State("paused", "waits")
    if report.status == "stopped":
        return State("stopped", "over")
    return State("running", "runs")


def advice_of(report: Report) -> str:
    """Return what to do now, in words for those who have buttons."""
    if report.status == "paused" and report.declared is None:
        return "Paused: no new visitors get an arm. Resume to go on; rewards are still taken."
    if report.status == "open" and not report.proposals:
        return "Begin: nobody has asked yet which arm to show."
    return report.advice


def signed(value: float, places: int | None = None) -> str:
    """Return a difference with its sign, and with these decimal places if they are known.

    Examples
    --------
    >>> signed(-0.01234), signed(0.5), signed(0.0776, 2), signed(-0.0004, 2)
    ('−0.0123', '+0.5', '+0.08', '0.00')
    """
    # Rounding errors must not show as a difference with a sign.
    exact = value if abs(value) > TINY else 0.0
    text = f"{exact:+.3g}" if places is None else f"{exact:+,.{places}f}"
    is_zero = places is not None and not text.strip("+-0.,")
    return text.lstrip("+-") if is_zero else text.replace("-", "−")


def interval(low: float | None, high: float | None) -> str:
    """Return an interval in words, with digits that its width gives a meaning to.

    Examples
    --------
    >>> interval(-0.069412, 0.077), interval(-1.0, 1.0), interval(None, None)
    ('−0.07 to +0.08', '−1.0 to +1.0', 'not known yet')
    """
    return span(low, high, partial(signed, places=_places(low, high)))


def _places(low: float | None, high: float | None) -> int | None:
    return None if low is None or high is None else places_of([low, high])


def _gap_words(gap: float | None, low: float | None, high: float | None) -> str | None:
    return None if gap is None else signed(gap, _places(low, high))


def some(count: int, most: int = 8) -> list[int]:
    """Return at most `most` indices of a list, evenly spread, with the first and the last.

    Examples
    --------
    >>> some(3), some(100, most=4)
    ([0, 1, 2], [0, 33, 66, 99])
    """
    if count <= most:
        return list(range(count))
    return [round(place * (count - 1) / (most - 1)) for place in range(most)]


def arms_of(glance: Glance) -> list[dict[str, Any]]:
    """Return the rows of the table of arms."""
    report = glance.report
    scale = _scale(report.metrics[0])
    rows = []
    for place, (arm, told) in enumerate(zip(report.arms, glance.provisional, strict=True)):
        is_reference = arm.label == report.reference
        rows.append(
            {
                "arm": arm,
                "place": place,
                "is_reference": is_reference,
                "is_leader": arm.label == report.leader and report.settled > 0,
                "is_declared": arm.label == report.declared,
                "state": "" if arm.is_active else "retired" if arm.is_retired else "ruled out",
                "gap": None
                if arm.gap is None or is_reference
                else signed(arm.gap, _places(arm.low, arm.high)),
                "interval": interval(arm.low, arm.high),
                "bar": None if is_reference else _bar((arm.gap, arm.low, arm.high), scale),
                "provisional": told,
            }
        )
    return rows


def metrics_of(report: Report, guardrails: Sequence[Guardrail] = ()) -> list[dict[str, Any]]:
    """Return the tables of the metrics beside the objective, with the limits that guardrails set."""
    out = []
    reasons = dict(report.retirements)
    for metric in report.metrics[1:]:
        rails = [rail for rail in guardrails if rail.metric == metric.name]
        limits = [rail.margin if rail.worse == "higher" else -rail.margin for rail in rails]
        scale = _scale(metric, limits)
        rows = []
        for place, (arm, gap) in enumerate(zip(report.arms, metric.gaps, strict=True)):
            is_reference = arm.label == report.reference
            rows.append(
                {
                    "label": arm.label,
                    "place": place,
                    "is_reference": is_reference,
                    "is_out": not arm.is_active,
                    "is_guarded": any(reasons.get(arm.label) == rail.reason for rail in rails),
                    "gap": _gap_words(*gap) if arm.settled else None,
                    "interval": interval(*gap[1:]),
                    "bar": None if is_reference else _bar(gap, scale, limits),
                }
            )
        words = [rail_words(rail) for rail in rails]
        out.append({"metric": metric, "rows": rows, "rails": words, "limits": limits})
    return out


def example_of(metrics: Sequence[Metric]) -> str:
    """Return what a program may tell of a visitor, as JSON.

    Examples
    --------
    >>> example_of([Metric("reward")]), example_of([Metric("reward", (0, 1)), Metric("seconds", (0, 0.5))])
    ('1', '{"reward": 1, "seconds": 0.5}')
    """
    values = {one.name: f"{min(1.0, one.confidence.reward_range[1]):g}" for one in metrics}
    if len(values) == 1:
        return next(iter(values.values()))
    text = "{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in values.items()) + "}"
    return text.replace("'", r"\u0027")  # it is shown between such quotes, for a shell


def _scale(metric: MetricReport, limits: Sequence[float] = ()) -> tuple[float, float]:
    """Return the ends of the scale on which the bars of a metric are drawn."""
    ends = [end for gap in metric.gaps for end in gap[1:] if end is not None]
    return min(0.0, *ends, *limits, 0.0), max(0.0, *ends, *limits, 0.0)


def _bar(
    gap: tuple[float | None, float | None, float | None],
    scale: tuple[float, float],
    limits: Sequence[float] = (),
) -> dict[str, Any] | None:
    """Return where an interval, its middle, zero and limits are on a scale, in per cent, if anything is."""
    middle, low, high = gap
    least, most = scale
    if low is None or high is None or most == least:
        return None

    def at(value: float) -> float:
        # 2 % on either side, so that no bar touches the edge.
        return round(2.0 + 96.0 * (value - least) / (most - least), 2)

    side = "better" if low > 0 else "worse" if high < 0 else "open"
    return {
        "zero": at(0.0),
        "limits": [at(limit) for limit in limits],
        "low": at(low),
        "high": at(high),
        "width": round(at(high) - at(low), 2),
        "middle": None if middle is None else at(min(max(middle, least), most)),
        "side": side,
    }
