"""Certificates of decisions: the few kilobytes from which anybody can recompute a claim."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from orthobandit.errors import CertificateError, ParameterError
from orthobandit.estimate.certificate import Certificate, finite
from orthobandit.experiment.ledger.entries import Entry
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.ledger.personal_feed import PersonalFeed
from orthobandit.experiment.ledger.policy_feed import PolicyFeed
from orthobandit.experiment.ledger.record import Record
from orthobandit.experiment.report.alarms import VIOLATIONS
from orthobandit.experiment.report.conclusion import Conclusion
from orthobandit.experiment.report.report import report_of
from orthobandit.experiment.settings import Settings
from orthobandit.policy.anytime import AnytimeElimination, AnytimeState
from orthobandit.policy.contextual.personalised import Personalised
from orthobandit.policy.contextual.rule_text import arms_named
from orthobandit.verify import verdict_of


def certify(
    policy: AnytimeElimination, state: AnytimeState, record: Record, *, is_held: bool = False
) -> Certificate:
    """Return the certificate of what the policy claims now.

    Parameters
    ----------
    policy : AnytimeElimination
    state : AnytimeState
        Of one replication.
    record : Record
        All plans and rounds that led to it.
    is_held : bool
        Whether guardrails hold back the arm that the policy has declared.

    Raises
    ------
    ParameterError
        If the claim does not follow from the record.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> from orthobandit.estimate.certificate import Chain
    >>> from orthobandit.experiment.ledger.record import commitment_of
    >>> policy, arms = AnytimeElimination(rewards=(0, 1)), ArmSet.one_hot(3)
    >>> state, record = policy.start(arms), Record(Chain(commitment_of(policy, arms)))
    >>> record.plan(policy, state)
    1
    >>> certificate = certify(policy, state, record)
    >>> certificate.document["claim"]["survivors"], certificate.verdict.valid
    (['0', '1', '2'], True)
    """
    if state.stage.shape:
        raise ParameterError(f"state has replications {state.stage.shape}; give one of them")
    try:
        return Certificate.make(record.chain, _claim(policy, state, is_held=is_held))
    except CertificateError as error:
        raise ParameterError(
            f"{error}; record all that the policy was fed, in order, with one release"
        ) from None


def _claim(policy: AnytimeElimination, state: AnytimeState, *, is_held: bool) -> dict[str, Any]:
    """Return the claim as the policy makes it, arms by their labels; infinite numbers as null."""
    labels = state.arms.labels
    leader = int(state.leader)
    winner = labels[int(state.declared)] if int(state.declared) >= 0 else None
    bounds = policy.upper_bounds(state, over=leader)
    features = state.arms.features
    others = state.active & np.any(features != features[leader], axis=1)
    # Rounds that came late may have moved the bounds since ε was last looked at.
    epsilon = max(float(bounds[others].max(initial=0.0)), 0.0)

    def named(arms: Any) -> list[str]:
        return [labels[i] for i in np.flatnonzero(arms)]

    return {
        "survivors": named(state.active),
        "dropped": named(~state.active & ~state.retired),
        "retired": named(state.retired),
        "leader": labels[leader],
        "declared": None if is_held else winner,
        "held": winner if is_held else None,
        "epsilon": finite(epsilon),
        "bounds": {label: finite(bound) for label, bound in zip(labels, bounds.tolist(), strict=True)},
    }


def certify_decision(ledger: Ledger) -> Certificate:
    """Return the certificate of what the policy has claimed.

    A winner that guardrails have not cleared is claimed as held, not as declared.
    """
    feed = ledger.feed
    record = _record_of(feed)
    if feed.is_held and not feed.is_compared:
        # The record tells that a winner is held back by what is drawn beside it, and nothing is here.
        raise ParameterError(
            "guardrails hold the winner back, and the reference arm that they compare it with was retired, so"
            " it can neither be cleared nor certified; `report()` says what is known"
        )
    _refuse_alarms(report_of(ledger).conclusion)
    return certify(feed.policy, feed.state, record, is_held=feed.is_held)  # type: ignore[arg-type]


def _refuse_alarms(conclusion: Conclusion) -> None:
    """Refuse to certify anything while there is an alarm: a verifier would not see it."""
    if conclusion.alarms:
        violations = " and ".join(VIOLATIONS[alarm.name] for alarm in conclusion.alarms)
        raise ParameterError(
            f"there is no certificate while {violations}: what claims rest on does not hold; `report()` says"
            " what was seen"
        )


def certify_rules(settings: Settings, entries: Iterable[tuple[int, Entry]]) -> Certificate:
    """Return the certificate of what the rules of a personalised experiment have earned, from its log.

    The log is read from its beginning. It holds everything that the certificate needs, so entries (one or two
    per visitor) need not stay in memory while the experiment runs.
    """
    ledger = Ledger(settings)
    feed = ledger.feed
    if not isinstance(feed, PersonalFeed):
        raise ParameterError("gains of rules are certified of personalised experiments")
    feed.keeps_entries = True
    for _, entry in entries:
        ledger.apply(entry)
    chain = _record_of(feed).chain
    claim = _rules_claim(feed, chain.entries())
    _check_best(ledger, claim["best"])
    try:
        return Certificate.make(chain, claim)
    except CertificateError as error:
        raise ParameterError(f"{error}; the log was written by another release") from None


def _check_best(ledger: Ledger, best: str | None) -> None:
    """Refuse to certify anything under an alarm, and a best rule that the report does not declare."""
    report = report_of(ledger)
    _refuse_alarms(report.conclusion)
    if report.personal is None or best in (None, report.conclusion.declared):
        return
    rule = next(rule for rule in report.personal.rules if rule.name == best)
    against = (*rule.harms, *rule.uncleared)
    raise ParameterError(
        f"{best!r} earns most, but the guardrail on {against[0]!r} rules it out or has not cleared"
        " it: a certificate is of the objective alone, and would call it the best; `report()` says what"
        " is known"
    )


def _rules_claim(feed: PersonalFeed, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the claim about the gains of rules; infinite ends as null."""
    comparison = feed.state.comparison
    labels = feed.arms.labels
    retired = [labels[arm] for arm in np.flatnonzero(feed.retired)]
    kept = [name for name, rule in comparison.rules.items() if not {*arms_named(rule)} & {*retired}]
    possible = list(comparison.possible_best(kept))
    is_alone = len(labels) - len(retired) < 2  # then there is nothing to compare
    return {
        "over": comparison.reference,
        "visitors": comparison.rounds,
        "missing": 0 if feed.record is None else feed.record.missing,
        "possible": possible,
        "best": possible[0] if len(possible) == 1 and not is_alone else None,
        "retired": retired,
        **_offers_claim(labels, entries),
        "gains": [
            {
                "rule": gain.rule,
                "estimate": gain.estimate,
                "low": finite(gain.low),
                "high": finite(gain.high),
                "different": gain.different,
                "verdict": verdict_of(gain.low, gain.high),
            }
            for gain in comparison.gains()
        ],
    }


