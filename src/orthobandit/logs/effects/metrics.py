"""The result of one metric: effects against the reference arm and the best, and their history.

Also whether an arm is shown not to be worse than the reference arm by more than a margin.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import copysign

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import Argument, InputError
from orthobandit.estimate import Asymptotic, Bounded, Confidence, ContrastSequence
from orthobandit.estimate.confidence.coherence import Coherent
from orthobandit.estimate.confidence.modes import RoundedMeans
from orthobandit.estimate.confidence.sequence import MOST_PAIRED
from orthobandit.estimate.follow.buckets import Follower
from orthobandit.estimate.follow.cells import Cells, totals_at
from orthobandit.estimate.follow.guardrails import Guardrail
from orthobandit.logs.effects.effects import (
    NOTHING,
    Gaps,
    below_another,
    close_gaps,
    effect,
    gaps_of,
    lifts_of,
    reference_effect,
    unknown_effect,
    with_lift,
)
from orthobandit.logs.question import Question
from orthobandit.logs.results import ArmSummary, Effect, Interval, MetricResult, Moment, NonInferiority
from orthobandit.showing.numbers import finite, number


@dataclass(frozen=True)
class Asked:
    """A metric as it was asked for: a column, a ratio of two, or a guardrail with its margin."""

    name: str
    kind: str
    column: int
    denominator: int | None = None
    guardrail: Guardrail | None = None


def asked_of(question: Question, cells: Cells) -> tuple[Asked, ...]:
    """Return all metrics of a question, the reward first."""
    at = {name: place for place, name in enumerate(cells.columns)}
    asked = [
        Asked(question.reward, "reward", at[question.reward]),
        *(Asked(name, "metric", at[name]) for name in question.metrics if name != question.reward),
        *(Asked(one.name, "ratio", at[one.numerator], at[one.denominator]) for one in question.ratios),
        *(Asked(one.metric, "guardrail", at[one.metric], None, one) for one in question.guardrails),
    ]
    # A margin for something that is followed anyway costs nothing; others are guardrails.
    followed = {one.name for one in asked}
    for name, margin in question.noninferiority.items():
        if name not in followed:
            rail = Guardrail(name, abs(margin), "higher" if margin > 0 else "lower")
            asked.append(Asked(name, "guardrail", at[name], None, rail))
    return tuple(asked)


def confidence_of(
    asked: Asked, question: Question, cells: Cells, is_boolean: Mask | None = None, rounding: float = 0.0
) -> Confidence:
    """Return the mode: exact if values are bounded by declaration or by type, never by what was observed.

    Parameters
    ----------
    asked : Asked
    question : Question
    cells : Cells
    is_boolean : (q,) array of bool, optional
        Which columns can hold nothing but 0 and 1; none by default.
    rounding : float
        Most that the mean of an arm in a cell may be off by.
    """
    bounds = question.ranges.get(asked.name) if asked.denominator is None else None
    if bounds is None and is_boolean is not None and is_boolean[asked.column]:
        bounds = (0.0, 1.0)
    if bounds is None or asked.denominator is not None or question.covariates or question.asymptotic:
        return Asymptotic()
    offset = cells.offset[asked.column]
    some = cells.counts > 0
    least = float(cells.low[some, asked.column].min(initial=np.inf) + offset)
    most = float(cells.high[some, asked.column].max(initial=-np.inf) + offset)
    # What rounding of value − offset may add.
    room = 1e-9 * (bounds[1] - bounds[0])
    if least < bounds[0] - room or most > bounds[1] + room:
        raise InputError(
            Argument("bounds", bounds),
            f" do not hold column {asked.name!r}: its values run from {least:g} to {most:g};"
            " declare a range that holds all of them, beforehand",
        )
    low, high = bounds[0] - offset, bounds[1] - offset
    if not rounding:
        return Bounded(low, high)
    return RoundedMeans(low, high, rounding * _most_beyond_plans(cells))


def _most_beyond_plans(cells: Cells) -> float:
    """Return the largest n_a/(n·p_a) of any cell: 1 where plans are the shares that were counted."""
    strata = np.stack([cells.bucket, cells.plan, cells.segment], axis=1)
    index = np.unique(strata, axis=0, return_inverse=True)[1].ravel()
    rows = totals_at(index, cells.counts, int(index.max()) + 1)[index]
    own = index * len(cells.arms) + cells.arm
    drawn = totals_at(own, cells.counts, int(own.max()) + 1)[own]
    expected = rows * cells.plans[cells.plan, cells.arm]
    return float(np.max(np.divide(drawn, expected, out=np.ones_like(drawn), where=expected > 0), initial=1.0))


def metric_result(asked: Asked, follower: Follower, *, once: bool, history: bool = True) -> MetricResult:
    """Return the result of a metric.

    Parameters
    ----------
    asked : Asked
    follower : Follower
        Of the metric.
    once : bool
        Whether intervals are for one look.
    history : bool
        Whether to include the history.
    """
    cells = follower.cells
    measure = follower.measure
    gaps = None if follower.sequence is None else _coherent_gaps(follower, follower.sequence, once=once)
    losers = set[int]() if gaps is None else _losers(follower, gaps, once=once)
    if gaps is not None and asked.guardrail is None:
        gaps = _with_best_on_top(follower, gaps, losers, once=once)
    effects, level = _effects(follower, gaps, once=once)
    if asked.guardrail is not None:
        effects = tuple(_guarded(one, asked.guardrail, once=once) for one in effects)
    best, droppable = _against_best(follower, gaps, effects, losers, once=once)
    return MetricResult(
        name=asked.name,
        kind=asked.kind,
        mode=mode_in_words(measure.confidence, cells.offset[asked.column], once=once),
        delta=measure.delta,
        margin=None if asked.guardrail is None else _signed_margin(asked.guardrail),
        effects=effects,
        against_best=best,
        droppable=droppable,
        summaries=summaries(cells, asked),
        saved=follower.savings.shares(),
        baseline=follower.baseline,
        level=level,
        history=_history(follower) if history else (),
        is_contradicted=follower.sequence is not None and gaps is None,
    )


def _coherent_gaps(follower: Follower, sequence: ContrastSequence, *, once: bool) -> Gaps | None:
    """Return all followed gaps, narrowed to agree with each other; None if no gaps fit them all."""
    gaps = gaps_of(sequence, sides=follower.sides)
    count = len(follower.cells.arms)
    if count > MOST_PAIRED:  # gaps to one arm say nothing of each other
        return gaps
    return close_gaps(gaps, follower.pairs, count, once=once)


def mode_in_words(confidence: Confidence, offset: float, *, once: bool) -> str:
    """Say what intervals assume and when they hold."""
    if once:
        return "ordinary fixed-sample intervals: they hold for one look, at a size fixed beforehand"
    if confidence.is_exact:
        low, high = (float(end + offset) for end in confidence.range)
        return f"exact for values from {low:g} to {high:g}; the intervals hold at all times at once"
    return "asymptotic, nothing to declare; the intervals hold at all times at once, once samples are large"


def _effects(follower: Follower, gaps: Gaps | None, *, once: bool) -> tuple[tuple[Effect, ...], Interval]:
    """Return the effect of every arm over the reference arm, and the level of the reference arm."""
    reference = follower.measure.reference
    labels = follower.cells.arms.labels
    itself = reference_effect(labels[reference])
    if follower.sequence is None or gaps is None:
        return tuple(
            itself if place == reference else unknown_effect(label, labels[reference])
            for place, label in enumerate(labels)
        ), NOTHING
    lifts = lifts_of(follower, once=once)
    out = [
        with_lift(effect(follower, gaps, place, 1.0, fixed=once), lift) for place, lift in enumerate(lifts)
    ]
    out.insert(reference, itself)
    low, high = follower.level_ends(once=once)
    return tuple(out), (finite(low), finite(high))


def _guarded(one: Effect, guardrail: Guardrail, *, once: bool) -> Effect:
    """Return the effect with the verdict of a guardrail."""
    if one.verdict == "reference":
        return one
    low, high = one.fixed if once else one.interval
    edge = _signed_margin(guardrail)
    above, below = low is not None and low > edge, high is not None and high < edge
    harmed, safe = (above, below) if guardrail.worse == "higher" else (below, above)
    return replace(one, verdict="harmed" if harmed else "safe" if safe else "undecided", more_rows=None)


def _signed_margin(guardrail: Guardrail) -> float:
    """Return the gap beyond which an arm does harm: positive if more is worse, negative if less is."""
    return guardrail.margin if guardrail.worse == "higher" else -guardrail.margin


def _against_best(
    follower: Follower, gaps: Gaps | None, effects: Sequence[Effect], losers: set[int], *, once: bool
) -> tuple[tuple[Effect, ...], tuple[str, ...]]:
    """Return the gaps over the arm that looks best, and the arms that are proven worse than another.

    Its gaps hold together with those over the reference arm: all are gaps of pairs, on one event.
    """
    count = len(follower.cells.arms)
    labels = follower.cells.arms.labels
    if gaps is None:
        return (), ()
    if count > MOST_PAIRED:
        return (), below_another(effects)
    best = _looks_best(_over_reference(follower, gaps.estimates, -np.inf), losers)
    at = {(int(i), int(j)): place for place, (i, j) in enumerate(follower.pairs)}
    out: list[Effect] = []
    for arm in range(count):
        if arm != best:
            place, sign = (at[arm, best], 1.0) if (arm, best) in at else (at[best, arm], -1.0)
            out.append(effect(follower, gaps, place, sign, fixed=once))
    return tuple(out), tuple(labels[arm] for arm in range(count) if arm in losers)


def _over_reference(follower: Follower, values: Array, unknown: float) -> Array:
    """Return what is known of the gap of each arm (K,) over the reference arm, of what pairs (m,) have."""
    known = np.where(np.isnan(values), unknown, values)[: len(follower.cells.arms) - 1]
    return np.insert(known, follower.measure.reference, 0.0)


def _looks_best(estimates: Array, losers: set[int]) -> int:
    """Return the arm with the largest estimate (K,) of those that no other is proven better than."""
    is_loser = np.isin(np.arange(len(estimates)), list(losers))
    return int(np.argmax(np.where(is_loser, -np.inf, estimates)))


def _with_best_on_top(follower: Follower, gaps: Gaps, losers: set[int], *, once: bool) -> Gaps:
    """Return the gaps with estimates, moved within their intervals, of which none is above the best arm's.

    Gaps of pairs rest on different rounds, so that an arm which is proven worse than another may have the
    largest estimate over the reference arm, or one above 0 over the arm that looks best. Intervals of all
    pairs agree, and so they leave room for the arm that looks best to be on top of both tables.
    """
    count = len(follower.cells.arms)
    if count > MOST_PAIRED:
        return gaps
    low, high = (gaps.fixed_low, gaps.fixed_high) if once else (gaps.low, gaps.high)
    table = Coherent(
        _over_reference(follower, low, -np.inf),
        _over_reference(follower, high, np.inf),
        np.inf,
        np.ones(count, dtype=np.bool_),
        is_empty=False,
    )
    estimates = _over_reference(follower, gaps.estimates, -np.inf)
    best = _looks_best(estimates, losers)
    known = np.isfinite(estimates)
    estimates = np.where(known, table.clip_below(np.where(known, estimates, 0.0), best, known), np.nan)
    reference = follower.measure.reference
    out = gaps.estimates.copy()
    out[: count - 1] = np.delete(estimates, reference)
    first, second = follower.pairs.T
    beyond = np.arange(len(out)) >= count - 1  # pairs without the reference arm
    out = np.where(beyond & (first == best), np.maximum(out, 0.0), out)
    out = np.where(beyond & (second == best), np.minimum(out, 0.0), out)
    return replace(gaps, estimates=out)


def _losers(follower: Follower, gaps: Gaps, *, once: bool) -> set[int]:
    """Return the arms that are proven worse than another; none where only gaps to one arm are followed."""
    if len(follower.cells.arms) > MOST_PAIRED:
        return set()
    low, high = (gaps.fixed_low, gaps.fixed_high) if once else (gaps.low, gaps.high)
    first, second = follower.pairs.T
    return {*first[high < 0].tolist(), *second[low > 0].tolist()}


def summaries(cells: Cells, asked: Asked) -> tuple[ArmSummary, ...]:
    """Return the rows and the plain mean of each arm."""
    count = len(cells.arms)
    all_rows = cells.counts + cells.dropped

    def by_arm(values: Array | Whole) -> Array:
        return np.asarray(np.bincount(cells.arm, values, minlength=count))

    rows = by_arm(cells.counts)
    seen = by_arm(all_rows)
    # Of all rows, those without a value too: they were drawn as well.
    planned = np.bincount(cells.plan, all_rows, minlength=len(cells.plans)) @ cells.plans
    sums = by_arm(cells.sums[:, asked.column]) + rows * cells.offset[asked.column]
    # The denominator of a mean is rows, that of a ratio is a sum.
    below = rows
    if asked.denominator is not None:
        below = by_arm(cells.sums[:, asked.denominator]) + rows * cells.offset[asked.denominator]
    capped = by_arm(cells.capped[:, asked.column])
    missing = by_arm(cells.missing[:, asked.column])
    return tuple(
        ArmSummary(
            arm=label,
            rows=int(rows[arm]),
            share=float(rows[arm] / max(rows.sum(), 1)),
            planned=float(planned[arm] / max(planned.sum(), 1)),
            mean=float(sums[arm] / below[arm]) if below[arm] else None,
            capped=float(capped[arm] / max(rows[arm], 1)),
            missing=float(missing[arm] / max(seen[arm], 1)),
        )
        for arm, label in enumerate(cells.arms.labels)
    )


def _history(follower: Follower) -> tuple[Moment, ...]:
    """Return what was known of the gaps at the end of each bucket."""
    cells = follower.cells
    reference = follower.measure.reference
    count = len(cells.arms)
    offset = float(cells.offset[follower.measure.column])
    out: list[Moment] = []
    for one in follower.snapshots:
        gaps = gaps_of(one.sequence)
        rows = [
            np.insert(part[: count - 1], reference, 0.0) for part in (gaps.estimates, gaps.low, gaps.high)
        ]
        estimates, lows, highs = (tuple(map(finite, row)) for row in rows)
        out.append(
            Moment(
                time=float(cells.times[one.bucket]),
                rows=one.rows,
                level=one.level + offset,
                forecast=None if one.forecast is None else one.forecast + offset,
                estimates=estimates,
                lows=lows,
                highs=highs,
                shares=tuple(one.shares.tolist()),
            )
        )
    return tuple(out)


def judge_noninferiority(
    results: Sequence[MetricResult], margins: Mapping[str, float], in_points: Sequence[str]
) -> tuple[NonInferiority, ...]:
    """Judge every arm by every metric with a margin: shown, not yet, or refuted.

    The intervals of a metric hold together, at all times or for one look, so these claims need no δ of their
    own: an interval that lies on one side of the margin is a claim that holds whenever the interval does.

    Parameters
    ----------
    results : sequence of MetricResult
    margins : mapping of str to float
        Margins of metrics that are no guardrails; see :class:`NonInferiority`.
    in_points : sequence of str
        Metrics that are shares, whose differences are given in percentage points.
    """
    return tuple(_claims(results, margins, in_points))


def _claims(
    results: Sequence[MetricResult], margins: Mapping[str, float], in_points: Sequence[str]
) -> Iterator[NonInferiority]:
    """Yield the claim about each arm by each metric that has a margin."""
    done = set[tuple[str, float, str]]()
    for metric in results:
        # A guardrail may have another margin than the one that is asked for: both are answered.
        asked = [one for one in (metric.margin, margins.get(metric.name)) if one is not None]
        for margin in dict.fromkeys(asked):
            for one in metric.effects:
                if one.verdict != "reference" and (metric.name, margin, one.arm) not in done:
                    done.add((metric.name, margin, one.arm))
                    yield _claim(metric.name, one, margin, is_share=metric.name in in_points)


def _claim(name: str, effect: Effect, margin: float, *, is_share: bool) -> NonInferiority:
    """Return the claim about one arm."""
    # How much worse the arm is, at least and at most, whichever side is worse.
    low, high = effect.interval
    sign = copysign(1.0, margin)
    least, most = (low, high) if sign > 0 else (_negative(high), _negative(low))
    status = "not yet"
    if most is not None and most < abs(margin):
        status = "shown"
    elif least is not None and least > abs(margin):
        status = "refuted"
    words = (
        f"{effect.arm!r} is not worse than {effect.over!r} by more than {_size(abs(margin), is_share)} in"
        f" {name!r}: {status}{_detail(status, least, most, is_share)}."
    )
    return NonInferiority(effect.arm, effect.over, name, margin, status, words)


def _detail(status: str, least: float | None, most: float | None, is_share: bool) -> str:
    """Return, in brackets, by how much an arm is or may be worse."""
    if status == "refuted" and least is not None:
        return f" (it is worse by at least {_size(least, is_share)})"
    if most is None:
        return " (too little is known)"
    if status == "shown":
        return (
            " (it is not worse at all)" if most <= 0 else f" (it is worse by at most {_size(most, is_share)})"
        )
    return f" (it may be worse by up to {_size(most, is_share)})"


def _size(value: float, is_share: bool) -> str:
    """Return a difference in words; those of shares in percentage points."""
    if not is_share:
        return number(value)
    points = number(100.0 * value)
    return f"{points} percentage point{'' if points == '1' else 's'}"


def _negative(value: float | None) -> float | None:
    return None if value is None else -value
