"""A report in words and bars, which its text, its page, notebooks and the dashboard share."""

from orthobandit.experiment.report.report import ArmReport, MetricReport, Report
from orthobandit.showing.charts import Bar
from orthobandit.showing.numbers import Interval, estimate_words, share_words, span_words
from orthobandit.showing.words import LEADER, REFERENCE, WINNER, arm_state, tone_of

ROUNDING = 1e-12  # gaps below this are what rounding left of 0
Gap = tuple[float | None, float | None, float | None]  # estimate, low end, high end


def counts_words(report: Report) -> str:
    """Return how many proposals were drawn, settled and are awaited."""
    return f"{report.proposals:,} proposals, {report.settled:,} settled, {report.awaited:,} awaited"


def gap_words(gap: Gap) -> str:
    """Return the estimate of a gap with the digits that its interval gives a meaning to; nothing if unknown.

    Examples
    --------
    >>> gap_words((0.0776, -0.069, 0.22)), gap_words((1e-17, None, None)), gap_words((None, None, None))
    ('+0.08', '0', '')
    """
    estimate, low, high = gap
    if estimate is None:
        return ""
    return estimate_words(estimate if abs(estimate) > ROUNDING else 0.0, (low, high))


def arm_tags(report: Report, arm: ArmReport) -> list[str]:
    """Return what an arm is: the winner or the leader, the reference, and why it is out of play if it is."""
    place = ""
    if arm.label == report.declared:
        place = WINNER
    elif arm.label == report.leader and not report.is_early:
        place = LEADER
    reference = REFERENCE if arm.label == report.reference else ""
    state = arm_state(is_active=arm.is_active, is_retired=arm.is_retired)
    return [tag for tag in (place, reference, state) if tag]


def gap_of(report: Report, arm: ArmReport) -> Gap:
    """Return the gap of an arm in the objective; nothing is known of the reference arm's gap to itself."""
    return (None, None, None) if arm.label == report.reference else (arm.gap, arm.low, arm.high)


def bars_of(report: Report, metric: MetricReport) -> list[Bar]:
    """Return the gaps of one metric as bars, one for each arm.

    Only the objective is coloured by its sign: of other metrics, less may be better.
    """
    is_objective = metric is report.metrics[0]
    bars = []
    for arm, (estimate, low, high) in zip(report.arms, metric.gaps, strict=True):
        is_reference = arm.label == report.reference
        interval: Interval = (None, None) if is_reference else (low, high)
        known = estimate if arm.settled and not is_reference else None
        gap = gap_words((known, *interval))
        ends = "" if is_reference else span_words(interval)
        bars.append(
            Bar(
                arm.label,
                0.0 if is_reference else known,
                interval,
                f"{gap} ({ends})" if gap else ends,
                tags=arm_tags(report, arm),
                tone=tone_of(interval) if is_objective else "open",
                note=f"{arm.settled:,} settled, share {share_words(arm.probability)}" if is_objective else "",
                is_faded=not arm.is_active,
            )
        )
    return bars
