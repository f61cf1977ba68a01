"""Metrics that are a sum over a sum: ratios of average levels, and how they differ between arms."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from orthobandit.logs.cells import Cells
from orthobandit.logs.effects import NOTHING, finite, gaps_of, lift_of, verdict_of
from orthobandit.logs.follow import Follower, Measure
from orthobandit.logs.metrics import Asked, followed, mode_in_words, summaries
from orthobandit.logs.results import Effect, Interval, MetricResult
from orthobandit.logs.scores import Aim, Score

# δ of a ratio is cut in three: gaps of N − ρD, the ratio ρ of the reference arm, levels of D.
THIRD = 1.0 / 3.0

Ends = tuple[float, float]
UNKNOWN: Ends = (-np.inf, np.inf)


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
    unknown = Effect("", labels[reference], None, NOTHING, NOTHING, NOTHING, "undecided", None)
    effects = [replace(unknown, arm=labels[arm]) for arm in others]
    if rho is not None:
        low, middle, high = (followed(cells, replace(measure, ratio=value)) for value in rho)
        for place in range(count - 1):
            ends = [gaps_of(one.sequence, THIRD) for one in (low, high) if one.sequence is not None]
            if len(ends) == 2 and middle.sequence is not None:
                below = levels.below.scores[place + 1]
                always = (min(one.low[place] for one in ends), max(one.high[place] for one in ends))
                fixed = (
                    min(one.fixed_low[place] for one in ends),
                    max(one.fixed_high[place] for one in ends),
                )
                share = THIRD / (count - 1)
                level = levels.ends(below, share, levels.offsets[1])
                mean = below.estimate + levels.offsets[1]
                estimate = float(gaps_of(middle.sequence).estimates[place]) / mean if mean else np.nan
                shown = _over(fixed if once else always, level)
                effects[place] = replace(
                    effects[place],
                    estimate=finite(estimate),
                    interval=shown,
                    fixed=_over(fixed, level),
                    verdict=verdict_of(shown),
                )
    itself = Effect(
        labels[reference], labels[reference], 0.0, (0.0, 0.0), (0.0, 0.0), NOTHING, "reference", None
    )
    effects.insert(reference, itself)
    mode = mode_in_words(measure.confidence, 0.0, once=once)
    return MetricResult(
        name=asked.name,
        kind=asked.kind,
        mode=f"{mode}; the ratio is that of the averages over all rounds",
        delta=measure.delta,
        margin=None,
        effects=tuple(effects),
        against_best=(),
        droppable=_below_another(effects),
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


def _over(gap: Ends, level: Ends) -> Interval:
    return lift_of((float(gap[0]), float(gap[1])), level)


def _below_another(effects: list[Effect]) -> tuple[str, ...]:
    """Return arms whose interval lies below that of another."""
    best = max((one.interval[0] for one in effects if one.interval[0] is not None), default=-np.inf)
    return tuple(one.arm for one in effects if one.interval[1] is not None and one.interval[1] < best)
