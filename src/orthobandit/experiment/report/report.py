"""The report: what is known now and what to do, as a sentence, a table, JSON, a page and a figure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

import numpy as np

from orthobandit._foundation.frames import Library, frame_of, write_columns
from orthobandit._foundation.types import Array
from orthobandit.estimate.confidence.coherence import Coherent, pool_above, project_intervals
from orthobandit.estimate.follow.rates import rates_of
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.ledger.personal_feed import PersonalFeed
from orthobandit.experiment.report.advice import (
    advise,
    foresee,
    guardrail_words,
    has_rivals,
    is_early,
    is_only_arm_left,
    level_words,
    list_notes,
)
from orthobandit.experiment.report.alarms import ALARM, Alarm, do_not_act, raised_alarms
from orthobandit.experiment.report.conclusion import Conclusion, Facts, conclude
from orthobandit.experiment.report.personal import (
    PersonalReport,
    arm_gaps,
    conclude_rules,
    personal_advice,
    personal_report,
    rules_of,
)
from orthobandit.policy.base import Decision
from orthobandit.showing.numbers import finite

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from orthobandit._foundation.frames import Frame

Triple = tuple[float | None, float | None, float | None]  # estimate, low end, high end
NOTHING: Triple = (None, None, None)


@dataclass(frozen=True)
class ArmReport:
    """One arm: settled proposals, share, gap to the reference arm, rate and lift.

    `rate` is what the arm would have earned on average over all settled proposals, and `lift` its gap divided
    by the rate of the reference arm (``estimate/follow/rates.py``). Their intervals hold together with that
    of the gap. None means not known.
    """

    label: str
    settled: int
    silent: int
    probability: float
    is_active: bool
    is_retired: bool
    gap: float | None
    low: float | None
    high: float | None
    rate: float | None = None
    rate_low: float | None = None
    rate_high: float | None = None
    lift: float | None = None
    lift_low: float | None = None
    lift_high: float | None = None


@dataclass(frozen=True)
class MetricReport:
    """One metric: gaps to the reference arm, rates and lifts of each arm, as estimate, low and high end.

    `certainty` is the share of experiments in which all of them hold, at all times at once; of the objective,
    together with everything else that the report says of it. `is_share` says that values lie in [0, 1], so
    that rates are per cent.
    """

    name: str
    mode: str
    certainty: float
    gaps: tuple[Triple, ...]
    provisional: int
    stood_in: int
    is_share: bool = False
    rates: tuple[Triple, ...] = ()
    lifts: tuple[Triple, ...] = ()


class ArmData(TypedDict):
    """One arm of a report as plain values; see :class:`ArmReport`."""

    label: str
    settled: int
    silent: int
    probability: float
    is_active: bool
    is_retired: bool
    gap: float | None
    low: float | None
    high: float | None
    rate: float | None
    rate_low: float | None
    rate_high: float | None
    lift: float | None
    lift_low: float | None
    lift_high: float | None


class MetricData(TypedDict):
    """One metric of a report as plain values; see :class:`MetricReport`."""

    name: str
    mode: str
    certainty: float
    gaps: list[list[float | None]]
    provisional: int
    stood_in: int
    is_share: bool
    rates: list[list[float | None]]
    lifts: list[list[float | None]]


class ReportData(TypedDict):
    """A report as plain values, which clients receive: what :meth:`Report.to_json` returns."""

    advice: str
    status: str
    proposals: int
    settled: int
    awaited: int
    leader: str | None
    declared: str | None
    epsilon: float | None
    certainty: float
    mode: str
    joint: float
    reference: str
    arms: list[ArmData]
    metrics: list[MetricData]
    holdout: list[list[str | int | float | None]]
    unused: int
    refused: dict[str, int]
    warnings: list[str]
    alarms: list[str]
    retirements: list[list[str]]
    held: str | None
    guardrails: list[str]
    head: str | None
    outlook: str
    expected: float | None
    expected_between: list[float | None] | None
    is_early: bool
    has_rivals: bool
    name: str
    at: float | None
    personal: dict[str, object] | None


@dataclass(frozen=True)
class Report:
    """What an experiment knows.

    Attributes
    ----------
    advice : str
        What to do now, in one sentence.
    status : str
    proposals, settled, awaited : int
        Proposals that were drawn; that are settled, on which all numbers rest; and that are still open.
    leader : str or None
        The arm that looks best; None while it is too early to say, and while there is an alarm.
    epsilon : float or None
        The leader is within this of the best arm; None while nothing is claimed.
    conclusion : Conclusion
        What follows for arms, or for the rules of a personalised experiment: every surface asks it.
    certainty, mode : float, str
        Probability that the policy's claims hold, and the mode of confidence behind it.
    joint : float
        Probability that the policy's claims and all intervals of the objective hold together.
    reference : str
    arms : tuple of ArmReport
    metrics : tuple of MetricReport
    holdout : tuple
        For each metric: its name, and the number and the mean of the holdout's values.
    unused : int
        Rounds that the policy could not use, because they came after their phase.
    refused : dict
        How many rewards were refused, by reason: "late", "unknown" (never asked for), "conflict" (another
        value was told before), "invalid" (no number in the declared range) or "metric" (there is no such).
    notes : tuple of str
        What a reader must know before believing the claims, beside alarms.
    retirements : tuple of (str, str)
        Arms that a person or a guardrail retired, in this order, and why.
    guardrails : tuple of str
        What each guardrail does and has found.
    head : str or None
        The head to publish, as :meth:`Experiment.head` returns it; None if there are no certificates.
    outlook : str
        When it may end, in one sentence; empty if it has ended or cannot be forecast.
    expected : float or None
        Settled proposals in all before which half of the forecasts end.
    expected_between : (float, float or None) or None
        The same for 5 % and for 80 % of them; None for what cannot be told.
    is_early : bool
        Whether it is too early to say which arm looks best.
    has_rivals : bool
        Whether there is anything to find out: not if all arms are the same by their features, or all but one
        were retired.
    name : str
        Of the experiment; empty for one in memory.
    at : float or None
        Time of the newest entry of the log, in seconds since the epoch.
    personal : PersonalReport or None
        Rules, effects by context and who gets which arm, if the experiment is personalised. Gaps then compare
        showing one arm to everybody.
    """

    advice: str
    status: str
    proposals: int
    settled: int
    awaited: int
    leader: str | None
    epsilon: float | None
    certainty: float
    mode: str
    joint: float
    reference: str
    conclusion: Conclusion
    arms: tuple[ArmReport, ...]
    metrics: tuple[MetricReport, ...]
    holdout: tuple[tuple[str, int, float | None], ...] = ()
    unused: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    retirements: tuple[tuple[str, str], ...] = ()
    guardrails: tuple[str, ...] = ()
    head: str | None = None
    outlook: str = ""
    expected: float | None = None
    expected_between: tuple[float, float | None] | None = None
    is_early: bool = False
    has_rivals: bool = True
    name: str = ""
    at: float | None = None
    personal: PersonalReport | None = None

    @property
    def declared(self) -> str | None:
        """The arm that is proven best, or within ε of it, and that every guardrail has cleared.

        None while there is an alarm, and in personalised experiments, where rules are declared.
        """
        return self.conclusion.declared if self.personal is None else None

    @property
    def held(self) -> str | None:
        """The arm that is proven best, or within ε of it, while a guardrail has not cleared it."""
        return self.conclusion.held if self.personal is None else None

    @property
    def alarms(self) -> tuple[str, ...]:
        """Why claims cannot be believed: "contradiction", "sample-ratio", "missing", "drift"."""
        return tuple(alarm.name for alarm in self.conclusion.alarms)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The details of all alarms, and the notes."""
        return (*(f"{ALARM}{alarm.details}" for alarm in self.conclusion.alarms), *self.notes)

    @property
    def level_words(self) -> str:
        """The levels at which statements about the objective hold, each kind and all together."""
        if self.alarms:
            return "While there is an alarm, intervals and error rates need not hold as they otherwise would."
        # Where there is nothing to find out nobody can win, and be it falsely.
        return level_words(self.certainty if self.has_rivals else 0.0, self.joint, self.metrics[0].name)

    def __str__(self) -> str:
        from orthobandit.experiment.report.render import text_of

        return text_of(self)

    def to_json(self) -> ReportData:
        """Return plain values."""
        plain = {
            **{name: getattr(self, name) for name in ReportData.__annotations__},
            "arms": [dict(vars(arm)) for arm in self.arms],
            "metrics": [_plain_metric(one) for one in self.metrics],
            "refused": dict(self.refused),
            "holdout": [list(one) for one in self.holdout],
            "warnings": list(self.warnings),
            "alarms": list(self.alarms),
            "expected_between": None if self.expected_between is None else list(self.expected_between),
            "retirements": [list(one) for one in self.retirements],
            "guardrails": list(self.guardrails),
            "personal": None if self.personal is None else self.personal.to_json(),
        }
        return cast(ReportData, plain)

    def __repr__(self) -> str:
        best = "too early for a leader" if self.leader is None else f"leader {self.leader!r}"
        if not self.has_rivals:
            best = "nothing to find out"
        elif self.declared is not None:
            best = f"declared {self.declared!r}"
        if self.alarms:
            best = f"alarm: {', '.join(self.alarms)}"
        return f"Report({self.status}, {self.settled:,} of {self.proposals:,} proposals settled, {best})"

    def _repr_html_(self) -> str:
        from orthobandit.experiment.report.render import notebook_of

        return notebook_of(self)

    def to_frame(self, *, library: Library | None = None) -> "Frame":
        """Return a frame with a row per metric and arm: settled proposals, gap and interval.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame; by default the first that is installed.
        """
        from orthobandit.experiment.report.render import columns_of_report

        frame: Frame = frame_of(columns_of_report(self), library)
        return frame

    def to_parquet(self, path: str | Path) -> None:
        """Write the rows of :meth:`to_frame` to a Parquet file."""
        from orthobandit.experiment.report.render import columns_of_report

        write_columns(path, columns_of_report(self))

    def plot(self, axes: "Axes | None" = None) -> "Axes":
        """Draw the gaps to the reference arm with their intervals; return the axes.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        from orthobandit.experiment.report.render import draw_gaps

        drawn: Axes = draw_gaps(self, axes)
        return drawn

    def to_html(self) -> str:
        """Return a self-contained HTML page: the advice, each arm's rate and lift, then the details."""
        from orthobandit.experiment.report.render import page_of

        return page_of(self)

    def figure(self) -> "Figure":
        """Return a matplotlib figure of the gaps to the reference arm."""
        from orthobandit.experiment.report.render import figure_of

        figure: Figure = figure_of(self)
        return figure


