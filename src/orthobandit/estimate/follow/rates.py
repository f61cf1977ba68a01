"""Each arm's own mean (its rate) and its lift over the reference arm, from gaps and one average.

Gaps say how far arms are apart, not how much any of them earns. One more number does: M, the average over the
counted rounds of the expected reward of the arm that was drawn. With s_b the share of rounds in which arm b
was drawn and g_b its gap to the reference arm, arm a would have earned

    rate_a = M + g_a − Σ_b s_b·g_b

on average over the same rounds, because gaps are constant while the level moves. So rates are comparable
however the split has changed, and two of them differ by exactly the gap that is shown beside them.

M needs no weights: Σ (r_t − E[r_t | past, a_t]) is a martingale whose increments are residuals around a
predictable forecast, less their means. Its boundary takes a small share of the δ of the gaps
(:data:`~orthobandit.estimate.follow.rounds.LEVEL_SHARE`), so gaps, rates and lifts hold on one event.
"""

from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.estimate.confidence.boundaries import tightest_rho
from orthobandit.estimate.confidence.evidence import Evidence, Seen, Tuning
from orthobandit.estimate.confidence.modes import Confidence


@dataclass(frozen=True, eq=False)
class AverageReward:
    """What the counted rounds earned on average, as expected given the arms that were drawn.

    Attributes
    ----------
    estimate, low, high : float
        The ends are infinite while nothing is known.
    shares : (K,) array
        Of the counted rounds, how many were of each arm.
    deviation : float
        Standard deviation of a reward around its forecast; NaN before the first round.
    """

    estimate: float
    low: float
    high: float
    shares: Array
    deviation: float = float("nan")


@dataclass(frozen=True, eq=False)
class Rates:
    """Rates and lifts of all arms; NaN for an estimate, and ±inf for an end, that is not known.

    Attributes
    ----------
    estimates, low, high : (K,) arrays
        What each arm would have earned on average over all counted rounds.
    lifts, lift_low, lift_high : (K,) arrays
        The gap to the reference arm divided by that arm's rate; 0 for the reference arm itself.
    """

    estimates: Array
    low: Array
    high: Array
    lifts: Array
    lift_low: Array
    lift_high: Array


def average_reward(
    earned: float, seen: Seen, confidence: Confidence, alpha: float, *, noise: float, rounds: int
) -> AverageReward:
    """Return the average expected reward of the counted rounds, with ends that hold at all times at once.

    Parameters
    ----------
    earned : float
        Sum of forecasts and residuals of the counted rounds.
    seen : Seen
        Their residuals.
    confidence : Confidence
    alpha : float
        Probability that an end is ever wrong, each.
    noise, rounds : float, int
        Guesses of a residual's standard deviation and of the rounds at which the boundary is tightest.
    """
    sizes = seen.sizes
    count = float(sizes.rounds)
    if not count:
        return AverageReward(np.nan, -np.inf, np.inf, np.zeros(len(seen.drawn)))
    is_exact = confidence.is_exact
    peak = min(sizes.largest, confidence.limit) if is_exact else sizes.excess
    squared = np.array([sizes.squared])
    evidence = Evidence(
        totals=np.zeros(1),
        weights=np.array([count]),
        variances=squared,
        slack=np.array([confidence.bias * count]),
        # Exact modes need a bound on Σ|u|³ here, the asymptotic one the variance that draws would average to.
        pooled=peak * squared if is_exact else squared,
        peaks=np.array([peak]),
        events=np.asarray(sizes.events).reshape(1),
    )
    tuning = Tuning(
        alpha=np.array([alpha]),
        rho=tightest_rho(np.array([rounds * noise**2]), alpha),
        scale=np.array([confidence.limit if is_exact else 1.0]),
    )
    width = float(confidence.width(evidence, tuning)[0])
    middle = earned / count
    low, high = confidence.range
    return AverageReward(
        estimate=float(np.clip(middle, low, high)),
        low=max(middle - width, low),
        high=min(middle + width, high),
        shares=seen.drawn / count,
        deviation=float(np.sqrt(sizes.squared / count)),
    )


