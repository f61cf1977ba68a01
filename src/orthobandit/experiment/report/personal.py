"""Reports of personalised experiments: what rules earn, effects by context, and who gets which arm."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.experiment.ledger.ledger import OPEN, PAUSED, Ledger
from orthobandit.experiment.ledger.personal_feed import PersonalBook
from orthobandit.policy.contextual.personalised import Effect, PersonalState, for_all
from orthobandit.policy.contextual.rules import RuleComparison, RuleGain
from orthobandit.showing.numbers import certainty_percent, estimate_words, number, share_words, span_words
from orthobandit.showing.rules import RuleLine, Table, effect_label, rule_table

FEW_SETTLED = 10  # visitors a rule, before which nobody should look at which one leads


@dataclass(frozen=True)
class RuleReport:
    """What a rule would have earned over showing the reference arm to all, per visitor so far.

    `low` and `high` are None while nothing is known; `different` counts visitors who would have got something
    else; `is_possible` tells whether the rule may be the best of all that are judged.
    """

    name: str
    gain: float | None
    low: float | None
    high: float | None
    different: int
    is_possible: bool


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
        The rule that is proven to earn most of those that are judged.
    effects : tuple of EffectReport
    audiences : tuple of AudienceReport
    metrics : tuple of (str, tuple of RuleReport)
        What the rules do to each metric after the objective.
    """

    rules: tuple[RuleReport, ...]
    best: str | None
    effects: tuple[EffectReport, ...]
    audiences: tuple[AudienceReport, ...]
    metrics: tuple[tuple[str, tuple[RuleReport, ...]], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        plain = asdict(self)
        plain["audiences"] = [{**one, "shares": list(one["shares"])} for one in plain["audiences"]]
        plain["metrics"] = {name: list(rules) for name, rules in plain["metrics"]}
        return {**plain, **{name: list(plain[name]) for name in ("rules", "effects", "audiences")}}


def personal_report(ledger: Ledger, book: PersonalBook) -> PersonalReport:
    """Return what is known of rules and effects, and of the rules' effects on further metrics."""
    policy = book.policy
    state = book.state
    possible = state.comparison.possible_best()
    names = ledger.settings.names[1:]
    return PersonalReport(
        rules=_rules(state.comparison),
        best=possible[0] if len(possible) == 1 else None,
        effects=tuple(_effect(one) for one in policy.effects(state)),
        audiences=_audiences(book, state),
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


def _rule(gain: RuleGain, *, is_possible: bool) -> RuleReport:
    known = gain.rounds > 0
    return RuleReport(
        gain.rule,
        gain.estimate if known else None,
        _number(gain.low),
        _number(gain.high),
        gain.different,
        is_possible,
    )


def _effect(effect: Effect) -> EffectReport:
    return EffectReport(effect.arm, effect.column, effect.estimate, _number(effect.low), _number(effect.high))


def _number(value: float | None) -> float | None:
    return value if value is not None and np.isfinite(value) else None


def _audiences(book: PersonalBook, state: PersonalState) -> tuple[AudienceReport, ...]:
    """Return who gets which arm at both ends of every column; nothing before the first visitor."""
    columns = state.columns
    if not columns.visitors or book.policy.features:
        return ()
    out = []
    for place, name in enumerate(book.policy.context):
        for value in sorted({float(columns.least[place]), float(columns.most[place])}):
            row = columns.mean.copy()
            row[place] = value
            context = dict(zip(book.policy.context, row.tolist(), strict=True))
            left = [label for label, out_ in zip(book.arms.labels, book.retired, strict=True) if not out_]
            offer = book.policy.offer(book.arms, context, left)
            shares = np.zeros(len(book.arms))
            places = [book.arms.index(label) for label in offer.labels]
            shares[places] = book.policy.plan_for(state, offer).probabilities
            best = offer.labels[int(np.argmax(book.policy.estimate(state, offer)))]
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
        return "Call resume() to go on; rewards are still taken."
    if settled < FEW_SETTLED * len(personal.rules):
        asked = ledger.waiting.next - 1
        return f"Too early: {settled:,} of {asked:,} visitors settled, so which rule looks best is luck."
    looks = max(personal.rules, key=lambda rule: rule.gain or 0.0)
    if personal.best is not None:
        wrong = certainty_percent(ledger.settings.policy.delta)  # type: ignore[attr-defined]
        return (
            f"Follow the rule {personal.best!r}: it earns most of the {len(personal.rules)} rules that are"
            f" judged (wrong in at most {wrong} of experiments)."
        )
    words = f"{looks.name!r} looks best so far"
    if looks.gain:
        earned = estimate_words(looks.gain, (looks.low, looks.high))
        words += (
            f", {earned} a visitor over {personal.rules[0].name!r} ({span_words((looks.low, looks.high))})"
        )
    left = sum(rule.is_possible for rule in personal.rules)
    if ledger.status != OPEN:
        return f"The experiment was stopped; {words}, and {left} of {len(personal.rules)} rules may be best."
    return f"Go on: {words}; {left} of {len(personal.rules)} rules may be best."


def _rule_table(title: str, rules: Sequence[RuleReport]) -> Table:
    lines = [
        RuleLine(rule.name, rule.gain, (rule.low, rule.high), rule.different, rule.is_possible)
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
        out.append(_rule_table(title, rules))
    out.append((linear, ("arm", "difference", "interval"), effects))
    if audiences:
        out.append((shares, ("visitors with", "looks best", *labels), audiences))
    return out