def _plain_metric(metric: MetricReport) -> dict[str, Any]:
    tables = {name: [list(row) for row in getattr(metric, name)] for name in ("gaps", "rates", "lifts")}
    return {**vars(metric), **tables}


def report_of(ledger: Ledger, name: str = "") -> Report:
    """Return the report of a ledger; `name` is that of the experiment."""
    feed = ledger.feed
    settings = ledger.settings
    state = feed.now()
    decision = settings.policy.decide(state)
    labels = ledger.arms.labels
    estimates, low, high = _gaps(ledger, 0)
    # What is shown follows from policy and intervals together, so that no page contradicts itself.
    coherent = _project(ledger, decision, low, high)
    too_early = is_early(ledger, decision)
    estimates_shown = coherent.clip(estimates)
    if not ledger.is_personal and not too_early:
        decision, coherent = _lead_by_intervals(ledger, decision, coherent, estimates)
        estimates_shown = _put_on_top(ledger, int(decision.leader), coherent, estimates)
    shown = (estimates_shown, coherent.low, coherent.high)
    if coherent.is_empty:
        shown = (np.full(len(labels), np.nan),) * 3
    elif ledger.arms.dimension == 0:
        shown = (np.zeros(len(labels)),) * 3  # by their features the arms are the same
    alarms = raised_alarms(ledger, is_contradicted=coherent.is_empty)
    personal = None
    if isinstance(feed, PersonalFeed):
        rules = rules_of(ledger, feed)
        conclusion = conclude_rules(ledger, rules, alarms)
        personal = personal_report(ledger, feed, rules, conclusion)
    else:
        conclusion = _conclude_arms(ledger, decision, alarms)
    joint = _joint(ledger, decision)
    metrics = (
        _metric(ledger, 0, shown, joint),
        *(
            _metric(ledger, place, _gaps(ledger, place), 1.0 - intervals.delta)
            for place, intervals in enumerate(ledger.gap_intervals[1:], start=1)
        ),
    )
    gaps = metrics[0].gaps
    rates = metrics[0].rates
    lifts = metrics[0].lifts
    # Visitors of a personalised experiment have plans of their own: what was drawn says more.
    shares = feed.plan.probabilities if personal is None else ledger.drawn / max(int(ledger.drawn.sum()), 1)
    arms = tuple(
        ArmReport(
            label=label,
            settled=int(ledger.drawn[arm]),
            silent=int(ledger.silent[arm]),
            probability=float(shares[arm]),
            is_active=bool(decision.active[arm]),
            is_retired=bool(feed.retired[arm]),
            # An arm without a settled proposal has an estimate of 0 that nobody made.
            gap=gaps[arm][0] if ledger.drawn[arm] else None,
            low=gaps[arm][1],
            high=gaps[arm][2],
            **_named("rate", rates[arm] if rates and ledger.drawn[arm] else NOTHING),
            **_named("lift", lifts[arm] if lifts and ledger.drawn[arm] else NOTHING),
        )
        for arm, label in enumerate(labels)
    )
    judged = ledger.judged()
    outlook = foresee(ledger, state, decision, conclusion)
    if conclusion.alarms:
        advice = do_not_act(conclusion.alarms)
    elif personal is None:
        advice = advise(ledger, decision, coherent, conclusion, judged, outlook)
    else:
        advice = personal_advice(ledger, personal, conclusion)
    return Report(
        advice=advice,
        status=ledger.status,
        proposals=ledger.waiting.next - 1,
        settled=ledger.waiting.first - 1,
        awaited=len(ledger.waiting),
        leader=conclusion.leader if personal is None else _leading_arm(ledger, conclusion, estimates),
        epsilon=None if conclusion.alarms or too_early else finite(coherent.epsilon),
        certainty=float(decision.certainty),
        mode=decision.mode,
        joint=joint,
        reference=labels[settings.reference],
        conclusion=conclusion,
        arms=arms,
        metrics=metrics,
        holdout=_holdout(ledger),
        unused=feed.unused,
        refused=dict(ledger.refused),
        notes=tuple(list_notes(ledger, advice)),
        retirements=tuple((labels[arm], reason) for arm, reason in ledger.retirements),
        guardrails=guardrail_words(ledger, decision, judged) if personal is None else personal.guardrails,
        head=None if feed.record is None else feed.record.head,
        outlook=outlook.words,
        expected=outlook.expected,
        expected_between=outlook.between,
        is_early=too_early,
        has_rivals=has_rivals(ledger) if personal is None else not is_only_arm_left(ledger),
        name=name,
        at=finite(ledger.at),
        personal=personal,
    )


