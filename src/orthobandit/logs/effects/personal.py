"""Results of a log by visitor: what rules would have earned, and how effects depend on the context."""

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.errors import Argument, InputError
from orthobandit.estimate import Asymptotic, Bounded, Confidence
from orthobandit.estimate.follow.rules import RuleCells, RuleMeasure, RuleScores, follow_rules, rows_changed
from orthobandit.estimate.health.sample_ratio import ALARM, totals_p_value
from orthobandit.logs.effects.effects import below_another, reference_effect, verdict_of
from orthobandit.logs.effects.metrics import mode_in_words
from orthobandit.logs.question import Question
from orthobandit.logs.reading.rule_groups import GatheredRules
from orthobandit.logs.results import (
    ArmSummary,
    Audience,
    ContextEffect,
    Diagnostic,
    Effect,
    Interval,
    MetricResult,
    Moment,
    Personal,
    RuleResult,
)
from orthobandit.showing.numbers import finite

# Of δ, for effects by context; the rest is for the gains of rules. All of them then hold together.
EFFECTS_SHARE = 0.5
MAX_HISTORY_POINTS = 200  # at which gains are kept for the picture over time
UNKNOWN: Interval = (None, None)


def follow_personal(gathered: GatheredRules, question: Question, *, once: bool) -> RuleScores | None:
    """Follow the rules of a log; None if no row counted."""
    declared = _confidence(gathered, question)
    measure = RuleMeasure(
        reference=0,
        control=gathered.reference,
        # Ordinary intervals for one look rest on the scatter that was seen, not on what was declared.
        confidence=Asymptotic() if once else declared,
        delta=(1.0 - EFFECTS_SHARE) * question.delta,
        effects_delta=EFFECTS_SHARE * question.delta,
        baseline=question.baseline,
        is_once=once,
    )
    return follow_rules(gathered.cells, measure)


def _confidence(gathered: GatheredRules, question: Question) -> Confidence:
    """Return the mode: exact if values are bounded by declaration or by type."""
    cells = gathered.cells
    bounds = question.ranges.get(question.reward)
    if bounds is None and gathered.is_boolean:
        bounds = (0.0, 1.0)
    if bounds is None or question.asymptotic:
        return Asymptotic()
    offset = float(cells.offset[0])
    least = float(cells.low[:, 1].min(initial=np.inf)) + offset
    most = float(cells.high[:, 1].max(initial=-np.inf)) + offset
    room = 1e-9 * (bounds[1] - bounds[0])
    if least < bounds[0] - room or most > bounds[1] + room:
        raise InputError(
            Argument("bounds", bounds),
            f" do not hold column {question.reward!r}: its values run from {least:g} to"
            f" {most:g}; declare a range that holds all of them, beforehand",
        )
    return Bounded(bounds[0] - offset, bounds[1] - offset)


def personal_of(gathered: GatheredRules, scores: RuleScores | None, *, once: bool) -> Personal:
    """Return rules, what they would have earned, and effects by context."""
    cells = gathered.cells
    rules = _rules(gathered, scores, once=once)
    possible = [rule.name for rule in rules if rule.is_possible]
    effects: tuple[ContextEffect, ...] = ()
    audiences: tuple[Audience, ...] = ()
    if scores is not None:
        effects, audiences = _by_context(gathered, scores)
    one_arm = cells.offered.sum(axis=1) == 1
    return Personal(
        rules=rules,
        best=possible[0] if len(possible) == 1 else None,
        effects=effects,
        audiences=audiences,
        one_arm_rows=round(float(cells.counts[one_arm].sum())),
        replaced_rows=gathered.replaced_rows,
    )


def _rules(gathered: GatheredRules, scores: RuleScores | None, *, once: bool) -> tuple[RuleResult, ...]:
    """Return the gain of every rule over the first, and whether it may be the best."""
    if scores is None:
        return tuple(
            RuleResult(name, text, 0.0, (0.0, 0.0), (0.0, 0.0), 0, True)
            if place == 0
            else RuleResult(name, text, None, UNKNOWN, UNKNOWN, 0, True)
            for place, (name, text) in enumerate(gathered.rules.items())
        )
    estimates = scores.estimates()
    fixed = scores.intervals_once()
    ends = fixed if once else scores.intervals()
    most = float(ends[0].max())
    changed = rows_changed(gathered.cells, 0)
    return tuple(
        RuleResult(
            name=name,
            text=text,
            estimate=float(estimates[place]),
            interval=_interval(ends, place),
            fixed=_interval(fixed, place),
            changed=int(changed[place]),
            is_possible=bool(ends[1][place] >= most),
        )
        for place, (name, text) in enumerate(gathered.rules.items())
    )


