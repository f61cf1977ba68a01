"""Rendering of a report: as text, as a page, in a notebook, as a figure, and as tidy columns.

All of them begin with what a manager asks: what to do, when it may end, and for each arm its visitors, its
rate and its lift over the reference arm.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from orthobandit.experiment.report.personal import tables_of
from orthobandit.experiment.report.report import ArmReport, MetricReport, Report, Triple
from orthobandit.showing.charts import Bar, Column, Forest, draw_intervals, forest
from orthobandit.showing.html import PageTable, html_table, html_words, render_page
from orthobandit.showing.numbers import (
    Interval,
    estimate_words,
    is_known,
    lift_words,
    number,
    percent_estimate,
    percent_words,
    share_words,
    shares_words,
    span_words,
    sure_percent,
)
from orthobandit.showing.rules import Table
from orthobandit.showing.text import (
    LEADER,
    MEANINGS,
    REFERENCE,
    WINNER,
    arm_state,
    text_table,
    tone_of,
    visible,
)

ROUNDING = 1e-12  # gaps below this are what rounding left of 0
# Width of a lift's interval from which on gaps say more: the reference arm may then earn next to nothing.
WIDEST_LIFT = 4.0


def counts_words(report: Report) -> str:
    """Return how many proposals were drawn, are settled and are awaited, and which settles next."""
    words = (
        f"{_counted(report.proposals, 'proposal')}, {report.settled:,} settled, {report.awaited:,} awaited"
    )
    told = report.metrics[0].provisional
    if not told:
        return words
    # Proposals settle in the order of draws: one without a reward holds up all that came after it.
    return f"{words} ({told:,} with rewards so far; the next to settle is proposal {report.settled + 1:,})"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def gap_words(gap: Triple) -> str:
    """Return the estimate of a gap, with digits that match its interval; nothing if unknown.

    Examples
    --------
    >>> gap_words((0.0776, -0.069, 0.22)), gap_words((1e-17, None, None)), gap_words((None, None, None))
    ('+0.08', '0', '')
    """
    estimate, low, high = gap
    if estimate is None:
        return ""
    return estimate_words(estimate if abs(estimate) > ROUNDING else 0.0, (low, high))


def rate_words(metric: MetricReport, rate: Triple) -> str:
    """Return an arm's rate with its interval, in per cent for shares; nothing if it is not known.

    Examples
    --------
    >>> sales = MetricReport("sales", "bounded rewards", 0.95, (), 0, 0, is_share=True)
    >>> rate_words(sales, (0.1021, 0.0912, 0.1141)), rate_words(sales, (None, None, None))
    ('10.2 % (9.1 to 11.4 %)', '')
    """
    estimate, *ends = rate
    low, high = ends
    if metric.is_share:
        middle = percent_estimate(estimate, (low, high))
        around = percent_words((low, high))
    else:
        middle = estimate_words(estimate, (low, high)).lstrip("+")
        around = span_words((low, high), "") if is_known(low) or is_known(high) else ""
    return f"{middle} ({around})" if middle and around else middle


def rate_name(metric: MetricReport) -> str:
    """Return what the rates of a metric are called."""
    return "rate" if metric.is_share else "mean"


def rates_words(report: Report) -> str:
    """Return how rates of the objective can be compared; nothing while none is known."""
    if not any(is_known(arm.rate) for arm in report.arms):
        return ""
    name = rate_name(report.metrics[0])
    return (
        f"{name.capitalize()}s are over the same visitors for every arm, so that two of them differ by the"
        f" gap between the arms. The range of a {name} allows for all that is not known of the other arms"
        " either, which makes it wide: compare arms by their lift or gap."
    )


def arm_tags(report: Report, arm: ArmReport, *, is_objective: bool = True) -> list[str]:
    """Return the tags of an arm: winner or leader, reference, and why it is out of play if it is.

    An arm leads on the objective: beside another metric the tag would be false. In a personalised experiment
    rules compete, not arms.
    """
    place = ""
    if not is_objective or report.personal is not None:
        pass
    elif arm.label == report.declared:
        place = WINNER if report.conclusion.has_won else ""
    elif arm.label == report.leader:
        place = LEADER
    reference = REFERENCE if arm.label == report.reference else ""
    state = arm_state(is_active=arm.is_active, is_retired=arm.is_retired)
    return [tag for tag in (place, reference, state) if tag]


def gap_of(report: Report, arm: ArmReport) -> Triple:
    """Return the gap of an arm in the objective; the reference arm has none."""
    return (None, None, None) if arm.label == report.reference else (arm.gap, arm.low, arm.high)


def lift_of(report: Report, arm: ArmReport) -> Triple:
    """Return the lift of an arm in the objective; the reference arm has none."""
    return (None, None, None) if arm.label == report.reference else (arm.lift, arm.lift_low, arm.lift_high)


def bars_of(report: Report, metric: MetricReport) -> list[Bar]:
    """Return the gaps of one metric as bars, one for each arm.

    Only the objective is coloured by sign: for other metrics, less may be better.
    """
    is_objective = metric is report.metrics[0]
    bars = []
    for arm, (estimate, low, high) in zip(report.arms, metric.gaps, strict=True):
        is_reference = arm.label == report.reference
        interval: Interval = (None, None) if is_reference else (low, high)
        known = estimate if arm.settled and not is_reference else None
        gap = gap_words((known, *interval))
        ends = "" if is_reference else span_words(interval)
        words = f"{gap} ({ends})" if gap else ends
        bars.append(
            _bar(report, arm, 0.0 if is_reference else known, interval, words, is_objective=is_objective)
        )
    return bars


def lift_bars(report: Report) -> list[Bar]:
    """Return the lifts in the objective as bars in per cent; none if no lift is known well enough."""
    lifts = [lift_of(report, arm) for arm in report.arms]
    widths = [
        high - low
        for arm, (_, low, high) in zip(report.arms, lifts, strict=True)
        if is_known(low) and is_known(high) and arm.is_active
    ]
    if not widths or max(widths) > WIDEST_LIFT:
        return []
    bars = []
    for arm, (estimate, low, high) in zip(report.arms, lifts, strict=True):
        is_reference = arm.label == report.reference
        middle = percent_estimate(estimate, (low, high), "+")
        ends = lift_words((low, high)) or ("" if is_reference else "not known yet")
        words = f"{middle} ({ends})" if middle and ends else ends
        found = (0.0 if is_reference else estimate, low, high)
        point, *per_cent = (100.0 * value if is_known(value) else None for value in found)
        bars.append(_bar(report, arm, point, (per_cent[0], per_cent[1]), words))
    return bars


def _bar(
    report: Report,
    arm: ArmReport,
    estimate: float | None,
    interval: Interval,
    words: str,
    *,
    is_objective: bool = True,
) -> Bar:
    """Return the bar of an arm in one metric, with its tags."""
    return Bar(
        arm.label,
        estimate,
        interval,
        words,
        tags=arm_tags(report, arm, is_objective=is_objective),
        # That an arm was dropped or retired is no alarm.
        tag_tone="good" if is_objective and arm.label == report.declared else "open",
        tone=tone_of(interval) if is_objective else "open",
        is_faded=not arm.is_active,
    )


def moment_words(at: float | None) -> str:
    """Return a time in words, in UTC; nothing if there is none.

    Examples
    --------
    >>> moment_words(0.0), moment_words(None)
    ('1 January 1970, 00:00 UTC', '')
    """
    if at is None:
        return ""
    moment = datetime.fromtimestamp(at, UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def guarantee_words(report: Report) -> str:
    """Return the level at which all statements about the objective hold."""
    if report.conclusion.alarms:
        return report.level_words
    return f"Intervals hold at all times at once, however often you look. {report.level_words}"


# Text


def text_of(report: Report) -> str:
    """Return the report for a terminal."""
    name = rate_name(report.metrics[0])
    head = ("arm", "settled", "silent", "share", name, "lift", "gap", "interval", "")
    rows = [(visible(label), *rest) for label, *rest in _arm_rows(report)]
    # The last column, of words, may be empty: it has no head, and the table knows its place by the end.
    kept = [place for place in range(len(head)) if not head[place] or any(row[place] for row in rows)]
    table = text_table(
        [head[place] for place in kept], [[row[place] for place in kept] for row in rows], last_words=1
    )
    out = [f"{report.advice} {report.outlook}".rstrip(), ""]
    out.append(f"{counts_words(report)}; gaps and lifts to {report.reference!r}, at all times at once:")
    out.append(_indent(table))
    for metric in report.metrics[1:]:
        out.append(f"{metric.name} ({metric.mode}):")
        ends = [
            (visible(arm.label), span_words((low, high)))
            for arm, (_, low, high) in zip(report.arms, metric.gaps, strict=True)
            if arm.label != report.reference
        ]
        out.append(_indent(text_table(("arm", "interval"), ends)))
    for title, columns, cells in personal_tables(report):
        out.append(f"{title}:")
        out.append(_indent(text_table(columns, cells, last_words=1 if not columns[-1] else 0)))
    out += [report.level_words, *report.guardrails]
    out += [f"holdout: mean {name} {mean} over {count}" for name, count, mean in _holdout(report)]
    out += [f"note: {warning}" for warning in report.warnings]
    return "\n".join(out)


def _arm_rows(report: Report) -> list[tuple[str, ...]]:
    """Return a row per arm: label, settled, silent, share, rate, lift, gap, interval and tags."""
    objective = report.metrics[0]
    has_lifts = bool(lift_bars(report))
    shares = shares_words([arm.probability for arm in report.arms])
    rows: list[tuple[str, ...]] = []
    for arm, share in zip(report.arms, shares, strict=True):
        gap = gap_of(report, arm)
        rows.append(
            (
                arm.label,
                f"{arm.settled:,}",
                f"{arm.silent:,}",
                share,
                rate_words(objective, (arm.rate, arm.rate_low, arm.rate_high)),
                lift_words(lift_of(report, arm)[1:]) if has_lifts else "",
                gap_words(gap),
                "" if arm.label == report.reference else span_words(gap[1:]),
                ", ".join(arm_tags(report, arm)),
            )
        )
    return rows


def personal_tables(report: Report) -> list[Table]:
    """Return rules, effects and audiences of a personalised experiment; nothing of others."""
    if report.personal is None:
        return []
    return tables_of(report.personal, tuple(arm.label for arm in report.arms), report.conclusion)


def _indent(table: str) -> str:
    return "\n".join(f"  {line}" for line in table.splitlines())


def _holdout(report: Report) -> list[tuple[str, str, str]]:
    """Return the metrics for which the holdout has a mean: name, visitors and mean, in words."""
    return [
        (name, f"{_counted(count, 'visitor')} who always got {report.reference!r}", mean)
        for name, count, mean in holdout_means(report)
        if mean
    ]


def holdout_means(report: Report) -> list[tuple[str, int, str]]:
    """Return name, visitors and mean of each metric in the holdout: shares in per cent, as rates are."""
    is_share = {metric.name: metric.is_share for metric in report.metrics}
    return [
        (name, count, share_words(mean) if is_share.get(name) else number(mean))
        for name, count, mean in report.holdout
    ]


# Pages


def page_of(report: Report) -> str:
    """Return the report as a self-contained HTML page."""
    when = moment_words(report.at)
    return render_page(
        "orthobandit.experiment.report",
        "report.html",
        title=" · ".join(filter(None, (report.name or "Experiment", when))),
        advice=report.advice,
        outlook=report.outlook,
        counts=counts_words(report),
        # The page has a place of its own for alarms, above everything else.
        alarms=[alarm.details for alarm in report.conclusion.alarms],
        summary=summary_of(report),
        rates_words=rates_words(report),
        details=_details(report),
        metrics=[_other_metric(report, metric) for metric in report.metrics[1:]],
        personal=[(title, PageTable.of_filled(head, rows)) for title, head, rows in personal_tables(report)],
        guarantee=guarantee_words(report),
        guardrails=report.guardrails,
        holdout=_holdout(report),
        notes=report.notes,
    )


def summary_of(report: Report) -> Forest:
    """Return the summary of each arm: visitors, rate, and lift over the reference arm as a bar.

    If no lift is known, because the reference arm may earn nothing, the bars show gaps.
    """
    objective = report.metrics[0]
    lifts = lift_bars(report)
    bars = lifts or bars_of(report, objective)
    with_cells = []
    for bar, arm in zip(bars, report.arms, strict=True):
        rate = rate_words(objective, (arm.rate, arm.rate_low, arm.rate_high))
        with_cells.append(_with_cells(bar, (f"{arm.settled:,}", rate)))
    name = rate_name(objective)
    compared = "Lift over" if lifts else "Difference to"
    head = (
        Column("Visitors", MEANINGS["settled"]),
        Column(f"{name.capitalize()} of {objective.name}", MEANINGS["rate"]),
        Column(f"{compared} {report.reference}", MEANINGS["lift" if lifts else "gap"]),
    )
    return forest("", with_cells, head=head, unit=" %" if lifts else "")


def _with_cells(bar: Bar, cells: Sequence[str]) -> Bar:
    return Bar(**{**vars(bar), "cells": cells})


def _details(report: Report) -> PageTable:
    """Return further details of each arm in the objective."""
    head = ("arm", "share now", "silent", "gap", "interval of the gap")
    shares = shares_words([arm.probability for arm in report.arms])
    rows = []
    for arm, share in zip(report.arms, shares, strict=True):
        gap = gap_of(report, arm)
        is_reference = arm.label == report.reference
        ends = "" if is_reference else span_words(gap[1:])
        silent = f"{arm.silent:,}" if any(one.silent for one in report.arms) else ""
        rows.append((arm.label, share, silent, gap_words(gap), ends))
    return PageTable.of_filled(head, rows)


def _other_metric(report: Report, metric: MetricReport) -> dict[str, Any]:
    """Return what the page shows of a metric other than the objective."""
    certainty = sure_percent(1.0 - metric.certainty)
    bars = bars_of(report, metric)
    head: tuple[Column, ...] = ()
    if any(is_known(rate) for rate, _, _ in metric.rates):
        cells = [rate_words(metric, rate) for rate in metric.rates]
        bars = [_with_cells(bar, (cell,)) for bar, cell in zip(bars, cells, strict=True)]
        head = (
            Column(rate_name(metric).capitalize(), MEANINGS["rate"]),
            Column(f"Gap to {report.reference}", MEANINGS["gap"]),
        )
    return {
        "name": metric.name,
        "forest": forest("" if head else f"Gap to {report.reference}", bars, head=head),
        "words": f"{metric.mode}; all intervals hold in at least {certainty} of experiments",
    }


def notebook_of(report: Report) -> str:
    """Return the advice, the table of arms and the warnings, for a notebook."""
    head = ["arm", "visitors", "share now", rate_name(report.metrics[0]), "lift", "gap", "interval", ""]
    # A notebook leaves out how many were silent.
    rows = [(*row[:2], *row[3:]) for row in _arm_rows(report)]
    counts = f"{counts_words(report)}; gaps and lifts to {report.reference!r}, at all times at once"
    known = PageTable.of_filled(head, rows)
    return (
        html_words(report.advice, report.outlook, counts)
        + html_table(known.head, known.rows)
        + "".join(html_words("", text) for text in (report.level_words, *report.guardrails, *report.warnings))
    )


# Figures


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


# Columns


def columns_of_report(report: Report) -> dict[str, list[Any]]:
    """Return a row per metric and arm as columns; None for what is not known."""
    rows = []
    for metric in report.metrics:
        unknown = [(None, None, None)] * len(report.arms)
        for arm, gap, rate, lift in zip(
            report.arms, metric.gaps, metric.rates or unknown, metric.lifts or unknown, strict=True
        ):
            rows.append(
                {
                    "metric": metric.name,
                    "arm": arm.label,
                    "settled": arm.settled,
                    "silent": arm.silent,
                    "probability": arm.probability,
                    "is_active": arm.is_active,
                    "is_retired": arm.is_retired,
                }
                | dict(zip(("gap", "low", "high"), gap, strict=True))
                | dict(zip(("rate", "rate_low", "rate_high"), rate, strict=True))
                | dict(zip(("lift", "lift_low", "lift_high"), lift, strict=True))
            )
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
