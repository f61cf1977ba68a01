"""Reports of personalised experiments: what rules earn, effects by context, and who gets which arm."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.estimate.follow.guardrails import Judged, rail_words
from orthobandit.experiment.ledger.ledger import OPEN, PAUSED, Ledger
from orthobandit.experiment.ledger.personal_feed import PersonalFeed
from orthobandit.experiment.report.advice import FEW_SETTLED, too_early_words
from orthobandit.policy.contextual.personalised import Effect, PersonalState, for_all
from orthobandit.policy.contextual.rules import RuleComparison, RuleGain
from orthobandit.showing.numbers import estimate_words, finite, number, risk_percent, share_words, span_words
from orthobandit.showing.rules import RuleLine, Table, effect_label, rule_table


@dataclass(frozen=True)
class RuleReport:
    """What a rule would have earned over showing the reference arm to all, per visitor so far.

    `low` and `high` are None while nothing is known; `different` counts visitors who would have got something
    else; `is_possible` tells whether the rule may be the best of those that no guardrail rules out.
    `harms` are metrics whose guardrails rule it out, since it is proven worse there by more than the margin;
    `uncleared` those by which it may still be worse than is allowed of a rule that is declared.
    """

    name: str
    gain: float | None
    low: float | None
    high: float | None
    different: int
    is_possible: bool
    harms: tuple[str, ...] = ()
    uncleared: tuple[str, ...] = ()


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

    `shares` are the probabilities of the arms now; `best` is the arm that is estimated to serve them best.
    """

    column: str
    value: float
    best: str
    shares: tuple[float, ...]


@dataclass(frozen=True)
class PersonalReport:
    """The part of a report that personalised experiments have.

    Attributes
    ----------
    rules : tuple of RuleReport
        The reference arm for all comes first, with a gain of 0.
    best : str or None
        The rule that is proven to earn most of those that no guardrail rules out, and that all have cleared.
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


def personal_report(ledger: Ledger, feed: PersonalFeed) -> PersonalReport:
    """Return what is known of rules and effects, and of the rules' effects on further metrics."""
    policy = feed.policy
    state = feed.state
    names = ledger.settings.names[1:]
    rules = _guarded(_rules(state.comparison), state.comparison, ledger.judged_rules())
    possible = [rule for rule in rules if rule.is_possible]
    proven = possible[0] if len(possible) == 1 else None
    return PersonalReport(
        rules=rules,
        best=proven.name if proven is not None and not proven.uncleared else None,
        held=proven.name if proven is not None and proven.uncleared else None,
        guardrails=_guardrail_words(ledger, rules),
        effects=tuple(_effect(one) for one in policy.effects(state)),
        audiences=_audiences(feed, state),
        metrics=tuple(
            (name, _rules(comparison)) for name, comparison in zip(names, ledger.comparisons, strict=True)
        ),
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


def _guarded(
    rules: tuple[RuleReport, ...], comparison: RuleComparison, judged: Sequence[Judged]
) -> tuple[RuleReport, ...]:
    """Return the rules with what guardrails have against each; those ruled out cannot be the best."""
    if not judged:
        return rules
    marked = [rules[0]]
    for place, rule in enumerate(rules[1:], start=1):
        harms = tuple(dict.fromkeys(one.rail.metric for one in judged if one.harmed[place]))
        uncleared = tuple(dict.fromkeys(one.rail.metric for one in judged if not one.cleared[place]))
        marked.append(replace(rule, harms=harms, uncleared=uncleared))
    possible = comparison.possible_best([rule.name for rule in marked if not rule.harms])
    return tuple(replace(rule, is_possible=rule.name in possible) for rule in marked)


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


def personal_advice(ledger: Ledger, personal: PersonalReport) -> str:
    """Say what to do now, in one sentence."""
    settled = ledger.waiting.first - 1
    if ledger.status == PAUSED:
        return "Paused: nobody is assigned an arm, and rewards are still taken; resume() goes on."
    if settled < FEW_SETTLED * len(personal.rules):
        return too_early_words(ledger, ", so which rule looks best is luck")
    allowed = [rule for rule in personal.rules if not rule.harms]
    looks = max(allowed, key=lambda rule: rule.gain or 0.0)
    harmful = [rule for rule in personal.rules if rule.harms]
    if personal.best is not None:
        wrong = risk_percent(ledger.settings.policy.delta)  # type: ignore[attr-defined]
        those = "no guardrail rules out" if harmful else "are judged"
        return (
            f"Follow the rule {personal.best!r}: it earns most of the {len(allowed)} rules that {those}"
            f" (wrong in at most {wrong} of experiments)."
        )
    if personal.held is not None and ledger.status == OPEN:
        held = next(rule for rule in personal.rules if rule.name == personal.held)
        names = " and ".join(map(repr, held.uncleared))
        return (
            f"Go on: the rule {held.name!r} earns most, but the guardrail on {names} has not cleared it; it"
            " is declared once it is."
        )
    words = f"{looks.name!r} looks best so far"
    if looks.gain:
        earned = estimate_words(looks.gain, (looks.low, looks.high))
        words += (
            f", {earned} a visitor over {personal.rules[0].name!r} ({span_words((looks.low, looks.high))})"
        )
    left = sum(rule.is_possible for rule in personal.rules)
    may = f"{left} of {len(personal.rules)} rules may be best"
    if harmful:
        may += f", and guardrails rule out {', '.join(repr(rule.name) for rule in harmful)}"
    if ledger.status != OPEN:
        return f"The experiment was stopped; {words}, and {may}."
    return f"Go on: {words}; {may}."


def _guard_note(rule: RuleReport) -> str:
    if rule.harms:
        return f"harms {', '.join(rule.harms)}"
    return f"{', '.join(rule.uncleared)} not cleared" if rule.uncleared and rule.is_possible else ""


def _rule_table(title: str, rules: Sequence[RuleReport]) -> Table:
    lines = [
        RuleLine(
            rule.name, rule.gain, (rule.low, rule.high), rule.different, rule.is_possible, _guard_note(rule)
        )
        for rule in rules
    ]
    return rule_table(title, lines, "visitors it changes")


def tables_of(personal: PersonalReport, labels: tuple[str, ...]) -> list[Table]:
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
        (f"{one.column} = {number(one.value)}", one.best, *(share_words(share) for share in one.shares))
        for one in personal.audiences
    ]
    gains = f"What each rule earns over {reference!r}, per visitor so far"
    linear = "How arms differ from the reference arm, if effects are linear"
    if personal.effects and not personal.effects[0].arm:
        linear = "What a unit of each feature is worth, if effects are linear"
    shares = "Who gets what now, other columns at their mean"
    out = [_rule_table(gains, personal.rules)]
    for name, rules in personal.metrics:
        title = f"What each rule does to {name!r} over {reference!r}, per visitor so far"
        # Which side of a further metric is better nobody has said: no rule is called the best by it.
        out.append(_rule_table(title, [replace(rule, is_possible=False) for rule in rules]))
    out.append((linear, ("arm", "difference", "interval"), effects))
    if audiences:
        out.append((shares, ("visitors with", "looks best", *labels), audiences))
    return out
