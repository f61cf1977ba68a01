"""Average levels of two arms over the same rounds, in several series, as one region that holds jointly.

The level of arm a in a series y, averaged over rounds, is the mean of the scores m + v_a + 1{drawn =
a}·(y − m − v_a)/p_a, whatever the shift, if forecast m and value v_a were known before the draw. The scores
of two arms and several series, less their means, are a martingale M in a few dimensions. A ratio of levels
moves with the rounds that it is averaged over, so a bound for one fixed direction λᵀM is not enough: the
region here bounds all directions at all times.

For every λ, exp(λᵀM − λᵀWλ/2) is a supermartingale, with W = ([M] + 2⟨M⟩)/3 (Delyon 2009). Its mixture over
λ ~ N(0, Λ) is det(I + ΛW)^(−1/2)·exp(½·Mᵀ(W + Λ⁻¹)⁻¹M), so that with probability 1 − α at all times

    Mᵀ(W + Λ⁻¹)⁻¹M ≤ 2·log(1/α) + log det(I + ΛW).

Λ is fixed by the pilot. It has most weight on the direction that the question is about, less on those that it
may turn to, and some on all others. Several multiples of Λ share α, for one does not know how many rounds
there will be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple, Self

import numpy as np
from scipy.special import stdtrit

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.estimate import Tally
from orthobandit.estimate.confidence.boundaries import Grid, normal_exponent, tightest_rho
from orthobandit.estimate.confidence.evidence import Sizes, events, least_draws, step_numbers
from orthobandit.estimate.confidence.modes import EVENTS
from orthobandit.estimate.confidence.tightness import GUESSED_ROUNDS
from orthobandit.estimate.follow import row_sums as of
from orthobandit.estimate.follow.buckets import Follower
from orthobandit.estimate.follow.by_row import RowFollower
from orthobandit.estimate.follow.cells import Cells, Series, coefficients_of, sorted_keys, totals_at

MIN_ROWS_OF_AN_ARM = 5  # rows of an arm, below which an interval for one look says nothing
# Square of a level over its variance, below which one look does not divide by it. Nine sales have that much;
# with fewer, the variance tells too little of how far the mean may be off.
FEWEST_SALES = 9.0
OTHER_DIRECTIONS_WEIGHT = (
    0.3  # weight of all directions: least eigenvalue of Λ, times the variance that is guessed
)
# How many times the guessed variance there may be in the end, and the shares of α of these guesses.
SCALES = Grid(10.0 ** np.arange(-1.0, 4.0), np.array([0.05, 0.6, 0.2, 0.1, 0.05]))
SINGULAR = 1e-6  # part of a variance that is added to it where series are exact multiples of each other


@dataclass(frozen=True, eq=False)
class CentredSeries:
    """A series cᵀv of the columns of a log with its forecasts and values of the arms.

    Attributes
    ----------
    column : int
        The metric that it is of.
    coefficients : (S, q) array
        c, in every step.
    begin : int
        The first step with forecasts.
    forecasts : (S,) array
    values : (S, K) array
    """

    column: int
    coefficients: Array
    begin: int
    forecasts: Array
    values: Array


def series_of(follower: Follower) -> list[CentredSeries]:
    """Return the series that was followed and, if it has covariates taken off, the plain metric beside it."""
    cells = follower.cells
    measure = follower.measure
    some = cells.only(cells.counts > 0)
    is_whole = len(cells.times) == 1
    first = np.unique(some.bucket, return_index=True)[1]
    first = first[:1] if is_whole else first
    begin = follower.centres[0].start
    forecasts = np.concatenate([one.forecasts for one in follower.centres])
    plain = np.concatenate([one.plain for one in follower.centres])
    values = np.concatenate([one.values for one in follower.centres])
    every = coefficients_of(some, first, measure)
    out = list[CentredSeries]()
    for c, levels in zip(every, (forecasts, plain), strict=False):
        # Slopes of a step come from the rows before it, or from all rows where there is one step.
        known = c[1:] if is_whole else c[:-1]
        out.append(
            CentredSeries(
                measure.column,
                known,
                begin,
                np.pad(levels, (begin, 0)),
                np.pad(values, ((begin, 0), (0, 0))),
            )
        )
    return out


class Pilot(NamedTuple):
    """Rows before those that count: plans, rows of each, means (L,) and covariance (L, L) of the series."""

    plans: Whole
    rows: Array
    means: Array
    covariance: Array


class Joint:
    """Residuals of L series in every (step, plan), T of them, arm by arm.

    Parameters
    ----------
    cells : Cells
        As followed.
    series : sequence of CentredSeries
    limit : float
        Magnitude that no residual exceeds.

    Attributes
    ----------
    plans, first : (T,), (S,) arrays of int
        The plan of each pair of a step and a plan, and where each step begins.
    rounds : (T,) array
    offsets : (L,) array
        What was taken from the column of each series before it was added up.
    pilot : Pilot
    """

    def __init__(self, cells: Cells, series: Sequence[CentredSeries], limit: float = np.inf) -> None:
        self.cells = cells
        self.series = tuple(series)
        self.offsets = np.array([cells.offset[one.column] for one in series])
        some = cells.with_counts()
        buckets, step = np.unique(some.bucket, return_inverse=True)
        if len(cells.times) == 1:
            step = np.zeros_like(step)
        begin = max(one.begin for one in series)
        self.buckets = buckets[begin:]
        is_counted = step >= begin
        self.pilot = _pilot(some.only(~is_counted), self.series, step[~is_counted])
        some = some.only(is_counted)
        step = step[is_counted]
        sums, products, low, high = _moments(some, self.series, step)
        n = some.counts.astype(np.float64)
        shift = np.stack([one.forecasts[step] + one.values[step, some.arm] for one in series], axis=1)
        crossed = sums[:, :, np.newaxis] * shift[:, np.newaxis]
        self._sums = sums - n[:, np.newaxis] * shift
        self._products = products - crossed - np.swapaxes(crossed, 1, 2)
        self._products += n[:, np.newaxis, np.newaxis] * shift[:, :, np.newaxis] * shift[:, np.newaxis]
        # Rounding may leave squares a little below what the mean alone gives.
        diagonal = np.einsum("gll->gl", self._products)
        diagonal[...] = np.maximum(diagonal, self._sums**2 / n[:, np.newaxis])
        most = np.minimum(np.maximum(np.abs(low - shift), np.abs(high - shift)), limit)
        # Nor may rounding leave the largest residual below the root mean square.
        self._largest = np.maximum(most, np.sqrt(diagonal / n[:, np.newaxis]))
        keys, self._place = sorted_keys(step * len(cells.plans) + some.plan)
        self.plans = keys % len(cells.plans)
        owner = keys // len(cells.plans) - begin
        self.first = np.searchsorted(owner, np.arange(len(self.buckets[: owner[-1] + 1])))
        self.step = step_numbers(self.first, len(keys))
        self._counts = n
        self._arm = some.arm
        self.rounds = self._total(n)
        self.products = self._total(self._products)
        self._sizes = [self._sizes_of(place) for place in range(len(series))]
        self._by_arm = np.argsort(some.arm, kind="stable")
        self._edges = np.searchsorted(some.arm[self._by_arm], np.arange(len(cells.arms) + 1))

    @property
    def rows(self) -> Whole:
        """Rows up to the end of each step (S,)."""
        return np.cumsum(self._by_step(self.rounds)).astype(np.int64)

    def _total(self, values: Array, cells: Whole | slice = slice(None)) -> Array:
        """Return the sums (T, ...) of values of some cells."""
        count = len(self.plans)
        flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
        place = self._place[cells]
        columns = [totals_at(place, flat[:, one], count) for one in range(flat.shape[1])]
        return np.stack(columns, axis=1).reshape(count, *values.shape[1:])

    def _most(self, values: Array, cells: Whole | slice = slice(None)) -> Array:
        """Return the largest (T, ...) of values of some cells, 0 where there are none."""
        out = np.zeros((len(self.plans), *values.shape[1:]))
        np.maximum.at(out, self._place[cells], values)
        return out

    def _sizes_of(self, line: int) -> Sizes:
        """Return how large residuals (S,) of a series were, up to and with each step."""
        whole = Tally(
            self.rounds.astype(np.int64)[:, np.newaxis],
            self._total(self._sums[:, line])[:, np.newaxis],
            self.products[:, line, line][:, np.newaxis],
            self._most(self._largest[:, line])[:, np.newaxis],
        )
        return Sizes().along(whole.gathered(self.first))

    def tally(self, line: int, arms: tuple[int, int]) -> Tally:
        """Return the tally (T, 3) of a series: of two arms, and of all others together."""
        cells = [self._cells_of(arm) for arm in arms]
        is_other = ~np.isin(self._arm, arms)
        cells.append(np.flatnonzero(is_other))
        parts = [
            [self._total(values[some], some) for some in cells]
            for values in (self._counts, self._sums[:, line], self._products[:, line, line])
        ]
        largest = [self._most(self._largest[some, line], some) for some in cells]
        counts, sums, squares = (np.stack(part, axis=1) for part in parts)
        return Tally(counts.astype(np.int64), sums, squares, np.stack(largest, axis=1))

    def _cells_of(self, arm: int) -> Whole:
        return self._by_arm[self._edges[arm] : self._edges[arm + 1]]

    def pair(self, arm: int, over: int) -> "PairPath":
        """Return the scores of two arms over the rounds of plans that draw both, as they grow."""
        p = self.cells.plans[self.plans][:, [arm, over]]
        known = np.asarray((p > 0).all(axis=1))
        rounds = np.where(known, self.rounds, 0.0)
        steps = len(self.first)
        size = len(self.series)
        totals, peaks, most = (np.zeros((steps, 2 * size)) for _ in range(3))
        variances, pooled, apart = (np.zeros((steps, 2 * size, 2 * size)) for _ in range(3))
        drawn = np.zeros((steps, 2))
        for place, one in enumerate((arm, over)):
            at = slice(place * size, place * size + size)
            cells = self._cells_of(one)
            inverse = np.divide(1.0, p[:, place], out=np.zeros(len(p)), where=known)
            counts = self._total(self._counts[cells], cells)
            drawn[:, place] = self._by_step(np.where(known, counts, 0.0))
            centre = np.stack([line.forecasts + line.values[:, one] for line in self.series], axis=1)
            totals[:, at] = self._by_step(rounds)[:, np.newaxis] * centre[-steps:]
            sums = self._total(self._sums[cells], cells)
            totals[:, at] += self._by_step(inverse[:, np.newaxis] * sums)
            products = self._total(self._products[cells], cells)
            apart[:, at, at] = self._scatter(inverse, counts, sums, products)
            variances[:, at, at] = self._by_step(inverse[:, np.newaxis, np.newaxis] ** 2 * products)
            # What squares of this arm's scores should be on average over the draws: those of all residuals,
            # or more by as much as those of this arm were larger so far.
            louder = np.sqrt(self._loudness(self._by_step(products), self._by_step(counts)))
            pooled[:, at, at] = self._by_step(inverse[:, np.newaxis, np.newaxis] * self.products)
            pooled[:, at, at] *= louder[:, :, np.newaxis] * louder[:, np.newaxis]
            largest = inverse[:, np.newaxis] * self._most(self._largest[cells], cells)
            most[:, at] = np.maximum.reduceat(largest, self.first, axis=0)
            reach = np.maximum.reduceat(inverse, self.first)[:, np.newaxis]
            peaks[:, at] = reach * np.stack([sizes.excess for sizes in self._sizes], axis=-1)
        return PairPath(
            totals=np.cumsum(totals, axis=0),
            weights=np.cumsum(self._by_step(rounds)),
            variances=np.cumsum(variances, axis=0),
            pooled=np.cumsum(pooled, axis=0),
            apart=apart,
            drawn=np.cumsum(drawn, axis=0),
            peaks=np.maximum.accumulate(peaks, axis=0),
            most=np.maximum.accumulate(most, axis=0),
            scattered=np.stack([one.scattered for one in self._sizes], axis=-1),
            largest=np.stack([one.largest for one in self._sizes], axis=-1),
            offsets=np.tile(self.offsets, 2),
            guess=self._guess(arm, over, p, known),
        )

    def _by_step(self, values: Array) -> Array:
        """Return the sums (S, ...) of values (T, ...) of each step."""
        return np.asarray(np.add.reduceat(values, self.first, axis=0))

    def _scatter(self, inverse: Array, counts: Array, sums: Array, products: Array) -> Array:
        """Return products (S, L, L) of an arm's scores around their mean residual, up to each step.

        Parameters
        ----------
        inverse, counts, sums, products : (T,), (T,), (T, L) and (T, L, L) arrays
            One over the probability of the arm, and its residuals.
        """
        squared = inverse**2
        drawn = np.cumsum(self._by_step(counts))[:, np.newaxis]
        mean = np.cumsum(self._by_step(sums), axis=0) / np.maximum(drawn, 1.0)
        raw = np.cumsum(self._by_step(squared[:, np.newaxis, np.newaxis] * products), axis=0)
        weighted = np.cumsum(self._by_step(squared[:, np.newaxis] * sums), axis=0)
        count = np.cumsum(self._by_step(squared * counts))[:, np.newaxis, np.newaxis]
        crossed = mean[:, :, np.newaxis] * weighted[:, np.newaxis]
        around = raw - crossed - np.swapaxes(crossed, 1, 2)
        return np.asarray(around + count * mean[:, :, np.newaxis] * mean[:, np.newaxis])

    def _loudness(self, products: Array, counts: Array) -> Array:
        """Return :func:`loudness_of` an arm (S, L), given its products (S, L, L) and counts (S,) by step."""
        return loudness_of(products, counts, self._by_step(self.products), self._by_step(self.rounds))

    def _guess(self, arm: int, over: int, p: Array, known: Mask) -> Array:
        """Return the covariance (2L, 2L) of the totals after GUESSED_ROUNDS, by pilot and plans."""
        plans = self.cells.plans[self.pilot.plans][:, [arm, over]]
        told = np.asarray((plans > 0).all(axis=1))
        if told.any():
            spread = np.average(1.0 / plans[told], axis=0, weights=self.pilot.rows[told])
        else:  # the first plan that draws both: it is fixed before its rounds
            spread = 1.0 / p[int(np.argmax(known))] if known.any() else np.ones(2)
        guess = np.kron(np.diag(spread), GUESSED_ROUNDS * self.pilot.covariance)
        return np.asarray(guess, dtype=np.float64)


class RowJoint(Joint):
    """As :class:`Joint`, for one series of rows with distributions of their own: their follower has the sums.

    Parameters
    ----------
    follower : RowFollower
        It has counted something.
    """

    def __init__(self, follower: RowFollower) -> None:
        cells = follower.cells
        self.cells = cells
        self.series = tuple(series_of(follower))
        self.offsets = np.array([cells.offset[one.column] for one in self.series])
        some = cells.with_counts()
        buckets, step = np.unique(some.bucket, return_inverse=True)
        begin = self.series[0].begin
        self.buckets = buckets[begin:]
        is_pilot = step < begin
        self.pilot = _pilot(some.only(is_pilot), self.series, step[is_pilot])
        self._follower = follower
        tally = follower.sums.tally
        self._drawn = tally.counts.astype(np.float64)
        self._residuals = tally.sums
        self._squares = tally.squares
        self.rounds = self._drawn.sum(axis=1)
        self._sizes = [Sizes().along(tally)]

    def _by_step(self, values: Array) -> Array:
        """Return values (S, ...), which are sums by step already."""
        return values

    def pair(self, arm: int, over: int) -> "PairPath":
        """Return the scores of an arm and the reference arm over rows that could have drawn both."""
        if over != self._follower.measure.reference:
            raise AssertionError("sums are of arms beside the reference arm")
        line = self.series[0]
        steps = len(self.rounds)
        sums = self._follower.sums.beside[:, arm]
        rounds = sums[:, 0, of.ROUNDS]
        totals, peaks, most = (np.zeros((steps, 2)) for _ in range(3))
        variances, pooled, apart = (np.zeros((steps, 2, 2)) for _ in range(3))
        for place, one in enumerate((arm, over)):
            own = sums[:, place]
            totals[:, place] = rounds * (line.forecasts + line.values[:, one])[-steps:] + own[:, of.PULLED]
            variances[:, place, place] = own[:, of.SQUARED]
            pooled[:, place, place] = own[:, of.FOR_ALL] * self._louder(one)
            apart[:, place, place] = self._around_mean(one, own)
            most[:, place] = own[:, of.FARTHEST]
            peaks[:, place] = own[:, of.REACH] * self._sizes[0].excess
        return PairPath(
            totals=np.cumsum(totals, axis=0),
            weights=np.cumsum(rounds),
            variances=np.cumsum(variances, axis=0),
            pooled=np.cumsum(pooled, axis=0),
            apart=apart,
            drawn=np.cumsum(sums[:, :, of.DRAWN], axis=0),
            peaks=np.maximum.accumulate(peaks, axis=0),
            most=np.maximum.accumulate(most, axis=0),
            scattered=self._sizes[0].scattered[:, np.newaxis],
            largest=self._sizes[0].largest[:, np.newaxis],
            offsets=np.tile(self.offsets, 2),
            guess=self._guess_of(arm),
        )

    def _louder(self, arm: int) -> Array:
        """Return :func:`loudness_of` an arm (S,)."""
        products = self._squares[:, arm, np.newaxis, np.newaxis]
        whole = self._squares.sum(axis=1)[:, np.newaxis, np.newaxis]
        return loudness_of(products, self._drawn[:, arm], whole, self.rounds)[:, 0]

    def _around_mean(self, arm: int, own: Array) -> Array:
        """Return squares (S,) of an arm's scores around its mean residual, up to each step."""
        drawn = np.cumsum(self._drawn[:, arm])
        mean = np.cumsum(self._residuals[:, arm]) / np.maximum(drawn, 1.0)
        squares, pulled, levers = np.cumsum(own[:, [of.SQUARED, of.LEVER, of.LEVERS]], axis=0).T
        return np.asarray(squares - 2.0 * mean * pulled + mean**2 * levers)

    def _guess_of(self, arm: int) -> Array:
        """Return the covariance (2, 2) of the totals after GUESSED_ROUNDS, by pilot and plans."""
        told, one, other = self._follower.pilot_levels[arm, :3]
        # Without a row of the pilot that tells, the first row that does: it is fixed before it counts.
        first = self._follower.first[arm]
        spread = np.array([one, other]) / told if told else np.where(first > 0, first, 1.0)
        return np.asarray(np.kron(np.diag(spread), GUESSED_ROUNDS * self.pilot.covariance))


