"""What is known now, and what to do: one sentence, a table, JSON, a page, a picture."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from orthobandit._files import optional_package
from orthobandit._types import Array
from orthobandit.experiment.ledger import OPEN, PAUSED, Ledger

FEW = 100  # settled proposals below which nothing is said yet of shares


@dataclass(frozen=True)
class ArmReport:
    """One arm: how often it was settled, its share, and what is known of its gap to the reference arm."""

    label: str
    settled: int
    silent: int
    probability: float
    is_active: bool
    is_retired: bool
    gap: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class MetricReport:
    """One metric: gaps to the reference arm with intervals that hold at all times at once, each arm."""

    name: str
    mode: str
    certainty: float
    gaps: tuple[tuple[float | None, float | None, float | None], ...]
    provisional: int
    stood_in: int


@dataclass(frozen=True)
class Report:
    """What an experiment knows.

    Attributes
    ----------
    advice : str
        What to do now, in one sentence.
    status : str
    proposals, settled, awaited : int
        Drawn; settled, which is what everything rests on; and still awaited.
    leader : str
        The arm that looks best.
    declared : str or None
        The arm that is proven best, or within ε of it.
    epsilon : float or None
        The leader is within this of the best arm; None while nothing is claimed.
    certainty, mode : float, str
        Probability with which the policy's claims hold, and on what grounds.
    reference : str
    arms : tuple of ArmReport
    metrics : tuple of MetricReport
    holdout : tuple
        Of each metric, how many the holdout had and their mean.
    unused : int
        Rounds that the policy could not take, because they came after their phase.
    warnings : tuple of str
        What is not as it should be.
    """

    advice: str
    status: str
    proposals: int
    settled: int
    awaited: int
    leader: str
    declared: str | None
    epsilon: float | None
    certainty: float
    mode: str
    reference: str
    arms: tuple[ArmReport, ...]
    metrics: tuple[MetricReport, ...]
    holdout: tuple[tuple[str, int, float | None], ...] = ()
    unused: int = 0
    warnings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "arms": [dict(vars(arm)) for arm in self.arms],
            "metrics": [{**vars(one), "gaps": [list(gap) for gap in one.gaps]} for one in self.metrics],
            "holdout": [list(one) for one in self.holdout],
            "warnings": list(self.warnings),
        }

    def to_html(self) -> str:
        """Return a page of its own: the sentence, the table, the warnings."""
        return _page(self)

    def figure(self) -> Any:
        """Return a matplotlib figure of the gaps to the reference arm."""
        return _figure(self)


def report_of(ledger: Ledger) -> Report:
    """Return what a ledger knows."""
    book, settings = ledger.book, ledger.settings
    decision = settings.policy.decide(book.now())
    labels, leader, declared = ledger.arms.labels, int(decision.leader), int(decision.declared)
    estimate, low, high = ledger.tracks[0].intervals(book.plans)
    arms = tuple(
        ArmReport(
            label=label,
            settled=int(ledger.drawn[arm]),
            silent=int(ledger.silent[arm]),
            probability=float(book.plan.probabilities[arm]),
            is_active=bool(decision.active[arm]),
            is_retired=bool(book.retired[arm]),
            gap=_number(estimate[arm]) if ledger.drawn[arm] else None,
            low=_number(low[arm]),
            high=_number(high[arm]),
        )
        for arm, label in enumerate(labels)
    )
    return Report(
        advice=_advice(ledger, decision, labels),
        status=ledger.status,
        proposals=ledger.waiting.next - 1,
        settled=ledger.waiting.first - 1,
        awaited=len(ledger.waiting),
        leader=labels[leader],
        declared=labels[declared] if declared >= 0 else None,
        epsilon=_number(float(decision.epsilon)),
        certainty=float(decision.certainty),
        mode=decision.mode,
        reference=labels[settings.reference],
        arms=arms,
        metrics=tuple(_metric(ledger, place) for place in range(len(settings.metrics))),
        holdout=_holdout(ledger),
        unused=book.unused,
        warnings=tuple(_warnings(ledger)),
    )


def _metric(ledger: Ledger, place: int) -> MetricReport:
    metric, track = ledger.settings.metrics[place], ledger.tracks[place]
    gaps = zip(*track.intervals(ledger.book.plans), strict=True)
    return MetricReport(
        name=metric.name,
        mode=track.confidence.name,
        certainty=1.0 - metric.delta,
        gaps=tuple((_number(middle), _number(low), _number(high)) for middle, low, high in gaps),
        provisional=len(ledger.waiting.provisional(place)[0]),
        stood_in=ledger.levels[place].stood_in,
    )


def _holdout(ledger: Ledger) -> tuple[tuple[str, int, float | None], ...]:
    if not ledger.settings.holdout:
        return ()
    out = []
    for name, sums in zip(ledger.settings.names, ledger.holdout, strict=True):
        count = int(sums.counts.sum())
        out.append((name, count, float(sums.sums.sum()) / count if count else None))
    return tuple(out)


def _advice(ledger: Ledger, decision: Any, labels: tuple[str, ...]) -> str:
    """Say what to do now, in one sentence."""
    declared, leader = int(decision.declared), labels[int(decision.leader)]
    sure = f"{decision.certainty:.3g}".rstrip("0").rstrip(".")
    if declared >= 0 and decision.certainty > 0:
        within = ledger.settings.policy
        epsilon = float(getattr(within, "epsilon", 0.0))
        best = "the best" if epsilon == 0 else f"within {epsilon:g} of the best"
        return f"Show {labels[declared]!r}: it is {best}, with probability {sure} ({decision.mode})."
    left = [label for label, active in zip(labels, decision.active, strict=True) if active]
    if ledger.status == PAUSED:
        return "Call resume() to go on; rewards are still taken."
    if ledger.status != OPEN:
        return (
            f"The experiment was stopped by hand before it could declare an arm; {leader!r} looks best, and"
            f" {len(left)} of {len(labels)} arms may be."
        )
    if decision.certainty == 0:
        return f"Go on: {leader!r} looks best; this policy makes no claims, so go by the intervals below."
    if len(left) < len(labels):
        return f"Go on: {leader!r} leads, and the best is one of {', '.join(map(repr, left))}."
    return f"Go on: {leader!r} looks best so far, and no arm can be ruled out yet."


def _warnings(ledger: Ledger) -> list[str]:
    out, settings, settled = [], ledger.settings, int(ledger.drawn.sum())
    if settings.silence == "missing" and ledger.silent.any():
        out.append(
            f"{int(ledger.silent.sum())} of {settled} proposals were silent and are left out: claims hold only"
            " if silence does not depend on the arm or the reward"
        )
    for name, level in zip(settings.names, ledger.levels, strict=True):
        if level.stood_in:
            out.append(f"{level.stood_in} forecasts of {name!r} were not finite; its mean stood in for them")
    if not ledger.tracks[0].confidence.is_exact and settled >= FEW:
        out.append(
            "claims are asymptotic: if rewards have bounds, declare them with rewards=(low, high) next time"
        )
    return out


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _lines(report: Report) -> list[str]:
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
    return out


def _span(low: float | None, high: float | None) -> str:
    if low is None and high is None:
        return "not known yet"
    return f"{'−∞' if low is None else f'{low:+.4g}'} to {'∞' if high is None else f'{high:+.4g}'}"


STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}.advice{font-size:1.3rem}.note{color:#a40000}
.out{color:#888}@media(max-width:480px){td,th{padding:.3rem .2rem;font-size:.85rem}}"""


def _page(report: Report) -> str:
    rows = []
    for arm in report.arms:
        span = "reference" if arm.label == report.reference else _span(arm.low, arm.high)
        gap = "" if arm.gap is None else f"{arm.gap:+.4g}"
        cells = (escape(arm.label), f"{arm.settled}", f"{arm.probability:.1%}", gap, span)
        kind = "" if arm.is_active else ' class="out"'
        rows.append(f"<tr{kind}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    notes = "".join(f'<p class="note">{escape(text)}</p>' for text in report.warnings)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>Experiment</title><style>{STYLE}</style><p class='advice'>{escape(report.advice)}</p>"
        f"<p>{report.proposals} proposals, {report.settled} settled, {report.awaited} awaited.</p>"
        "<table><tr><th>arm</th><th>settled</th><th>share now</th><th>gap</th><th>interval</th></tr>"
        f"{''.join(rows)}</table>{notes}<p>Gaps to {escape(report.reference)}; intervals hold at all times at"
        f" once ({escape(report.metrics[0].mode)}).</p></html>"
    )


def _figure(report: Report) -> Any:
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
    axes.set_xlabel(f"gap to {report.reference}, {report.metrics[0].name}; intervals hold at all times at once")
    return figure