def _conclude_arms(ledger: Ledger, decision: Decision, alarms: tuple[Alarm, ...]) -> Conclusion:
    """Return what follows of the arms of an ordinary experiment."""
    labels = ledger.arms.labels
    declared = int(decision.declared)
    return conclude(
        Facts(
            alarms=alarms,
            has_rivals=has_rivals(ledger),
            winner=labels[declared] if declared >= 0 else None,
            # Won on the objective, but a guardrail has not cleared it: not declared to anybody yet.
            is_cleared=declared < 0 or bool(ledger.feed.cleared[declared]),
            # A policy's first leader is its first arm, which nothing speaks for.
            leader=None if is_early(ledger, decision) else labels[int(decision.leader)],
            status=ledger.status,
        )
    )


def _leading_arm(ledger: Ledger, conclusion: Conclusion, estimates: Array) -> str | None:
    """Return the arm that looks best if one is shown to everybody, though rules compete and not arms."""
    if conclusion.leader is None:
        return None
    return ledger.arms.labels[int(np.argmax(np.where(ledger.feed.retired, -np.inf, estimates)))]


def _gaps(ledger: Ledger, place: int) -> tuple[Array, Array, Array]:
    """Return estimates, lower and upper ends (K,) of gaps to the reference arm in one metric."""
    feed = ledger.feed
    if not isinstance(feed, PersonalFeed):
        return ledger.gap_intervals[place].intervals(feed.plans)
    comparison = ledger.comparisons[place - 1] if place else feed.state.comparison
    return arm_gaps(ledger.arms.labels, comparison)


