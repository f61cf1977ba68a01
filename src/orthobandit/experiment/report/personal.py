"""Reports of personalised experiments: what rules earn, effects by context, and who gets which arm."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.estimate.follow.guardrails import Judged, rail_words
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.ledger.personal_feed import PersonalFeed
from orthobandit.experiment.report.advice import (
    FEW_SETTLED,
    explain_alone,
    is_only_arm_left,
    too_early_words,
)
from orthobandit.experiment.report.alarms import Alarm
from orthobandit.experiment.report.conclusion import Conclusion, Facts, Standing, conclude
from orthobandit.policy.contextual.personalised import Effect, PersonalState, for_all
from orthobandit.policy.contextual.rule_text import arms_named
from orthobandit.policy.contextual.rules import RuleComparison, RuleGain
from orthobandit.showing.numbers import estimate_words, finite, number, risk_percent, share_words, span_words
from orthobandit.showing.rules import RuleLine, Table, effect_label, rule_table


@dataclass(frozen=True)
class RuleReport:
    """What a rule would have earned over showing the reference arm to all, per visitor so far.

    `low` and `high` are None while nothing is known; `different` counts visitors who would have got something
    else. `harms` are metrics whose guardrails rule it out, since it is proven worse there by more than the
    margin; `uncleared` those by which it may still be worse than is allowed of a rule that is declared;
    `retired` the retired arms that it names. `is_possible` tells whether it may be the best of the rules that
    no guardrail rules out and that name no retired arm.
    """

    name: str
    gain: float | None
    low: float | None
    high: float | None
    different: int
    is_possible: bool
    harms: tuple[str, ...] = ()
    uncleared: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()

    @property
    def can_be_followed(self) -> bool:
        """Whether no guardrail rules it out, and all arms that it names are still shown."""
        return not self.harms and not self.retired


@dataclass(frozen=True)
class EffectReport:
    """How an arm differs from the reference arm: where all columns are 0, or per unit of a column."""

    arm: str
    column: str | None
    estimate: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class AudienceReport:
    """Who gets which arm: visitors with one column at its smallest or largest value, others at their mean.

    `shares` are the probabilities of the arms now; `best` is the arm that is estimated to serve them best,
    None while there is an alarm.
    """

    column: str
    value: float
    best: str | None
    shares: tuple[float, ...]


@dataclass(frozen=True)
class PersonalReport:
    """The part of a report that personalised experiments have.

    Attributes
    ----------
    rules : tuple of RuleReport
        The reference arm for all comes first, with a gain of 0.
    best : str or None
        The rule that is proven to earn most of those that can be followed, and that all guardrails have
        cleared. None while there is an alarm, and where all arms but one were retired.
    effects : tuple of EffectReport
    audiences : tuple of AudienceReport
    metrics : tuple of (str, tuple of RuleReport)
        What the rules do to each metric after the objective.
    held : str or None
        The rule that is proven to earn most, while a guardrail has not cleared it.
    guardrails : tuple of str
        What each guardrail does and knows.
    """

    rules: tuple[RuleReport, ...]
    best: str | None
    effects: tuple[EffectReport, ...]
    audiences: tuple[AudienceReport, ...]
    metrics: tuple[tuple[str, tuple[RuleReport, ...]], ...] = ()
    held: str | None = None
    guardrails: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        plain = asdict(self)
        plain["audiences"] = [{**one, "shares": list(one["shares"])} for one in plain["audiences"]]
        plain["metrics"] = {name: list(rules) for name, rules in plain["metrics"]}
        listed = ("rules", "effects", "audiences", "guardrails")
        return {**plain, **{name: list(plain[name]) for name in listed}}


def personal_report(
    ledger: Ledger, feed: PersonalFeed, rules: tuple[RuleReport, ...], conclusion: Conclusion
) -> PersonalReport:
    """Return what is known of rules and effects, and of the rules' effects on further metrics.

    Parameters
    ----------
    ledger : Ledger
    feed : PersonalFeed
    rules : tuple of RuleReport
        As :func:`rules_of` returned them.
    conclusion : Conclusion
        What :func:`conclude_rules` concluded from them.
    """
    policy = feed.policy
    state = feed.state
    names = ledger.settings.names[1:]
    audiences = _audiences(feed, state)
    if conclusion.alarms:
        audiences = tuple(replace(audience, best=None) for audience in audiences)
    return PersonalReport(
        rules=rules,
        best=conclusion.declared,
        held=conclusion.held,
        guardrails=_guardrail_words(ledger, rules),
        effects=tuple(_effect(one) for one in policy.effects(state)),
        audiences=audiences,
        metrics=tuple(
            (name, _rules(comparison)) for name, comparison in zip(names, ledger.comparisons, strict=True)
        ),
    )


def rules_of(ledger: Ledger, feed: PersonalFeed) -> tuple[RuleReport, ...]:
    """Return what is known of each rule in the objective, and what speaks against following it."""
    comparison = feed.state.comparison
    judged = ledger.judged_rules()
    retired = {label for label, is_out in zip(feed.arms.labels, feed.retired, strict=True) if is_out}
    rules = []
    for place, rule in enumerate(_rules(comparison)):
        # The reference is what guardrails compare others with.
        against = judged if place else []
        rules.append(
            replace(
                rule,
                harms=tuple(dict.fromkeys(one.rail.metric for one in against if one.harmed[place])),
                uncleared=tuple(dict.fromkeys(one.rail.metric for one in against if not one.cleared[place])),
                retired=tuple(label for label in arms_named(comparison.rules[rule.name]) if label in retired),
            )
        )
    possible = comparison.possible_best([rule.name for rule in rules if rule.can_be_followed])
    return tuple(replace(rule, is_possible=rule.name in possible) for rule in rules)


def conclude_rules(ledger: Ledger, rules: Sequence[RuleReport], alarms: tuple[Alarm, ...]) -> Conclusion:
    """Return what follows of the rules of a personalised experiment."""
    possible = [rule for rule in rules if rule.is_possible]
    proven = possible[0] if len(possible) == 1 and not is_only_arm_left(ledger) else None
    allowed = [rule for rule in rules if rule.can_be_followed]
    is_early = ledger.waiting.first - 1 < FEW_SETTLED * len(rules)
    leader = None if is_early or not allowed else max(allowed, key=lambda rule: rule.gain or 0.0)
    return conclude(
        Facts(
            alarms=alarms,
            has_rivals=not is_only_arm_left(ledger),
            winner=None if proven is None else proven.name,
            is_cleared=proven is None or not proven.uncleared,
            leader=None if leader is None else leader.name,
            status=ledger.status,
        )
    )


def _rules(comparison: RuleComparison) -> tuple[RuleReport, ...]:
    """Return what is known of each rule in one metric, the reference first."""
    possible = comparison.possible_best()
    name = comparison.reference
    reference = RuleReport(name, 0.0, 0.0, 0.0, 0, name in possible)
    return (reference, *(_rule(gain, is_possible=gain.rule in possible) for gain in comparison.gains()))


def rule_names(ledger: Ledger) -> tuple[str, ...]:
    """Return the names of the rules, the reference arm for all first."""
    feed = ledger.feed
    if not isinstance(feed, PersonalFeed):
        return ()
    comparison = feed.state.comparison
    return (comparison.reference, *comparison.compared)


def _guardrail_words(ledger: Ledger, rules: Sequence[RuleReport]) -> tuple[str, ...]:
    """Say what each guardrail does and knows, and at which level all of them act."""
    judged = ledger.judged_rules()
    if not judged:
        return ()
    # Two guardrails on one metric share its intervals, and so its δ.
    guarded = {ledger.metric(one.rail.metric) for one in judged}
    wrong = sum(ledger.gap_intervals[place].delta for place in guarded)
    level = (
        "Guardrails, all together, rule out a rule that is within the margin, or clear one that is beyond its"
        f" limit, in at most {risk_percent(min(wrong, 1.0))} of experiments."
    )
    return (*(_rail_words(one, rules) for one in judged), level)


def _rail_words(one: Judged, rules: Sequence[RuleReport]) -> str:
    """Say what a guardrail does and what it knows of the rules."""
    metric = one.rail.metric
    harmful = [repr(rule.name) for rule in rules if metric in rule.harms]
    waiting = [repr(rule.name) for rule in rules if metric in rule.uncleared and metric not in rule.harms]
    state = [f"ruled out: {', '.join(harmful)}"] if harmful else []
    if waiting:
        state.append(f"not cleared yet: {', '.join(waiting)}")
    known = "; ".join(state) or "every rule is cleared"
    return f"Guardrail on {metric!r}: {rail_words(one.rail, is_personal=True)}; {known}."


def _rule(gain: RuleGain, *, is_possible: bool) -> RuleReport:
    known = gain.rounds > 0
    return RuleReport(
        gain.rule,
        gain.estimate if known else None,
        finite(gain.low),
        finite(gain.high),
        gain.different,
        is_possible,
    )


def _effect(effect: Effect) -> EffectReport:
    return EffectReport(effect.arm, effect.column, effect.estimate, finite(effect.low), finite(effect.high))


def _audiences(feed: PersonalFeed, state: PersonalState) -> tuple[AudienceReport, ...]:
    """Return who gets which arm at both ends of every column; nothing before the first visitor."""
    columns = state.columns
    if not columns.visitors or feed.policy.features:
        return ()
    out = []
    for place, name in enumerate(feed.policy.context):
        for value in sorted({float(columns.least[place]), float(columns.most[place])}):
            row = columns.mean.copy()
            row[place] = value
            context = dict(zip(feed.policy.context, row.tolist(), strict=True))
            left = [label for label, out_ in zip(feed.arms.labels, feed.retired, strict=True) if not out_]
            offer = feed.policy.offer(feed.arms, context, left)
            shares = np.zeros(len(feed.arms))
            places = [feed.arms.index(label) for label in offer.labels]
            shares[places] = feed.policy.plan_for(state, offer).probabilities
            best = offer.labels[int(np.argmax(feed.policy.estimate(state, offer)))]
            out.append(AudienceReport(name, value, best, tuple(shares.tolist())))
    return tuple(out)


def arm_gaps(labels: Sequence[str], comparison: RuleComparison) -> tuple[Array, Array, Array]:
    """Return estimates, lower and upper ends (K,) of each arm's gain over the first, if shown to all."""
    gains = {gain.rule: gain for gain in comparison.gains()}
    shown = [gains.get(for_all(label)) for label in labels]
    ends = [(0.0, 0.0, 0.0) if gain is None else (gain.estimate, gain.low, gain.high) for gain in shown]
    estimate, low, high = np.array(ends).T
    return estimate, low, high