def rates_of(
    average: AverageReward,
    gaps: tuple[Array, Array, Array],
    reference: int,
    reward_range: tuple[float, float] = (-np.inf, np.inf),
) -> Rates:
    """Return the rates and lifts that follow from an average and from gaps.

    Both are monotone in each gap and in the average, so their extremes over the box of the intervals are at
    corners: the smallest box around what the intervals allow.

    Parameters
    ----------
    average : AverageReward
    gaps : tuple of (K,) arrays
        Estimates, lower and upper ends of each arm's gap to the reference arm.
    reference : int
    reward_range : (float, float)
        Where means lie.

    Examples
    --------
    Half of the rounds were of each arm and earned 0.3; arm 1 is better by 0.1 to 0.3.

    >>> average = AverageReward(0.3, 0.28, 0.32, np.array([0.5, 0.5]))
    >>> ends = (np.array([0.0, 0.2]), np.array([0.0, 0.1]), np.array([0.0, 0.3]))
    >>> found = rates_of(average, ends, 0)
    >>> found.estimates.round(3).tolist(), found.low.round(3).tolist(), found.high.round(3).tolist()
    ([0.2, 0.4], [0.13, 0.33], [0.27, 0.47])
    >>> found.lifts.round(3).tolist(), found.lift_low.round(3).tolist()
    ([0.0, 1.0], [0.0, 0.37])
    """
    estimates, low, high = gaps
    shares = average.shares
    if not shares.any():
        nothing = np.full(len(estimates), np.nan)
        return Rates(nothing, nothing, nothing, nothing, nothing, nothing)
    # What an arm of share 0 may be has no weight, even if it may be anything: 0·∞ counts as 0.
    least = _weighted(shares, low)
    most = _weighted(shares, high)
    middle = float(np.sum(shares * estimates))
    # The own gap of arm a appears once with weight 1 − s_a, the others with −s_b.
    own_low = _weighted(1.0 - shares, low)
    own_high = _weighted(1.0 - shares, high)
    bottom, top = reward_range
    with np.errstate(invalid="ignore"):
        rate_low = average.low + own_low - _sum_of_others(most)
        rate_high = average.high + own_high - _sum_of_others(least)
    rates = np.clip(average.estimate + estimates - middle, bottom, top)
    lifts = np.full((3, len(estimates)), np.nan)
    lifts[1], lifts[2] = _lift_ends(average, (low, high), (least, most))
    if rates[reference] > 0:
        # A quotient by a rate that may be 0 is no estimate of anything.
        lifts[0] = np.where(np.isfinite(lifts[1]), estimates / rates[reference], np.nan)
    if bottom >= 0:  # who earns nothing is 100 % below, and nobody is further
        lifts[1] = np.where(np.isfinite(lifts[1]), np.maximum(lifts[1], -1.0), lifts[1])
    lifts[:, reference] = 0.0
    return Rates(rates, np.maximum(rate_low, bottom), np.minimum(rate_high, top), *lifts)


def _weighted(weights: Array, values: Array) -> Array:
    """Return weights times values (K,), 0 where the weight is 0 even if the value is infinite."""
    return np.multiply(weights, values, out=np.zeros(len(values)), where=weights > 0)


def _sum_of_others(values: Array) -> Array:
    """Return for each entry (K,) the sum of all others."""
    finite = np.isfinite(values)
    total = np.where(finite, values, 0.0).sum()
    endless = values[~finite]
    if len(endless) == 0:
        return np.asarray(total - values)
    # Infinite ends have one sign; the sum of the others is finite only for the arm that has the only one.
    out = np.full(len(values), endless[0])
    if len(endless) == 1:
        out[~finite] = total
    return out


def _lift_ends(
    average: AverageReward, ends: tuple[Array, Array], weighted: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Return the ends (K,) of g_a / (M − Σ s_b·g_b); infinite while the denominator may be 0.

    The quotient rises with g_a as long as M − Σ_{b≠a} s_b·g_b > 0, and where it is positive it falls with the
    denominator.
    """
    low, high = ends
    least, most = weighted
    with np.errstate(invalid="ignore", divide="ignore"):  # of entries that are left out at the end
        # The reference arm's rate for g_a at one end, at its largest and its smallest over the others.
        large_at_low = average.high - _sum_of_others(least) - least
        small_at_low = average.low - _sum_of_others(most) - least
        large_at_high = average.high - _sum_of_others(least) - most
        small_at_high = average.low - _sum_of_others(most) - most
        is_positive = (small_at_high > 0) & (small_at_high + most > 0)
        is_positive &= np.isfinite(low) & np.isfinite(high)
        lower = np.where(low >= 0, low / large_at_low, low / small_at_low)
        upper = np.where(high >= 0, high / small_at_high, high / large_at_high)
    return np.where(is_positive, lower, -np.inf), np.where(is_positive, upper, np.inf)
