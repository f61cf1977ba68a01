"""A report as tidy columns."""

from typing import Any

from orthobandit.experiment.report.report import Report


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
