"""Effects within segments, and whether they differ."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import chdtrc, ndtri

from orthobandit.estimate.follow.buckets import follow_metric
from orthobandit.estimate.follow.cells import Cells, Measure
from orthobandit.logs.effects.effects import Gaps, gaps_of
from orthobandit.logs.effects.metrics import Asked, metric_result
from orthobandit.logs.results import Heterogeneity, Interval, SegmentResult

LEVEL = 0.025  # to each side, of the intervals that Cochran's Q takes errors from


def by_segment(
    cells: Cells, asked: Asked, measure: Measure, *, once: bool
) -> tuple[tuple[SegmentResult, ...], tuple[Heterogeneity, ...]]:
    """Return the effects of every segment, jointly at the measure's δ, and for every arm whether they differ.

    Each segment has its own baseline. Intervals of two segments that do not overlap show at any time, with
    probability 1 − δ, that the gap is not the same in both; the p-value (Cochran's Q) is for one look. Q
    takes the error of a segment from its 95 % interval for one look, which is right for small counts;
    segments that have none yet are left out of it.
    """
    # All segments hold together, so each has its part of δ.
    shared = replace(measure, delta=measure.delta / len(cells.segments))
    found: list[tuple[SegmentResult, Gaps | None]] = []
    for place, name in enumerate(cells.segments):
        part = cells.of_segment(place)
        follower = follow_metric(part, shared)
        result = metric_result(asked, follower, once=once, history=False)
        gaps = None
        if follower.sequence is not None:
            share = LEVEL / float(follower.sequence.tuning.alpha[0])
            gaps = gaps_of(follower.sequence, share, follower.sides)
        found.append((SegmentResult(name, part.rows, result.effects), gaps))
    others = [arm for arm in range(len(cells.arms)) if arm != measure.reference]
    differ = tuple(_differ(found, arm, place) for place, arm in enumerate(others))
    return tuple(result for result, _ in found), differ


def _differ(found: Sequence[tuple[SegmentResult, Gaps | None]], arm: int, place: int) -> Heterogeneity:
    """Compare the gap of one arm, which is at a place among the pairs, between segments."""
    ends: list[tuple[str, Interval]] = []
    estimates = list[float]()
    precisions = list[float]()
    for result, gaps in found:
        ends.append((result.segment, result.effects[arm].interval))
        if gaps is None:
            continue
        error = float(gaps.fixed_high[place] - gaps.fixed_low[place]) / (-2.0 * float(ndtri(LEVEL)))
        if 0 < error < np.inf:
            estimates.append(float(gaps.estimates[place]))
            precisions.append(error**-2.0)
    apart = tuple((a, b) for (a, one), (b, two) in combinations(ends, 2) if _is_apart(one, two))
    p_value = None
    if len(estimates) > 1:
        x = np.array(estimates)
        w = np.array(precisions)
        q = float(w @ (x - w @ x / w.sum()) ** 2)
        p_value = float(chdtrc(len(x) - 1, q))
    first = found[0][0].effects[arm]
    return Heterogeneity(first.arm, first.over, p_value, apart)


def _is_apart(one: Interval, two: Interval) -> bool:
    """Tell whether two intervals do not overlap."""
    ends = ((one[1], two[0]), (two[1], one[0]))
    return any(high is not None and low is not None and high < low for high, low in ends)
