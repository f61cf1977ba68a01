"""An analysis as tidy columns, and as a table for a notebook."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from orthobandit.logs.results import Analysis, Effect
from orthobandit.logs.showing.words import (
    certainty_words,
    diagnostic_words,
    gap_words,
    interval_words,
    mean_places,
    title_words,
)
from orthobandit.showing.html import html_table, html_words
from orthobandit.showing.numbers import number

Columns = dict[str, list[Any]]


def tables_of(analysis: Analysis) -> dict[str, Columns]:
    """Return every table of an analysis as columns; None for what is not known."""
    effects = ((metric.name, one) for metric in analysis.metrics for one in metric.effects)
    arms = ((metric.name, one) for metric in analysis.metrics for one in metric.summaries)
    inside = ((part, one) for part in analysis.segments for one in part.effects)
    return {
        "effects": _columns({"metric": name} | _effect(one) for name, one in effects),
        "arms": _columns({"metric": name} | vars(one) for name, one in arms),
        "history": _columns(_moments(analysis)),
        "checks": _columns(
            {"check": one.name, "status": one.status, "p_value": one.p_value, "words": one.words}
            for one in analysis.diagnostics
        ),
        "segments": _columns(
            {"segment": part.segment, "rows": part.rows} | _effect(one) for part, one in inside
        ),
        "rivals": _columns(
            {"method": one.method, "arm": one.arm, "over": one.over, "estimate": one.estimate}
            | {"low": one.interval[0], "high": one.interval[1], "assumes": one.assumes}
            for one in analysis.rivals
        ),
        **_personal(analysis),
    }


def _personal(analysis: Analysis) -> dict[str, Columns]:
    """Return rules and effects by context; without columns where none were asked for."""
    if analysis.personal is None:
        return {"rules": {}, "context": {}}
    return {
        "rules": _columns(
            {"rule": one.name, "text": one.text, "estimate": one.estimate}
            | {"low": one.interval[0], "high": one.interval[1]}
            | {"fixed_low": one.fixed[0], "fixed_high": one.fixed[1]}
            | {"changed": one.changed, "is_possible": one.is_possible}
            for one in analysis.personal.rules
        ),
        "context": _columns(
            {"arm": one.arm, "over": one.over, "column": one.column, "estimate": one.estimate}
            | {"low": one.interval[0], "high": one.interval[1]}
            for one in analysis.personal.effects
        ),
    }


def _effect(one: Effect) -> dict[str, Any]:
    out: dict[str, Any] = {"arm": one.arm, "over": one.over, "estimate": one.estimate}
    for name, (low, high) in (("", one.interval), ("fixed_", one.fixed), ("lift_", one.lift)):
        out |= {f"{name}low": low, f"{name}high": high}
    return out | {"verdict": one.verdict}


def _moments(analysis: Analysis) -> Iterable[dict[str, Any]]:
    """Yield a row per metric, moment and arm."""
    for metric in analysis.metrics:
        for moment in metric.history:
            # As many as there were arms in the log.
            for place, arm in enumerate(analysis.labels[: len(moment.estimates)]):
                yield {
                    "metric": metric.name,
                    # A moment and not seconds since 1970, where the log has a clock.
                    "time": datetime.fromtimestamp(moment.time, UTC) if analysis.is_clock else moment.time,
                    "rows": moment.rows,
                    "level": moment.level,
                    "arm": arm,
                    "estimate": moment.estimates[place],
                    "low": moment.lows[place],
                    "high": moment.highs[place],
                    "share": moment.shares[place],
                }


def _columns(rows: Iterable[dict[str, Any]]) -> Columns:
    listed = list(rows)
    return {name: [row[name] for row in listed] for name in (listed[0] if listed else ())}


def notebook_of(analysis: Analysis) -> str:
    """Return the sentence, alarms first if there are any, and the gaps of each metric."""
    alarms = [f"Alarm: {diagnostic_words(one)}" for one in analysis.alarms]
    parts = [html_words(analysis.sentence, *alarms)]
    for metric in analysis.metrics:
        means = {one.arm: number(one.mean, mean_places(metric)) for one in metric.summaries}
        rows = [
            (
                one.arm,
                means.get(one.arm, ""),
                "" if one.arm == one.over else gap_words(one),
                "" if one.arm == one.over else interval_words(one),
                one.verdict,
            )
            for one in metric.effects
        ]
        title = f"{title_words(metric)}: gaps to {analysis.reference!r}, {analysis.rows:,} rows"
        table = html_table(("arm", "mean", "gap", "interval", "verdict"), rows)
        parts.append(html_words(title, certainty_words(metric)) + table)
    return "".join(parts)