def joint_of(follower: Follower, limit: float = np.inf) -> Joint:
    """Return the residuals of what was followed, pair by pair; no residual exceeds the limit."""
    if isinstance(follower, RowFollower):
        return RowJoint(follower)
    return Joint(follower.cells, series_of(follower), limit)


def loudness_of(products: Array, drawn: Array, whole: Array, rounds: Array) -> Array:
    """Return how many times larger an arm's mean square (S, L) was than that of all arms so far; at least 1.

    Parameters
    ----------
    products, whole : (S, L, L) arrays
        Sums of products of the residuals of the arm, and of all arms, in every step.
    drawn, rounds : (S,) arrays
        Rows of the arm, and all.
    """
    mine, all_arms = (np.einsum("sll->sl", one) for one in (products, whole))
    share = np.divide(mine, all_arms, out=np.zeros_like(all_arms), where=all_arms > 0)
    relative = np.cumsum(np.where(all_arms > 0, rounds[:, np.newaxis] * share, drawn[:, np.newaxis]), axis=0)
    return np.asarray(np.maximum(relative / np.maximum(np.cumsum(drawn), 1.0)[:, np.newaxis], 1.0))


@dataclass(frozen=True, eq=False)
class JointSums:
    """Sums of the scores of two arms, k = 2L of them: those of the first arm, then those of the second.

    Attributes
    ----------
    totals, peaks, offsets : (..., k) arrays
        Sums of scores; the most by which one round with heavy tails may have moved each sum; and the offset
        to add to levels.
    most : (..., k) array
        The largest residual of a score, which is the score minus its prediction.
    weights : (...) array
        Rounds.
    variances, pooled : (..., k, k) arrays
        Sums of products of these residuals, and their expectations.
    apart : (..., k, k) array
        As `variances`, but around the mean residual of each arm, so that a wrong forecast of the level does
        not count as an event.
    drawn : (..., 2) array
        Rounds of each arm.
    scattered, largest : (..., L) arrays
        As in :class:`~orthobandit.estimate.confidence.evidence.Sizes`.
    guess : (k, k) array
        A guess, from the pilot, of what `variances` will be in the end.
    """

    totals: Array
    weights: Array
    variances: Array
    pooled: Array
    apart: Array
    drawn: Array
    peaks: Array
    most: Array
    scattered: Array
    largest: Array
    offsets: Array
    guess: Array

    @property
    def estimates(self) -> Array:
        """Average levels (k,)."""
        return np.asarray(self.totals / self.weights[..., np.newaxis] + self.offsets)

    def mapped(self, rows: Array) -> Self:
        """Return the sums of linear combinations (k′, k) of the levels; each combines at most two."""
        return replace(
            self,
            totals=self.totals @ rows.T,
            offsets=self.offsets @ rows.T,
            variances=rows @ self.variances @ rows.T,
            pooled=rows @ self.pooled @ rows.T,
            apart=rows @ self.apart @ rows.T,
            # A round is of one arm, and moves one of the two.
            peaks=np.max(np.abs(rows) * self.peaks[..., np.newaxis, :], axis=-1),
            most=np.max(np.abs(rows) * self.most[..., np.newaxis, :], axis=-1),
            guess=rows @ self.guess @ rows.T,
        )

    def with_faded_pool(self, directions: Array) -> Self:
        """Return the sums with the pooled scatter of all arms faded out for arms that have shown their own.

        An arm whose few rows were alike has no variance of its own: 20 visits without a failure do not show
        that there are none. So for one look such an arm is given the scatter of all arms: in full up to
        `EVENTS` events of its own, and less and less after that.

        Parameters
        ----------
        directions : (2, r, L) array
            Combinations of the levels of each arm whose variances matter.
        """
        pooled = np.array(self.pooled)
        for arm, rows in enumerate(directions):
            at = slice(arm * rows.shape[1], (arm + 1) * rows.shape[1])
            scatter = np.einsum("ri,ij,rj->r", rows, self.apart[at, at], rows)
            # No row moves a combination by more than the largest of each series do together.
            seen = float(events(scatter, np.abs(rows) @ self.most[at]).min())
            pooled[at, at] *= EVENTS / max(seen, EVENTS)
        return replace(self, pooled=pooled)


