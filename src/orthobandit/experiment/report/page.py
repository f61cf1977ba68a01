"""A report as text, as a page and as a picture."""

from html import escape
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.experiment.report.report import MetricReport, Report, percent
from orthobandit.showing.figure import axes_for
from orthobandit.showing.text import span


def text_of(report: Report) -> str:
    """Return the report for a terminal."""
    out = [report.advice, ""]
    out.append(
        f"{report.proposals} proposals, {report.settled} settled, {report.awaited} awaited;"
        f" gaps to {report.reference!r}, at all times at once:"
    )
    width = max(len("arm"), *(len(arm.label) for arm in report.arms))
    out.append(f"  {'arm':<{width}}  {'settled':>8}  {'silent':>7}  {'share':>6}  {'gap':>9}  interval")
    for arm in report.arms:
        gap = "" if arm.gap is None else f"{arm.gap:+.4g}"
        ends = "reference" if arm.label == report.reference else _span(arm.low, arm.high)
        state = "" if arm.is_active else "  retired" if arm.is_retired else "  dropped"
        out.append(
            f"  {arm.label:<{width}}  {arm.settled:>8}  {arm.silent:>7}  {arm.probability:>6.1%}  {gap:>9}"
            f"  {ends}{state}"
        )
    for metric in report.metrics[1:]:
        out.append(f"{metric.name} ({metric.mode}):")
        for arm, (_, low, high) in zip(report.arms, metric.gaps, strict=True):
            if arm.label != report.reference:
                out.append(f"  {arm.label:<{width}}  {_span(low, high)}")
    out += [report.level_words, *report.guardrails]
    out += [f"holdout: {name} {mean:.4g} of {n}" for name, n, mean in report.holdout if mean is not None]
    out += [f"note: {warning}" for warning in report.warnings]
    return "\n".join(out)


def _span(low: float | None, high: float | None, digits: int = 4) -> str:
    return span(low, high, f"{{:+.{digits}g}}".format)


STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%;margin:1rem 0}caption{text-align:left;font-weight:600}
td,th{padding:.3rem .4rem;text-align:right;border-bottom:1px solid #ddd;vertical-align:top}
td:first-child,th:first-child{text-align:left;overflow-wrap:break-word}td:last-child{min-width:9rem}
.advice{font-size:1.3rem}.note{color:#a40000}.out{color:#767676}small{display:block;color:#555}
svg{width:100%;height:1rem;display:block}@media(max-width:480px){.wide{display:none}}"""


def page_of(report: Report) -> str:
    """Return the report as a page of its own, which needs nothing from anywhere."""
    tables = "".join(_table(report, metric) for metric in report.metrics)
    notes = "".join(f'<p class="note">{escape(text)}</p>' for text in report.warnings)
    rails = "".join(f"<p>{escape(text)}</p>" for text in report.guardrails)
    held = "".join(
        f"<p>Holdout: {escape(name)} {mean:.4g} in the mean of {count}.</p>"
        for name, count, mean in report.holdout
        if mean is not None
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(report.advice)}</title><style>{STYLE}</style><p class="advice">'
        f"{escape(report.advice)}</p><p>{report.proposals} proposals, {report.settled} settled,"
        f" {report.awaited} awaited.</p>{notes}{tables}{held}<p>Gaps are to {escape(report.reference)!r};"
        f" intervals hold at all times at once, however often you look. {escape(report.level_words)}</p>"
        f"{rails}</html>"
    )


def _table(report: Report, metric: MetricReport) -> str:
    """Return the gaps of one metric as a table, with a bar for each interval."""
    ends = [end for gap in metric.gaps for end in gap[1:] if end is not None] or [0.0]
    low, high = min(0.0, *ends), max(0.0, *ends)
    rows = []
    for arm, gap in zip(report.arms, metric.gaps, strict=True):
        shown = "reference" if arm.label == report.reference else _bar(gap, low, high)
        state = "" if arm.is_active else "retired" if arm.is_retired else "dropped"
        kind = "" if arm.is_active else ' class="out"'
        rows.append(
            f'<tr{kind}><td>{escape(arm.label)}<small>{state}</small></td><td class="wide">{arm.settled}</td>'
            f"<td>{arm.probability:.1%}</td><td>{shown}</td></tr>"
        )
    return (
        f"<table><caption>{escape(metric.name)} <small>{escape(metric.mode)}; all intervals hold in at least"
        f" {percent(metric.certainty)} of experiments</small></caption>"
        '<tr><th>arm</th><th class="wide">settled</th><th>share now</th><th>gap</th></tr>'
        f"{''.join(rows)}</table>"
    )


def _bar(gap: tuple[float | None, float | None, float | None], low: float, high: float) -> str:
    """Return an interval as a bar on a common scale, with its ends in words."""
    middle, least, most = gap
    if least is None and most is None:
        return "not known yet"
    room = (high - low) or 1.0

    def at(value: float) -> float:
        return round(2.0 + 96.0 * (value - low) / room, 2)

    left, right = at(low if least is None else least), at(high if most is None else most)
    point = "" if middle is None else f'<circle cx="{at(middle)}%" cy="8" r="4" fill="#1f77b4"/>'
    return (
        f'<svg role="img"><line x1="{at(0.0)}%" x2="{at(0.0)}%" y1="0" y2="16" stroke="#555"/>'
        f'<line x1="{left}%" x2="{right}%" y1="8" y2="8" stroke="#1f77b4" stroke-width="4"/>{point}</svg>'
        f"<small>{_span(least, most, 3)}</small>"
    )


def figure_of(report: Report) -> Any:
    """Return the intervals as a matplotlib figure."""
    return draw_gaps(report).figure


def draw_gaps(report: Report, axes: Any = None) -> Any:
    """Draw the intervals of the first metric; return the axes."""
    shown = [arm for arm in report.arms if arm.label != report.reference]
    axes = axes_for(axes, height=1.2 + 0.4 * len(shown))
    ends: Array = np.array([end for arm in shown for end in (arm.low, arm.high) if end is not None] or [0.0])
    room = float(np.ptp(ends)) * 0.1 or 0.1
    for place, arm in enumerate(reversed(shown)):
        low = ends.min() - room if arm.low is None else arm.low
        high = ends.max() + room if arm.high is None else arm.high
        colour = "tab:blue" if arm.is_active else "0.6"
        axes.plot([low, high], [place, place], color=colour, linewidth=3, solid_capstyle="butt")
        if arm.gap is not None:
            axes.plot([arm.gap], [place], "o", color=colour)
    axes.set_yticks(range(len(shown)), [arm.label for arm in reversed(shown)])
    axes.set_ylim(-0.6, len(shown) - 0.4)
    axes.axvline(0.0, color="0.3", linewidth=1)
    axes.set_xlabel(
        f"gap to {report.reference}, {report.metrics[0].name}; intervals hold at all times at once"
    )
    return axes
