"""A report as text, as a page and as a picture."""

from html import escape
from typing import Any

import numpy as np

from orthobandit._files import optional_package
from orthobandit._types import Array
from orthobandit.experiment.report import Report


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
        span = "reference" if arm.label == report.reference else _span(arm.low, arm.high)
        state = "" if arm.is_active else "  retired" if arm.is_retired else "  dropped"
        out.append(
            f"  {arm.label:<{width}}  {arm.settled:>8}  {arm.silent:>7}  {arm.probability:>6.1%}  {gap:>9}"
            f"  {span}{state}"
        )
    for metric in report.metrics[1:]:
        out.append(f"{metric.name} ({metric.mode}):")
        for arm, (_, low, high) in zip(report.arms, metric.gaps, strict=True):
            if arm.label != report.reference:
                out.append(f"  {arm.label:<{width}}  {_span(low, high)}")
    out += [f"holdout: {name} {mean:.4g} of {n}" for name, n, mean in report.holdout if mean is not None]
    out += [f"note: {warning}" for warning in report.warnings]
    return "\n".join(out)


def _span(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "not known yet"
    return f"{'−∞' if low is None else f'{low:+.4g}'} to {'∞' if high is None else f'{high:+.4g}'}"


STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;text-align:right;}
td,th{border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}
.advice{font-size:1.3rem}.note{color:#a40000}.out{color:#888}
@media(max-width:480px){td,th{padding:.3rem .2rem;font-size:.85rem}}"""


def page_of(report: Report) -> str:
    """Return the report as a page of its own."""
    rows = []
    for arm in report.arms:
        span = "reference" if arm.label == report.reference else _span(arm.low, arm.high)
        gap = "" if arm.gap is None else f"{arm.gap:+.4g}"
        cells = (escape(arm.label), f"{arm.settled}", f"{arm.probability:.1%}", gap, span)
        kind = "" if arm.is_active else ' class="out"'
        rows.append(f"<tr{kind}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    notes = "".join(f'<p class="note">{escape(text)}</p>' for text in report.warnings)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Experiment</title><style>{STYLE}</style><p class='advice'>{escape(report.advice)}</p>"
        f"<p>{report.proposals} proposals, {report.settled} settled, {report.awaited} awaited.</p>"
        "<table><tr><th>arm</th><th>settled</th><th>share now</th><th>gap</th><th>interval</th></tr>"
        f"{''.join(rows)}</table>{notes}<p>Gaps to {escape(report.reference)}; intervals hold at all times at"
        f" once ({escape(report.metrics[0].mode)}).</p></html>"
    )


def figure_of(report: Report) -> Any:
    """Return the intervals as a matplotlib figure."""
    pyplot = optional_package("matplotlib.pyplot", "plots", "figures")
    shown = [arm for arm in report.arms if arm.label != report.reference]
    figure, axes = pyplot.subplots(figsize=(7, 1.2 + 0.4 * len(shown)), layout="constrained")
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
    axes.axvline(0.0, color="0.3", linewidth=1)
    axes.set_xlabel(
        f"gap to {report.reference}, {report.metrics[0].name}; intervals hold at all times at once"
    )
    return figure
