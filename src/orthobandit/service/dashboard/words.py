"""The words of the dashboard: states, advice, intervals and their bars."""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, inf
from typing import Any, NamedTuple

from orthobandit.estimate.follow.guardrails import rail_words
from orthobandit.experiment import Guardrail, Metric
from orthobandit.experiment.report.conclusion import Standing
from orthobandit.experiment.report.overview import Glance
from orthobandit.experiment.report.render import (
    arm_tags,
    bars_of,
    gap_words,
    lift_bars,
    rate_words,
)
from orthobandit.experiment.report.report import Report
from orthobandit.showing.charts import Bar, BarMarks, bar_scale, place_bar
from orthobandit.showing.numbers import about, shares_words, span_words
from orthobandit.showing.text import LEADER, WINNER, arm_state

MAX_FORESEEN_SECONDS = 3.2e8  # seconds, ten years: nobody plans for longer


class State(NamedTuple):
    """What an experiment is doing: a word, and the class that colours it."""

    word: str
    kind: str


def state_of(report: Report) -> State:
    """Return what an experiment is doing, in a word."""
    if report.conclusion.has_won:
        return State("winner declared", "won")
    if report.status == "paused":
        return State("paused", "waits")
    if report.status == "stopped":
        return State("stopped", "over")
    return State("running", "runs") if report.has_rivals else State("nothing to find out", "over")


def advice_of(report: Report) -> str:
    """Return the advice, worded for the dashboard's buttons."""
    if report.conclusion.standing is Standing.PAUSED:
        return "Paused: no new visitors get an arm. Resume to go on; rewards are still taken."
    if report.conclusion.standing is Standing.EARLY and not report.proposals:
        return "Begin: nobody has asked yet which arm to show."
    return report.advice


def line_of(key: str, glance: Glance) -> dict[str, Any]:
    """Return the line of an experiment in the list: its state, what to do, and which arm or rule leads."""
    report = glance.report
    conclusion = report.conclusion
    # Rules compete in a personalised experiment, and none leads before it is declared.
    leader = conclusion.leader if report.personal is None else conclusion.declared
    if not conclusion.may_lead:
        leader = None
    return {
        "key": key,
        "problem": "",
        "state": state_of(report),
        "leader": leader or "",
        "may_lead": conclusion.may_lead,
        "share": next((arm.probability for arm in report.arms if arm.label == leader), None),
        "arms": len(report.arms),
        "active": sum(arm.is_active for arm in report.arms),
        "proposals": report.proposals,
        "settled": report.settled,
        "advice": advice_of(report),
        "is_guarded": any(rail.is_alarm for rail in glance.guardrails),
        "alarms": len(conclusion.alarms),
    }


def interval(low: float | None, high: float | None) -> str:
    """Return an interval in words, with as many digits as its width justifies.

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


def outlook_of(report: Report, at: Sequence[float]) -> str:
    """Return when an experiment may end, with the days that takes at the pace so far.

    Parameters
    ----------
    report : Report
    at : sequence of float
        Times of proposals, the first and the newest among them.
    """
    between = report.expected_between
    if between is None or between[1] is None or report.is_early or len(at) < 2 or not at[-1] > at[0]:
        return report.outlook
    pace = report.proposals / (at[-1] - at[0])
    soonest, latest = ((total - report.settled) / pace for total in (between[0], between[1]))
    if latest > MAX_FORESEEN_SECONDS:
        return report.outlook
    soon, late = duration_words(max(soonest, 0.0)), duration_words(latest)
    return f"{report.outlook} At the pace so far that is {soon}{'' if soon == late else f' to {late}'}."


def duration_words(seconds: float) -> str:
    """Return a length of time that is no more than a forecast, in words.

    Examples
    --------
    >>> duration_words(20.0), duration_words(4_000.0), duration_words(100_000.0), duration_words(1e6)
    ('less than a minute', 'about 67 minutes', 'about 28 hours', 'about 12 days')
    """
    for size, name, most in ((60.0, "minutes", 90.0), (3600.0, "hours", 48.0), (86400.0, "days", inf)):
        if seconds < size and name == "minutes":
            return "less than a minute"
        if seconds < size * most:
            return f"about {about(ceil(seconds / size))} {name}"
    raise AssertionError("days have no end")


def arms_of(glance: Glance) -> list[dict[str, Any]]:
    """Return the rows of the table of arms: visitors, rate, and lift over the reference arm.

    Where no lift is known, because the reference arm may earn nothing, gaps stand in for lifts.
    """
    report = glance.report
    objective = report.metrics[0]
    bars = lift_bars(report) or bars_of(report, objective)
    marks = _marks(bars)
    shares = shares_words([arm.probability for arm in report.arms])
    rows = []
    for place, (arm, told) in enumerate(zip(report.arms, glance.provisional, strict=True)):
        is_reference = arm.label == report.reference
        tags = arm_tags(report, arm)
        rate, _, ends = rate_words(objective, (arm.rate, arm.rate_low, arm.rate_high)).partition(" (")
        rows.append(
            {
                "arm": arm,
                "place": place,
                "is_reference": is_reference,
                "is_leader": LEADER in tags,
                "is_declared": arm.label == report.declared,
                "has_won": WINNER in tags,
                "state": arm_state(is_active=arm.is_active, is_retired=arm.is_retired),
                "share": shares[place],
                "rate": rate,
                "rate_ends": ends.rstrip(")"),
                "compared": bars[place].words,
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
    """Return an example of a reward that a program may report, as JSON.

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
    """Return the positions of bars on their common scale; None for unknown intervals."""
    scale = bar_scale(bars, limits)
    placed = [place_bar(bar, scale, limits) for bar in bars]
    return [None if marks.low is None else marks for marks in placed]
