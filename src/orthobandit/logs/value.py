"""What other probabilities would have earned on a log, against those that were in force."""

from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from orthobandit._checks import check_fraction
from orthobandit._types import Array, Mask
from orthobandit.errors import ProbabilityError, RewardError
from orthobandit.estimate import Asymptotic, Bounded, Evidence, Tuning
from orthobandit.estimate.boundaries import GRID, SHARE, gamma_mixture, tightest_rho
from orthobandit.estimate.evidence import HIDDEN
from orthobandit.estimate.plan import checked_probabilities
from orthobandit.logs.cells import Cells
from orthobandit.logs.results import Interval, Value
from orthobandit.logs.sizes import SizesInTime
from orthobandit.logs.strata import Strata, forecasts_of, totals_at
from orthobandit.logs.when import when

AHEAD = 100  # times the rows of the first bucket that an interval is made tightest for
GUESS = 1000  # the same in rows, where bounds are known
STEP = 2.0  # from one scale to the next that pulls are compared with


@dataclass(frozen=True, eq=False)
class _Pulls:
    """Pulls g = q/p − 1 (P, K) of plans, their mean squares v (P,) and largest sizes (P,)."""

    plans: Array
    table: Array
    variance: Array
    reach: Array

    @classmethod
    def of(cls, plans: Array, wanted: Array) -> "_Pulls":
        ratio = np.divide(wanted, plans, out=np.ones_like(plans), where=plans > 0)
        table = ratio - 1.0
        variance = np.einsum("pk,pk->p", plans, table**2)
        return cls(plans, table, variance, np.abs(table).max(axis=1, initial=0.0))

    def of_cells(self, strata: Strata) -> Array:
        """Return the pull (G,) of each cell."""
        return np.asarray(self.table[strata.plan[strata.stratum], strata.arm])


def value_of(
    cells: Cells,
    probabilities: ArrayLike,
    delta: float = 0.05,
    bounds: tuple[float, float] | None = None,
    metric: int = 0,
    *,
    levels: Array | None = None,
) -> Value:
    """Return the reward per round of other probabilities q minus that of the logged ones p.

    Of a row of arm a in a bucket whose level was forecast as m, ψ = (q_a/p_a − 1)(r − m) has the mean
    Σ_a (q_a − p_a)·(mean of a), whatever the baseline does and whatever m is, if it was known before. The
    estimate is the plain average over rows; gaps need not be constant.

    Parameters
    ----------
    cells : Cells
    probabilities : array-like (K,) or (P, K)
        The same for all rows, or one row a plan.
    delta : float
        Probability that the interval is ever wrong.
    bounds : (float, float), optional
        Where all values of the metric must lie, for an exact interval. Pulls q/p − 1 may grow as they like:
        for each of the scales 1, 2, 4, … there is an interval that holds while they stay below it, and all
        of them share `delta`. Without bounds the interval is asymptotic, and the first bucket, which has no
        forecast, is left out.
    metric : int
        Which column of the cells.
    levels : (B,) array, optional
        m of each bucket, known before it; NaN where there is none. The mean of all earlier buckets by
        default.

    Raises
    ------
    ProbabilityError
        Where an arm would be drawn that the log's probabilities never draw: nothing is known of it there.
    """
    check_fraction("delta", delta)
    wanted = _checked(cells, probabilities)
    pulls, strata = _Pulls.of(cells.plans, wanted), Strata.of(cells, metric)
    if not len(strata):
        raise RewardError(f"the log has no row with a value of {cells.columns[metric]!r}; nothing to go by")
    if not np.any(pulls.variance[strata.plan] > 0):
        return Value(0.0, (0.0, 0.0), "exact: these are the probabilities of the log")
    if bounds is not None:
        return _exact(pulls, strata, delta, Bounded(*bounds), forecasts_of(strata, levels))
    if len(np.unique(strata.bucket)) == 1:
        return _one_look(pulls, strata, delta)
    return _asymptotic(pulls, strata, delta, forecasts_of(strata, levels))


def _checked(cells: Cells, probabilities: ArrayLike) -> Array:
    """Return q (P, K); refuse arms that plans with rows never draw."""
    given = checked_probabilities(probabilities)
    if given.shape not in ((len(cells.arms),), cells.plans.shape):
        raise ProbabilityError(
            f"probabilities have shape {given.shape}; one an arm, ({len(cells.arms)},), or one row a plan,"
            f" {cells.plans.shape}, is needed"
        )
    wanted = np.array(np.broadcast_to(given, cells.plans.shape))
    blind = (wanted > 0) & (cells.plans == 0)
    here = np.asarray(blind.any(axis=1))[cells.plan] & (cells.counts > 0)
    if here.any():
        raise ProbabilityError(_no_overlap(cells, wanted, blind, here))
    return wanted


def _no_overlap(cells: Cells, wanted: Array, blind: Mask, here: Mask) -> str:
    """Say which arm is asked for where it was never drawn."""
    plans, buckets = np.unique(cells.plan[here]), np.unique(cells.bucket[here])
    plan, arm = int(plans[0]), int(np.argmax(blind[plans[0]]))
    names = ", ".join(str(one) for one in plans[:5]) + (", …" if len(plans) > 5 else "")
    begin = when(cells, float(cells.times[buckets[0]]))
    return (
        f"probabilities give {cells.arms.labels[arm]!r} {wanted[plan, arm]:g}, but plan {plan} never draws"
        f" it: nothing is known of it there. So it is with {cells.counts[here].sum():,} of {cells.rows:,}"
        f" rows, in {len(buckets):,} of {len(np.unique(cells.bucket)):,} buckets, from that of {begin} on;"
        f" plans: {names}. Give 0 to arms that a plan does not draw, or leave these rows out"
    )


