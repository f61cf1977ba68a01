"""Evidence on contrasts: weighted sums of unbiased estimates, and how much a single round weighs in them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, field, fields, replace
from functools import cached_property
from math import log
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.json_arrays import numbers_of, plain
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.estimate.confidence.boundaries import NEAR, Grid, LogBets
from orthobandit.estimate.tally import Tally

# Squares of the largest of n light-tailed residuals exceed (2·log n + this) times their mean less than once
# in a hundred runs; what exceeds it is a sign of rare events, of which there may be more.
USUAL = 6.0
# Rounds that are looked at together for their scatter: tallies with fewer are joined to the next.
TOGETHER = 4
# The asymptotic mode says nothing of a contrast while arms that were drawn less often than DRAWN carry more
# than the share HIDDEN of its variance: what they return is not known yet. See rests_on_unknown.
DRAWN = 10.0
HIDDEN = 0.25
# Draws, in units of log(1/α), before intervals at a level α rest on an arm: one that shows its largest values
# in one draw of eight has then hidden them with probability α.
PER_LEVEL = 8.0
# Effective draws, in units of log(1/α), before the asymptotic mode of a policy claims anything on a pair: as
# many where residuals are ordinary, and where they do not tell how large an event can be; see draws_waited.
WAIT = 4.0
QUIET_WAIT = 50.0
PER_SQUARED_GAP = 1.5  # the same, in units of the squared gap, where arms are far apart beside their spread
QUIET = 0.25  # mean square of an arm's residuals, in units of all arms', below which the arm is quiet

SUMMED = ("totals", "weights", "variances", "slack", "pooled")  # of the evidence; they add and subtract


class Limits(Protocol):
    """What is read of a mode of confidence."""

    @property
    def is_exact(self) -> bool:
        """Whether a scale was fixed that no round may exceed."""
        ...

    @property
    def limit(self) -> float:
        """Largest magnitude of a residual."""
        ...

    @property
    def bias(self) -> float:
        """Most that clipping can move the mean of a residual."""
        ...


def events(scattered: ArrayLike, largest: ArrayLike) -> Array:
    """Return scatter in units of the largest square (...), 0 before anything was seen; see :class:`Sizes`."""
    most = np.asarray(largest, dtype=np.float64)
    return np.asarray(np.asarray(scattered) / np.where(most > 0, most, np.inf) ** 2)


def _running_total(before: Any, values: Array) -> Array:
    return np.asarray(before + np.cumsum(values, axis=0))


def _running_most(before: Any, values: Array) -> Array:
    return np.asarray(np.maximum(before, np.maximum.accumulate(values, axis=0)))


def scatter_of(tally: Tally) -> Array:
    """Return the squares (...) of tallies (..., K) around the mean of each."""
    some = np.maximum(tally.rounds, 1)
    return np.asarray(np.maximum(tally.squares.sum(axis=-1) - tally.sums.sum(axis=-1) ** 2 / some, 0.0))


@dataclass(frozen=True)
class Sizes:
    """How large residuals were; numbers, or arrays over replications (...).

    Attributes
    ----------
    rounds : int or array
    squared, scattered : float or array
        Sums of their squares, and of their squares around the mean of each tally; of tallies of fewer than
        TOGETHER rounds, see :class:`Seen`.
    largest : float or array
        Largest magnitude.
    excess : float or array
        The largest magnitude, so far as it is beyond what light tails would show: in full from a third
        above that on.
    """

    rounds: Any = 0
    squared: Any = 0.0
    scattered: Any = 0.0
    largest: Any = 0.0
    excess: Any = 0.0

    def and_of(self, tally: Tally) -> "Sizes":
        """Return the sizes with those of a tally (..., K)."""
        return self._with(tally, np.add, np.maximum)

    def along(self, tallies: Tally, scatter: Array | None = None) -> "Sizes":
        """Return the sizes (S,) as they grow with each of S tallies (S, K) that scatter as given (S,)."""
        return self._with(tallies, _running_total, _running_most, scatter)

    def _with(
        self,
        tally: Tally,
        added: Callable[[Any, Any], Any],
        larger: Callable[[Any, Any], Any],
        scatter: Array | None = None,
    ) -> "Sizes":
        """Return the sizes with tallies, given what adds to a sum and what to a maximum."""
        count = tally.rounds
        squared = tally.squares.sum(axis=-1)
        largest = tally.largest.max(axis=-1)
        scattered = added(self.scattered, scatter_of(tally) if scatter is None else scatter)
        rounds = added(self.rounds, count)
        total = added(self.squared, squared)
        seen = np.maximum(rounds, 1)
        mean = np.maximum(squared / np.maximum(count, 1), total / seen)
        beyond = np.maximum(largest**2 - mean * (2.0 * np.log(seen) + USUAL), 0.0)
        excess = np.minimum(2.0 * np.sqrt(beyond), largest)
        most = larger(self.largest, largest)
        far = larger(self.excess, excess)
        if np.ndim(rounds):
            return Sizes(rounds, total, scattered, most, far)
        return Sizes(int(rounds), *map(float, (total, scattered, most, far)))

    @property
    def events(self) -> Array:
        """Scatter in units of the largest square: how many rounds of that size would carry all of it.

        Of n normal residuals about n/(2·log n), of rewards that are rarely 1 and mostly 0 the number of ones.
        A level that the forecast misses by is no event: it tells nothing of what a reward can be.
        """
        return events(self.scattered, self.largest)


def relative_squares(tally: Tally) -> Array:
    """Return each arm's sum of squared residuals (..., K) in units of what they were on average for all arms.

    Summed over tallies and divided by the rounds of the arm, it says how much larger residuals of that arm
    are, whatever bursts all arms had in common.
    """
    total = tally.squares.sum(axis=-1, keepdims=True)
    counts = np.asarray(tally.counts, dtype=np.float64)
    rounds = counts.sum(axis=-1, keepdims=True)
    ratio = np.divide(rounds, total, out=np.zeros_like(total), where=total > 0)
    return np.where(total > 0, tally.squares * ratio, counts)


def least_draws(alpha: ArrayLike) -> float:
    """Return the draws of an arm that intervals, one of them at a level as small as α, may rest on."""
    return max(DRAWN, PER_LEVEL * log(1.0 / float(np.min(alpha))))


def rests_on_unknown(carried: Iterable[Array], least: float) -> Mask:
    """Tell which estimates (...) rest on arms of which hardly anything is known.

    An estimate is a sum over all plans that counted, and so is what it rests on. A draw with the weight w and
    the pull g carries c = w²g² of its variance if residuals are alike. The draws of an arm, which carry Σc,
    tell its part of the variance as well as (Σc)²/Σc² draws that carry alike. So many have to have shown how
    large its rewards can be: those that carry little do not make up for a few that carry nearly all.

    Parameters
    ----------
    carried : three (..., K) arrays
        Σ w²·p_a·g(a)² over all rounds that counted, which is what each arm should carry; Σ c and Σ c² over
        its draws.
    least : float
        Draws that are enough; see :func:`least_draws`.
    """
    expected, pulled, squared = carried
    is_unknown = (pulled == 0) | (pulled**2 < least * squared)
    return np.asarray(np.sum(expected, axis=-1, where=is_unknown) > HIDDEN * expected.sum(axis=-1))


def quiet_arms(relative: Array, drawn: Array) -> Mask:
    """Tell which arms (..., K) have scattered much less than others: their events may still be to come.

    Parameters
    ----------
    relative, drawn : (..., K) arrays
        Sums of :func:`relative_squares`, rounds of each arm; one never drawn tells nothing.
    """
    return np.asarray((drawn > 0) & (relative < QUIET * drawn))


def draws_waited(totals: Array, weights: Array, variances: Array, are_quiet: ArrayLike) -> Array:
    """Return how far pairs have waited: they may be claimed at a level α once this is log(1/α).

    n draws hide an event of probability q with probability (1 − q)ⁿ ≤ exp(−qn). So c·log(1/α) draws of an arm
    hide one that comes once in c draws with probability at most α, whatever its size. What counts is the
    effective number of draws Σw = 1/(1/n_i + 1/n_j), at most that of either arm. c is 4, which makes eight
    draws of each of two arms that are drawn alike, and up to 50 where the spread that was seen does not tell
    how large an event can be: that of a quiet arm, or a small one beside the gap itself.

    Parameters
    ----------
    totals, weights, variances : arrays
        As in :class:`Evidence`, of an asymptotic mode.
    are_quiet : array of bool
        Whether an arm of the pair is among :func:`quiet_arms`.
    """
    # S²/(V·Σw), the squared gap in units of a round's variance; without any spread the gap says nothing.
    spread = variances * weights
    squared_gap = np.divide(totals**2, spread, out=np.full(spread.shape, np.inf), where=spread > 0)
    per_level = np.where(are_quiet, QUIET_WAIT, np.clip(PER_SQUARED_GAP * squared_gap, WAIT, QUIET_WAIT))
    return np.asarray(weights / per_level)


def expected_shares(probabilities: Array, relative: Array, drawn: Array) -> Array:
    """Return the share (..., K) of a round's squared residual that each arm should carry, from what was seen.

    Parameters
    ----------
    probabilities : (..., K) array
        The plan, or several.
    relative, drawn : (..., K) arrays
        Sums of :func:`relative_squares`, rounds of each arm; one never drawn is taken as average.
    """
    ratio = np.divide(relative, drawn, out=np.ones_like(relative), where=drawn > 0)
    return np.asarray(probabilities * ratio)


@dataclass(frozen=True, eq=False)
class Tuning:
    """How a boundary is tuned, fixed before the first counted round; all arrays broadcast.

    Attributes
    ----------
    alpha : array
        Probability of ever being wrong.
    rho : array
        Mixture parameter in the units of the variances.
    scale : array
        c ≥ |w·ψ − predicted| in every counted round.
    grid : Grid or LogBets
        Which multiples of ρ boundaries are mixed over: near ones, or wide where ρ is no more than a guess. Or
        laws of bets around 1/√ρ, where that is known to suit the gap.
    """

    alpha: Array
    rho: Array
    scale: Array
    grid: Grid | LogBets = NEAR


@dataclass(frozen=True, eq=False)
class Batch:
    """Rounds under one plan, as each contrast sees them; arrays broadcast.

    Attributes
    ----------
    rounds : float or array
    largest : float or array
        Largest magnitude of a residual.
    excess : float or array
        As in :class:`Sizes`, up to and with these rounds.
    factor : array
        What rounds are weighted by one over: v = E g² of each contrast, or 1 where all rounds count alike;
        +inf where the plan cannot estimate it.
    square : array
        v itself, the mean over the rounds, whatever they are weighted by.
    reach : array
        max |g(a)| over the arms that can be drawn.
    estimates : array
        Σ ψ.
    squares : array
        Σ (ψ − predicted)² = Σ g(a)²·residual².
    pooled : array
        What `squares` should be on average over the draws, as far as residuals tell.
    """

    rounds: float | Array
    largest: float | Array
    excess: float | Array
    factor: Array
    square: Array
    reach: Array
    estimates: Array
    squares: Array
    pooled: Array


@dataclass(frozen=True, eq=False)
class Evidence:
    """Sums of weighted contrast estimates; all arrays broadcast together.

    Attributes
    ----------
    totals : array
        Σ w·(ψ − truth) would be a martingale; this is Σ w·ψ.
    weights : array
        Σ w.
    variances : array
        Σ (w·ψ − predicted)².
    slack : array
        What clipping may have moved the totals by at most.
    pooled : array
        What `variances` should be on average over the draws: Σ w²·v·residual² if residuals are alike for all
        arms, Σ_a w²·p_a·g(a)²·(squared residuals of arm a as they were so far) if they are not; in each batch
        the larger. In exact modes at least Σ|w·ψ − predicted|³.
    peaks : array
        Largest w·|g(a)|·(excess of a residual) that a round may have had; in exact modes, of the residual.
    events : array
        See :attr:`Sizes.events`.
    waited : array
        See :func:`draws_waited`; +inf where whoever made the evidence has a rule of their own.
    """

    totals: Array
    weights: Array
    variances: Array
    slack: Array
    pooled: Array = field(default_factory=lambda: np.zeros(()))
    peaks: Array = field(default_factory=lambda: np.zeros(()))
    events: Array = field(default_factory=lambda: np.full((), np.inf))
    waited: Array = field(default_factory=lambda: np.full((), np.inf))

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly; events that are infinite as null."""
        shape = np.broadcast_shapes(*(np.shape(getattr(self, part.name)) for part in fields(self)))
        return {part.name: plain(np.broadcast_to(getattr(self, part.name), shape)) for part in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Evidence":
        """Invert :meth:`to_json`."""
        return cls(**{part.name: numbers_of(data[part.name]) for part in fields(cls)})

    @property
    def estimates(self) -> Array:
        """Weighted means of the contrast estimates; 0 without evidence."""
        out = np.zeros(np.broadcast(self.totals, self.weights).shape)
        return np.divide(self.totals, self.weights, out=out, where=self.weights > 0)

    def along(self, batches: Batch, first: Whole, tuning: Tuning, mode: Limits) -> "Evidence":
        """Return the evidence (S, ...) as it grows with each of S steps, of one batch or several.

        Parameters
        ----------
        batches : Batch
            With a leading axis (G,).
        first : (S,) array of int
            The first batch of each step, ascending from 0; every step has one.
        tuning, mode : Tuning, Limits
        """
        parts = Evidence(*[np.zeros(())] * 4).and_of(batches, tuning, mode)
        added = {name: np.add.reduceat(getattr(parts, name), first, axis=0) for name in SUMMED}
        sums = {name: _running_total(getattr(self, name), part) for name, part in added.items()}
        peaks = _running_most(self.peaks, np.maximum.reduceat(parts.peaks, first, axis=0))
        return replace(self, **sums, peaks=peaks)

    def at(self, place: int | slice) -> "Evidence":
        """Return one entry along a leading axis, or some."""
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        return Evidence(**{name: part[place] if np.ndim(part) else part for name, part in parts.items()})

    def and_of(self, batch: Batch, tuning: Tuning, mode: Limits) -> "Evidence":
        """Return the evidence with a batch of rounds, weighted by :func:`weights_of`."""
        weight = weights_of(batch.factor, batch.reach, tuning, mode)
        # A tally may know of its largest residual no more than √squares, which is beyond the limit.
        largest = np.minimum(batch.largest, mode.limit) if mode.is_exact else batch.excess
        peak = weight * batch.reach * largest
        squared = weight**2
        variance = squared * batch.squares
        return replace(
            self,
            totals=self.totals + weight * batch.estimates,
            weights=self.weights + weight * batch.rounds,
            variances=self.variances + variance,
            slack=self.slack + _moved(batch, weight, mode),
            pooled=self.pooled + (peak * variance if mode.is_exact else squared * batch.pooled),
            peaks=np.maximum(self.peaks, peak),
        )


def _moved(batch: Batch, weight: Array, mode: Limits) -> Array:
    """Return what clipping may have moved the totals of a batch by: E|g| ≤ √v times what it moves a mean."""
    if not mode.bias:
        return np.zeros(np.broadcast_shapes(np.shape(batch.rounds), weight.shape))
    square = np.where(weight > 0, batch.square, 0.0)
    return np.asarray(mode.bias * batch.rounds * weight * np.sqrt(square))


def weights_of(factor: Array, reach: Array, tuning: Tuning, mode: Limits) -> Array:
    """Return how much a round weighs: 1/v, 0 where v is infinite.

    In exact modes weights are capped, so that no round moves a sum by more than the scale that was fixed at
    first.

    Parameters
    ----------
    factor, reach : arrays
        As in :class:`Batch`.
    tuning, mode : Tuning, Limits
    """
    known = np.isfinite(factor)
    weight = np.divide(1.0, factor, out=np.zeros(np.shape(factor)), where=known)
    if mode.is_exact:
        weight = np.minimum(weight, tuning.scale / (mode.limit * np.maximum(reach, 1e-300)))
    return np.asarray(weight)


def step_numbers(first: Whole, count: int) -> Whole:
    """Return the step number of each of the first `count` rows, given the first row of each step."""
    return np.repeat(np.arange(len(first)), np.diff(np.append(first, count)))


@dataclass(frozen=True, eq=False)
class Steps:
    """G plans with their tallies, in S steps; the plans of one step were in force at the same time.

    Attributes
    ----------
    probabilities : (G, K) array
    rounds : (G,) array of int
        How long each plan is in force.
    tally : Tally
        Of residuals (G, K).
    values : (S, K) array
        What was taken from the rewards of each arm, the same for all plans of a step.
    first : (S,) array of int
        The first plan of each step, ascending from 0; every step has one. One step by default.
    """

    probabilities: Array
    rounds: Whole
    tally: Tally
    values: Array
    first: Whole = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @cached_property
    def step(self) -> Whole:
        """The step number of each plan (G,)."""
        return step_numbers(self.first, len(self.probabilities))

    @cached_property
    def whole(self) -> Tally:
        """The tally (S, K) of each step."""
        return self.tally.gathered(self.first)


@dataclass(frozen=True, eq=False)
class Carried:
    """What each arm carries of the variance of m estimates if residuals are alike: see `rests_on_unknown`.

    Attributes
    ----------
    expected, pulled, squared : (m, K) arrays
        With a leading axis (S,) for S moments.
    """

    expected: Array
    pulled: Array
    squared: Array

    @classmethod
    def start(cls, estimates: int, arms: int) -> "Carried":
        """Return the state before the first round."""
        zeros = np.zeros((estimates, arms))
        return cls(zeros, zeros, zeros)

    def along(self, steps: "Steps", weighted: Array, variance: Array) -> "Carried":
        """Return the state (S, ...) after each of S steps of G plans, whose rounds weigh 1/v.

        Parameters
        ----------
        steps : Steps
        weighted : (G, m, K) array
            g(a)².
        variance : (G, m) array
            v; infinite where a plan cannot estimate.
        """
        part = weighted / variance[..., np.newaxis] ** 2
        draws = steps.tally.counts[:, np.newaxis]
        expected = part * (steps.rounds[:, np.newaxis] * steps.probabilities)[:, np.newaxis]
        pulled = part * draws
        return Carried(
            *(
                _running_total(before, np.add.reduceat(added, steps.first, axis=0))
                for before, added in (
                    (self.expected, expected),
                    (self.pulled, pulled),
                    (self.squared, pulled * part),
                )
            )
        )

    def rest_on_unknown(self, least: float) -> Mask:
        """Tell which estimates (..., m) rest on arms with too few draws: :func:`rests_on_unknown`."""
        return rests_on_unknown((self.expected, self.pulled, self.squared), least)

    def at(self, step: int) -> "Carried":
        """Return the state at one of several moments."""
        return Carried(self.expected[step], self.pulled[step], self.squared[step])

    def with_arms(self, count: int) -> "Carried":
        """Return the state with `count` more arms, none of them drawn yet."""
        room = ((0, 0), (0, count))
        return Carried(*(np.pad(part, room) for part in (self.expected, self.pulled, self.squared)))

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly, of what is not 0."""
        row, arm = np.nonzero(self.expected + self.pulled)
        return {
            "row": row.tolist(),
            "arm": arm.tolist(),
            **{part.name: getattr(self, part.name)[row, arm].tolist() for part in fields(self)},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], estimates: int, arms: int) -> "Carried":
        """Invert :meth:`to_json`, for so many estimates and arms."""
        out = cls(*np.zeros((3, estimates, arms)))
        for part in fields(cls):
            getattr(out, part.name)[data["row"], data["arm"]] = data[part.name]
        return out


@dataclass(frozen=True, eq=False)
class Seen:
    """Residuals so far: their sizes, how often each arm was drawn, and how much each scattered.

    Attributes
    ----------
    sizes : Sizes
        How large residuals were.
    drawn, relative : (K,) arrays
        Rounds of each arm, and its squared residuals in units of the others'; see
        :func:`~orthobandit.estimate.confidence.evidence.relative_squares`. All have a leading axis (S,)
        for S moments.
    open : (3,) array
        Rounds, sum and squares of the last tallies as long as they have fewer than TOGETHER rounds: a tally
        of one round has no scatter, and beside its neighbours it has.
    """

    sizes: Sizes
    drawn: Array
    relative: Array
    open: Array

    @classmethod
    def start(cls, count: int) -> "Seen":
        """Return the state of `count` arms before the first round."""
        return cls(Sizes(), np.zeros(count), np.zeros(count), np.zeros(3))

    def along(self, tallies: Tally) -> "Seen":
        """Return the state (S,) after each of S tallies (S, K)."""
        scatter, left = self._scatter_along(tallies)
        return Seen(
            self.sizes.along(tallies, scatter),
            self.drawn + np.cumsum(tallies.counts, axis=0),
            self.relative + np.cumsum(relative_squares(tallies), axis=0),
            left,
        )

    def _scatter_along(self, tallies: Tally) -> tuple[Array, Array]:
        """Return the scatter (S,) that each of S tallies adds, and what is open (S, 3) after each."""
        rounds = tallies.rounds
        left = np.zeros((len(rounds), 3))
        scatter = scatter_of(tallies)
        if self.open[0] == 0 and np.all(rounds >= TOGETHER):
            return scatter, left
        parts = np.stack([rounds, tallies.sums.sum(axis=-1), tallies.squares.sum(axis=-1)], axis=-1)
        now = self.open
        for step, part in enumerate(parts):
            before = _scatter_around_mean(now)
            now = now + part
            scatter[step] = max(_scatter_around_mean(now) - before, 0.0)
            if now[0] >= TOGETHER:
                now = np.zeros(3)
            left[step] = now
        return scatter, left

    def at(self, place: int) -> "Seen":
        """Return the state at one of several moments."""
        rounds, *sizes = (part[place] for part in astuple(self.sizes))
        return Seen(
            Sizes(int(rounds), *map(float, sizes)), self.drawn[place], self.relative[place], self.open[place]
        )

    def with_arms(self, count: int) -> "Seen":
        """Return the state with `count` more arms, none of them drawn yet."""
        drawn, relative = (np.pad(part, (0, count)) for part in (self.drawn, self.relative))
        return replace(self, drawn=drawn, relative=relative)

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly."""
        return {
            "sizes": [int(self.sizes.rounds), *map(float, astuple(self.sizes)[1:])],
            "drawn": self.drawn.tolist(),
            "relative": self.relative.tolist(),
            "open": self.open.tolist(),
        }

    @classmethod
    def from_json(cls, data: Any) -> "Seen":
        """Invert :meth:`to_json`."""
        rounds, *sizes = data["sizes"]
        arrays = (np.array(data[name], dtype=np.float64) for name in ("drawn", "relative", "open"))
        return cls(Sizes(int(rounds), *map(float, sizes)), *arrays)


def _scatter_around_mean(part: Array) -> float:
    """Return squares around the mean of rounds whose number, sum and squares are given (3,)."""
    rounds, total, squared = map(float, part)
    return max(squared - total**2 / max(rounds, 1.0), 0.0)
