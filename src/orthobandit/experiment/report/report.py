"""What is known now, and what to do: one sentence, a table, JSON, a page, a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from orthobandit._foundation.frames import Library, frame_of, write_columns
from orthobandit._foundation.types import Array
from orthobandit.estimate.confidence.coherence import Coherent, project_intervals
from orthobandit.experiment.ledger.guardrails import Judged, rail_words
from orthobandit.experiment.ledger.ledger import OPEN, PAUSED, Ledger
from orthobandit.experiment.report.data import ReportData
from orthobandit.policy.base import Decision
from orthobandit.showing.numbers import certainty_percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from orthobandit._foundation.frames import Frame

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
    """One metric: gaps to the reference arm with intervals that hold at all times at once, each arm.

    `certainty` is the probability with which all of them hold; of the objective, together with everything
    else that the report says of it.
    """

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
        The arm that is proven best, or within ε of it, and that every guardrail has cleared.
    epsilon : float or None
        The leader is within this of the best arm; None while nothing is claimed.
    certainty, mode : float, str
        Probability with which the policy's claims hold, and on what grounds.
    joint : float
        Probability with which the policy's claims and all intervals of the objective hold together.
    reference : str
    arms : tuple of ArmReport
    metrics : tuple of MetricReport
    holdout : tuple
        Of each metric, how many the holdout had and their mean.
    unused : int
        Rounds that the policy could not take, because they came after their phase.
    warnings : tuple of str
        What is not as it should be.
    alarms : tuple of {"contradiction", "sample-ratio", "missing", "drift"}
        Why claims cannot be believed; the warnings say more.
    retirements : tuple of (str, str)
        Arms that a person or a guardrail retired, in this order, and why.
    held : str or None
        The arm that is proven best, or within ε of it, while a guardrail has not cleared it.
    guardrails : tuple of str
        What each guardrail does and knows.
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
    joint: float
    reference: str
    arms: tuple[ArmReport, ...]
    metrics: tuple[MetricReport, ...]
    holdout: tuple[tuple[str, int, float | None], ...] = ()
    unused: int = 0
    warnings: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    retirements: tuple[tuple[str, str], ...] = ()
    held: str | None = None
    guardrails: tuple[str, ...] = ()
    head: str | None = None

    @property
    def level_words(self) -> str:
        """At which level statements about the objective hold, each kind and all together."""
        return level_words(self.certainty, self.joint, self.metrics[0].name)

    def __str__(self) -> str:
        from orthobandit.experiment.report.page import text_of

        return text_of(self)

    def to_json(self) -> ReportData:
        """Return plain values."""
        plain = {
            **{name: getattr(self, name) for name in self.__dataclass_fields__},
            "arms": [dict(vars(arm)) for arm in self.arms],
            "metrics": [{**vars(one), "gaps": [list(gap) for gap in one.gaps]} for one in self.metrics],
            "holdout": [list(one) for one in self.holdout],
            "warnings": list(self.warnings),
            "alarms": list(self.alarms),
            "retirements": [list(one) for one in self.retirements],
            "guardrails": list(self.guardrails),
        }
        return cast(ReportData, plain)

    def __repr__(self) -> str:
        best = f"declared {self.declared!r}" if self.declared is not None else f"leader {self.leader!r}"
        return f"Report({self.status}, {self.settled:,} of {self.proposals:,} proposals settled, {best})"

    def _repr_html_(self) -> str:
        from orthobandit.experiment.report.page import notebook_of

        return notebook_of(self)

    def to_frame(self, *, library: Library | None = None) -> "Frame":
        """Return a frame with a row a metric and arm: how often it was drawn, its gap and its interval.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            What the frame is of; by default the first that is installed.
        """
        from orthobandit.experiment.report.frames import columns_of_report

        frame: Frame = frame_of(columns_of_report(self), library)
        return frame

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows of :meth:`to_frame` to a Parquet file."""
        from orthobandit.experiment.report.frames import columns_of_report

        write_columns(path, columns_of_report(self))

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the gaps to the reference arm with their intervals; return the axes.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        from orthobandit.experiment.report.page import draw_gaps

        drawn: Axes = draw_gaps(self, axes)
        return drawn

    def to_html(self) -> str:
        """Return a page of its own: the sentence, the table, the warnings."""
        from orthobandit.experiment.report.page import page_of

        return page_of(self)

    def figure(self) -> "Figure":
        """Return a matplotlib figure of the gaps to the reference arm."""
        from orthobandit.experiment.report.page import figure_of

        figure: Figure = figure_of(self)
        return figure