def _interval(ends: tuple[Array, Array], place: int) -> Interval:
    return finite(float(ends[0][place])), finite(float(ends[1][place]))


def _by_context(
    gathered: GatheredRules, scores: RuleScores
) -> tuple[tuple[ContextEffect, ...], tuple[Audience, ...]]:
    """Return the effects of all arms by context, and which arm visitors should get according to them."""
    cells = gathered.cells
    control = gathered.reference
    columns = cells.columns[1:]
    effects: list[ContextEffect] = []
    lines = np.zeros((len(cells.labels), len(columns) + 1))
    for arm, label in enumerate(cells.labels):
        if arm == control:
            continue
        found = scores.effects(arm)
        lines[arm] = found.line
        for place, column in enumerate((None, *columns)):
            ends = (finite(float(found.lows[place])), finite(float(found.highs[place])))
            middle = finite(float(found.estimates[place]))
            effects.append(ContextEffect(label, cells.labels[control], column, middle, ends))
    # Who should get what is not said before anything is known of how effects depend on the context.
    is_known = all(end is not None for one in effects for end in one.interval)
    if not (is_known and np.all(np.isfinite(lines))):
        return tuple(effects), ()
    return tuple(effects), _audiences(cells, lines)


def _audiences(cells: RuleCells, lines: Array) -> tuple[Audience, ...]:
    """Return which arm looks best at both ends of every column; lines (K, c + 1) are those of the arms."""
    total = cells.products.sum(axis=0)
    mean = total[0, 2:] / total[0, 0]
    out = []
    for place, column in enumerate(cells.columns[1:]):
        least = float(cells.low[:, place + 2].min())
        most = float(cells.high[:, place + 2].max())
        for value in sorted({least, most}):
            visitor = np.array([1.0, *mean])
            visitor[place + 1] = value
            worth = lines @ visitor
            shown = value + float(cells.offset[place + 1])
            best = cells.labels[int(np.argmax(worth))]
            out.append(Audience(column, shown, best, tuple(worth.tolist())))
    return tuple(out)


def reward_of(
    gathered: GatheredRules, question: Question, scores: RuleScores | None, personal: Personal, *, once: bool
) -> MetricResult:
    """Return the reward as a metric: the effect of an arm is what it earns when it is shown to all."""
    cells = gathered.cells
    labels = cells.labels
    reference = labels[gathered.reference]
    shown = {rule.text: rule for rule in personal.rules[: len(labels)]}
    effects = []
    for label in labels:
        rule = shown[label]
        if label == reference:
            effects.append(reference_effect(label))
            continue
        verdict = verdict_of(rule.interval)
        effects.append(
            Effect(label, reference, rule.estimate, rule.interval, rule.fixed, UNKNOWN, verdict, None)
        )
    confidence = _confidence(gathered, question) if scores is None else scores.measure.confidence
    return MetricResult(
        name=question.reward,
        kind="reward",
        mode=mode_in_words(confidence, float(cells.offset[0]), once=once),
        delta=question.delta,
        margin=None,
        effects=tuple(effects),
        against_best=(),
        droppable=below_another(effects),
        summaries=_summaries(gathered),
        saved={},
        baseline="mean" if scores is None else scores.baseline,
        level=UNKNOWN,
        history=() if scores is None or once else _history(gathered, scores),
    )


def _summaries(gathered: GatheredRules) -> tuple[ArmSummary, ...]:
    """Return the rows and the plain mean of each arm."""
    cells = gathered.cells
    count = len(cells.labels)
    rows = np.bincount(cells.arm, cells.counts, minlength=count)
    sums = np.bincount(cells.arm, cells.products[:, 0, 1], minlength=count) + rows * cells.offset[0]
    planned = cells.expected.sum(axis=0)
    return tuple(
        ArmSummary(
            arm=label,
            rows=round(float(rows[arm])),
            share=float(rows[arm] / max(rows.sum(), 1)),
            planned=float(planned[arm] / max(planned.sum(), 1)),
            mean=float(sums[arm] / rows[arm]) if rows[arm] else None,
            capped=0.0,
            missing=float(gathered.dropped[arm] / max(rows[arm] + gathered.dropped[arm], 1)),
        )
        for arm, label in enumerate(cells.labels)
    )


