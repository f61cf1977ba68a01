"""Alarms: why the claims of an experiment cannot be believed, and the words in which each is said."""

from collections.abc import Sequence
from typing import NamedTuple

from orthobandit.estimate.health.constancy import Drift
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.showing.numbers import span_words

ALARM = "ALARM: "  # stands before the details of an alarm where they are one note among others
# What does not hold while an alarm is raised, by the name of the alarm, the gravest first.
VIOLATIONS = {
    "contradiction": "claims contradict each other",
    "sample-ratio": "arms were not drawn as the plans say",
    "missing": "rewards are missing more for some arms than for others",
    "drift": "gaps between arms drift",
}


class Alarm(NamedTuple):
    """A reason not to act on what an experiment claims.

    Parameters
    ----------
    name : str
        A key of :data:`VIOLATIONS`.
    details : str
        What was seen, and what to do.
    """

    name: str
    details: str


def raised_alarms(ledger: Ledger, *, is_contradicted: bool) -> tuple[Alarm, ...]:
    """Return the alarms, in the order of :data:`VIOLATIONS`.

    Parameters
    ----------
    ledger : Ledger
    is_contradicted : bool
        Whether no gaps of the objective fit both its intervals and what the policy claims.
    """
    watch = ledger.watch
    alarms = []
    if is_contradicted:
        alarms.append(Alarm("contradiction", _contradiction_words(ledger)))
    if watch.ratio.alarm:
        alarms.append(Alarm("sample-ratio", _ratio_words(ledger)))
    # Where silence counts as zero nothing is missing, whatever its shares are.
    if ledger.settings.silence == "missing" and watch.missing.alarm:
        alarms.append(Alarm("missing", _missing_words(ledger)))
    if watch.drift is not None:
        alarms.append(Alarm("drift", _drift_alarm_words(ledger, watch.drift)))
    return tuple(alarms)


def do_not_act(alarms: Sequence[Alarm]) -> str:
    """Return the advice while alarms are raised.

    Examples
    --------
    >>> do_not_act([Alarm("drift", ""), Alarm("missing", "")]).partition(", so ")[0]
    'Do not act: gaps between arms drift and rewards are missing more for some arms than for others'
    """
    violations = " and ".join(VIOLATIONS[alarm.name] for alarm in alarms)
    return f"Do not act: {violations}, so what claims rest on does not hold; see the alarm."


def _contradiction_words(ledger: Ledger) -> str:
    return (
        f"no gaps of {ledger.settings.names[0]!r} fit both its intervals and the arms that were dropped,"
        " which a sound experiment shows in at most as many cases as claims may fail: look for gaps that"
        " drift, rewards out of order or outside their range; no interval is shown"
    )


def _ratio_words(ledger: Ledger) -> str:
    ratio = ledger.watch.ratio
    counts = zip(ledger.arms.labels, ratio.observed, ratio.expected, strict=False)
    seen = ", ".join(f"{label!r} was drawn {n:,} times instead of {e:,.0f}" for label, n, e in counts)
    return (
        f"{seen} (p = {ratio.p_value:.1g}): find out who changes the assignment or loses"
        " proposals before you believe anything here"
    )


def _missing_words(ledger: Ledger) -> str:
    missing = ledger.watch.missing
    shares = zip(ledger.arms.labels, missing.shares, strict=False)
    seen = ", ".join(f"{label!r} lacks {100.0 * share:.1f} % of its rewards" for label, share in shares)
    return f"{seen} (p = {missing.p_value:.1g}): what is left out would bias the gaps; count silence as zero"


def _drift_alarm_words(ledger: Ledger, drift: Drift) -> str:
    return (
        f"{drift_words(ledger.arms.labels, drift)}: the best arm may change with time, so take claims as"
        " about an average over the experiment, and look into what changed"
    )


def drift_words(labels: Sequence[str], drift: Drift) -> str:
    """Say which gap was not the same before and after, and when that was seen.

    Examples
    --------
    >>> drift_words(["old", "new"], Drift(1, 0, 2_000, 5_000, (0.2, 0.4), (-0.3, -0.1)))
    "the gap of 'new' over 'old' was +0.20 to +0.40 in the first 2,000 rounds, and -0.30 to -0.10 after them"
    """
    before, after = (span_words(ends) for ends in (drift.before, drift.after))
    return (
        f"the gap of {labels[drift.arm]!r} over {labels[drift.reference]!r} was {before} in the first"
        f" {drift.split:,} rounds, and {after} after them"
    )
