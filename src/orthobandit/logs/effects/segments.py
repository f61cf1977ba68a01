"""Effects within segments, and whether they differ."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.special import chdtrc, ndtri

from orthobandit._foundation.types import Array
from orthobandit.estimate.follow.cells import Cells, Measure, totals_at
from orthobandit.logs.effects.effects import NOTHING, Gaps, follow_metric, gaps_of
from orthobandit.logs.effects.metrics import Asked, metric_result
from orthobandit.logs.results import Effect, Heterogeneity, Interval, SegmentResult

Q_LEVEL = 0.025  # to each side, of the intervals that Cochran's Q takes errors from
# Segments of the buckets that begin before so many rows share δ equally, but for the part that is kept for
# segments that come later.
FIRST_ROWS = 500
LATER_SHARE = 0.1


def by_segment(
    cells: Cells, asked: Asked, measure: Measure, *, once: bool
) -> tuple[tuple[SegmentResult, ...], tuple[Heterogeneity, ...]]:
    """Return the effects of every segment, jointly at the measure's δ, and for every arm whether they differ.

    Each segment has its own baseline. Intervals of two segments that do not overlap show at any time, with
    probability 1 − δ, that the gap is not the same in both; the p-value (Cochran's Q) is for one look. Q
    takes the standard error of a segment from its 95 % interval for one look, which is right for small
    counts; segments without such an interval are left out.
    """
    count = len(cells.segments)
    shares = np.full(count, 1.0 / count) if once else segment_shares(cells)
    found: list[tuple[SegmentResult, Gaps | None]] = []
    for place, name in enumerate(cells.segments):
        part = cells.of_segment(place)
        is_known = shares[place] > 0
        share = float(shares[place]) if is_known else 1.0 / count
        follower = follow_metric(part, replace(measure, delta=share * measure.delta))
        result = metric_result(asked, follower, once=once, history=False)
        effects = result.effects if is_known else tuple(map(_without_claim, result.effects))
        gaps = None
        if follower.sequence is not None:
            share = Q_LEVEL / float(follower.sequence.tuning.alpha[0])
            gaps = gaps_of(follower.sequence, share, follower.sides)
        found.append((SegmentResult(name, part.rows, effects), gaps))
    others = [arm for arm in range(len(cells.arms)) if arm != measure.reference]
    differ = tuple(_differ(found, arm, place) for place, arm in enumerate(others))
    return tuple(result for result, _ in found), differ


def segment_shares(cells: Cells) -> Array:
    """Return the share (n,) of δ that each segment has for good; 0 while that is not known.

    All segments hold together at all looks, so no share may depend on how many segments have come so far: a
    look at two segments with δ/2 each and a later one at ten with δ/10 each would err with more than δ in
    all. The segments of the first buckets share 1 − `LATER_SHARE` of δ equally. The j-th bucket after these
    that brings new segments has `LATER_SHARE`/(j(j + 1)) of δ for them, which adds up to `LATER_SHARE`
    however many follow. The last bucket may still bring segments, so nothing is known of its new ones yet.
    """
    rows = totals_at(cells.bucket, cells.counts, len(cells.times))
    before = np.cumsum(rows) - rows
    first = np.full(len(cells.segments), len(rows))
    has_rows = cells.counts > 0
    np.minimum.at(first, cells.segment[has_rows], cells.bucket[has_rows])
    last = int(np.flatnonzero(rows)[-1]) if rows.any() else 0
    # −1 for all buckets that begin before FIRST_ROWS rows, then the bucket that brings the segment.
    is_first = before[np.minimum(first, last)] < FIRST_ROWS
    stage = np.where(is_first, -1, first)
    shares = np.zeros(len(stage))
    for j, begun in enumerate(np.unique(stage)):
        own = stage == begun
        part = 1.0 - LATER_SHARE if begun < 0 else LATER_SHARE / (j * (j + 1))
        is_over = before[last] >= FIRST_ROWS if begun < 0 else begun < last
        shares[own] = part / own.sum() if is_over else 0.0
    return shares


def _without_claim(effect: Effect) -> Effect:
    """Return an effect whose interval at all times is not known yet."""
    if effect.verdict == "reference":
        return effect
    return replace(effect, interval=NOTHING, lift=NOTHING, verdict="undecided", more_rows=None)


def _differ(found: Sequence[tuple[SegmentResult, Gaps | None]], arm: int, place: int) -> Heterogeneity:
    """Compare the gap of one arm, by its place among the pairs, between segments."""
    ends: list[tuple[str, Interval]] = []
    estimates = list[float]()
    precisions = list[float]()
    for result, gaps in found:
        ends.append((result.segment, result.effects[arm].interval))
        if gaps is None:
            continue
        error = float(gaps.fixed_high[place] - gaps.fixed_low[place]) / (-2.0 * float(ndtri(Q_LEVEL)))
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