def personal_advice(ledger: Ledger, personal: PersonalReport, conclusion: Conclusion) -> str:
    """Say what to do now, in one sentence, unless there is an alarm."""
    standing = conclusion.standing
    if standing is Standing.ALONE:
        return explain_alone(ledger, conclusion)
    if standing is Standing.PAUSED:
        return "Paused: nobody is assigned an arm, and rewards are still taken; resume() goes on."
    allowed = [rule for rule in personal.rules if rule.can_be_followed]
    if standing is Standing.WON:
        wrong = risk_percent(ledger.settings.policy.delta)  # type: ignore[attr-defined]
        why = f"it earns most of the {len(allowed)} rules that {_allowed_words(personal.rules)}"
        if len(allowed) == 1:
            why = "guardrails rule out all others"
        return f"Follow the rule {conclusion.declared!r}: {why} (wrong in at most {wrong} of experiments)."
    if standing is Standing.HELD:
        held = next(rule for rule in personal.rules if rule.name == conclusion.held)
        names = " and ".join(map(repr, held.uncleared))
        return (
            f"Go on: the rule {held.name!r} earns most, but the guardrail on {names} has not cleared it; it"
            " is declared once it is."
        )
    if not allowed:
        return "Go on: no rule can be followed, since guardrails rule out all that name no retired arm."
    looks = next((rule for rule in allowed if rule.name == conclusion.leader), None)
    if looks is None and standing is Standing.STOPPED:
        return "The experiment was stopped, too early to say which rule looks best."
    if looks is None:
        return too_early_words(ledger, ", so which rule looks best is luck")
    words = f"{looks.name!r} looks best so far"
    if looks.gain:
        earned = estimate_words(looks.gain, (looks.low, looks.high))
        words += (
            f", {earned} a visitor over {personal.rules[0].name!r} ({span_words((looks.low, looks.high))})"
        )
    possible = sum(rule.is_possible for rule in personal.rules)
    in_play = [rule for rule in personal.rules if not rule.retired]
    may = f"{possible} of {len(in_play)} rules may be best"
    harmful = [repr(rule.name) for rule in in_play if rule.harms]
    if harmful:
        may += f", and guardrails rule out {', '.join(harmful)}"
    if standing is Standing.STOPPED:
        return f"The experiment was stopped; {words}, and {may}."
    return f"Go on: {words}; {may}."


