"""A report as tidy columns, and as a table for a notebook."""

from typing import Any

from orthobandit.experiment.report.report import ArmReport, Report
from orthobandit.showing.text import html_table, html_words, span


def columns_of_report(report: Report) -> dict[str, list[Any]]:
    """Return a row a metric and arm as columns; None for what is not known."""
    rows = [
        {
            "metric": metric.name,
            "arm": arm.label,
            "settled": arm.settled,
            "silent": arm.silent,
            "probability": arm.probability,
            "is_active": arm.is_active,
            "is_retired": arm.is_retired,
            "gap": gap,
            "low": low,
            "high": high,
        }
        for metric in report.metrics
        for arm, (gap, low, high) in zip(report.arms, metric.gaps, strict=True)
    ]
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def notebook_of(report: Report) -> str:
    """Return the advice, the arms, and what is not as it should be."""
    counts = f"{report.proposals:,} proposals, {report.settled:,} settled, {report.awaited:,} awaited"
    rows = [_row(report, arm) for arm in report.arms]
    head = ("arm", "settled", "share now", "gap", "interval", "")
    return (
        html_words(report.advice, f"{counts}; gaps to {report.reference!r}, at all times at once")
        + html_table(head, rows)
        + "".join(html_words("", text) for text in (report.level_words, *report.guardrails, *report.warnings))
    )


def _row(report: Report, arm: ArmReport) -> tuple[str, ...]:
    is_reference = arm.label == report.reference
    return (
        arm.label,
        f"{arm.settled:,}",
        f"{arm.probability:.1%}",
        "" if is_reference or arm.gap is None else f"{arm.gap:+.4g}",
        "reference" if is_reference else span(arm.low, arm.high, "{:+.4g}".format),
        "" if arm.is_active else "retired" if arm.is_retired else "dropped",
    )