def _history(gathered: GatheredRules, scores: RuleScores) -> tuple[Moment, ...]:
    """Return the history: what was known of each arm at the ends of some buckets."""
    cells = scores.cells
    count = len(cells.labels)
    # Rules of single arms come first, the reference arm's before the others'.
    order = [gathered.reference, *(arm for arm in range(count) if arm != gathered.reference)]
    at = np.argsort(order)
    steps = np.unique(np.linspace(0, len(scores.buckets) - 1, MAX_HISTORY_POINTS).astype(int))
    _, step = np.unique(cells.bucket, return_inverse=True)
    drawn = np.zeros((len(scores.buckets), count))
    np.add.at(drawn, (step, cells.arm), cells.counts)
    sums = np.bincount(step, cells.products[:, 0, 1])
    out = []
    for place in steps.tolist():
        low, high = scores.intervals(place)
        estimates = scores.estimates(place)
        rows = drawn[place].sum()
        out.append(
            Moment(
                time=float(cells.times[scores.buckets[place]]),
                rows=round(float(scores.rows[place])),
                level=float(sums[place] / rows + cells.offset[0]),
                forecast=None,
                estimates=tuple(finite(float(one)) for one in estimates[at]),
                lows=tuple(finite(float(one)) for one in low[at]),
                highs=tuple(finite(float(one)) for one in high[at]),
                shares=tuple((drawn[place] / rows).tolist()),
            )
        )
    return tuple(out)


def check_draws(gathered: GatheredRules) -> Diagnostic:
    """Check whether arms came up as often as the probabilities of the rows say."""
    cells = gathered.cells
    count = len(cells.labels)
    buckets = len(cells.times)
    observed = np.zeros((buckets, count))
    expected = np.zeros((buckets, count))
    scatter = np.zeros((buckets, count))
    np.add.at(observed, (cells.bucket, cells.arm), cells.counts)
    np.add.at(expected, cells.bucket, cells.expected)
    np.add.at(scatter, cells.bucket, cells.scatter)
    sums = [np.cumsum(part, axis=0) for part in (observed, expected, scatter)]
    p_value = totals_p_value(*sums)
    drawn = {label: int(sums[0][-1, arm]) for arm, label in enumerate(cells.labels)}
    planned = {label: float(sums[1][-1, arm]) for arm, label in enumerate(cells.labels)}
    details = {"observed": drawn, "expected": planned}
    likeliest = int(np.argmax(sums[1][-1]))
    one_sided = np.zeros_like(sums[0])
    one_sided[:, likeliest] = sums[0].sum(axis=1)
    # Before the check could alarm even if every row had shown one arm, "fine" would say nothing.
    if p_value > ALARM and totals_p_value(one_sided, *sums[1:]) > ALARM:
        words = (
            "Too early to tell whether arms come up as often as the probabilities say: even if all"
            f" {int(sums[0][-1].sum()):,} rows had shown {cells.labels[likeliest]!r}, that could be chance."
        )
        return Diagnostic("sample ratio", "note", words, p_value, details=details)
    if p_value > ALARM:
        words = "Arms came up as often as the probabilities say."
        return Diagnostic("sample ratio", "fine", words, p_value, details=details)
    off = np.abs(sums[0][-1] - sums[1][-1]) / np.sqrt(np.maximum(sums[2][-1], 1.0))
    arm = int(np.argmax(off))
    words = (
        f"Arms did not come up as the probabilities say: {cells.labels[arm]!r} has {sums[0][-1, arm]:,.0f}"
        f" rows where {sums[1][-1, arm]:,.0f} were expected. Rows are missing, or were drawn otherwise."
    )
    return Diagnostic("sample ratio", "alarm", words, p_value, details=details)


def check_missing(gathered: GatheredRules) -> Diagnostic | None:
    """Note the rows that were left out, by arm; None if there were none."""
    left = gathered.dropped
    if not left.any():
        return None
    named = ", ".join(f"{label} {int(left[arm]):,}" for arm, label in enumerate(gathered.cells.labels))
    words = (
        f"{int(left.sum()):,} rows without a value are left out ({named}): effects are biased if what is"
        " missing depends on the arm."
    )
    return Diagnostic("missing", "note", words)
