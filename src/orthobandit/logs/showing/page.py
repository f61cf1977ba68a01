"""An analysis as one HTML page: no script, no network, light or dark like the reader's system.

This module computes the values of the template ``templates/analysis.html``.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.logs.results import Analysis, Effect, MetricResult, Moment
from orthobandit.logs.showing.words import (
    TONES,
    best_words,
    certainty_words,
    diagnostic_words,
    droppable_words,
    effect_words,
    headline,
    is_held_against_best,
    mean_places,
    method_rows,
    personal_tables,
    rule_words,
    saved_words,
    segments_words,
    size_words,
    title_words,
    verdict_words,
)
from orthobandit.policy.contextual.personalised import for_all
from orthobandit.showing.charts import Bar, Column, Forest, Plot, Scale, Series, band, forest, line, stack
from orthobandit.showing.html import PageTable, render_page
from orthobandit.showing.numbers import (
    estimate_words,
    half_width,
    is_known,
    lift_words,
    more_words,
    number,
    share_words,
    span_words,
    time_words,
)
from orthobandit.showing.rules import rule_verdict
from orthobandit.showing.text import MEANINGS, visible

STATUS_TONES = {"fine": "good", "note": "open", "alarm": "alarm"}
LONG_TIME = 1e9  # seconds of an axis on which times are days with their year
ARMS_SEEN = 6  # arms whose segments or rivals are seen at once; the rest are folded
# Pictures over time.
CHART_POINTS = 400  # points of a picture
PANEL_POINTS = 120  # points of each of many
ARMS_SHARING_A_SCALE = 4  # arms that share a scale
PANELS_SEEN = 12  # pictures that are seen at once
COLOURED_ARMS = 7  # arms with a colour of their own; the rest are one area
EARLY_WIDTHS = 1.0  # lengths of the last intervals to which earlier ones are shown
Runs = Sequence[Sequence[Moment]]


def page_of(analysis: Analysis, title: str = "") -> str:
    """Return an analysis as a self-contained page.

    Parameters
    ----------
    analysis : Analysis
    title : str
        Title of the page, such as the name of a file.

    Returns
    -------
    str
        HTML with inline SVG; readable from 390 pixels on, in print, and in light and dark.
    """
    first = analysis.metrics[0]
    return render_page(
        "orthobandit.logs.showing",
        "analysis.html",
        title=" · ".join(filter(None, (title or "Analysis of a log", _last_time(analysis)))),
        sentence=headline(analysis),
        size=f"{len(analysis.labels)} arms; {size_words(analysis)}.",
        alarms=[diagnostic_words(one) for one in analysis.alarms],
        metrics=[_metric(analysis, metric) for metric in analysis.metrics],
        histories=_histories(analysis),
        level=level_over_time(analysis, first),
        shares=shares_over_time(analysis, first),
        rules=_rules(analysis),
        by_context=[
            (title, PageTable.of_filled(head, rows)) for title, head, rows in personal_tables(analysis)[1:]
        ],
        segments=_segments(analysis),
        rivals=_rivals(analysis),
        assumed=_assumed(analysis),
        value=_value(analysis),
        diagnostics=[
            (one.status, STATUS_TONES.get(one.status, "open"), diagnostic_words(one))
            for one in analysis.diagnostics
            if one.status != "alarm"  # these come first
        ],
        computed=_computed(analysis),
        methods=_methods(analysis),
        notes=analysis.notes,
        arms_seen=ARMS_SEEN,
        panels_seen=PANELS_SEEN,
    )


def effect_bar(effect: Effect, label: str = "", verdict: str = "") -> Bar:
    """Return an effect as a bar, with its verdict, or another word for it, as its tag."""
    # The reference arm is a point at 0: it has no interval to draw.
    is_reference = effect.arm == effect.over
    return Bar(
        label or visible(effect.arm),
        effect.estimate,
        (None, None) if is_reference else effect.interval,
        effect_words(effect),
        tags=[verdict or effect.verdict],
        tone=TONES.get(verdict or effect.verdict, "open"),
    )


def _metric(analysis: Analysis, metric: MetricResult) -> dict[str, Any]:
    """Return what the page shows of one metric."""
    has_best = is_held_against_best(analysis, metric)
    return {
        "name": metric.name,
        "forest": _summary(analysis, metric),
        "certainty": certainty_words(metric),
        "claims": [one.words for one in analysis.noninferiority if one.metric == metric.name],
        "best": _against_best(metric) if has_best else None,
        "droppable": droppable_words(analysis, metric),
        "arms": _arms(metric),
    }


def _against_best(metric: MetricResult) -> Any:
    rivals = [
        effect_bar(one, verdict=verdict_words(metric, one))
        for one in metric.against_best
        if one.arm != one.over
    ]
    return forest(f"{metric.name}, gap to {best_words(metric, metric.against_best[0].over)}", rivals)


def _last_time(analysis: Analysis) -> str:
    """Return the day up to which a log was counted; nothing if it has no clock."""
    history = analysis.metrics[0].history
    if not analysis.is_clock or not history:
        return ""
    return f"up to {time_words(history[-1].time, LONG_TIME, is_clock=True)}"


def _summary(analysis: Analysis, metric: MetricResult) -> Forest:
    """Return the summary of each arm: rows, mean, lift over the reference arm, and gap."""
    arms = {one.arm: one for one in metric.summaries}
    places = mean_places(metric)
    bars = []
    for effect in metric.effects:
        one = arms.get(effect.arm)
        rows = "" if one is None else f"{one.rows:,}"
        mean = "" if one is None else number(one.mean, places)
        lift = "" if effect.arm == effect.over else lift_words(effect.lift)
        bar = effect_bar(effect, verdict=verdict_words(metric, effect))
        bars.append(replace(bar, cells=(rows, mean, lift)))
    names = ("Rows", "Quantile" if metric.kind == "quantile" else "Mean", f"Lift over {analysis.reference}")
    meanings = ("", MEANINGS["mean"], MEANINGS["lift"])
    # A column in which there is nothing is left out.
    kept = [place for place in range(len(names)) if any(bar.cells[place] for bar in bars)]
    bars = [replace(bar, cells=[bar.cells[place] for place in kept]) for bar in bars]
    head = [Column(names[place], meanings[place]) for place in kept]
    gap = Column(f"Gap to {analysis.reference}", MEANINGS["gap"])
    limits = () if metric.margin is None else (metric.margin,)
    return forest(title_words(metric), bars, limits, head=[*head, gap] if head else ())


def _arms(metric: MetricResult) -> PageTable:
    """Return the table of shares, ordinary intervals and rows to go by arm."""
    arms = {one.arm: one for one in metric.summaries}
    counts = ("share", "planned", "capped", "missing")
    head = ("arm", *counts, "one look", "more rows (3 of 4)")
    rows = []
    for effect in metric.effects:
        one = arms.get(effect.arm)
        counted = [""] * len(counts)
        if one is not None:
            counted = [share_words(one.share), share_words(one.planned)]
            counted += [share_words(one.capped), share_words(one.missing)]
        once = "" if effect.arm == effect.over else span_words(effect.fixed)
        rows.append([visible(effect.arm), *counted, once, more_words(effect.more_rows)])
    return PageTable.of_filled(head, rows)


def _histories(analysis: Analysis) -> list[dict[str, Any]]:
    """Return the charts over time of each metric that has any."""
    has_own_scales = len(analysis.labels) - 1 > ARMS_SHARING_A_SCALE
    found = [(metric, gaps_over_time(analysis, metric)) for metric in analysis.metrics]
    return [
        {
            "title": f"Gap of {title_words(metric)} to {analysis.reference}, as it was known at the time",
            "has_own_scales": has_own_scales,
            "plots": plots,
        }
        for metric, plots in found
        if plots
    ]


def _rules(analysis: Analysis) -> Forest | None:
    """Return a forest plot with a bar per rule; None without rules."""
    personal = analysis.personal
    if personal is None:
        return None
    reference = personal.rules[0].name
    bars = []
    for rule in personal.rules:
        verdict = rule_verdict(is_possible=rule.is_possible, is_proven=personal.best is not None)
        is_reference = rule.name == reference
        bars.append(
            Bar(
                rule.name,
                rule.estimate,
                (None, None) if is_reference else rule.interval,
                "" if is_reference else rule_words(rule),
                tags=[verdict] if verdict else [],
                tone="good" if rule.name == personal.best else "open",
                # The name of a rule that shows one arm to all says what it does.
                note="" if rule.name == for_all(rule.text) else rule.text,
                cells=(f"{rule.changed:,}",),
            )
        )
    head = (Column("Rows it changes", ""), Column(f"Gain over {reference}", ""))
    return forest("What each rule would have earned, per row", bars, head=head, first="Rule")


def _segments(analysis: Analysis) -> list[dict[str, Any]]:
    """Return a forest plot per arm, with a bar per segment."""
    named = dict.fromkeys(
        effect.arm for part in analysis.segments for effect in part.effects if effect.arm != effect.over
    )
    out = []
    for arm in named:
        bars = [
            effect_bar(effect, f"{part.segment} ({part.rows:,})")
            for part in analysis.segments
            for effect in part.effects
            if effect.arm == arm
        ]
        title = f"{arm}, gap to {analysis.reference} by segment (rows)"
        out.append({"forest": forest(title, bars), "words": segments_words(analysis, arm)})
    return out


def _rivals(analysis: Analysis) -> list[dict[str, Any]]:
    """Return a forest plot per arm, with a bar per method."""
    if not analysis.rivals:
        return []
    methods = method_rows(analysis)
    out = []
    for arm in dict.fromkeys(rival.arm for rival in methods):
        bars = []
        for rival in methods:
            if rival.arm == arm:
                ends = span_words(rival.interval)
                words = f"{estimate_words(rival.estimate, rival.interval)} ({ends})".strip()
                half = f"± {half_width(rival.interval)}".rstrip("± ")
                bars.append(Bar(rival.method, rival.estimate, rival.interval, words, aside=half))
        out.append({"forest": forest(f"{arm}, gap to {analysis.reference} by method", bars), "words": ()})
    return out


def _assumed(analysis: Analysis) -> PageTable:
    """Return what each method assumes."""
    rows = method_rows(analysis) if analysis.rivals else []
    assumed = {rival.method: rival.assumes for rival in rows if rival.assumes}
    return PageTable.of_filled(("method", "assumes"), list(assumed.items()), "words")


def _value(analysis: Analysis) -> dict[str, Any] | None:
    value = analysis.value
    if value is None or not is_known(value.estimate):
        return None
    words = f"{estimate_words(value.estimate, value.interval)} ({span_words(value.interval)})"
    bar = Bar("other probabilities", value.estimate, value.interval, words)
    return {"forest": forest("Change of the mean reward of a row", [bar]), "words": [value.mode]}


def _computed(analysis: Analysis) -> str:
    length = f" ({analysis.bucket})" if analysis.bucket else ""
    return (
        f"Rows were added up in {analysis.buckets:,} buckets of time{length}; a forecast of a bucket's level"
        " uses earlier buckets alone, so that it can make intervals narrower but never wrong."
    )


def _methods(analysis: Analysis) -> PageTable:
    """Return how the intervals of each metric were computed."""
    rows: list[Sequence[str]] = []
    for metric in analysis.metrics:
        saved = saved_words(metric) or "no baseline was tried"
        level = f"level of {analysis.reference}: {span_words(metric.level, sign='')}"
        rows.append([title_words(metric), certainty_words(metric), metric.baseline, f"{saved}; {level}"])
    return PageTable.of_filled(("metric", "intervals", "baseline", "what it saved"), rows, "words")


def thinned(history: Sequence[Moment], most: int = CHART_POINTS) -> list[Sequence[Moment]]:
    """Cut a history into at most `most` runs of about equal length.

    Examples
    --------
    >>> [len(run) for run in thinned(range(10), 4)]
    [2, 3, 2, 3]
    """
    edges = np.linspace(0, len(history), min(most, len(history)) + 1).astype(int)
    return [history[begin:end] for begin, end in pairwise(edges)]


def gaps_over_time(analysis: Analysis, metric: MetricResult) -> list[Plot]:
    """Return a chart per arm: its gap with its interval, as known at the time."""
    arms = [place for place, effect in enumerate(metric.effects) if effect.arm != effect.over]
    if len(metric.history) < 2 or not arms:
        return []
    runs = thinned(metric.history, CHART_POINTS if len(arms) <= ARMS_SHARING_A_SCALE else PANEL_POINTS)
    moments = [run[-1] for run in runs]
    places, words = _axis(analysis, runs)
    pictures = []
    for arm in arms:
        effect = metric.effects[arm]
        scale = value_scale(moments, arms if len(arms) <= ARMS_SHARING_A_SCALE else [arm])
        lows = [one.lows[arm] for one in moments]
        highs = [one.highs[arm] for one in moments]
        shapes = band(places, lows, highs, scale)
        shapes += line(places, [one.estimates[arm] for one in moments], scale)
        title = f"gap of {effect.arm} to {effect.over} over time; at the end {effect_words(effect)}"
        pictures.append(Plot(title, scale, shapes, words, caption=visible(effect.arm)))
    return pictures


def level_over_time(analysis: Analysis, metric: MetricResult) -> Plot | None:
    """Return a chart of a metric's level and its forecasts; nothing if neither is known."""
    runs = thinned(metric.history)
    level = [_mean([one.level for one in run], run) for run in runs]
    forecast = [_mean([one.forecast for one in run], run) for run in runs]
    if len(runs) < 2 or not any(map(is_known, [*level, *forecast])):
        return None
    scale = Scale.around([*level, *forecast])
    places, words = _axis(analysis, runs)
    return Plot(
        f"level of {metric.name} and its forecast",
        scale,
        line(places, level, scale, "line level") + line(places, forecast, scale, "line forecast"),
        words,
        caption=_averaged(metric, runs),
        is_large=True,
        legend=[("level", "level"), ("forecast", "forecast from earlier buckets")],
    )