class PairPath(JointSums):
    """The sums after each of S steps, along a leading axis."""

    def at(self, place: int) -> JointSums:
        """Return the sums after one step."""
        parts = {name: getattr(self, name)[place] for name in ALONG}
        return JointSums(**parts, offsets=self.offsets, guess=self.guess)

    def since(self, split: int) -> JointSums:
        """Return the sums of all steps after one."""
        last = self.at(-1)
        before = self.at(split)
        parts = {name: getattr(last, name) - getattr(before, name) for name in SUMMED}
        return replace(last, **parts)


SUMMED = ("totals", "weights", "variances", "pooled", "drawn", "scattered")
ALONG = (*SUMMED, "apart", "peaks", "most", "largest")


@dataclass(frozen=True, eq=False)
class Region:
    """All vectors z of levels (k,) with (z − centre)ᵀ·shape⁻¹·(z − centre) ≤ 1."""

    centre: Array
    shape: Array

    def ends(self, direction: Array) -> tuple[float, float]:
        """Return the ends of directionᵀz."""
        middle = float(direction @ self.centre)
        width = float(np.sqrt(direction @ self.shape @ direction))
        return middle - width, middle + width

    def quotient(self, above: int, below: int) -> tuple[float, float]:
        """Return the ends of the quotient of two levels, of which the second is nowhere 0.

        ρ is possible if N − ρD may be 0: (N − ρD)² ≤ (1, −ρ)·shape·(1, −ρ)ᵀ, a quadratic inequality. For one
        look that is Fieller's interval.
        """
        n, d = (float(self.centre[place]) for place in (above, below))
        nn, nd, dd = (float(self.shape[i, j]) for i, j in ((above, above), (above, below), (below, below)))
        square = d * d - dd
        half = n * d - nd
        root = sqrt(max(half * half - square * (n * n - nn), 0.0))
        return (half - root) / square, (half + root) / square


