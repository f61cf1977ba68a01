"""Metrics that are a sum over a sum: ratios of average levels, and how they differ between arms."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import numpy as np
import scipy

from orthobandit._foundation.types import Array
from orthobandit.estimate.confidence.sequence import MOST_PAIRED
from orthobandit.estimate.follow.buckets import Follower
from orthobandit.estimate.follow.cells import Cells, Measure
from orthobandit.logs.effects.effects import (
    NOTHING,
    below_another,
    follow_metric,
    reference_effect,
    unknown_effect,
    verdict_of,
)
from orthobandit.logs.effects.joint import (
    Joint,
    JointSums,
    PairPath,
    Region,
    region_at_all_times,
    region_for_one_look,
    series_of,
)
from orthobandit.logs.effects.metrics import Asked, mode_in_words, summaries
from orthobandit.logs.results import Effect, Interval, MetricResult
from orthobandit.showing.numbers import finite

# Levels of a pair of arms in this order: numerator and denominator of the arm, then those of the other.
ABOVE, BELOW, OTHER_ABOVE, OTHER_BELOW = range(4)
GRID_POINTS = 65  # of a grid that a ratio is searched on
FINER_GRIDS = 3  # one after another, each around the best point of the one before
# how far ratios may move, and differ, in parts of themselves; see _directions
MOVED = 0.3
DIFFER = 0.1
SIDES_OF_ONE = 1e-9  # tolerance of the ends of an interval, relative to the width of its box

Ends = tuple[float, float]


@dataclass(frozen=True, eq=False)
class RatioScores:
    """Numerator and denominator of a ratio as they were followed; `joint` is None if too few rows counted."""

    cells: Cells
    measure: Measure
    above: Follower
    joint: Joint | None

    @classmethod
    def of(cls, cells: Cells, measure: Measure) -> "RatioScores":
        """Follow numerator and denominator, each by itself."""
        if measure.denominator is None:
            raise AssertionError("a ratio has a denominator")
        alone = replace(measure, denominator=None)
        above = follow_metric(cells, alone)
        below = follow_metric(cells, replace(alone, column=measure.denominator))
        joint = None
        if above.centres and below.centres:
            joint = Joint(above.cells, [*series_of(above), *series_of(below)])
        return cls(cells, measure, above, joint)

    def path(self, arm: int, over: int) -> PairPath | None:
        """Return the levels of two arms as they grow; None if nothing is known of them."""
        if self.joint is None:
            return None
        path = self.joint.pair(arm, over)
        return path if float(path.weights[-1]) > 0 else None

    def region(self, sums: JointSums, delta: float, *, once: bool) -> Region | None:
        """Return the region of four levels; None while denominators may be 0, or too little is known."""
        if self.joint is None or not float(sums.weights) > 0:
            return None
        below = np.eye(4)[[BELOW, OTHER_BELOW]]
        found = self._for_one_look(sums, delta, below) if once else self._at_all_times(sums, delta)
        if found is None or any(found.ends(one)[0] <= 0 for one in below):
            return None
        return found

    def _for_one_look(self, sums: JointSums, delta: float, below: Array) -> Region | None:
        """Return the region that holds for one look; `below` are the directions (2, 4) of denominators."""
        n, d, n0, d0 = sums.estimates
        if d <= 0 or d0 <= 0:
            return None
        # A ratio is as well known as N − ρD, which may never have varied where N and D did.
        directions = np.array([[[1.0, -n / d]], [[1.0, -n0 / d0]]])
        return region_for_one_look(sums.with_faded_pool(directions), delta, below)

    def _at_all_times(self, sums: JointSums, delta: float) -> Region | None:
        """Return the region that holds at all times, tuned by the ratio of the pilot's means."""
        if self.joint is None or np.any(sums.estimates[[BELOW, OTHER_BELOW]] <= 0):
            return None
        above, below = self.joint.pilot.means
        ratio = float(above / below) if below > 0 else 0.0
        return region_at_all_times(sums, delta, _directions(ratio), _slope(sums.estimates))