def shares_over_time(analysis: Analysis, metric: MetricResult) -> Plot | None:
    """Return a chart of the share of rows of each arm, stacked."""
    runs = thinned(metric.history)
    if len(runs) < 2:
        return None
    shares = _shares(runs)
    order = np.argsort(-shares.mean(axis=1), kind="stable")
    own = np.sort(order if len(order) <= COLOURED_ARMS + 1 else order[:COLOURED_ARMS])
    rest = np.setdiff1d(order, own)
    areas = [*shares[own], *([shares[rest].sum(axis=0)] if len(rest) else [])]
    names = [analysis.labels[arm] for arm in own] + ([f"{len(rest)} other arms"] if len(rest) else [])
    kinds = [f"area c{place}" for place in range(len(own))] + (["area rest"] if len(rest) else [])
    places, words = _axis(analysis, runs)
    return Plot(
        f"share of rows over time: {', '.join(names)}",
        Scale(0.0, 100.0),
        stack(places, [area.tolist() for area in areas], kinds),
        words,
        caption=_averaged(metric, runs),
        is_large=True,
        legend=list(zip(kinds, names, strict=True)),
    )


def value_scale(moments: Sequence[Moment], arms: Sequence[int]) -> Scale:
    """Return a scale that fits the latest intervals; much wider early ones are cut off."""
    last = moments[-1]
    whole = [end for one in moments for arm in arms for end in (one.lows[arm], one.highs[arm])]
    final = [end for arm in arms for end in (last.lows[arm], last.highs[arm], last.estimates[arm])]
    known = [end for end in whole if is_known(end)]
    near = [end for end in final if is_known(end)]
    if not near:
        return Scale.around([0.0, *known])
    room = EARLY_WIDTHS * (max(near) - min(near))
    low = max(min(known, default=0.0), min(near) - room)
    high = min(max(known, default=0.0), max(near) + room)
    return Scale.around([0.0, low, high])


