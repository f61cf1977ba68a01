"""The words of an analysis that the text and the page share, and the sentence with the recommendation."""

import math

from orthobandit.logs.results import (
    Analysis,
    Diagnostic,
    Effect,
    Heterogeneity,
    MetricResult,
    Personal,
    Rival,
    RuleResult,
)
from orthobandit.showing.numbers import (
    about,
    chance_words,
    estimate_words,
    is_known,
    number,
    places_of,
    risk_percent,
    span_words,
    sure_percent,
)
from orthobandit.showing.rules import RuleLine, Table, effect_label, rule_table
from orthobandit.showing.text import names_words, printable, visible

# Colours of verdicts; others are open.
TONES = {"better": "good", "safe": "good", "worse": "bad", "harmed": "bad"}
# Of the reward larger is better; of further metrics nobody has said which side is.
SIDES = {"better": "higher", "worse": "lower"}
UNDIRECTED = ("metric", "ratio")

DO_NOT_ACT = "Do not act on these effects yet"


def verdict_words(metric: MetricResult, effect: Effect) -> str:
    """Return a verdict; for metrics without a good direction, on which side of 0 the gap is."""
    return SIDES.get(effect.verdict, effect.verdict) if metric.kind in UNDIRECTED else effect.verdict


def best_words(metric: MetricResult, best: str) -> str:
    """Return why all others are compared with one arm."""
    if not any(map(is_known, (end for one in metric.against_best for end in one.interval))):
        what = "whose estimate is the highest"
    elif metric.kind in UNDIRECTED:
        what = "which is highest"
    else:
        is_proven = len(metric.droppable) == len(metric.summaries) - 1
        what = "which is the best" if is_proven else "which looks best"
    return f"{best}, {what} (all pairs at once)"


def droppable_words(analysis: Analysis, metric: MetricResult) -> str:
    """Return which arms can be dropped; nothing if the log raised an alarm or the metric has no good side."""
    if analysis.alarms or metric.kind in UNDIRECTED:
        return ""
    if metric.droppable:
        return f"can be dropped, proven worse: {names_words(metric.droppable)}"
    return "no arm can be dropped yet"


def mean_places(metric: MetricResult) -> int | None:
    """Return the decimal places that show four digits of the largest mean, and two of how means differ."""
    means = [one.mean for one in metric.summaries if is_known(one.mean)]
    largest = places_of([max(map(abs, means), default=0.0)])
    apart = places_of(means)
    return None if largest is None or apart is None else max(largest + 2, apart)


def gap_words(effect: Effect) -> str:
    """Return the estimate of a gap; nothing where an arm is compared with itself."""
    return "" if effect.arm == effect.over else estimate_words(effect.estimate, effect.interval)


def interval_words(effect: Effect) -> str:
    """Return the interval of a gap; nothing where an arm is compared with itself."""
    return "" if effect.arm == effect.over else span_words(effect.interval)


def effect_words(effect: Effect) -> str:
    """Return the estimate of a gap and its interval; nothing where an arm is compared with itself."""
    gap = gap_words(effect)
    return f"{gap} ({interval_words(effect)})" if gap else interval_words(effect)


def saved_words(metric: MetricResult) -> str:
    """Return what each baseline saved of the variance, in per cent; nothing if none was tried."""
    used = {metric.baseline: " (used)"}
    named = [
        f"{name} {number(100.0 * share, 0)} %{used.get(name, '')}" for name, share in metric.saved.items()
    ]
    return f"saved of the variance around a running mean: {', '.join(named)}" if named else ""


def is_held_against_best(analysis: Analysis, metric: MetricResult) -> bool:
    """Whether there are more arms than the reference arm and its rival, and more of the metric is better."""
    return len(analysis.labels) > 2 and metric.kind != "guardrail" and bool(metric.against_best)


def size_words(analysis: Analysis) -> str:
    """Return the reference of the gaps, and the number of rows."""
    buckets = "bucket" if analysis.buckets == 1 else "buckets"
    length = f" ({printable(analysis.bucket)})" if analysis.bucket else ""
    size = f"{analysis.rows:,} rows in {analysis.buckets:,} {buckets}{length}"
    return f"gaps to {printable(analysis.reference)!r}; {size}"


def title_words(metric: MetricResult) -> str:
    """Return the name of a metric, with its kind if it is not the reward."""
    name = printable(metric.name)
    if metric.kind == "guardrail" and metric.margin is not None:
        side = "rise" if math.copysign(1.0, metric.margin) > 0 else "fall"
        return f"{name} (guardrail: may {side} by {number(abs(metric.margin))})"
    return name if metric.kind in ("reward", "metric", "quantile") else f"{name} ({metric.kind})"


def certainty_words(metric: MetricResult) -> str:
    """Return the mode of a metric's intervals and how surely they hold."""
    share = f"in at least {sure_percent(metric.delta)} of logs"
    return f"{metric.mode.rstrip('.')}; {share} all gaps of this metric lie in their intervals"