def _asymptotic(pulls: _Pulls, strata: Strata, delta: float, levels: Array) -> Value:
    first = strata.bucket[strata.stratum] == strata.bucket[0]
    n, s, q = (float(part[first].sum()) for part in (strata.counts, strata.sums, strata.squares))
    noise = max(q / n - (s / n) ** 2, 0.0) or 1.0
    left = strata.minus(levels)
    start = int(np.argmax((strata.bucket > strata.bucket[0]) & (pulls.variance[strata.plan] > 0)))
    spread = float(pulls.variance[strata.plan[start]]) or 1.0
    alpha = np.array(delta / 2.0)
    tuning = Tuning(alpha, tightest_rho(AHEAD * n * noise * spread, alpha), np.ones(()))
    evidence = _evidence(pulls, left)
    mode = (
        "asymptotic: holds at all times at once, if there are many rows; the first bucket, which has no"
        " forecast, is left out"
    )
    estimate, width = float(evidence.estimates), float(Asymptotic().width(evidence, tuning))
    return Value(estimate, _interval(estimate, width), mode)


def _evidence(pulls: _Pulls, left: Strata) -> Evidence:
    """Return the evidence that residuals are, as a sequence of contrasts has it."""
    sizes, g = SizesInTime.of(left), pulls.of_cells(left)
    squared, rows = left.by_stratum(left.squares), left.by_stratum(left.counts)
    some = np.flatnonzero(rows > 0)
    plan, place = left.plan[some], np.searchsorted(sizes.buckets, left.bucket[some])
    carried, hidden = np.zeros(len(some)), np.zeros(len(some))
    for arm in range(pulls.plans.shape[1]):
        share = pulls.plans[plan, arm] * pulls.table[plan, arm] ** 2
        carried += share * sizes.ratio[place, arm]
        hidden += share * sizes.hardly[place, arm]
    variance, buckets = pulls.variance[plan], len(sizes.buckets)
    needed = totals_at(place, rows[some] * variance, buckets)
    unknown = totals_at(place, rows[some] * hidden, buckets) > HIDDEN * needed
    last = int(np.flatnonzero(needed > 0)[-1]) if needed.any() else 0
    return Evidence(
        totals=np.array(float(g @ left.sums)),
        weights=np.array(float(left.counts.sum())),
        variances=np.array(float(g**2 @ left.squares)),
        slack=np.zeros(()),
        pooled=np.array(float(squared[some] @ np.maximum(variance, carried))),
        peaks=np.array(float(np.max(pulls.reach[plan] * sizes.excess[place], initial=0.0))),
        events=np.array(0.0 if unknown[last] else float(sizes.events[-1])),
    )


def _exact(pulls: _Pulls, strata: Strata, delta: float, mode: Bounded, levels: Array) -> Value:
    low, high = float(strata.low.min()) + strata.offset, float(strata.high.max()) + strata.offset
    if low < mode.low or high > mode.high:
        raise RewardError(
            f"values of the metric reach from {low:g} to {high:g}, beyond bounds={(mode.low, mode.high)};"
            " give bounds that hold all values, or none"
        )
    middle = np.where(np.isnan(levels), (mode.low + mode.high) / 2.0 - strata.offset, levels)
    left = strata.minus(np.clip(middle, mode.low - strata.offset, mode.high - strata.offset))
    g, rows = pulls.of_cells(left), float(left.counts.sum())
    step = max(ceil(log(float(pulls.reach[left.plan].max()), STEP) - 1e-12), 0)
    scale, alpha = mode.limit * STEP**step, delta / 2.0 / ((step + 1) * (step + 2))
    rho = tightest_rho(GUESS * (mode.limit / 2.0) ** 2, alpha) / scale**2
    # Each ρ of the grid has its share of α and its own boundary; by a union, any of them may be used.
    boundary = gamma_mixture(float(g**2 @ left.squares) / scale**2, SHARE * alpha, GRID * rho).min()
    estimate = float(g @ left.sums) / rows
    words = f"exact: holds at all times at once, for values between {mode.low:g} and {mode.high:g}"
    return Value(estimate, _interval(estimate, scale * float(boundary) / rows), words)


def _one_look(pulls: _Pulls, strata: Strata, delta: float) -> Value:
    """Take the bucket's own mean as its level, which costs one row."""
    rows = float(strata.counts.sum())
    left = strata.minus(np.full(strata.buckets, strata.sums.sum() / rows))
    g = pulls.of_cells(left)
    estimate = float(g @ left.sums) / max(rows - 1.0, 1.0)
    squares = float(g**2 @ left.squares) - estimate**2 * rows
    width = float(norm.isf(delta / 2.0)) * sqrt(max(squares, 0.0)) / rows if rows > 1 else np.inf
    words = "ordinary interval for one look at many rows: the log has a single bucket"
    return Value(estimate, _interval(estimate, width), words)


def _interval(estimate: float, width: float) -> Interval:
    return (estimate - width, estimate + width) if np.isfinite(width) else (None, None)