def _axis(analysis: Analysis, runs: Runs) -> tuple[list[float], list[str]]:
    """Return the positions of runs as shares of the width, and labels for both ends and the middle."""
    times = np.array([run[-1].time for run in runs])
    room = float(times[-1] - times[0])
    if not room > 0:  # numbers of buckets where times do not differ
        return np.linspace(0.0, 1.0, len(runs)).tolist(), ["first bucket", "last bucket"]
    spots = np.linspace(times[0], times[-1], 3)
    return ((times - times[0]) / room).tolist(), [time_words(t, room, analysis.is_clock) for t in spots]


def _mean(values: Series, run: Sequence[Moment]) -> float | None:
    """Return the mean of the known values of a run, weighted by rows."""
    known = [(value, max(one.rows, 0)) for value, one in zip(values, run, strict=True) if is_known(value)]
    if not known:
        return None
    kept, rows = np.array(known, dtype=np.float64).T
    return float(np.average(kept, weights=rows) if rows.sum() else kept.mean())


def _shares(runs: Runs) -> Array:
    """Return the mean share (K, number of runs) of each arm in each run."""
    arms = range(len(runs[0][0].shares))
    return np.array([[_mean([one.shares[arm] for one in run], run) or 0.0 for run in runs] for arm in arms])


def _averaged(metric: MetricResult, runs: Runs) -> str:
    size = len(metric.history) / len(runs)
    return "" if size <= 1 else f"Means of about {size:.0f} buckets each. "
