"""Gaps of arms with their intervals: at all times or for one look, with lift, verdict and rows to go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri, stdtrit

from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate import ContrastSequence
from orthobandit.estimate.confidence.boundaries import NEAR, LogBets
from orthobandit.estimate.confidence.coherence import close_differences
from orthobandit.estimate.confidence.evidence import Evidence, Seen, Steps, Tuning
from orthobandit.estimate.confidence.modes import EVENTS
from orthobandit.estimate.confidence.one_look import Sides
from orthobandit.estimate.confidence.tightness import GUESSED_ROUNDS
from orthobandit.estimate.follow import row_sums as of
from orthobandit.estimate.follow.averages import Aim, Score, Spread
from orthobandit.estimate.follow.buckets import Follower
from orthobandit.estimate.follow.by_row import RowFollower
from orthobandit.estimate.follow.cells import Cells, Counted, Measure
from orthobandit.logs.effects.joint import (
    Joint,
    JointSums,
    joint_of,
    region_at_all_times,
    region_for_one_look,
)
from orthobandit.logs.results import Effect, Interval
from orthobandit.policy.anytime.forward import FAR, LATEST, SOONEST, Race, ends_of
from orthobandit.showing.numbers import finite

ROUNDING = 1e-9  # of quantities that should be 0
WAIT_STEPS = 60  # multiples of the rows at which is looked whether a gap has an interval
MIN_ROWS_OF_AN_ARM = 5  # rows of an arm, below which an ordinary interval says nothing
LEAST_LACK = 1e-4  # that a margin exceeds an undecided gap by, as a share
NOTHING: Interval = (None, None)
# Lifts.
GAP_SHARE = 0.8  # of δ, in exact modes: lifts depend on the gap more than on the level, which has the rest
HALF = 0.5  # of δ for each side of a box where features tell of arms
LIKELY_LIFT = 0.3  # that regions are made narrow for; they hold for any
ARMS = ("arm", "reference", "others")


def follow_metric(cells: Cells, measure: Measure, aims: Sequence[Aim] = ()) -> Follower:
    """Follow a metric of a log by its cells or, where rows have distributions of their own, by its rows.

    A log that is all in one bucket, and looked at once, is taken as a whole.
    """
    if cells.own is not None:
        if aims:
            raise AssertionError("averages that were asked for are followed by cells")
        return RowFollower(cells, measure).run()
    follower = Follower(cells, measure, aims)
    is_whole = len(cells.times) == 1 and not measure.is_sequential
    return follower.run_once() if is_whole else follower.run()


@dataclass(frozen=True, eq=False)
class Gaps:
    """Estimates (m,) of the pairs that were followed, and the ends of both kinds of interval.

    Attributes
    ----------
    estimates : (m,) array
        NaN where the log cannot tell.
    low, high : (m,) arrays
        Ends that hold at all times.
    fixed_low, fixed_high : (m,) arrays
        Ends for one look.
    share : float
        Share of δ that the intervals use.
    """

    estimates: Array
    low: Array
    high: Array
    fixed_low: Array
    fixed_high: Array
    share: float


def gaps_of(sequence: ContrastSequence, share: float = 1.0, sides: Sides | None = None) -> Gaps:
    """Return the gaps of a sequence at a share of its δ.

    Parameters
    ----------
    sequence : ContrastSequence
    share : float
    sides : Sides, optional
        From the follower, for intervals at one look that are right for small counts. Without them such
        intervals wait like the others, and use the larger of the variance and its value if arms were alike.
    """
    tuned = replace(sequence, tuning=replace(sequence.tuning, alpha=share * sequence.tuning.alpha))
    evidence = sequence.evidence
    known = evidence.weights > 0
    estimates = np.where(known, evidence.estimates, np.nan)
    low, high = tuned.intervals()
    below, above = _margins(sequence, tuned.tuning.alpha, sides)
    widest = np.ptp(sequence.confidence.range)  # no two means are further apart
    low, high = np.maximum(low, -widest), np.minimum(high, widest)
    return Gaps(
        estimates=estimates,
        low=low,
        high=high,
        fixed_low=np.maximum(estimates - below, -widest),
        fixed_high=np.minimum(estimates + above, widest),
        share=share,
    )


def _margins(sequence: ContrastSequence, alpha: Array, sides: Sides | None) -> tuple[Array, Array]:
    """Return how far gaps (m,) may be below and above their estimates, for one look; infinite if unknown."""
    evidence = sequence.evidence
    z = _quantiles(sequence, alpha)
    known = np.isfinite(z) & (evidence.weights > 0)
    if sides is None:
        error = np.sqrt(np.maximum(evidence.variances, evidence.pooled))
        known &= sequence.confidence.is_exact | (evidence.events >= EVENTS)
        below = above = np.where(known, z, 0.0) * error
    else:
        known &= ~sides.wait(sequence.seen, evidence.events, is_exact=sequence.confidence.is_exact)
        below, above = sides.margins(np.where(known, z, 0.0))
    weights = np.where(known, evidence.weights, 1.0)
    return np.where(known, below / weights, np.inf), np.where(known, above / weights, np.inf)


def close_gaps(gaps: Gaps, pairs: Whole, count: int, *, once: bool) -> Gaps | None:
    """Return the gaps, their intervals narrowed to what all pairs together imply; None if nothing fits.

    Parameters
    ----------
    gaps : Gaps
        Of all pairs, whose intervals hold together.
    pairs : (m, 2) array of int
    count : int
        Number of arms.
    once : bool
        Whether to narrow the intervals for one look instead of those that hold at all times.
    """
    low, high = (gaps.fixed_low, gaps.fixed_high) if once else (gaps.low, gaps.high)
    first, second = pairs.T
    upper = np.full((count, count), np.inf)
    np.fill_diagonal(upper, 0.0)
    upper[first, second] = np.where(np.isnan(high), np.inf, high)
    upper[second, first] = np.where(np.isnan(low), np.inf, -low)
    closed, is_empty = close_differences(upper)
    if is_empty:
        return None
    high = closed[first, second]
    low = np.minimum(-closed[second, first], high)  # but for rounding, it is below
    estimates = np.where(np.isnan(gaps.estimates), np.nan, np.clip(gaps.estimates, low, high))
    if once:
        return replace(gaps, estimates=estimates, fixed_low=low, fixed_high=high)
    return replace(gaps, estimates=estimates, low=low, high=high)


def _quantiles(sequence: ContrastSequence, alpha: Array) -> Array:
    """Return the half-width of ordinary intervals in standard errors (m,); infinite with few rows.

    Student's quantile with one degree of freedom less than the rarer arm has rows, times a factor for values
    of the arms that were fitted to the same rows.
    """
    arms = sequence.arms
    used = sequence.coefficients != 0
    rows = np.where(used, sequence.seen.drawn, np.inf).min(axis=1)
    if arms.dimension < len(arms) - 1:  # arms tell of each other
        rows = np.full(len(rows), sequence.seen.drawn.sum() - arms.dimension)
    free = np.maximum(rows - 1.0, 1.0)
    return np.asarray(
        np.where(rows >= MIN_ROWS_OF_AN_ARM, -stdtrit(free, alpha) * np.sqrt(rows / free), np.inf)
    )


def effect(follower: Follower, gaps: Gaps, place: int, sign: float, *, fixed: bool) -> Effect:
    """Return the effect of a pair, or of its reverse with sign −1.

    Parameters
    ----------
    follower : Follower
    gaps : Gaps
        Of its sequence.
    place : int
        Of the pair.
    sign : {1, −1}
    fixed : bool
        Whether the verdict rests on the interval for one look.
    """
    labels = follower.cells.arms.labels
    pair = follower.pairs[place]
    arm, over = (labels[int(one)] for one in (pair if sign > 0 else pair[::-1]))
    interval = _signed(gaps.low[place], gaps.high[place], sign)
    once = _signed(gaps.fixed_low[place], gaps.fixed_high[place], sign)
    verdict = verdict_of(once if fixed else interval)
    estimate = sign * float(gaps.estimates[place])
    is_open = verdict == "undecided" and np.isfinite(estimate) and follower.sequence is not None
    return Effect(
        arm=arm,
        over=over,
        estimate=finite(estimate),
        interval=once if fixed else interval,
        fixed=once,
        lift=NOTHING,
        verdict=verdict,
        more_rows=more_rows(follower, gaps, place, fixed=fixed) if is_open else None,
    )


def with_lift(one: Effect, lift: Interval) -> Effect:
    """Return an effect with its lift, widened to what does not contradict its gap.

    Lifts have their own δ, so their intervals need not agree with those of gaps. If a gap has no interval
    because too few events were seen, its lift has none either. If a gap may be 0, so may its lift. A wider
    interval still holds.
    """
    if one.interval == NOTHING or lift == NOTHING:
        return replace(one, lift=NOTHING)
    low, high = lift
    if one.verdict == "undecided" and low is not None and high is not None:
        return replace(one, lift=(min(low, 0.0), max(high, 0.0)))
    return replace(one, lift=lift)


def reference_effect(label: str) -> Effect:
    """Return the effect of the reference arm over itself."""
    return Effect(label, label, 0.0, (0.0, 0.0), (0.0, 0.0), NOTHING, "reference", None)


def unknown_effect(arm: str, over: str) -> Effect:
    """Return an effect of which nothing is known."""
    return Effect(arm, over, None, NOTHING, NOTHING, NOTHING, "undecided", None)


def below_another(effects: Sequence[Effect]) -> tuple[str, ...]:
    """Return arms whose interval over the reference arm lies below that of another."""
    best = max((one.interval[0] for one in effects if one.interval[0] is not None), default=-np.inf)
    return tuple(one.arm for one in effects if one.interval[1] is not None and one.interval[1] < best)


def verdict_of(interval: Interval) -> str:
    """Say on which side of 0 an interval lies."""
    low, high = interval
    return (
        "better" if low is not None and low > 0 else "worse" if high is not None and high < 0 else "undecided"
    )


def lift_of(gap: tuple[float, float], level: tuple[float, float]) -> Interval:
    """Return the range of gap/level over the intervals of both; None if the level may be 0."""
    low, high = gap
    least, most = level
    if not (least > 0 and np.isfinite([low, high]).all()):
        return NOTHING
    return (low / (most if low >= 0 else least), high / (least if high >= 0 else most))


def more_rows(follower: Follower, gaps: Gaps, place: int, *, fixed: bool) -> tuple[float, float, float]:
    """Return how many more rows would decide on a gap; see :func:`rows_to_go`.

    An interval for one look may wait for events although it would be narrow enough.
    """
    sequence = follower.sequence
    if sequence is None:
        raise AssertionError("only what was counted can be undecided")
    if not fixed:
        return rows_to_go(sequence, follower.rows, place, gaps.share)
    evidence = sequence.evidence
    weight, variance = float(evidence.weights[place]), float(evidence.variances[place])
    if weight <= 0 or variance <= 0:
        return (float(np.inf),) * 3
    error = np.sqrt(variance) / weight
    # Its margin on the side of 0, which may be wider than normal ones; they serve while there is none.
    estimate = float(gaps.estimates[place])
    end = float(gaps.fixed_low[place] if estimate > 0 else gaps.fixed_high[place])
    size, margin = abs(estimate) / error, abs(estimate - end) / error
    is_waiting = not np.isfinite(margin)
    z = -float(ndtri(gaps.share * sequence.tuning.alpha[place])) if is_waiting else margin
    z = max(z, size * (1.0 + LEAST_LACK), LEAST_LACK)
    wait = 0.0
    if is_waiting:
        # Events are taken to grow with rows, as for intervals at all times.
        events = float(sequence.seen.sizes.events)
        wait = max(EVENTS / events - 1.0, 0.0) * follower.rows if events > 0 else float(np.inf)
    soonest, middle, latest = (
        max(follower.rows * (_multiple(size, z, quantile) - 1.0), wait) for quantile in (SOONEST, 0.5, LATEST)
    )
    return middle, soonest, latest


def rows_to_go(
    sequence: ContrastSequence, rows: float, place: int, share: float = 1.0
) -> tuple[float, float, float]:
    """Return how many more rows decide on a gap if the split goes on: in half of all cases, and a range.

    The range is from the rows that decide in 5 % of all cases to those that decide in 80 %; all three are
    infinite where so many are never decided. The gap is drawn from what is known of it, with a flat prior,
    and sums grow in proportion to rows: see :mod:`orthobandit.policy.anytime.forward`.

    Parameters
    ----------
    sequence : ContrastSequence
        What is known after `rows`.
    rows : float
    place : int
        Of the gap.
    share : float
        Share of δ that intervals use.
    """
    evidence = sequence.evidence
    total, weight, variance = (
        float(part[place]) for part in (evidence.totals, evidence.weights, evidence.variances)
    )
    if weight <= 0 or variance <= 0:
        return (float(np.inf),) * 3
    alpha = share * float(sequence.tuning.alpha[place])
    error = np.sqrt(variance) / weight
    # A race of two arms, each with its test; a round of weight w tells of the gap with a variance of noise/w.
    tests = np.array([1.0, -1.0])
    race = Race(
        rounds=rows,
        estimates=np.array([total / weight, 0.0]),
        errors=np.array([[error], [0.0]]),
        drawn=np.full(2, rows),
        totals=total * tests,
        weights=np.full(2, weight),
        variances=np.full(2, variance),
        rho=np.full(2, float(sequence.tuning.rho[place])),
        alpha=np.full(2, alpha),
        noise=variance / weight,
        grid=NEAR if isinstance(sequence.tuning.grid, LogBets) else sequence.tuning.grid,
        split=np.array([[np.sqrt(rows / weight)], [0.0]]),
        wait=rows * _first_heard(sequence, place, alpha),
    )
    ending = ends_of(race)
    return ending.middle, ending.soonest, ending.latest


def _first_heard(sequence: ContrastSequence, place: int, alpha: float) -> float:
    """Return how many times the rows it takes until a gap has an interval; infinite if it never may."""
    if sequence.confidence.is_exact:
        return 1.0
    times = np.append(1.0, np.geomspace(1.0 + 1.0 / WAIT_STEPS, FAR, WAIT_STEPS))
    e = sequence.evidence
    tuning = Tuning(
        alpha=np.full(times.shape, alpha),
        rho=np.full(times.shape, sequence.tuning.rho[place]),
        scale=np.full(times.shape, sequence.tuning.scale[place]),
    )
    grown = Evidence(
        totals=times * e.totals[place],
        weights=times * e.weights[place],
        variances=times * e.variances[place],
        slack=times * e.slack[place],
        pooled=times * e.pooled[place],
        peaks=np.full(times.shape, e.peaks[place]),
        events=times * e.events[place],
    )
    is_heard = np.isfinite(sequence.confidence.width(grown, tuning))
    return float(times[np.argmax(is_heard)]) if is_heard.any() else float(np.inf)


def _multiple(size: float, z: float, quantile: float) -> float:
    """Return how many times the rows decide at one look, at this share of all cases; infinite if none does.

    With t times the rows, an estimate of standard error 1 will have moved by a normal variable of variance
    1 − 1/t, and its margin, now z > `size`, is z/√t: decided in the share q of cases where, up to the other
    side, size − z/√t = ndtri(q)·√(1 − 1/t). With u = 1/√t that is a quadratic equation.
    """
    moved = float(ndtri(quantile))
    a, b, c = z**2 + moved**2, -2.0 * size * z, size**2 - moved**2
    root = b**2 - 4.0 * a * c
    if root < -ROUNDING * b**2:
        return float(np.inf)
    # Of half of all cases it is 0, and what rounding leaves of it would be worth half of all digits.
    root = root if root > ROUNDING * b**2 else 0.0
    # The larger u is decided sooner; it must solve the equation itself and not only its square.
    for u in ((-b + sign * np.sqrt(root)) / (2.0 * a) for sign in (1.0, -1.0)):
        if 0.0 < u <= 1.0 and (size - z * u) * moved >= -ROUNDING * size**2:
            return float(u**-2)
    return float(np.inf)


def _signed(low: float, high: float, sign: float) -> Interval:
    ends = (low, high) if sign > 0 else (-high, -low)
    return (finite(ends[0]), finite(ends[1]))


def lifts_of(follower: Follower, *, once: bool) -> list[Interval]:
    """Return the relative lifts of all other arms over the reference arm, in their order.

    The lift of an arm is (Σ E y(a) − Σ E y(ref)) / Σ E y(ref), sums over the same rounds, which all count
    alike. Where arms multiply rewards it is the factor less 1, however level and split move; where they add
    to rewards it is the gap over the average level.

    Parameters
    ----------
    follower : Follower
        Of the metric.
    once : bool
        Whether they are for one look.
    """
    lifts = _unlimited_lifts(follower, once=once)
    if follower.measure.confidence.reward_range[0] < 0:
        return lifts
    # What cannot be negative cannot fall by more than all of it.
    return [(low if low is None else max(low, -1.0), high) for low, high in lifts]


def _unlimited_lifts(follower: Follower, *, once: bool) -> list[Interval]:
    """Return the lifts of all other arms over the reference arm, before any limit is applied."""
    cells = follower.cells
    measure = follower.measure
    others = [arm for arm in range(len(cells.arms)) if arm != measure.reference]
    if not follower.centres:
        return [NOTHING for _ in others]
    if cells.arms.dimension < len(cells.arms) - 1:
        return _by_features(follower, once=once)
    joint = joint_of(follower, measure.confidence.limit)
    delta = measure.delta / len(others)
    if measure.confidence.is_exact and not once:
        if isinstance(follower, RowFollower):
            return [_exact_of_rows(follower, joint, arm, delta) for arm in others]
        return [_exact(follower, joint, arm, delta) for arm in others]
    return [_lift(joint, arm, measure.reference, delta, once=once) for arm in others]


def _lift(joint: Joint, arm: int, reference: int, delta: float, *, once: bool) -> Interval:
    """Return the lift of one arm from its joint sums with the reference arm."""
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
    """Return the range of gap/level over their joint region; nothing while the level may be 0."""
    gap, level = sums.estimates
    if level <= 0:
        return NOTHING
    directions = np.array([[1.0, 0.0], [0.0, LIKELY_LIFT]])
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
    for aim, share in ((Aim.gap(p, 0, 1), GAP_SHARE), (Aim.level_beside(p, 1, 0), 1.0 - GAP_SHARE)):
        score = Score(
            aim,
            confidence,
            share * delta,
            noise=noise,
            rounds=GUESSED_ROUNDS,
            pilot=Spread.of(aim, joint.pilot.plans),
        )
        score.add(counted, seen)
        ends.append(score.interval())
    offset = float(joint.offsets[0])
    return lift_of(ends[0], (ends[1][0] + offset, ends[1][1] + offset))


def _exact_of_rows(follower: RowFollower, joint: Joint, arm: int, delta: float) -> Interval:
    """Return what :func:`_exact` does, for rows that each have a distribution of their own."""
    reference = follower.measure.reference
    sums = follower.sums.beside[:, arm]
    rounds = sums[:, 0, of.ROUNDS]
    line = joint.series[0]
    centre = line.forecasts + line.values[:, reference]
    ahead = (line.values[:, arm] - line.values[:, reference])[-len(rounds) :]
    noise = float(np.sqrt(joint.pilot.covariance[0, 0]))
    # Of the pilot: Σ 1/p and max 1/p of the arm and of the reference arm, and the number of rows.
    _, one, other, most, most_other, every = follower.pilot_levels[arm]
    gap = Evidence(
        totals=(rounds * ahead + sums[:, 0, of.PULLED] - sums[:, 1, of.PULLED]).sum(keepdims=True),
        weights=rounds.sum(keepdims=True),
        variances=sums[..., of.SQUARED].sum(keepdims=True)[0],
        slack=np.zeros(1),
        pooled=sums[:, 0, of.CUBED].sum(keepdims=True),
        peaks=sums[:, 0, of.CUBED_PEAK].max(keepdims=True),
    )
    level = Evidence(
        totals=(rounds * centre[-len(rounds) :] + sums[:, 1, of.PULLED]).sum(keepdims=True),
        weights=rounds.sum(keepdims=True),
        variances=sums[:, 1, of.SQUARED].sum(keepdims=True),
        slack=np.zeros(1),
        pooled=sums[:, 1, of.CUBED].sum(keepdims=True),
        peaks=sums[:, 1, of.CUBED_PEAK].max(keepdims=True),
    )
    reach = sums[..., of.REACH].max(axis=0)
    rows = max(every, 1.0)
    aim = Aim.level(follower.cells.plans[:1], reference)
    ends = list[tuple[float, float]]()
    for evidence, share, farthest, spread in (
        (gap, GAP_SHARE, reach.max(), Spread(max(most, most_other), (one + other) / rows)),
        (level, 1.0 - GAP_SHARE, reach[1], Spread(most_other, other / rows)),
    ):
        score = Score(
            aim,
            follower.measure.confidence,
            share * delta,
            noise=noise,
            rounds=GUESSED_ROUNDS,
            pilot=spread,
        )
        score.add_sums(evidence, float(farthest), score.sides, follower.seen)
        ends.append(score.interval())
    offset = float(joint.offsets[0])
    return lift_of(ends[0], (ends[1][0] + offset, ends[1][1] + offset))


def _by_features(follower: Follower, *, once: bool) -> list[Interval]:
    """Return lifts of arms with features: gaps, constant by assumption, over the average level."""
    if follower.sequence is None:
        raise AssertionError("something was counted")
    gaps = gaps_of(follower.sequence, HALF, follower.sides)
    ends = (gaps.fixed_low, gaps.fixed_high) if once else (gaps.low, gaps.high)
    level = follower.level_ends(HALF, once=once)
    count = len(follower.cells.arms) - 1
    return [lift_of((float(ends[0][place]), float(ends[1][place])), level) for place in range(count)]
