"""What is known now, and what to do: one sentence, a table, JSON, a page, a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit._frames import frame_of, write_columns
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
    alarms : tuple of {"sample-ratio", "missing", "drift"}
        Why claims cannot be believed; the warnings say more.
    retirements : tuple of (str, str)
        Arms that were taken out, in this order, and why.
    head : str or None
        As :meth:`Experiment.head` returns it, to publish; None where there are no certificates.
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
    alarms: tuple[str, ...] = ()
    retirements: tuple[tuple[str, str], ...] = ()
    head: str | None = None

    def __str__(self) -> str:
        from orthobandit.experiment.page import text_of

        return text_of(self)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "arms": [dict(vars(arm)) for arm in self.arms],
            "metrics": [{**vars(one), "gaps": [list(gap) for gap in one.gaps]} for one in self.metrics],
            "holdout": [list(one) for one in self.holdout],
            "warnings": list(self.warnings),
            "alarms": list(self.alarms),
            "retirements": [list(one) for one in self.retirements],
        }

    def __repr__(self) -> str:
        best = f"declared {self.declared!r}" if self.declared is not None else f"leader {self.leader!r}"
        return f"Report({self.status}, {self.settled:,} of {self.proposals:,} proposals settled, {best})"

    def _repr_html_(self) -> str:
        from orthobandit.experiment.frames import notebook_of

        return notebook_of(self)

    def to_frame(self, *, library: str | None = None) -> Any:
        """Return a frame with a row a metric and arm: how often it was drawn, its gap and its interval.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            What the frame is of; by default the first that is installed.
        """
        from orthobandit.experiment.frames import columns_of_report

        return frame_of(columns_of_report(self), library)

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows of :meth:`to_frame` to a Parquet file."""
        from orthobandit.experiment.frames import columns_of_report

        write_columns(path, columns_of_report(self))

    def plot(self, axes: Any = None) -> Any:
        """Draw the gaps to the reference arm with their intervals; return the axes.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        from orthobandit.experiment.page import draw_gaps

        return draw_gaps(self, axes)

    def to_html(self) -> str:
        """Return a page of its own: the sentence, the table, the warnings."""
        from orthobandit.experiment.page import page_of

        return page_of(self)

    def figure(self) -> Any:
        """Return a matplotlib figure of the gaps to the reference arm."""
        from orthobandit.experiment.page import figure_of

        return figure_of(self)


def report_of(ledger: Ledger) -> Report:
    """Return what a ledger knows."""
    book, settings = ledger.book, ledger.settings
    decision = settings.policy.decide(book.now())
    labels, leader, declared = ledger.arms.labels, int(decision.leader), int(decision.declared)
    metrics = tuple(_metric(ledger, place) for place in range(len(settings.metrics)))
    gaps = metrics[0].gaps
    arms = tuple(
        ArmReport(
            label=label,
            settled=int(ledger.drawn[arm]),
            silent=int(ledger.silent[arm]),
            probability=float(book.plan.probabilities[arm]),
            is_active=bool(decision.active[arm]),
            is_retired=bool(book.retired[arm]),
            gap=gaps[arm][0] if ledger.drawn[arm] else None,
            low=gaps[arm][1],
            high=gaps[arm][2],
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
        metrics=metrics,
        holdout=_holdout(ledger),
        unused=book.unused,
        warnings=tuple(_warnings(ledger)),
        alarms=_named_alarms(ledger),
        retirements=tuple((labels[arm], reason) for arm, reason in ledger.retirements),
        head=None if book.record is None else book.record.head,
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
        best += " of the arms that are left" if ledger.retirements else ""
        return f"Show {labels[declared]!r}: it is {best}, with probability {sure} ({decision.mode})."
    left = [label for label, active in zip(labels, decision.active, strict=True) if active]
    if ledger.status == PAUSED:
        return "Call resume() to go on; rewards are still taken."
    if ledger.status != OPEN:
        return (
            f"The experiment was stopped by hand before it could declare an arm; {leader!r} looks best, and"
            f" {len(left)} of {len(labels)} arms may be."
        )
    if not ledger.drawn.any():
        return f"Go on: nothing is settled yet; the rewards of {len(ledger.waiting)} proposals are awaited."
    if decision.certainty == 0:
        return f"Go on: {leader!r} looks best; this policy makes no claims, so go by the intervals below."
    if len(left) < len(labels):
        return f"Go on: {leader!r} leads, and the best is one of {', '.join(map(repr, left))}."
    return f"Go on: {leader!r} looks best so far, and no arm can be ruled out yet."


def _warnings(ledger: Ledger) -> list[str]:
    settings, settled = ledger.settings, int(ledger.drawn.sum())
    out = _alarms(ledger)
    if settings.silence == "missing" and ledger.silent.any():
        out.append(
            f"{int(ledger.silent.sum())} of {settled} proposals were silent and are left out: claims hold"
            " only if silence does not depend on the arm or the reward"
        )
    # A policy that counts late rounds leaves some out as well, once it has declared an arm: none is missed.
    if ledger.book.unused and not hasattr(settings.policy, "late"):
        out.append(
            f"{ledger.book.unused} of {settled} settled proposals came after their phase, and the policy"
            " could not use them; AnytimeElimination can"
        )
    for arm, reason in ledger.retirements:
        out.append(
            f"{ledger.arms.labels[arm]!r} was retired {reason}: claims are about the best of the arms that"
            " are left, and hold as said if the choice did not depend on the objective"
        )
    for name, level in zip(settings.names, ledger.levels, strict=True):
        if level.stood_in:
            out.append(f"{level.stood_in} forecasts of {name!r} were not finite; its mean stood in for them")
    if not ledger.tracks[0].confidence.is_exact and settled >= FEW:
        out.append(
            "claims are asymptotic: if rewards have bounds, declare them with rewards=(low, high) next time"
        )
    return out


def _named_alarms(ledger: Ledger) -> tuple[str, ...]:
    watch = ledger.watch
    alarms = {
        "sample-ratio": watch.ratio.alarm,
        "missing": ledger.settings.silence == "missing" and watch.missing.alarm,
        "drift": watch.drift is not None,
    }
    return tuple(name for name, is_raised in alarms.items() if is_raised)


def _alarms(ledger: Ledger) -> list[str]:
    """Say loudly what breaks the claims, if anything does."""
    watch, labels, out = ledger.watch, ledger.arms.labels, []
    if watch.ratio.alarm:
        counts = zip(labels, watch.ratio.observed, watch.ratio.expected, strict=False)
        seen = ", ".join(f"{label!r} {n} for {e:.0f}" for label, n, e in counts)
        out.append(
            f"ALARM: arms were not drawn as the plans say ({seen}; p = {watch.ratio.p_value:.1g}): find out"
            " who changes the assignment or loses proposals before you believe anything here"
        )
    if ledger.settings.silence == "missing" and watch.missing.alarm:
        shares = zip(labels, watch.missing.shares, strict=False)
        seen = ", ".join(f"{label!r} {share:.1%}" for label, share in shares)
        out.append(
            f"ALARM: rewards are missing more for some arms than for others ({seen}; p ="
            f" {watch.missing.p_value:.1g}): what is left out would bias the gaps; count silence as zero"
        )
    if watch.drift is not None:
        out.append(
            f"ALARM: gaps drift: {watch.drift}; the best arm may change with time, so take claims as about an"
            " average over the experiment, and look into what changed"
        )
    return out


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
