"""Quantiles of the arms: where the distribution that an arm would have had in all rounds reaches a level.

For a threshold x the metric 1{y ≤ x} is 0 or 1. Its level with arm a, averaged over the same rounds for every
arm (those in which each could be drawn), is F̄_a(x), the distribution function of the average over rounds. It
has an exact sequence like any level (:class:`~orthobandit.estimate.follow.averages.Score`): unbiased scores
with the known probabilities, whatever the baseline and the split do. The sequences of all thresholds and arms
hold together. So the quantile at a level τ is above every threshold at which F̄_a is surely below τ, and at
most at the first at which F̄_a is surely not below τ, at every moment, also while the distribution and its
quantile move.

Thresholds share δ: those near the quantile of the first rows have more of it, by a rule that is fixed with
them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from orthobandit._foundation.types import Array, Mask
from orthobandit.estimate import Bounded
from orthobandit.estimate.follow.averages import Aim, Score
from orthobandit.estimate.follow.cells import Cells, Measure
from orthobandit.logs.effects.effects import NOTHING, follow_metric, reference_effect
from orthobandit.logs.effects.metrics import Asked, summaries
from orthobandit.logs.question import Quantile
from orthobandit.logs.results import Effect, Interval, MetricResult
from orthobandit.showing.numbers import finite

FALL = 4.0  # thresholds from the middle, at which the share of δ is a quarter


@dataclass(frozen=True, eq=False)
class Distribution:
    """Distribution functions of K arms at J thresholds: estimates, and ends (K, J) for all and one look."""

    estimates: Array
    low: Array
    high: Array
    fixed_low: Array
    fixed_high: Array


def quantile_result(
    cells: Cells, quantile: Quantile, first: int, measure: Measure, counted_from: float, *, once: bool
) -> MetricResult:
    """Return the result of a quantile.

    Parameters
    ----------
    cells : Cells
        With rows below each threshold.
    quantile : Quantile
        With its thresholds.
    first : int
        Place of its first threshold in `cells.below`.
    measure : Measure
        Gives δ, the baseline and the reference arm; everything else is set here.
    counted_from : float
        Buckets that begin after this time count.
    once : bool
        Whether intervals are for one look.
    """
    counted = cells.only(cells.times[cells.bucket] > counted_from) if counted_from > -np.inf else cells
    found = _distribution(counted, quantile, first, measure)
    thresholds = np.array(quantile.thresholds)
    labels = cells.arms.labels
    estimates = [_estimate(thresholds, row, quantile.level) for row in found.estimates]
    ends = [_ends(thresholds, *rows, quantile.level) for rows in zip(found.low, found.high, strict=True)]
    fixed = [
        _ends(thresholds, *rows, quantile.level)
        for rows in zip(found.fixed_low, found.fixed_high, strict=True)
    ]
    shown = fixed if once else ends
    reference = measure.reference
    effects = tuple(
        reference_effect(label)
        if arm == reference
        else _effect(labels, arm, reference, estimates, shown, fixed)
        for arm, label in enumerate(labels)
    )
    own = summaries(cells, Asked(quantile.name, "quantile", cells.columns.index(quantile.metric)))
    return MetricResult(
        name=quantile.name,
        kind="quantile",
        mode=_mode_in_words(quantile, once=once, is_whole=bool(np.all(_draws_all(cells)[cells.plan]))),
        delta=measure.delta,
        margin=None,
        effects=effects,
        against_best=(),
        droppable=(),
        # What a mean is to a metric, the quantile is here.
        summaries=tuple(replace(one, mean=value) for one, value in zip(own, estimates, strict=True)),
        saved={},
        baseline=measure.baseline,
        level=shown[reference],
        history=(),
        arm_intervals=tuple(shown),
    )


def _draws_all(cells: Cells) -> Mask:
    """Tell which plans (P,) can draw every arm."""
    return np.asarray(np.all(cells.plans > 0, axis=1))


def _mode_in_words(quantile: Quantile, *, once: bool, is_whole: bool) -> str:
    least, most = quantile.thresholds[0], quantile.thresholds[-1]
    count = len(quantile.thresholds)
    rounds = "all rounds" if is_whole else "the rounds in which every arm could be drawn"
    where = f"of the average distribution over {rounds}, at {count} thresholds from {least:g} to {most:g}"
    if once:
        return f"{where}; the intervals hold for one look"
    return f"exact, {where}; the intervals hold at all times at once"


def shares_of_delta(quantile: Quantile, middle: int) -> Array:
    """Return the part of δ that each threshold has (J,): less, the further it is from the middle one.

    Examples
    --------
    >>> shares_of_delta(Quantile(0.5, (1.0, 2.0, 3.0)), 1).round(2).tolist()
    [0.28, 0.44, 0.28]
    """
    away = np.abs(np.arange(len(quantile.thresholds)) - middle)
    weights = (1.0 + away / FALL) ** -2.0
    return np.asarray(weights / weights.sum())


def _distribution(cells: Cells, quantile: Quantile, first: int, measure: Measure) -> Distribution:
    """Return the distribution functions of all arms, each threshold followed as a metric of 0 and 1."""
    count = len(cells.arms)
    # The middle of the thresholds was chosen before the first row that counts.
    shares = shares_of_delta(quantile, len(quantile.thresholds) // 2)
    # The same rounds for every arm: whatever the level did while one could not be drawn is no difference.
    every = _draws_all(cells)
    aims = [Aim.level(cells.plans, arm).only(every) for arm in range(count)]
    shape = (count, len(shares))
    found = Distribution(
        np.full(shape, np.nan), np.zeros(shape), np.ones(shape), np.zeros(shape), np.ones(shape)
    )
    for place, share in enumerate(shares):
        indicator = cells.of_indicator(first + place, quantile.name)
        own = Measure(
            column=0,
            denominator=None,
            covariates=(),
            confidence=Bounded(0.0, 1.0),
            # Bonferroni over thresholds and arms.
            delta=measure.delta * float(share) / count,
            baseline=measure.baseline,
            reference=measure.reference,
            is_two_valued=True,
            is_sequential=measure.is_sequential,
        )
        # The first score is of the reference arm's level, for lifts.
        for arm, score in enumerate(follow_metric(indicator, own, aims).scores[1:]):
            _fill(found, arm, place, score, measure.delta / (2.0 * count))
    return found


def _fill(found: Distribution, arm: int, place: int, score: Score, alpha: float) -> None:
    """Fill in one arm at one threshold; α is the one-sided level for one look."""
    found.estimates[arm, place] = np.clip(score.estimate, 0.0, 1.0)
    found.low[arm, place], found.high[arm, place] = np.clip(score.interval(), 0.0, 1.0)
    # At one look the true quantile is one fixed threshold, and only its own interval must hold.
    found.fixed_low[arm, place], found.fixed_high[arm, place] = np.clip(score.interval_once(alpha), 0.0, 1.0)


def _estimate(thresholds: Array, values: Array, level: float) -> float | None:
    """Return where a distribution function (J,) reaches a level; None if that is beyond the thresholds."""
    if np.isnan(values).any():
        return None
    rising = np.maximum.accumulate(values)
    place = int(np.searchsorted(rising, level))
    if place in (0, len(rising)):
        return None
    left, right = rising[place - 1], rising[place]
    part = (level - left) / (right - left)
    return float(thresholds[place - 1] + part * (thresholds[place] - thresholds[place - 1]))


def _ends(thresholds: Array, low: Array, high: Array, level: float) -> Interval:
    """Return the ends of a quantile, of a distribution function between `low` and `high` (J,)."""
    # A distribution function rises: what holds at one threshold holds beyond it.
    least = np.maximum.accumulate(low)
    most = np.minimum.accumulate(high[::-1])[::-1]
    below = np.flatnonzero(most < level)
    above = np.flatnonzero(least >= level)
    return (
        float(thresholds[below[-1]]) if len(below) else None,
        float(thresholds[above[0]]) if len(above) else None,
    )


def _effect(
    labels: Sequence[str],
    arm: int,
    reference: int,
    estimates: Sequence[float | None],
    ends: Sequence[Interval],
    fixed: Sequence[Interval],
) -> Effect:
    """Return the difference of two quantiles: what the box of both intervals allows."""
    own, other = estimates[arm], estimates[reference]
    interval = _difference(ends[arm], ends[reference])
    low, high = interval
    is_higher = low is not None and low >= 0
    is_lower = high is not None and high <= 0
    return Effect(
        arm=labels[arm],
        over=labels[reference],
        estimate=None if own is None or other is None else finite(own - other),
        interval=interval,
        fixed=_difference(fixed[arm], fixed[reference]),
        lift=NOTHING,
        verdict="higher" if is_higher else "lower" if is_lower else "undecided",
        more_rows=None,
    )


def _difference(one: Interval, other: Interval) -> Interval:
    low = None if one[0] is None or other[1] is None else one[0] - other[1]
    high = None if one[1] is None or other[0] is None else one[1] - other[0]
    return low, high
