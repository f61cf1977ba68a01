"""A report as text, as a page, as a notebook's table and as a figure."""

from typing import Any

from orthobandit.experiment.report.report import MetricReport, Report
from orthobandit.experiment.report.words import (
    arm_tags,
    bars_of,
    counts_words,
    gap_of,
    gap_words,
)
from orthobandit.showing.charts import forest
from orthobandit.showing.figure import draw_intervals
from orthobandit.showing.html import html_table, html_words, render_page
from orthobandit.showing.numbers import certainty_percent, number, share_words, span_words
from orthobandit.showing.text import text_table

ALARM = "ALARM: "  # how a warning begins that says why claims cannot be believed


def text_of(report: Report) -> str:
    """Return the report for a terminal."""
    rows = []
    for arm in report.arms:
        gap = gap_of(report, arm)
        is_reference = arm.label == report.reference
        rows.append(
            (
                arm.label,
                f"{arm.settled:,}",
                f"{arm.silent:,}",
                share_words(arm.probability),
                gap_words(gap),
                "" if is_reference else span_words(gap[1:]),
                ", ".join(arm_tags(report, arm)),
            )
        )
    out = [report.advice, "", f"{counts_words(report)}; gaps to {report.reference!r}, at all times at once:"]
    head = ("arm", "settled", "silent", "share", "gap", "interval", "")
    out.append(_indent(text_table(head, rows, last_words=1)))
    for metric in report.metrics[1:]:
        out.append(f"{metric.name} ({metric.mode}):")
        ends = [
            (arm.label, span_words((low, high)))
            for arm, (_, low, high) in zip(report.arms, metric.gaps, strict=True)
            if arm.label != report.reference
        ]
        out.append(_indent(text_table(("arm", "interval"), ends)))
    out += [report.level_words, *report.guardrails]
    out += [f"holdout: mean {name} {mean} over {count:,}" for name, count, mean in _holdout(report)]
    out += [f"note: {warning}" for warning in report.warnings]
    return "\n".join(out)


def _indent(table: str) -> str:
    return "\n".join(f"  {line}" for line in table.splitlines())


def _holdout(report: Report) -> list[tuple[str, int, str]]:
    """Return the metrics of which the holdout has a mean."""
    return [(name, count, number(mean)) for name, count, mean in report.holdout if mean is not None]


def page_of(report: Report) -> str:
    """Return the report as a page of its own, which needs nothing from anywhere."""
    return render_page(
        "orthobandit.experiment.report",
        "report.html",
        title=report.advice,
        counts=counts_words(report),
        # The page has a place of its own for alarms, above everything else.
        alarms=[text.removeprefix(ALARM) for text in report.warnings if text.startswith(ALARM)],
        metrics=[_metric(report, metric) for metric in report.metrics],
        level=report.level_words,
        guardrails=report.guardrails,
        holdout=_holdout(report),
        notes=[text for text in report.warnings if not text.startswith(ALARM)],
    )


def _metric(report: Report, metric: MetricReport) -> dict[str, Any]:
    certainty = certainty_percent(metric.certainty)
    return {
        "name": metric.name,
        "forest": forest(f"Gap to {report.reference}", bars_of(report, metric)),
        "words": f"{metric.mode}; all intervals hold in at least {certainty} of experiments",
    }


def notebook_of(report: Report) -> str:
    """Return the advice, the arms, and what is not as it should be."""
    head = ("arm", "settled", "share now", "gap", "interval", "")
    rows = []
    for arm in report.arms:
        gap = gap_of(report, arm)
        is_reference = arm.label == report.reference
        cells = (arm.label, f"{arm.settled:,}", share_words(arm.probability), gap_words(gap))
        rows.append((*cells, "" if is_reference else span_words(gap[1:]), ", ".join(arm_tags(report, arm))))
    return (
        html_words(
            report.advice, f"{counts_words(report)}; gaps to {report.reference!r}, at all times at once"
        )
        + html_table(head, rows)
        + "".join(html_words("", text) for text in (report.level_words, *report.guardrails, *report.warnings))
    )


def draw_gaps(report: Report, axes: Any = None) -> Any:
    """Draw the intervals of the first metric; return the axes."""
    metric = report.metrics[0]
    drawn = draw_intervals([bar for bar in bars_of(report, metric) if bar.label != report.reference], axes)
    words = f"gap to {report.reference}, {metric.name}; intervals hold at all times at once"
    drawn.set_xlabel(words, parse_math=False)
    return drawn


def figure_of(report: Report) -> Any:
    """Return the intervals as a matplotlib figure."""
    return draw_gaps(report).figure