def region_at_all_times(sums: JointSums, delta: float, directions: Array, asked: Array) -> Region | None:
    """Return the region that holds at all times with probability 1 − δ; None while too little is known.

    Parameters
    ----------
    sums : JointSums
    delta : float
    directions : (r, k) array
        Directions on which Λ, the sum of their outer products, has weight; fixed before the rounds. The first
        is the direction of the question as the pilot estimates it; the others are what may have to be added
        to it.
    asked : (k,) array
        A direction: of the regions of several Λ that share δ, the one that is narrowest in it is returned.
    """
    is_rare = float(sums.drawn.min()) < least_draws(delta / 2.0)
    if is_rare or float(events(sums.scattered, sums.largest).min()) < EVENTS:
        return None
    larger = upper_bound(sums.variances, sums.pooled)
    w = (sums.variances + 2.0 * larger) / 3.0
    guess = sums.guess + np.diag(SINGULAR * sums.guess.diagonal())
    rho = float(tightest_rho(directions[0] @ guess @ directions[0], delta / 2.0))
    weight = directions.T @ directions / rho + OTHER_DIRECTIONS_WEIGHT * np.linalg.inv(guess)
    found: tuple[float, Array] | None = None
    for multiple, share in zip(*SCALES, strict=True):
        mixing = weight / multiple
        level = -2.0 * np.log(delta * share) + np.linalg.slogdet(np.eye(len(w)) + mixing @ w)[1]
        inverse = np.linalg.inv(mixing)
        # Rare events widen an interval by peak·l, with the exponent l of a boundary in one direction.
        exponent = float(normal_exponent(asked @ w @ asked, delta * share / 2.0, asked @ inverse @ asked))
        shape = _widened(level * (w + inverse), exponent * sums.peaks, asked)
        width = float(asked @ shape @ asked)
        if found is None or width < found[0]:
            found = width, shape
    if found is None:
        raise AssertionError("there are several Λ")
    return Region(sums.estimates, found[1] / float(sums.weights) ** 2)