def diagnostic_words(one: Diagnostic) -> str:
    """Return a diagnostic as a sentence, with its segment and p-value."""
    where = f" in {printable(one.segment)}" if one.segment else ""
    # Some say it themselves, with what it belongs to.
    is_said = not is_known(one.p_value) or "p-value" in one.words
    chance = "" if is_said else f" (p {chance_words(one.p_value or 0.0)})"
    return f"{one.name}{where}: {printable(one.words)}{chance}"


def segments_words(analysis: Analysis, arm: str | None = None) -> list[str]:
    """Say whether segments differ in the gaps of an arm, or of all; nothing if the log raised an alarm."""
    if analysis.alarms:
        return []
    return [_heterogeneity_words(one) for one in analysis.heterogeneity if arm in (None, one.arm)]


def _heterogeneity_words(one: Heterogeneity) -> str:
    gap = f"gap of {visible(one.arm)!r} to {visible(one.over)!r}"
    chance = f" (p {chance_words(one.p_value)} for one look)" if one.p_value is not None else ""
    if one.apart:
        pairs = "; ".join(f"{printable(left)} and {printable(right)}" for left, right in one.apart)
        return f"segments differ in the {gap}{chance}: {pairs}"
    return f"no segments are proven to differ in the {gap}{chance}"


def method_rows(analysis: Analysis) -> list[Rival]:
    """Return what each method says of each gap of the reward, this analysis first."""
    mode = analysis.metrics[0].mode
    asked = {(rival.arm, rival.over) for rival in analysis.rivals}
    own = [
        Rival("this analysis", effect.arm, effect.over, effect.estimate, effect.interval, mode)
        for effect in analysis.metrics[0].effects
        if (effect.arm, effect.over) in asked
    ]
    rows = [*own, *analysis.rivals]
    places = {label: place for place, label in enumerate(analysis.labels)}
    return sorted(rows, key=lambda rival: places.get(rival.arm, len(places)))


def sentence_of(
    reward: MetricResult, others: tuple[MetricResult, ...], alarms: tuple[Diagnostic, ...]
) -> str:
    """Say what follows from the reward, from guardrails and from alarms, which come first."""
    # A sentence that recommends an arm while an alarm is up would be acted on.
    if alarms:
        return f"{DO_NOT_ACT}: {alarms[0].words}"
    harmed = [
        f"{one.arm!r} hurts {metric.name!r} by more than {abs(metric.margin or 0.0):g}"
        for metric in others
        if metric.kind == "guardrail"
        for one in metric.effects
        if one.verdict == "harmed"
    ]
    said = _recommend(reward)
    return f"{said} But {'; '.join(harmed)}." if harmed else said


def headline(analysis: Analysis) -> str:
    """Return the first sentence without the words of an alarm, because a list of alarms follows it."""
    return f"{DO_NOT_ACT}." if analysis.alarms else analysis.sentence


def rules_sentence(personal: Personal, delta: float, alarms: tuple[Diagnostic, ...]) -> str:
    """Say which rule to follow, or which looks best so far; alarms come first."""
    if alarms:
        return f"{DO_NOT_ACT}: {alarms[0].words}"
    over = personal.rules[0].name
    known = [rule for rule in personal.rules[1:] if rule.estimate is not None]
    if not known:
        return "Nothing can be said of any rule yet: too few rows count."
    count = len(personal.rules)
    if personal.best is not None:
        said = (
            f"The rule {personal.best!r} earns most of the {count} rules that are judged (wrong in at most"
            f" {risk_percent(delta)} of logs)."
        )
        best = next(rule for rule in personal.rules if rule.name == personal.best)
        return said if best.name == over else f"{said} It earns {rule_words(best)} a row over {over!r}."
    looks = max(personal.rules, key=lambda rule: rule.estimate or 0.0)
    left = sum(rule.is_possible for rule in personal.rules)
    said = f"No rule is the best for sure yet: {left} of {count} may be. {looks.name!r} looks best"
    return f"{said}." if looks.name == over else f"{said}, {rule_words(looks)} a row over {over!r}."


def rule_words(rule: RuleResult) -> str:
    """Return the gain of a rule and its interval."""
    return f"{estimate_words(rule.estimate, rule.interval)} ({span_words(rule.interval)})"


def personal_tables(analysis: Analysis) -> list[Table]:
    """Return rules, effects by context and who should get what as tables: a title, the head and rows."""
    personal = analysis.personal
    if personal is None:
        return []
    reference = personal.rules[0].name
    lines = [
        RuleLine(rule.name, rule.estimate, rule.interval, rule.changed, rule.is_possible)
        for rule in personal.rules
    ]
    gains = f"What each rule would have earned over {printable(reference)!r}, per row"
    out = [rule_table(gains, lines, "rows it changes")]
    if personal.effects:
        effects: list[tuple[str, ...]] = [
            (
                effect_label(one.arm, one.column),
                estimate_words(one.estimate, one.interval),
                span_words(one.interval),
            )
            for one in personal.effects
        ]
        over = printable(analysis.reference)
        line = f"How arms differ from {over!r}: the straight line closest to the visitors' effects"
        out.append((line, ("arm", "difference", "interval"), effects))
    if personal.audiences:
        places = places_of(effect for one in personal.audiences for effect in one.effects)
        audiences: list[tuple[str, ...]] = [
            (
                f"{printable(one.column)} = {number(one.value)}",
                visible(one.best),
                *(number(effect, places, "+") for effect in one.effects),
            )
            for one in personal.audiences
        ]
        head = ("visitors with", "looks best", *(visible(label) for label in analysis.labels))
        out.append(("Who should get what, by these lines; other columns at their mean", head, audiences))
    return out