def _offers_claim(labels: Sequence[str], entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how many visitors were held out, had one arm, or were offered each arm."""
    visitors = [entry for entry in entries if entry["entry"] == "visitor"]
    judging = [entry["probabilities"] for entry in visitors if not entry["held"]]
    on_offer = np.reshape(np.array(judging, dtype=np.float64) > 0, (len(judging), len(labels)))
    return {
        "held": len(visitors) - len(judging),
        "alone": int(np.count_nonzero(on_offer.sum(axis=1) == 1)),
        "offered": dict(zip(labels, on_offer.sum(axis=0).tolist(), strict=True)),
    }


def head_of(feed: PolicyFeed) -> str:
    """Return the head of the record: the number of its entries and their hash."""
    return _record_of(feed).head


def _record_of(feed: PolicyFeed) -> Record:
    """Return the record that a certificate is made from; raise an error that says why there is none."""
    if not isinstance(feed.policy, AnytimeElimination | Personalised):
        raise ParameterError(f"{type(feed.policy).__name__} gives no certificates; AnytimeElimination does")
    if feed.record is None:
        raise ParameterError(
            f"{feed.differences}: a certificate would have to re-derive its plans, so claims of this"
            " experiment cannot be certified; draws can be audited (`audit()`), what `report()` says holds,"
            " and experiments that this release begins can be certified"
        )
    return feed.record