def ratio_result(
    cells: Cells, asked: Asked, measure: Measure, *, once: bool, scores: RatioScores | None = None
) -> MetricResult:
    """Return the result of a ratio N/D.

    The ratio of an arm is Σ E N / Σ E D, sums over the same rounds for both arms of a comparison: all that
    could have drawn both. All four levels of two arms lie in one region
    (:mod:`orthobandit.logs.effects.joint`), and the interval of the difference of their ratios is its range
    over the region. Nothing is assumed of how levels, ratios or denominators move. The level of D must be
    positive on the whole region; otherwise there is no interval.

    Parameters
    ----------
    cells : Cells
    asked : Asked
        With a denominator.
    measure : Measure
        Of the ratio.
    once : bool
        Whether intervals are for one look.
    scores : RatioScores, optional
        If they were followed before.
    """
    count = len(cells.arms)
    reference = measure.reference
    labels = cells.arms.labels
    scores = scores or RatioScores.of(cells, measure)
    # Which arm looks best is seen in the end: each of K(K − 1)/2 pairs has the same part of δ, those with the
    # reference arm as well, so that everything that is shown holds together.
    is_paired = count <= MOST_PAIRED
    level = measure.delta / (count * (count - 1) / 2 if is_paired else count - 1)
    effects = _effects(scores, reference, level, once=once)
    effects.insert(reference, reference_effect(labels[reference]))
    against = list[Effect]()
    if is_paired and any(one.interval != NOTHING for one in effects if one.over != one.arm):
        best = max(effects, key=lambda one: -inf if one.estimate is None else one.estimate)
        against = _effects(scores, labels.index(best.arm), level, once=once)
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
        saved=scores.above.savings.shares(),
        baseline=scores.above.baseline,
        level=_level(scores, level, once=once),
        history=(),
    )


def _effects(scores: RatioScores, over: int, delta: float, *, once: bool) -> list[Effect]:
    """Return the effects of all other arms over an arm, each wrong with probability δ."""
    labels = scores.cells.arms.labels
    out = list[Effect]()
    for arm, label in enumerate(labels):
        if arm == over:
            continue
        unknown = unknown_effect(label, labels[over])
        path = scores.path(arm, over)
        if path is None:
            out.append(unknown)
            continue
        sums = path.at(-1)
        fixed = difference_of_ratios(scores.region(sums, delta, once=True))
        shown = fixed if once else difference_of_ratios(scores.region(sums, delta, once=False))
        levels = sums.estimates
        estimate = None
        if levels[BELOW] > 0 and levels[OTHER_BELOW] > 0:
            estimate = finite(levels[ABOVE] / levels[BELOW] - levels[OTHER_ABOVE] / levels[OTHER_BELOW])
        out.append(
            replace(unknown, estimate=estimate, interval=shown, fixed=fixed, verdict=verdict_of(shown))
        )
    return out


def _level(scores: RatioScores, delta: float, *, once: bool) -> Interval:
    """Return the interval of the ratio of the reference arm, from its region with another arm."""
    reference = scores.measure.reference
    for arm in range(len(scores.cells.arms)):
        path = None if arm == reference else scores.path(arm, reference)
        region = None if path is None else scores.region(path.at(-1), delta, once=once)
        if region is not None:
            return region.quotient(OTHER_ABOVE, OTHER_BELOW)
    return NOTHING


def difference_of_ratios(region: Region | None) -> Interval:
    """Return the ends of N/D − N₀/D₀ for levels (N, D, N₀, D₀) in a region.

    A difference h is possible if for some ρ both N − (ρ + h)D and N₀ − ρD₀ may be 0 at once. The distance of
    the region's centre from that plane is least for one ρ, and grows with h to either side of the estimate;
    where it is 1, the region ends.
    """
    if region is None:
        return NOTHING
    one = region.quotient(ABOVE, BELOW)
    other = region.quotient(OTHER_ABOVE, OTHER_BELOW)
    n, d, n0, d0 = region.centre.tolist()
    estimate = n / d - n0 / d0

    def beyond(h: float) -> float:
        # At these two values of ρ one of both distances is 0; the least is where they are in balance.
        alone = (n0 / d0, n / d - h)
        return _least(lambda ratio: _distances(region, ratio + h, ratio), other, alone) - 1.0

    return _end(beyond, estimate, one[0] - other[1]), _end(beyond, estimate, one[1] - other[0])


