"""An experiment at a glance: its report, provisional rewards and health checks; writes nothing."""

from dataclasses import dataclass

import numpy as np

from orthobandit.estimate.follow.guardrails import rail_words
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.report.advice import explain_held_up
from orthobandit.experiment.report.alarms import VIOLATIONS, drift_words
from orthobandit.experiment.report.personal import rule_names
from orthobandit.experiment.report.report import Report, report_of


@dataclass(frozen=True)
class Check:
    """The result of one health check or guardrail.

    Attributes
    ----------
    name : str
    is_alarm : bool
    words : str
        What was found; of a guardrail that has found nothing, what it does.
    """

    name: str
    is_alarm: bool
    words: str


@dataclass(frozen=True)
class Glance:
    """The state of an experiment as the dashboard shows it; taking it changes nothing.

    Attributes
    ----------
    at : float
        Time of the newest entry of the log, in seconds since the epoch.
    plan : int
        Number of the plan in force.
    report : Report
        As of `at`, without proposals whose window has passed since.
    provisional : tuple of (int, float or None)
        For each arm, the number and the mean of rewards of open proposals. They influence neither plans nor
        intervals.
    checks : tuple of Check
    guardrails : tuple of Check
        An alarm says which arms were retired.
    held_up : str
        Which proposal holds up the rewards of later ones, and until when; empty if it holds up none.
    """

    at: float
    plan: int
    report: Report
    provisional: tuple[tuple[int, float | None], ...]
    checks: tuple[Check, ...]
    guardrails: tuple[Check, ...]
    held_up: str


def glance_of(ledger: Ledger, name: str = "") -> Glance:
    """Return what can be seen of a ledger; `name` is that of the experiment."""
    return Glance(
        at=float(ledger.at),
        plan=int(ledger.feed.plan.number),
        report=report_of(ledger, name),
        provisional=_provisional(ledger),
        checks=_checks(ledger),
        guardrails=_guardrails(ledger),
        held_up=explain_held_up(ledger, fewest=1),
    )


def _provisional(ledger: Ledger) -> tuple[tuple[int, float | None], ...]:
    # Plain means of what came early: rewards that come early are not like the others, so they have no
    # interval.
    arms, values = ledger.waiting.provisional(0)
    counts = np.bincount(arms, minlength=len(ledger.arms)).tolist()
    sums = np.bincount(arms, weights=values, minlength=len(ledger.arms)).tolist()
    return tuple((count, total / count if count else None) for count, total in zip(counts, sums, strict=True))


def _checks(ledger: Ledger) -> tuple[Check, ...]:
    """Return the health checks in words: sample ratio, silence, constancy of gaps."""
    watch = ledger.watch
    settled = int(ledger.drawn.sum())
    words = VIOLATIONS["sample-ratio"] if watch.ratio.alarm else "arms are drawn as the plans say"
    out = [Check("Sample ratio", watch.ratio.alarm, f"{words}, p = {watch.ratio.p_value:.2g}")]
    if ledger.settings.silence == "missing":
        words = "rewards are missing as often for every arm"
        if watch.missing.alarm:
            words = VIOLATIONS["missing"]
        out.append(Check("Silence", watch.missing.alarm, f"{words}, p = {watch.missing.p_value:.2g}"))
    else:
        silent = int(ledger.silent.sum())
        words = f"{silent:,} of {settled:,} settled proposals were silent, counted 0"
        out.append(Check("Silence", False, words))
    if watch.constancy is not None:
        words = "no gap is seen to drift"
        if watch.drift is not None:
            words = drift_words(ledger.arms.labels, watch.drift)
        out.append(Check("Constancy of gaps", watch.drift is not None, words))
    return tuple(out)


def _guardrails(ledger: Ledger) -> tuple[Check, ...]:
    """Return each guardrail in words, with the arms it has retired or the rules it rules out."""
    out = []
    for one in ledger.judged_rules():
        rail = one.rail
        harmful = [name for name, is_harmed in zip(rule_names(ledger), one.harmed, strict=True) if is_harmed]
        words = f"rules out {', '.join(map(repr, harmful))}"
        if not harmful:
            words = rail_words(rail, is_personal=True)
        out.append(Check(f"Guardrail on {rail.metric}", bool(harmful), words))
    if out:
        return tuple(out)
    for rail in ledger.settings.guardrails:
        labels = [ledger.arms.labels[arm] for arm, reason in ledger.retirements if reason == rail.reason]
        words = f"has retired {', '.join(map(repr, labels))}" if labels else rail_words(rail)
        out.append(Check(f"Guardrail on {rail.metric}", bool(labels), words))
    return tuple(out)
