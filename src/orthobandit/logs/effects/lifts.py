"""Relative lifts: what an arm earns more than the reference arm, in parts of what that earns.

The lift of an arm is (Σ E y(a) − Σ E y(ref)) / Σ E y(ref), sums over the same rounds, which all count alike.
Where arms multiply rewards it is the factor less 1, however level and split move; where they add to rewards
it is the gap over the average level.
"""

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.estimate.confidence.evidence import Seen, Steps
from orthobandit.estimate.confidence.tightness import GUESSED_ROUNDS
from orthobandit.estimate.follow.averages import Aim, Score
from orthobandit.estimate.follow.buckets import Follower
from orthobandit.estimate.follow.timeline import Counted
from orthobandit.logs.effects.effects import NOTHING, gaps_of, lift_of
from orthobandit.logs.effects.joint import (
    Joint,
    JointSums,
    region_at_all_times,
    region_for_one_look,
    series_of,
)
from orthobandit.logs.results import Interval

GAP = 0.8  # of δ, in exact modes: lifts depend on the gap more than on the level, which has the rest
HALF = 0.5  # of δ for each side of a box where features tell of arms
LIKELY = 0.3  # size of a lift that regions are made narrow for; they hold for any
ARMS = ("arm", "reference", "others")


def lifts_of(follower: Follower, *, once: bool) -> list[Interval]:
    """Return the lifts of all other arms over the reference arm, in their order.

    Parameters
    ----------
    follower : Follower
        Of the metric.
    once : bool
        Whether they are for one look.
    """
    cells = follower.cells
    measure = follower.measure
    others = [arm for arm in range(len(cells.arms)) if arm != measure.reference]
    if not follower.centres:
        return [NOTHING for _ in others]
    if cells.arms.dimension < len(cells.arms) - 1:
        return _by_features(follower, once=once)
    joint = Joint(cells, series_of(follower), measure.confidence.limit)
    delta = measure.delta / len(others)
    if measure.confidence.is_exact and not once:
        return [_exact(follower, joint, arm, delta) for arm in others]
    return [_lift(joint, arm, measure.reference, delta, once=once) for arm in others]


def _lift(joint: Joint, arm: int, reference: int, delta: float, *, once: bool) -> Interval:
    path = joint.pair(arm, reference)
    if not float(path.weights[-1]) > 0:
        return NOTHING
    sums = path.at(-1)
    if not once:
        return lift_at_all_times(sums.mapped(gap_and_level(joint)), delta)
    each = np.stack([np.eye(len(joint.series))] * 2)
    return lift_for_one_look(sums.with_faded_pool(each).mapped(gap_and_level(joint)), delta)


def gap_and_level(joint: Joint) -> Array:
    """Return the combinations (2, 2L) of levels of an arm and the reference arm that a lift is made of.

    The gap is that of the series with covariates taken off, the level that of the plain metric.
    """
    if len(joint.series) == 1:
        return np.array([[1.0, -1.0], [0.0, 1.0]])
    return np.array([[1.0, 0.0, -1.0, 0.0], [0.0, 0.0, 0.0, 1.0]])


def lift_at_all_times(sums: JointSums, delta: float) -> Interval:
    """Return what gap and level in their region make; nothing while the level may be 0."""
    gap, level = sums.estimates
    if level <= 0:
        return NOTHING
    directions = np.array([[1.0, 0.0], [0.0, LIKELY]])
    region = region_at_all_times(sums, delta, directions, np.array([1.0, -gap / level]))
    if region is None or region.ends(np.array([0.0, 1.0]))[0] <= 0:
        return NOTHING
    return region.quotient(0, 1)


def lift_for_one_look(sums: JointSums, delta: float) -> Interval:
    """Return the lift by the delta method on the logarithm of the quotient of both levels.

    On that scale an arm with few sales is not called worse for sure; by Fieller's interval it would be,
    because its variance is small where its mean happens to be small.
    """
    own = np.array([1.0, 1.0])  # the level of the arm is gap and level of the reference arm together
    region = region_for_one_look(sums, delta, np.array([own, [0.0, 1.0]]))
    if region is None:
        return NOTHING
    gap, level = sums.estimates
    slope = own / (gap + level) - np.array([0.0, 1.0 / level])
    width = float(np.sqrt(slope @ region.shape @ slope))
    middle = float(np.log((gap + level) / level))
    return float(np.expm1(middle - width)), float(np.expm1(middle + width))


def _exact(follower: Follower, joint: Joint, arm: int, delta: float) -> Interval:
    """Return the lift from the box of gap and level, each an exact interval over the same rounds."""
    reference = follower.measure.reference
    confidence = follower.measure.confidence
    plans = follower.cells.plans
    # All other arms as one: scores of two arms do not depend on how it is made up.
    p = np.column_stack([plans[:, arm], plans[:, reference]])
    p = np.column_stack([p, np.maximum(1.0 - p.sum(axis=1), 0.0)])
    line = joint.series[0]
    tally = joint.tally(0, (arm, reference))
    values = np.column_stack([line.values[:, [arm, reference]], np.zeros(len(line.values))])
    begin = len(values) - len(joint.first)
    steps = Steps(p[joint.plans], tally.rounds, tally, values[begin:], joint.first)
    # Sums and ends serve ordinary intervals for one look, which are not asked for here.
    most = np.full(len(ARMS), confidence.limit)
    reach = (-most, most)
    counted = Counted(joint.plans, line.forecasts[begin:], steps, tally.sums, reach)
    seen = Seen.start(len(ARMS)).along(steps.whole)
    noise = float(np.sqrt(joint.pilot.covariance[0, 0]))
    ends = list[tuple[float, float]]()
    for aim, share in ((Aim.gap(p, 0, 1), GAP), (Aim.level_beside(p, 1, 0), 1.0 - GAP)):
        score = Score(
            aim, confidence, share * delta, noise=noise, rounds=GUESSED_ROUNDS, pilot=joint.pilot.plans
        )
        score.add(counted, seen)
        ends.append(score.interval())
    offset = float(joint.offsets[0])
    return lift_of(ends[0], (ends[1][0] + offset, ends[1][1] + offset))


def _by_features(follower: Follower, *, once: bool) -> list[Interval]:
    """Return lifts where features tell of arms: gaps, constant by assumption, over the average level."""
    if follower.sequence is None:
        raise AssertionError("something was counted")
    gaps = gaps_of(follower.sequence, HALF, follower.sides)
    ends = (gaps.fixed_low, gaps.fixed_high) if once else (gaps.low, gaps.high)
    level = follower.level_ends(HALF, once=once)
    count = len(follower.cells.arms) - 1
    return [lift_of((float(ends[0][place]), float(ends[1][place])), level) for place in range(count)]
