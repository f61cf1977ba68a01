"""Metrics that are a sum over a sum: ratios of average levels, and how they differ between arms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

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
from orthobandit.logs.follow import MOST_PAIRED, Follower
from orthobandit.logs.measure import Measure
from orthobandit.logs.metrics import Asked, followed, mode_in_words, summaries
from orthobandit.logs.results import Effect, MetricResult
from orthobandit.logs.scores import Aim, Score

THIRD = 1.0 / 3.0  # of δ: for gaps of N − ρD, for ratios ρ that arms are compared with, for levels of D

Ends = tuple[float, float]


@dataclass(frozen=True)
class _Levels:
    """Followers of numerator and denominator, with the level of every arm as scores, the reference first."""

    above: Follower
    below: Follower
    once: bool

    @classmethod
    def of(cls, cells: Cells, measure: Measure, *, once: bool) -> "_Levels":
        """Follow numerator and denominator, each for itself."""
        aims = [Aim.level(cells.plans, arm) for arm in range(len(cells.arms)) if arm != measure.reference]
        alone = replace(measure, denominator=None)
        column = measure.column if measure.denominator is None else measure.denominator
        return cls(followed(cells, alone, aims), followed(cells, replace(alone, column=column), aims), once)

    def score(self, follower: Follower, arm: int) -> Score:
        """Return what is known of the level of an arm."""
        reference = follower.measure.reference
        return follower.scores[0 if arm == reference else arm + (arm < reference)]

    def level(self, follower: Follower, arm: int) -> float:
        """Return the level of an arm as estimated."""
        return self.score(follower, arm).estimate + float(follower.cells.offset[follower.measure.column])

    def ends(self, follower: Follower, arm: int, delta: float) -> Ends:
        """Return the ends of the level of an arm, wrong with probability δ; for one look if so asked."""
        score, level = self.score(follower, arm), self.level(follower, arm)
        if self.once:
            width = -float(ndtri(delta / 2.0)) * score.error
            return level - width, level + width
        low, high = score.interval(delta / (2.0 * score.alpha))
        return low + level - score.estimate, high + level - score.estimate

    def ratio(self, arm: int, delta: float) -> tuple[float, float, float] | None:
        """Return the lower end, the estimate and the upper end of the ratio of an arm; None if unknown."""
        if not self.above.scores or not self.below.scores:
            return None
        top, bottom = (self.ends(one, arm, delta / 2.0) for one in (self.above, self.below))
        low, high = lift_of(top, bottom)
        if low is None or high is None:
            return None
        return low, self.level(self.above, arm) / self.level(self.below, arm), high


def ratio_result(cells: Cells, asked: Asked, measure: Measure, *, once: bool) -> MetricResult:
    """Return what is said of a ratio N/D.

    The ratio of an arm is that of its average levels, over the same rounds for all arms. With ρ that of
    another arm, an arm's ratio is larger by (gap of N − ρ·gap of D)/(level of D). For every fixed ρ the
    numerator is the gap of the metric N − ρD, with an interval of its own; its ends are, but for curvature of
    the width that only helps, linear in ρ. So the hull of two intervals, for both ends of the interval of ρ,
    holds where ρ is in its interval and the interval at ρ holds. Each part has a third of δ. Which arm is the
    best is seen in the end, so that against it each arm's ρ and level and each ordered pair has its share.

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
    levels = _Levels.of(cells, measure, once=once)
    over = _Over(cells, measure, levels)
    rho = levels.ratio(reference, THIRD * measure.delta)
    effects = over.effects(reference, rho, 1)
    effects.insert(reference, reference_effect(labels[reference]))
    against = list[Effect]()
    if count <= MOST_PAIRED and rho is not None:
        best = max(effects, key=lambda one: -inf if one.estimate is None else one.estimate)
        arm = labels.index(best.arm)
        against = over.effects(arm, levels.ratio(arm, THIRD * measure.delta / count), count)
    mode = mode_in_words(measure.confidence, 0.0, once=once)
    return MetricResult(
        name=asked.name,
        kind=asked.kind,
        mode=f"{mode}; the ratio is that of the averages over all rounds",
        delta=measure.delta,
        margin=None,
        effects=tuple(effects),
        against_best=tuple(against),
        droppable=below_another(effects),
        summaries=summaries(cells, asked),
        saved=levels.above.savings.shares(),
        baseline=levels.above.baseline,
        level=NOTHING if rho is None else (finite(rho[0]), finite(rho[2])),
        history=(),
    )


@dataclass(frozen=True)
class _Over:
    """Effects of arms over another one."""

    cells: Cells
    measure: Measure
    levels: _Levels

    def effects(self, over: int, rho: tuple[float, float, float] | None, arms: int) -> list[Effect]:
        """Return the effects of all other arms over an arm of ratio ρ, which is one of so many arms."""
        labels = self.cells.arms.labels
        others = [arm for arm in range(len(labels)) if arm != over]
        unknown = [unknown_effect(labels[arm], labels[over]) for arm in others]
        if rho is None:
            return unknown
        followers = [followed(self.cells, replace(self.measure, ratio=value)) for value in rho]
        found = [gaps_of(one.sequence, THIRD / arms) for one in followers if one.sequence is not None]
        if len(found) < len(rho):
            return unknown
        pairs = [(int(i), int(j)) for i, j in followers[0].pairs]
        delta = THIRD * self.measure.delta / (arms if arms > 1 else len(others))
        out = list[Effect]()
        for arm, one in zip(others, unknown, strict=True):
            is_there = (arm, over) in pairs
            place = pairs.index((arm, over) if is_there else (over, arm))
            gaps = [_Gap.of(some, place, 1.0 if is_there else -1.0) for some in found]
            out.append(self._effect(one, gaps, arm, delta))
        return out

    def _effect(self, unknown: Effect, gaps: Sequence["_Gap"], arm: int, delta: float) -> Effect:
        """Return the effect of an arm whose gaps are for ρ at its lower end, as estimated, and upper."""
        low, middle, high = gaps
        below = self.levels.below
        level, mean = self.levels.ends(below, arm, delta), self.levels.level(below, arm)
        fixed = min(low.fixed[0], high.fixed[0]), max(low.fixed[1], high.fixed[1])
        always = min(low.always[0], high.always[0]), max(low.always[1], high.always[1])
        shown = lift_of(fixed if self.levels.once else always, level)
        return replace(
            unknown,
            estimate=finite(middle.estimate / mean) if mean else None,
            interval=shown,
            fixed=lift_of(fixed, level),
            verdict=verdict_of(shown),
        )


@dataclass(frozen=True)
class _Gap:
    """One gap: the estimate, and the ends of both kinds of interval."""

    estimate: float
    always: Ends
    fixed: Ends

    @classmethod
    def of(cls, gaps: Gaps, place: int, sign: float) -> "_Gap":
        """Return the gap of a pair, or of its reverse with sign −1."""
        always, fixed = (
            tuple(sorted(sign * float(end[place]) for end in ends))
            for ends in ((gaps.low, gaps.high), (gaps.fixed_low, gaps.fixed_high))
        )
        return cls(sign * float(gaps.estimates[place]), (always[0], always[1]), (fixed[0], fixed[1]))