def _recommend(reward: MetricResult) -> str:
    """Return the recommendation from the reward: the best arm, or what is left and how long it may take."""
    compared = [one for one in reward.effects if one.verdict != "reference"]
    left = [one.arm for one in reward.effects if one.arm not in reward.droppable]
    # Only bounds that were declared make it so at every sample size.
    when = "" if reward.mode.startswith("exact") else ", once samples are large"
    how_sure = f"(wrong in at most {risk_percent(reward.delta)} of logs{when})"
    if len(left) == 1:
        return f"{left[0]!r} is the best arm by {reward.name!r} {how_sure}.{_gain_words(reward, left[0])}"
    known = [one for one in compared if one.estimate is not None]
    if not known:
        return (
            f"Nothing can be said of {reward.name!r} yet: too few rows after the first, which only tell level"
            " and scatter, or all its values are the same."
        )
    if not any(map(is_known, (end for one in known for end in one.interval))):
        return _early_words(reward, known)
    if len(compared) == 1:
        one = compared[0]
        return f"{one.arm!r} and {one.over!r} cannot be told apart yet. {_wait_words(reward, one)}"
    dropped = f" {_list_words(reward.droppable)} can be dropped;" if reward.droppable else ""
    open_ones = [one for one in reward.against_best if one.verdict == "undecided"] or known
    nearest = min(open_ones, key=lambda one: abs(one.estimate or 0.0))
    if not reward.against_best:  # too many arms for all pairs: the one that looks best decides
        nearest = max(known, key=lambda one: one.estimate or 0.0)
    return f"No arm is proven best yet:{dropped} {len(left)} are left. {_wait_words(reward, nearest)}"


def _gain_words(reward: MetricResult, label: str) -> str:
    one = next(one for one in reward.effects if one.arm == label)
    if one.verdict == "reference":
        return _lead_words(reward)
    if one.estimate is None:
        return ""
    return f" Its gap over {one.over!r} is {effect_words(one)}."


def _lead_words(reward: MetricResult) -> str:
    """Say how far the next arm is behind the reference arm, which is the best."""
    others = [one for one in reward.effects if one.verdict != "reference" and one.estimate is not None]
    if not others:
        return ""
    one = max(others, key=lambda one: one.estimate or 0.0)
    which = f"{one.arm!r}" if len(reward.effects) == 2 else f"the next arm, {one.arm!r},"
    return f" The gap of {which} over it is {effect_words(one)}."


def _early_words(reward: MetricResult, known: list[Effect]) -> str:
    """Say that no interval is known yet, and how many rows may be enough for a first decision."""
    rows = sum(one.rows for one in reward.summaries)
    said = f"Too early: after {rows:,} rows no gap of {reward.name!r} has an interval, so nothing is proven."
    likely = [one.more_rows[0] for one in known if one.more_rows is not None]
    soonest = min(filter(math.isfinite, likely), default=math.inf)
    enough = f"About {about(soonest)} more may be enough for a first decision."
    return f"{said} {enough}" if math.isfinite(soonest) else said


def _wait_words(reward: MetricResult, one: Effect) -> str:
    """Say how long it may take to decide on an effect."""
    gap = f"the gap of {one.arm!r} over {one.over!r}"
    if one.more_rows is None or not math.isfinite(one.more_rows[1]):
        if not any(map(is_known, one.interval)):
            rows = {summary.arm: summary.rows for summary in reward.summaries}
            fewest = min((one.arm, one.over), key=lambda label: rows.get(label, 0))
            return (
                f"How many more rows would decide cannot be foreseen: {gap} has no interval yet"
                f" ({fewest!r} has {rows.get(fewest, 0):,} rows)."
            )
        return f"To decide on {gap} ({gap_words(one)}) may take far longer than this log."
    _, soonest, latest = one.more_rows
    said = f"If this split goes on, {about(soonest)}"
    if not math.isfinite(latest):
        return f"{said} more rows may decide on {gap} ({gap_words(one)}), but it may take far longer."
    if about(soonest) == about(latest):  # what is waited for are events, whose number is known
        return f"{said} more rows decide on {gap} ({gap_words(one)})."
    return f"{said} to {about(latest)} more rows decide on {gap} ({gap_words(one)}) in 3 of 4 cases."


def _list_words(labels: tuple[str, ...], most: int = 5) -> str:
    shown = ", ".join(repr(label) for label in labels[:most])
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"
