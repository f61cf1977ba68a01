"""An analysis as one HTML page: no script, no network, light or dark as the reader's system is."""

from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files

from orthobandit.logs.results import Analysis, Effect, MetricResult
from orthobandit.logs.showing.charts import Bar, forest, shown
from orthobandit.logs.showing.numbers import (
    estimate_words,
    half_width,
    lift_words,
    more_words,
    number,
    share_words,
    span_words,
)
from orthobandit.logs.showing.over_time import SHARED, gaps_over_time, level_over_time, shares_over_time
from orthobandit.logs.showing.words import (
    certainty_words,
    diagnostic_words,
    gap_words,
    heterogeneity_words,
    interval_words,
    is_held_against_best,
    mean_places,
    method_rows,
    names_words,
    saved_words,
    size_words,
    title_words,
)
from orthobandit.showing.text import is_known

STATUS = {"fine": "good", "note": "open", "alarm": "bad"}
OVER_TIME = "Line: estimate; band: interval, cut off where it was much wider than now."
OWN_SCALES = " Each arm has a scale of its own."
PICTURED = 6  # arms whose rivals or segments are seen at once


def page_of(analysis: Analysis) -> str:
    """Return an analysis as a page of its own, which needs nothing from anywhere.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    str
        HTML with inline SVG; readable from 390 pixels on, in print, and in light and dark.
    """
    parts = [
        f"<header><h1>{shown(analysis.sentence)}</h1><p>{shown(_size(analysis))}</p></header>",
        _alarms(analysis),
        _section("Effects", "".join(_metric(analysis, metric) for metric in analysis.metrics)),
        _section("Over time", _over_time(analysis)),
        _section("By segment", _segments(analysis)),
        _section("Other methods on the same log", _rivals(analysis)),
        _section("Other probabilities", _value(analysis)),
        _section("Diagnostics", _diagnostics(analysis)),
        _section("How it was computed", _computed(analysis)),
        _section("Notes", "".join(f"<p>{shown(note)}</p>" for note in analysis.notes)),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{shown(analysis.sentence)}</title><style>{_style()}</style></head>"
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


@cache
def _style() -> str:
    return files("orthobandit.logs.showing").joinpath("page.css").read_text(encoding="utf-8")


def _section(title: str, body: str) -> str:
    return f"<section><h2>{title}</h2>{body}</section>" if body else ""


def _size(analysis: Analysis) -> str:
    return f"{len(analysis.labels)} arms; {size_words(analysis)}."


def _alarms(analysis: Analysis) -> str:
    if not analysis.alarms:
        return ""
    lines = "".join(f"<li>{escape(diagnostic_words(one))}</li>" for one in analysis.alarms)
    return (
        f'<section class="alarm"><h2>Alarm</h2><ul>{lines}</ul>'
        "<p>Effects below must not be believed before this is explained.</p></section>"
    )


def _bars(effects: Sequence[Effect]) -> list[Bar]:
    return [
        Bar(effect.arm, effect.estimate, effect.interval, _words(effect), effect.verdict)
        for effect in effects
    ]


def _words(effect: Effect) -> str:
    if effect.arm == effect.over:
        return ""
    gap = gap_words(effect)
    return f"{gap} ({interval_words(effect)})" if gap else interval_words(effect)


def _metric(analysis: Analysis, metric: MetricResult) -> str:
    marks = (0.0,) if metric.margin is None else (0.0, metric.margin)
    title = f"{title_words(metric)}, gap to {analysis.reference}"
    out = [forest(title, _bars(metric.effects), marks), _said(certainty_words(metric))]
    if is_held_against_best(analysis, metric):
        out.append(_against_best(metric, bool(analysis.alarms)))
    out.append(_folded("Rows, means and lifts by arm", _arms(metric)))
    return "".join(out)


def _against_best(metric: MetricResult, is_doubtful: bool) -> str:
    rivals = [effect for effect in metric.against_best if effect.arm != effect.over]
    dropped = names_words(metric.droppable)
    said = _said(f"Can be dropped, worse for sure: {dropped}" if dropped else "No arm can be dropped yet")
    said = "" if is_doubtful else said  # nothing is to be dropped by a log that raised an alarm
    best = metric.against_best[0].over
    picture = forest(f"{metric.name}, gap to {best}, which looks best (all pairs at once)", _bars(rivals))
    return said + _folded("Against the best", picture)


def _arms(metric: MetricResult) -> str:
    arms = {one.arm: one for one in metric.summaries}
    places = mean_places(metric)
    counts = ("rows", "share", "planned", "mean", "capped", "missing")
    head = ("arm", *counts, "lift", "one look", "more rows (80 %)")
    rows = []
    for effect in metric.effects:
        one = arms.get(effect.arm)
        counted = [""] * len(counts)
        if one is not None:
            counted = [f"{one.rows:,}", share_words(one.share), share_words(one.planned)]
            counted += [number(one.mean, places), share_words(one.capped), share_words(one.missing)]
        once = "" if effect.arm == effect.over else span_words(effect.fixed)
        rows.append([effect.arm, *counted, lift_words(effect.lift), once, more_words(effect.more_rows)])
    return _table(head, rows)


def _over_time(analysis: Analysis) -> str:
    out = []
    for metric in analysis.metrics:
        pictures = gaps_over_time(analysis, metric)
        if pictures:
            title = f"Gap of {title_words(metric)} to {analysis.reference}, as it was known at the time"
            scales = OWN_SCALES if len(analysis.labels) - 1 > SHARED else ""
            body = f"<p>{OVER_TIME}{scales}</p>{pictures}"
            is_first = metric is analysis.metrics[0]
            out.append(f"<h3>{shown(title)}</h3>{body}" if is_first else _folded(title, body))
    for metric in analysis.metrics[:1]:
        level = level_over_time(analysis, metric)
        shares = shares_over_time(analysis, metric)
        out.append(f"<h3>{shown(f'Level of {metric.name}')}</h3>{level}" if level else "")
        out.append(f"<h3>Share of rows by arm, in per cent</h3>{shares}" if shares else "")
    return "".join(out)


def _segments(analysis: Analysis) -> str:
    """Return a forest plot an arm, with a bar a segment."""
    named = dict.fromkeys(
        effect.arm for part in analysis.segments for effect in part.effects if effect.arm != effect.over
    )
    out = []
    for arm in named:
        bars = [
            Bar(
                f"{part.segment} ({part.rows:,})",
                effect.estimate,
                effect.interval,
                _words(effect),
                effect.verdict,
            )
            for part in analysis.segments
            for effect in part.effects
            if effect.arm == arm
        ]
        said = [_said(heterogeneity_words(one)) for one in analysis.heterogeneity if one.arm == arm]
        title = f"{arm}, gap to {analysis.reference} by segment (rows)"
        out.append(forest(title, bars) + "".join(said))
    return _first(out)


def _rivals(analysis: Analysis) -> str:
    """Return a forest plot an arm, with a bar a method, and what each assumes."""
    if not analysis.rivals:
        return ""
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
        out.append(forest(f"{arm}, gap to {analysis.reference} by method", bars))
    assumed = {rival.method: rival.assumes for rival in methods if rival.assumes}
    return _first(out) + _table(("method", "assumes"), list(assumed.items()), "words")


def _value(analysis: Analysis) -> str:
    value = analysis.value
    if value is None or not is_known(value.estimate):
        return ""
    words = f"{estimate_words(value.estimate, value.interval)} ({span_words(value.interval)})"
    bar = Bar("other probabilities", value.estimate, value.interval, words)
    return forest("Change of the mean reward of a row", [bar]) + _said(value.mode)


def _diagnostics(analysis: Analysis) -> str:
    rows = "".join(
        f'<tr><td><span class="tag {STATUS.get(one.status, "open")}">{escape(one.status)}</span></td>'
        f"<td>{escape(diagnostic_words(one))}</td></tr>"
        for one in analysis.diagnostics
    )
    return f'<table class="checks"><tbody>{rows}</tbody></table>' if rows else ""


def _computed(analysis: Analysis) -> str:
    rows = []
    for metric in analysis.metrics:
        saved = saved_words(metric) or "no baseline was tried"
        level = f"level of {analysis.reference}: {span_words(metric.level, sign='')}"
        rows.append([title_words(metric), certainty_words(metric), metric.baseline, f"{saved}; {level}"])
    length = f" ({analysis.bucket})" if analysis.bucket else ""
    said = (
        f"Rows were added up in {analysis.buckets:,} buckets of time{length}; a forecast of a bucket's level"
        " uses earlier buckets alone, so that it can make intervals narrower but never wrong."
    )
    head = ("metric", "intervals", "baseline", "what it saved")
    return f"<p>{shown(said)}</p>{_table(head, rows, 'words')}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "numbers") -> str:
    """Return a table that scrolls where it is too wide; columns in which there is nothing are left out."""
    kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
    names = "".join(f'<th scope="col">{escape(head[place])}</th>' for place in kept)
    cells = [
        "".join(f'<td data-name="{escape(head[place])}">{shown(row[place])}</td>' for place in kept)
        for row in rows
    ]
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{names}</tr></thead><tbody>{body}</tbody>'
        "</table></div>"
    )


def _said(words: str) -> str:
    """Return words as a sentence."""
    return f"<p>{shown(words[:1].upper() + words[1:].rstrip('.'))}.</p>"


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{shown(title)}</summary>{body}</details>"


def _first(parts: Sequence[str]) -> str:
    """Return the first parts as they are, and the rest folded."""
    rest = parts[PICTURED:]
    return "".join(parts[:PICTURED]) + (_folded(f"{len(rest)} more arms", "".join(rest)) if rest else "")
