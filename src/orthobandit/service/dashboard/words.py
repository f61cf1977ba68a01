"""Reports in the words of pages: states, advice, intervals and their bars."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from orthobandit.estimate.follow.guardrails import rail_words
from orthobandit.experiment import Guardrail, Metric
from orthobandit.experiment.report.overview import Glance
from orthobandit.experiment.report.report import Report
from orthobandit.experiment.report.words import Gap, bars_of, gap_words
from orthobandit.showing.charts import Bar, BarMarks, bar_scale, place_bar
from orthobandit.showing.numbers import span_words
from orthobandit.showing.words import arm_state


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


def interval(low: float | None, high: float | None) -> str:
    """Return an interval in words, with digits that its width gives a meaning to.

    Examples
    --------
    >>> interval(-0.069412, 0.077), interval(-1.0, 1.0), interval(None, None)
    ('-0.07 to +0.08', '-1.0 to +1.0', 'not known yet')
    """
    return span_words((low, high))


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
    marks = _marks(bars_of(report, report.metrics[0]))
    rows = []
    for place, (arm, told) in enumerate(zip(report.arms, glance.provisional, strict=True)):
        is_reference = arm.label == report.reference
        gap: Gap = (None if is_reference else arm.gap, arm.low, arm.high)
        rows.append(
            {
                "arm": arm,
                "place": place,
                "is_reference": is_reference,
                "is_leader": arm.label == report.leader and not report.is_early,
                "is_declared": arm.label == report.declared,
                "state": arm_state(is_active=arm.is_active, is_retired=arm.is_retired),
                "gap": gap_words(gap),
                "interval": interval(arm.low, arm.high),
                "bar": marks[place],
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
        guarded = [any(reasons.get(arm.label) == rail.reason for rail in rails) for arm in report.arms]
        bars = bars_of(report, metric)
        # Of other metrics than the objective, only what a guardrail found is known to be bad.
        toned = [
            replace(bar, tone="bad") if is_bad else bar for bar, is_bad in zip(bars, guarded, strict=True)
        ]
        marks = _marks(toned, limits)
        rows = []
        for place, (arm, gap) in enumerate(zip(report.arms, metric.gaps, strict=True)):
            rows.append(
                {
                    "label": arm.label,
                    "place": place,
                    "is_reference": arm.label == report.reference,
                    "is_out": not arm.is_active,
                    "is_guarded": guarded[place],
                    "gap": gap_words(gap) if arm.settled else "",
                    "interval": interval(*gap[1:]),
                    "bar": marks[place],
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


def _marks(bars: Sequence[Bar], limits: Sequence[float] = ()) -> list[BarMarks | None]:
    """Return where bars are on the scale that they share; None where nothing is known of an interval."""
    scale = bar_scale(bars, limits)
    placed = [place_bar(bar, scale, limits) for bar in bars]
    return [None if marks.low is None else marks for marks in placed]