def region_for_one_look(sums: JointSums, delta: float, divisors: Array) -> Region | None:
    """Return the region whose projections hold for one look, each with probability 1 − δ; None with few rows.

    Errors are enlarged because the arms' values may be fitted to the same rows. Student's quantile has the
    effective degrees of freedom of the variance, 2(Σe²)²/Σe⁴, which are at least 2·Σe²/max e²: about n/log n
    for n normal scores, twice the number of sales where all else is 0, few where a few rows dominate.

    Parameters
    ----------
    sums : JointSums
        With a pool that fades; see :meth:`JointSums.with_faded_pool`.
    delta : float
    divisors : (r, k) array
        Combinations of levels that will be divided by: each must be positive, and well known.
    """
    shape = upper_bound(sums.variances, sums.pooled) / float(sums.weights) ** 2
    levels = divisors @ sums.estimates
    variances = np.einsum("ri,ij,rj->r", divisors, shape, divisors)
    if np.any(levels <= 0) or np.any(levels**2 < FEWEST_SALES * variances):
        return None
    rows = float(sums.drawn.min())
    if rows < MIN_ROWS_OF_AN_ARM:
        return None
    squares = sums.variances.diagonal()
    free = min(rows - 1.0, 2.0 * float(events(squares, sums.most)[squares > 0].min(initial=np.inf)))
    level = float(stdtrit(free, delta / 2.0)) ** 2 * rows / (rows - 1.0)
    return Region(sums.estimates, level * shape)


