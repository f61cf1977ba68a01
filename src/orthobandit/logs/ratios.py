"""Metrics that are a sum over a sum: ratios of average levels, and how they differ between arms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy.special import ndtri

from orthobandit.logs.cells import Cells
from orthobandit.logs.effects import (
    NOTHING,
    Gaps,
    below_another,
    finite,
    gaps_of,
    lift_of,
    reference_effect,
    unknown_effect,
    verdict_of,
)
from orthobandit.logs.follow import Follower
from orthobandit.logs.measure import Measure
from orthobandit.logs.metrics import Asked, followed, mode_in_words, summaries
from orthobandit.logs.results import Effect, Interval, MetricResult
from orthobandit.logs.scores import Aim, Score

# δ of a ratio is cut in three: gaps of N − ρD, the ratio ρ of the reference arm, levels of D.
THIRD = 1.0 / 3.0

Ends = tuple[float, float]


@dataclass(frozen=True)
class _Levels:
    """Followers of numerator and denominator, with the level of every arm as scores, the reference first."""

    above: Follower
    below: Follower
    once: bool

    def ends(self, score: Score, share: float, offset: float) -> Ends:
        """Return the ends of a level at a share of the δ of the score; for one look if so asked."""
        if self.once:
            width = -float(ndtri(share * score.alpha)) * score.error
            return score.estimate + offset - width, score.estimate + offset + width
        low, high = score.interval(share)
        return low + offset, high + offset

    @property
    def offsets(self) -> tuple[float, float]:
        """What was taken from the columns of numerator and denominator."""
        columns = self.above.measure.column, self.below.measure.column
        return float(self.above.cells.offset[columns[0]]), float(self.above.cells.offset[columns[1]])


def ratio_result(cells: Cells, asked: Asked, measure: Measure, *, once: bool) -> MetricResult:
    """Return what is said of a ratio N/D.

    The ratio of an arm is that of its average levels, over the same rounds for all arms. With ρ that of the
    reference arm, an arm's ratio is larger by (gap of N − ρ·gap of D)/(level of D). For every fixed ρ the
    numerator is the gap of the metric N − ρD, with an interval of its own; its ends are, but for curvature of
    the width that only helps, linear in ρ. So the hull of two intervals, for both ends of the interval of ρ,
    holds where ρ is in its interval and the interval at ρ holds. Each part has a third of δ.

    Parameters
    ----------
    cells : Cells
    asked : Asked
        With a denominator.
    measure : Measure
        Of the ratio.
    once : bool
        Whether intervals are for one look.
    """
    count, reference, labels = len(cells.arms), measure.reference, cells.arms.labels
    others = [arm for arm in range(count) if arm != reference]
    aims = [Aim.level(cells.plans, arm) for arm in others]
    alone = replace(measure, denominator=None)
    column = asked.column if asked.denominator is None else asked.denominator
    levels = _Levels(followed(cells, alone, aims), followed(cells, replace(alone, column=column), aims), once)
    rho = _ratio(levels, (count - 1) / 6.0)
    effects = [unknown_effect(labels[arm], labels[reference]) for arm in others]
    if rho is not None:
        ends = [followed(cells, replace(measure, ratio=value)).sequence for value in rho]
        found = [gaps_of(one, THIRD) for one in ends if one is not None]
        if len(found) == len(ends):
            effects = [_effect(one, found, levels, place) for place, one in enumerate(effects)]
    effects.insert(reference, reference_effect(labels[reference]))
    mode = mode_in_words(measure.confidence, 0.0, once=once)
    return MetricResult(
        name=asked.name,
        kind=asked.kind,
        mode=f"{mode}; the ratio is that of the averages over all rounds",
        delta=measure.delta,
        margin=None,
        effects=tuple(effects),
        against_best=(),
        droppable=below_another(effects),
        summaries=summaries(cells, asked),
        saved=levels.above.savings.shares(),
        baseline=levels.above.baseline,
        level=NOTHING if rho is None else (finite(rho[0]), finite(rho[2])),
        history=(),
    )


def _ratio(levels: _Levels, share: float) -> tuple[float, float, float] | None:
    """Return the lower end, the estimate and the upper end of the reference arm's ratio; None if unknown."""
    if not levels.above.scores or not levels.below.scores:
        return None
    above, below = levels.above.scores[0], levels.below.scores[0]
    top = levels.ends(above, share, levels.offsets[0])
    bottom = levels.ends(below, share, levels.offsets[1])
    low, high = lift_of(top, bottom)
    if low is None or high is None:
        return None
    return low, (above.estimate + levels.offsets[0]) / (below.estimate + levels.offsets[1]), high


def _effect(unknown: Effect, found: Sequence[Gaps], levels: _Levels, place: int) -> Effect:
    """Return the effect at a place among gaps that are for ρ at its lower end, as estimated, and upper."""
    low, middle, high = found
    below, offset = levels.below.scores[place + 1], levels.offsets[1]
    level = levels.ends(below, THIRD / (len(levels.below.scores) - 1), offset)
    fixed = (
        min(low.fixed_low[place], high.fixed_low[place]),
        max(low.fixed_high[place], high.fixed_high[place]),
    )
    always = (min(low.low[place], high.low[place]), max(low.high[place], high.high[place]))
    mean = below.estimate + offset
    shown = _over(fixed if levels.once else always, level)
    return replace(
        unknown,
        estimate=finite(float(middle.estimates[place]) / mean) if mean else None,
        interval=shown,
        fixed=_over(fixed, level),
        verdict=verdict_of(shown),
    )


def _over(gap: Ends, level: Ends) -> Interval:
    return lift_of((float(gap[0]), float(gap[1])), level)