def _lead_by_intervals(
    ledger: Ledger, decision: Decision, coherent: Coherent, estimates: Array
) -> tuple[Decision, Coherent]:
    """Return decision and claims with a leader that the intervals do not rule out.

    If they rule out the policy's, the arm with the largest estimate among those that they leave leads, as far
    from the best as they allow.
    """
    low, high = coherent.low, coherent.high
    possible = coherent.possible & ~ledger.feed.retired
    possible = possible & (high >= np.max(low[~ledger.feed.retired]))
    if coherent.is_empty or possible[int(decision.leader)]:
        return decision, coherent
    leader = int(np.argmax(np.where(possible, coherent.clip(estimates), -np.inf)))
    rivals = possible & (np.arange(len(low)) != leader)
    epsilon = max(float(np.max(high[rivals], initial=-np.inf)) - float(low[leader]), 0.0)
    return replace(decision, leader=np.asarray(leader)), replace(coherent, epsilon=epsilon)


def _put_on_top(ledger: Ledger, leader: int, coherent: Coherent, estimates: Array) -> Array:
    """Return estimates (K,) of the objective's gaps within their intervals, of which the leader's is largest.

    The policy looks at other sums than the table shows, and at the end it knows more than they tell: an arm
    that has won may not stand below one that was dropped.
    """
    racing = ~ledger.feed.retired
    pooled = pool_above(estimates, ledger.drawn, leader, racing & (ledger.drawn > 0))
    # Gaps to the reference arm, which may be among those that were pooled.
    return coherent.clip_below(pooled - pooled[ledger.settings.reference], leader, racing)