def _widened(shape: Array, peaks: Array, asked: Array) -> Array:
    """Return the shape of the region, widened in every direction by the peaks (k,) in that direction.

    (√x + y)² ≤ (1 + ε)x + (1 + 1/ε)y² for every ε, with equality at ε = y/√x; ε is chosen so for the
    direction `asked`. In nearly all logs with ratios, a round that is large in both series is large to the
    same side, and the series are subtracted. So y² is taken as the sum of both squares, and not as the square
    of the sum.
    """
    beside = np.diag(peaks**2)
    x, y = (float(asked @ one @ asked) for one in (shape, beside))
    if y <= 0.0:
        return shape + beside
    epsilon = float(np.sqrt(y / x))
    return (1.0 + epsilon) * shape + (1.0 + 1.0 / epsilon) * beside


def upper_bound(one: Array, other: Array) -> Array:
    """Return a matrix that is at least as large as either: along common eigenvectors, the larger of both."""
    scale = np.sqrt(one.diagonal() + other.diagonal())
    scale = np.where(scale > 0, scale, 1.0)
    unit = one / np.outer(scale, scale) + SINGULAR * np.eye(len(one))
    factor = np.linalg.cholesky(unit)
    left = np.linalg.solve(factor, other / np.outer(scale, scale))
    values, vectors = np.linalg.eigh(np.linalg.solve(factor, left.T))
    half = scale[:, np.newaxis] * (factor @ vectors) * np.sqrt(np.maximum(values, 1.0))
    return np.asarray(half @ half.T)