def _allowed_words(rules: Sequence[RuleReport]) -> str:
    """Say which rules can be followed."""
    limits = ["name no retired arm"] * any(rule.retired for rule in rules)
    limits += ["no guardrail rules out"] * any(rule.harms for rule in rules)
    return " and that ".join(limits) or "are judged"


def _note(rule: RuleReport) -> str:
    """Say what speaks against following a rule."""
    if rule.retired:
        return "names a retired arm"
    if rule.harms:
        return f"harms {', '.join(rule.harms)}"
    return f"{', '.join(rule.uncleared)} not cleared" if rule.uncleared and rule.is_possible else ""


def _rule_table(title: str, rules: Sequence[RuleReport], *, is_judged: bool) -> Table:
    """Return the table of rules; `is_judged` tells whether it says which of them may be best."""
    lines = [
        RuleLine(
            rule.name,
            rule.gain,
            (rule.low, rule.high),
            rule.different,
            rule.is_possible and is_judged,
            _note(rule),
        )
        for rule in rules
    ]
    return rule_table(title, lines, "visitors it changes")


def tables_of(personal: PersonalReport, labels: tuple[str, ...], conclusion: Conclusion) -> list[Table]:
    """Return the tables of a personalised experiment: each a title, the column names and rows of words."""
    reference = personal.rules[0].name
    effects: list[tuple[str, ...]] = [
        (
            effect_label(one.arm, one.column),
            estimate_words(one.estimate, (one.low, one.high)),
            "" if one.low is None and one.high is None else span_words((one.low, one.high)),
        )
        for one in personal.effects
    ]
    audiences: list[tuple[str, ...]] = [
        (f"{one.column} = {number(one.value)}", one.best or "", *(share_words(share) for share in one.shares))
        for one in personal.audiences
    ]
    gains = f"What each rule earns over {reference!r}, per visitor so far"
    linear = "How arms differ from the reference arm, if effects are linear"
    if personal.effects and not personal.effects[0].arm:
        linear = "What a unit of each feature is worth, if effects are linear"
    shares = "Who gets what now, other columns at their mean"
    out = [_rule_table(gains, personal.rules, is_judged=conclusion.may_lead)]
    for name, rules in personal.metrics:
        title = f"What each rule does to {name!r} over {reference!r}, per visitor so far"
        # Which side of a further metric is better nobody has said: no rule is called the best by it.
        out.append(_rule_table(title, rules, is_judged=False))
    out.append((linear, ("arm", "difference", "interval"), effects))
    if audiences:
        out.append((shares, ("visitors with", "looks best", *labels), audiences))
    return out