def report_of(ledger: Ledger) -> Report:
    """Return what a ledger knows."""
    book = ledger.book
    settings = ledger.settings
    decision = settings.policy.decide(book.now())
    labels = ledger.arms.labels
    leader = int(decision.leader)
    declared = int(decision.declared)
    estimates, low, high = ledger.tracks[0].intervals(book.plans)
    coherent = _project(ledger, decision, low, high)
    shown = (coherent.clip(estimates), coherent.low, coherent.high)
    if coherent.is_empty:
        shown = (np.full(len(labels), np.nan),) * 3
    joint = _joint(ledger, decision)
    metrics = (
        _metric(ledger, 0, shown, joint),
        *(
            _metric(ledger, place, track.intervals(book.plans), 1.0 - track.delta)
            for place, track in enumerate(ledger.tracks[1:], start=1)
        ),
    )
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
    is_held = declared >= 0 and not book.cleared[declared]
    judged = ledger.judged()
    return Report(
        advice=_advice(ledger, decision, coherent, judged if is_held else []),
        status=ledger.status,
        proposals=ledger.waiting.next - 1,
        settled=ledger.waiting.first - 1,
        awaited=len(ledger.waiting),
        leader=labels[leader],
        declared=labels[declared] if declared >= 0 and not is_held else None,
        epsilon=None if coherent.is_empty else _number(coherent.epsilon),
        certainty=float(decision.certainty),
        mode=decision.mode,
        joint=joint,
        reference=labels[settings.reference],
        arms=arms,
        metrics=metrics,
        holdout=_holdout(ledger),
        unused=book.unused,
        warnings=tuple(_warnings(ledger, is_contradicted=coherent.is_empty)),
        alarms=("contradiction",) * coherent.is_empty + _named_alarms(ledger),
        retirements=tuple((labels[arm], reason) for arm, reason in ledger.retirements),
        held=labels[declared] if is_held else None,
        guardrails=_guardrail_words(ledger, decision, judged),
        head=None if book.record is None else book.record.head,
    )


def _project(ledger: Ledger, decision: Decision, low: Array, high: Array) -> Coherent:
    """Return the objective's intervals as they follow from the policy's claims as well."""
    if not decision.certainty:  # nothing is claimed that they could follow from
        everything = np.ones(len(low), dtype=np.bool_)
        return Coherent(low, high, float(decision.epsilon), everything, is_empty=False)
    return project_intervals(
        low,
        high,
        active=decision.active,
        retired=ledger.book.retired,
        leader=int(decision.leader),
        epsilon=float(decision.epsilon),
    )


def _joint(ledger: Ledger, decision: Decision) -> float:
    """Return the probability with which the policy's claims and the objective's intervals hold together."""
    delta = ledger.tracks[0].delta
    if not decision.certainty:
        return 1.0 - delta
    # A policy may have left a part of its δ to the intervals; otherwise failure probabilities add up.
    within = getattr(ledger.settings.policy, "interval_delta", 0.0)
    return float(decision.certainty) if delta <= within else max(float(decision.certainty) - delta, 0.0)


def _metric(ledger: Ledger, place: int, ends: tuple[Array, Array, Array], certainty: float) -> MetricReport:
    metric = ledger.settings.metrics[place]
    track = ledger.tracks[place]
    return MetricReport(
        name=metric.name,
        mode=track.confidence.name,
        certainty=certainty,
        gaps=tuple(
            (_number(middle), _number(low), _number(high)) for middle, low, high in zip(*ends, strict=True)
        ),
        provisional=len(ledger.waiting.provisional(place)[0]),
        stood_in=ledger.levels[place].stood_in,
    )


def level_words(certainty: float, joint: float, metric: str) -> str:
    """Say at which level statements about the objective hold.

    Examples
    --------
    >>> level_words(0.95, 0.95, "sales").partition("; ")[2]
    "with the intervals of 'sales', all of it holds together in at least 95 %."
    """
    if not certainty:
        share = certainty_percent(joint)
        return f"All intervals of {metric!r} hold together in at least {share} of experiments."
    return (
        f"False winners in at most {certainty_percent(1.0 - certainty)} of experiments; with the intervals of"
        f" {metric!r}, all of it holds together in at least {certainty_percent(joint)}."
    )


def _guardrail_words(ledger: Ledger, decision: Decision, judged: list[Judged]) -> tuple[str, ...]:
    """Say what each guardrail does and which arms it has not cleared, and at which level all of them act."""
    out = []
    in_play = np.asarray(decision.active) & ~ledger.book.retired
    in_play[ledger.settings.reference] = False
    for one in judged:
        open_arms = np.flatnonzero(in_play & ~one.cleared & ~ledger.book.cleared).tolist()
        waiting = ", ".join(_may_be_worse(ledger, one, arm) for arm in open_arms)
        state = f"not cleared yet: {waiting}" if waiting else "every arm in play is cleared"
        out.append(f"Guardrail on {one.rail.metric!r}: {rail_words(one.rail)}; {state}.")
    if judged:
        guarded = {ledger.metric(rail.metric) for rail in ledger.settings.guardrails}
        wrong = sum(ledger.tracks[place].delta for place in guarded)
        out.append(
            "Guardrails, all together, retire an arm that is within the margin, or clear one that is beyond"
            f" its limit, in at most {certainty_percent(min(wrong, 1.0))} of experiments."
        )
    return tuple(out)


def _may_be_worse(ledger: Ledger, one: Judged, arm: int) -> str:
    label = ledger.arms.labels[arm]
    most = float(one.most[arm])
    if not np.isfinite(most):
        return f"{label!r} (nothing is known of it)"
    return f"{label!r} (may be worse by {most:.3g}, cleared below {one.limit:.3g})"