def _end(beyond: Callable[[float], float], inside: float, outside: float) -> float:
    """Return where a region ends, going from a point inside to one that is expected outside.

    `beyond` is negative inside the region, 0 where it ends and positive outside. If it is not positive at
    `outside`, the region goes that far, and `outside` is returned.
    """
    if beyond(outside) <= 0.0:
        return outside
    tolerance = SIDES_OF_ONE * abs(outside - inside) + 1e-300
    return float(scipy.optimize.brentq(beyond, inside, outside, xtol=tolerance))


def _least(distances: Callable[[Array], Array], ends: Ends, near: Ends) -> float:
    """Return the least distance over an interval, in which it falls and then rises.

    Where a denominator may be all but 0 the interval is thousands of times as wide as the valley, which a
    grid over all of it would miss: a distance that is too large makes an interval too narrow. So there is a
    second grid around the points that the valley is near.
    """
    low, high = ends
    around = abs(near[1] - near[0])
    closer = np.linspace(min(near) - around, max(near) + around, GRID_POINTS)
    points = np.sort(np.clip(np.concatenate([np.linspace(low, high, GRID_POINTS), closer, near]), low, high))
    found = distances(points)
    for _ in range(FINER_GRIDS):
        place = int(np.argmin(found))
        before, after = points[max(place - 1, 0)], points[min(place + 1, len(points) - 1)]
        best = float(found[place])
        points = np.linspace(before, after, GRID_POINTS)
        found = np.minimum(distances(points), best)
    return float(found.min())


def _distances(region: Region, ratios: Array, others: Array) -> Array:
    """Return squared distances of the region's centre from given ratios of two arms, in its own units."""
    rows = np.zeros((len(ratios), 2, 4))
    rows[:, 0, ABOVE] = rows[:, 1, OTHER_ABOVE] = 1.0
    rows[:, 0, BELOW] = -ratios
    rows[:, 1, OTHER_BELOW] = -others
    off = rows @ region.centre
    shape = rows @ region.shape @ np.swapaxes(rows, 1, 2)
    # The symmetric 2 × 2 matrix [[a, b], [b, c]] of each pair of ratios is inverted by hand.
    a = shape[:, 0, 0]
    b = shape[:, 0, 1]
    c = shape[:, 1, 1]
    x, y = off[:, 0], off[:, 1]
    return np.asarray((c * x * x - 2.0 * b * x * y + a * y * y) / (a * c - b * b))


def _directions(ratio: float) -> Array:
    """Return the directions (5, 4) in which differences lie, as far as is known beforehand.

    The difference is along (1, −ρ, −c, cρ₀) with c the quotient of the denominators. Before the first row
    that counts, both ratios are guessed as that of the pilot, and c as 1. Both ratios may move, and c may
    differ, by about MOVED of themselves. The ratios differ from each other by less.
    """
    return np.array(
        [
            [1.0, -ratio, -1.0, ratio],
            [0.0, -MOVED * ratio, 0.0, MOVED * ratio],
            [0.0, 0.0, -MOVED, MOVED * ratio],
            [0.0, 0.0, 0.0, MOVED**2 * ratio],
            [0.0, -DIFFER * ratio, 0.0, 0.0],
        ]
    )


def _slope(levels: Array) -> Array:
    """Return the gradient (4,) of N/D − N₀/D₀."""
    n, d, n0, d0 = levels
    return np.array([1.0 / d, -n / d**2, -1.0 / d0, n0 / d0**2])