def _moments(cells: Cells, series: Sequence[CentredSeries], step: Whole) -> tuple[Array, Array, Array, Array]:
    """Return sums (G, L), products (G, L, L) and range (G, L), twice, of all series in every cell."""
    parts = [
        Series(cells, step, one.coefficients, one.column, np.zeros_like(one.coefficients)) for one in series
    ]
    sums, low, high = (
        np.stack([getattr(one, name) for one in parts], axis=1) for name in ("sums", "low", "high")
    )
    products = np.zeros((*sums.shape, len(series)))
    used = [np.flatnonzero(one.coefficients.any(axis=0)) for one in series]
    for i, one in enumerate(series):
        products[:, i, i] = parts[i].squares
        for j in range(i):
            # Products that nobody asked for are not there: only columns that are used may be looked at.
            crossed = cells.products[:, used[i][:, np.newaxis], used[j]]
            left, right = one.coefficients[step][:, used[i]], series[j].coefficients[step][:, used[j]]
            products[:, i, j] = products[:, j, i] = np.einsum("gi,gij,gj->g", left, crossed, right)
    return sums, products, low, high


def _pilot(cells: Cells, series: Sequence[CentredSeries], step: Whole) -> Pilot:
    """Return what the rows before those that count tell; nothing if there are none."""
    size = len(series)
    if not len(step):
        return Pilot(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(size), np.eye(size))
    sums, products, _, _ = _moments(cells, series, step)
    rows = float(cells.counts.sum())
    mean = sums.sum(axis=0) / rows
    covariance = products.sum(axis=0) / rows - np.outer(mean, mean)
    # What does not vary in the pilot varies some day: by its own size, or 1 where it was 0.
    plain = np.where(covariance.diagonal() > SINGULAR * mean**2, 0.0, np.where(mean != 0, mean**2, 1.0))
    plans, place = np.unique(cells.plan, return_inverse=True)
    offsets = np.array([cells.offset[one.column] for one in series])
    counts = totals_at(place, cells.counts, len(plans))
    return Pilot(plans, counts, mean + offsets, covariance + np.diag(plain))