def _holdout(ledger: Ledger) -> tuple[tuple[str, int, float | None], ...]:
    if not ledger.settings.holdout:
        return ()
    out = []
    for name, sums in zip(ledger.settings.names, ledger.holdout, strict=True):
        count = int(sums.counts.sum())
        out.append((name, count, float(sums.sums.sum()) / count if count else None))
    return tuple(out)


def _advice(ledger: Ledger, decision: Decision, coherent: Coherent, held_by: list[Judged]) -> str:
    """Say what to do now, in one sentence."""
    labels = ledger.arms.labels
    declared = int(decision.declared)
    leader = labels[int(decision.leader)]
    if coherent.is_empty:
        return "Do not act: claims contradict each other, so what they rest on does not hold; see the alarm."
    if declared >= 0 and decision.certainty > 0:
        epsilon = float(getattr(ledger.settings.policy, "epsilon", 0.0))
        best = "the best" if epsilon == 0 else f"within {epsilon:g} of the best"
        best += " of the arms that are left" if ledger.retirements else ""
        if held_by:
            return _held_advice(ledger, declared, best, held_by)
        wrong = certainty_percent(1.0 - decision.certainty)
        return (
            f"Show {labels[declared]!r}: it is {best} ({decision.mode}; false winners in at most {wrong} of"
            " experiments)."
        )
    left = [label for label, is_possible in zip(labels, coherent.possible, strict=True) if is_possible]
    if ledger.status == PAUSED:
        return "Call resume() to go on; rewards are still taken."
    if ledger.status != OPEN:
        return (
            f"The experiment was stopped by hand before it could declare an arm; {leader!r} looks best, and"
            f" {len(left)} of {len(labels)} arms may be."
        )
    if not ledger.drawn.any():
        return f"Go on: nothing is settled yet; the rewards of {len(ledger.waiting):,} proposals are awaited."
    if decision.certainty == 0:
        return f"Go on: {leader!r} looks best; this policy makes no claims, so go by the intervals below."
    if left == [leader]:
        return f"Go on: by the intervals only {leader!r} can be the best, and it is about to be declared."
    if len(left) < len(labels):
        return f"Go on: {leader!r} leads, and the best is one of {', '.join(map(repr, left))}."
    return f"Go on: {leader!r} looks best so far, and no arm can be dropped yet."


def _held_advice(ledger: Ledger, declared: int, best: str, held_by: list[Judged]) -> str:
    """Say why an arm that has won on the objective is not declared."""
    label = ledger.arms.labels[declared]
    settings = ledger.settings
    open_rails = [one for one in held_by if not one.cleared[declared]] or held_by
    names = " and ".join(dict.fromkeys(repr(one.rail.metric) for one in open_rails))
    known = f"it may be worse by {float(open_rails[0].most[declared]):.3g}"
    if not np.isfinite(open_rails[0].most[declared]):
        known = "nothing is known of it there"
    if ledger.book.retired[settings.reference]:
        todo = "the reference arm is retired, so no more will be known: look at that metric yourself"
    else:
        todo = f"it is declared once more than {open_rails[0].limit:.3g} is ruled out"
    return (
        f"Go on: {label!r} is {best} by {settings.names[0]!r}, but the guardrail on {names} has not cleared"
        f" it ({known}); {todo}."
    )


def _warnings(ledger: Ledger, *, is_contradicted: bool) -> list[str]:
    settings = ledger.settings
    settled = int(ledger.drawn.sum())
    out = _alarms(ledger)
    if is_contradicted:
        out.insert(
            0,
            f"ALARM: no gaps of {settings.names[0]!r} fit both its intervals and the arms that were dropped,"
            " which a sound experiment shows in at most as many cases as claims may fail: look for gaps that"
            " drift, rewards out of order or outside their range; no interval is shown",
        )
    if settings.silence == "missing" and ledger.silent.any():
        out.append(
            f"{int(ledger.silent.sum()):,} of {settled:,} proposals were silent and are left out: claims hold"
            " only if silence does not depend on the arm or the reward"
        )
    # A policy that counts late rounds leaves some out as well, once it has declared an arm: none is missed.
    if ledger.book.unused and not hasattr(settings.policy, "late"):
        out.append(
            f"{ledger.book.unused:,} of {settled:,} settled proposals came after their phase, and the policy"
            " could not use them; AnytimeElimination can"
        )
    for arm, reason in ledger.retirements:
        out.append(
            f"{ledger.arms.labels[arm]!r} was retired {reason}: claims are about the best of the arms that"
            " are left, and hold as said if the choice did not depend on the objective"
        )
    for name, level in zip(settings.names, ledger.levels, strict=True):
        if level.stood_in:
            out.append(
                f"{level.stood_in:,} forecasts of {name!r} were not finite; its mean stood in for them"
            )
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
    watch = ledger.watch
    labels = ledger.arms.labels
    out = []
    if watch.ratio.alarm:
        counts = zip(labels, watch.ratio.observed, watch.ratio.expected, strict=False)
        seen = ", ".join(f"{label!r} {n:,} for {e:,.0f}" for label, n, e in counts)
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