def _project(ledger: Ledger, decision: Decision, low: Array, high: Array) -> Coherent:
    """Return the objective's intervals, narrowed to agree with the policy's claims."""
    if not decision.certainty:  # nothing is claimed that they could follow from
        everything = np.ones(len(low), dtype=np.bool_)
        return Coherent(low, high, float(decision.epsilon), everything, is_empty=False)
    return project_intervals(
        low,
        high,
        active=decision.active,
        retired=ledger.feed.retired,
        leader=int(decision.leader),
        epsilon=float(decision.epsilon),
    )


def _joint(ledger: Ledger, decision: Decision) -> float:
    """Return the probability that the policy's claims and the objective's intervals hold together."""
    delta = ledger.gap_intervals[0].delta
    if not decision.certainty:
        return 1.0 - delta
    # A policy may have left a part of its δ to the intervals; otherwise failure probabilities add up.
    within = getattr(ledger.settings.policy, "interval_delta", 0.0)
    return float(decision.certainty) if delta <= within else max(float(decision.certainty) - delta, 0.0)


def _metric(ledger: Ledger, place: int, ends: tuple[Array, Array, Array], certainty: float) -> MetricReport:
    """Return the report of one metric: gaps, rates and lifts."""
    metric = ledger.settings.metrics[place]
    intervals = ledger.gap_intervals[place]
    reward_range = intervals.confidence.range
    average = intervals.average(ledger.feed.plans)
    rates: tuple[Triple, ...] = ()
    lifts: tuple[Triple, ...] = ()
    if average is not None:
        found = rates_of(average, ends, ledger.settings.reference, reward_range)
        rates = _triples(found.estimates, found.low, found.high)
        lifts = _triples(found.lifts, found.lift_low, found.lift_high)
    estimates, low, high = ends
    others = np.arange(len(low)) != ledger.settings.reference
    if not (np.isfinite(low) | np.isfinite(high) | (estimates != 0.0))[others].any():
        # Nothing is estimated before the first plan is evaluated: a 0 would look as if it were.
        estimates = np.full(len(estimates), np.nan)
    return MetricReport(
        name=metric.name,
        mode=intervals.confidence.name,
        certainty=certainty,
        gaps=_triples(estimates, low, high),
        provisional=len(ledger.waiting.provisional(place)[0]),
        stood_in=ledger.level_forecasts[place].stood_in,
        is_share=reward_range == (0.0, 1.0),
        rates=rates,
        lifts=lifts,
    )


def _triples(*ends: Array) -> tuple[Triple, ...]:
    """Return estimates, lower and upper ends (K,) as a row per arm; None for unknown values."""
    return tuple((finite(middle), finite(low), finite(high)) for middle, low, high in zip(*ends, strict=True))


def _named(name: str, values: Triple) -> dict[str, float | None]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def _holdout(ledger: Ledger) -> tuple[tuple[str, int, float | None], ...]:
    """Return name, count and mean of each metric in the holdout; nothing without a holdout."""
    if not ledger.settings.holdout:
        return ()
    out = []
    for name, sums in zip(ledger.settings.names, ledger.holdout, strict=True):
        count = int(sums.counts.sum())
        out.append((name, count, float(sums.sums.sum()) / count if count else None))
    return tuple(out)
