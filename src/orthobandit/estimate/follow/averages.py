"""Averages over rounds: the mean of one arm, the gap of two, the value of other probabilities."""

from dataclasses import dataclass, replace
from math import ceil, log
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.estimate import Confidence
from orthobandit.estimate.confidence.boundaries import tightest_rho
from orthobandit.estimate.confidence.evidence import (
    Batch,
    Carried,
    Evidence,
    Seen,
    Tuning,
    expected_shares,
    least_draws,
)
from orthobandit.estimate.confidence.one_look import Sides
from orthobandit.estimate.follow.cells import Counted

SIDES = 2
STEP = 4.0  # from one scale to the next that pulls are compared with, in exact modes
LEAST = 1e-300


@dataclass(frozen=True, eq=False)
class Aim:
    """What is averaged over rounds: under plan p, Σ_a mix_a·(mean of a), plus the level if `counts_level`.

    A reward of arm a pulls at it by h(a) with p_a·h(a) = mix_a, or by that less a constant: with a forecast m
    and values v of the arms from before the round, m·[counts_level] + Σ mix·v + h(a)·(r − m − v_a) has that
    mean, whatever the shift.

    Attributes
    ----------
    pull, mix : (P, K) arrays
    known : (P,) array of bool
        Plans whose rounds are averaged over.
    counts_level : bool
    """

    pull: Array
    mix: Array
    known: Mask
    counts_level: bool

    @classmethod
    def level(cls, plans: Array, arm: int) -> "Aim":
        """Return the aim at the level of an arm, over rounds of plans that draw it."""
        p = plans[:, arm]
        known = p > 0
        pull = np.zeros_like(plans)
        mix = np.zeros_like(plans)
        pull[:, arm] = np.divide(1.0, p, out=np.zeros_like(p), where=known)
        mix[:, arm] = known
        return cls(pull, mix, known, True)

    @classmethod
    def gap(cls, plans: Array, arm: int, over: int) -> "Aim":
        """Return the aim at the gap of an arm over another, over rounds of plans that draw both."""
        one = cls.level_beside(plans, arm, over)
        other = cls.level_beside(plans, over, arm)
        return cls(one.pull - other.pull, one.mix - other.mix, one.known, False)

    @classmethod
    def level_beside(cls, plans: Array, arm: int, other: int) -> "Aim":
        """Return the aim at the level of an arm, over rounds of plans that draw it and another arm."""
        return cls.level(plans, arm).only(plans[:, other] > 0)

    def only(self, plans: Mask) -> "Aim":
        """Return the aim over rounds of some plans (P,) alone."""
        some = plans[:, np.newaxis]
        return Aim(self.pull * some, self.mix * some, self.known & plans, self.counts_level)

    @classmethod
    def instead(cls, plans: Array, wanted: Array) -> "Aim":
        """Return the aim at the reward of probabilities q (P, K) minus that of the plans, h = q/p − 1."""
        ratio = np.divide(wanted, plans, out=np.ones_like(plans), where=plans > 0)
        return cls(ratio - 1.0, wanted - plans, np.ones(len(plans), dtype=np.bool_), False)


class Spread(NamedTuple):
    """How rewards of the pilot pull at an average: the largest |h(a)|, and the mean of E h²."""

    largest: float
    square: float

    @classmethod
    def of(cls, aim: Aim, pilot: Whole) -> "Spread":
        """Return it of some plans (n,)."""
        pull = aim.pull[pilot]
        return cls(
            float(np.abs(pull).max(initial=0.0)), float(np.mean(np.sum(aim.mix[pilot] * pull, axis=1)))
        )


class Score:
    """A confidence sequence for the plain average over rounds of an aim.

    Pulls may grow without limit. In exact modes there is an interval for each of the scales 1, 4, 16, … times
    the pilot's largest pull, which holds while pulls stay below that scale; all of them share δ.

    Parameters
    ----------
    aim : Aim
        Of plans, for :meth:`add`.
    confidence : Confidence
    delta : float
        Probability of ever being wrong.
    noise, rounds : float, int
        Guesses of the standard deviation of residuals and of the rounds it takes.
    pilot : Spread
        Of the rounds before those that count.
    is_two_valued : bool
        Whether all values are 0 or 1, for intervals at one look.

    Attributes
    ----------
    alpha : float
        Probability of ever being wrong to one side.
    evidence : Evidence
    sides : Sides
        What rows weigh, for intervals at one look.
    """

    def __init__(
        self,
        aim: Aim,
        confidence: Confidence,
        delta: float,
        *,
        noise: float,
        rounds: int,
        pilot: Spread,
        is_two_valued: bool = False,
    ) -> None:
        self._aim = aim
        self._confidence = confidence
        self.alpha = delta / SIDES
        # Where the pilot had the very probabilities that are asked for, it pulled at nothing: 1 is as good.
        self._first = pilot.largest or 1.0
        self._rho = float(tightest_rho(rounds * noise**2 * (pilot.square or 1.0), self.alpha))
        self._reach = self._first
        self._carried = Carried.start(1, aim.pull.shape[1])
        zero = np.zeros(1)
        self.sides = Sides.start(1, is_two_valued=is_two_valued)
        self._seen: Seen | None = None
        self.evidence = Evidence(zero, zero, zero, zero)

    def add(self, counted: Counted, seen: Seen) -> None:
        """Add the residuals of some buckets.

        Parameters
        ----------
        counted : Counted
        seen : Seen
            Sizes of the residuals seen (S,), up to and with each bucket.
        """
        aim = self._aim
        plans = counted.plans
        steps = counted.steps
        tally = steps.tally
        step = steps.step
        rounds = tally.rounds[:, np.newaxis].astype(np.float64)
        pull = aim.pull[plans]
        mix = aim.mix[plans]
        known = aim.known[plans, np.newaxis]
        weighted = pull**2
        # p·h = mix: the distribution comes back wherever the aim pulls, and elsewhere it is not needed.
        p = np.divide(mix, pull, out=np.zeros_like(pull), where=pull != 0)
        shares = expected_shares(p, seen.relative[step], seen.drawn[step])
        variance = np.sum(weighted * p, axis=1, keepdims=True)
        base = np.sum(mix * steps.values[step], axis=1) + (
            counted.forecasts[step] if aim.counts_level else 0.0
        )
        reach = np.maximum(np.abs(pull).max(axis=1, keepdims=True), LEAST)
        batch = Batch(
            rounds=rounds,
            largest=tally.largest.max(axis=1, keepdims=True),
            excess=seen.sizes.excess[step, np.newaxis],
            factor=np.where(known, 1.0, np.inf),
            square=variance,
            reach=reach,
            estimates=rounds * base[:, np.newaxis] + np.sum(pull * tally.sums, axis=1, keepdims=True),
            squares=np.sum(weighted * tally.squares, axis=1, keepdims=True),
            pooled=tally.squares.sum(axis=1, keepdims=True)
            * np.maximum(variance, np.sum(weighted * shares, axis=1, keepdims=True)),
        )
        open_weights = Tuning(np.ones(1), np.ones(1), np.full(1, np.inf))  # rounds count alike
        evidence = self.evidence.along(batch, np.zeros(1, dtype=np.int64), open_weights, self._confidence)
        self._carried = self._carried.along(
            replace(steps, probabilities=p, first=np.zeros(1, dtype=np.int64)),
            weighted[:, np.newaxis],
            batch.factor,
        ).at(0)
        is_unknown = self._carried.rest_on_unknown(least_draws(self.alpha))[0]
        events = np.where(is_unknown, 0.0, seen.sizes.events[-1])
        self.evidence = replace(evidence, events=np.full((1, 1), events)).at(0)
        # The scale only grows; an interval at a smaller one has ended when a larger pull came.
        self._reach = max(self._reach, float(reach.max(initial=0.0, where=known)))
        # Rows of plans that cannot tell count neither in the average nor in its error.
        weights = np.where(known, pull, 0.0)[:, np.newaxis]
        self.sides = self.sides.add(weights, tally, counted.sums, counted.ends)
        self._seen = seen.at(-1)

    def add_sums(self, evidence: Evidence, reach: float, sides: Sides, seen: Seen) -> None:
        """Take sums over all rounds that were added up elsewhere, instead of :meth:`add`.

        Parameters
        ----------
        evidence : Evidence
            (1,) arrays.
        reach : float
            The largest |h(a)| of a round.
        sides : Sides
        seen : Seen
            Residuals so far.
        """
        self.evidence = evidence
        self._reach = max(self._reach, reach)
        self.sides = sides
        self._seen = seen

    @property
    def estimate(self) -> float:
        """The average so far."""
        return float(self.evidence.estimates[0])

    @property
    def error(self) -> float:
        """Its standard error, for one look."""
        weight = float(self.evidence.weights[0])
        return float(np.sqrt(self.evidence.variances[0])) / weight if weight else float(np.inf)

    def interval_once(self, alpha: float) -> tuple[float, float]:
        """Return the ends for one look, each wrong with probability α; infinite if too little is known.

        See :class:`~orthobandit.estimate.confidence.one_look.Sides`.
        """
        weight = float(self.evidence.weights[0])
        if not weight or self._seen is None:
            return -np.inf, np.inf
        if self.sides.wait(self._seen, self.evidence.events, is_exact=self._confidence.is_exact).any():
            return -np.inf, np.inf
        below, above = self.sides.margins(np.array([-ndtri(alpha)]))
        return self.estimate - float(below[0]) / weight, self.estimate + float(above[0]) / weight

    def interval(self, share: float = 1.0) -> tuple[float, float]:
        """Return the ends at a share of δ; infinite where nothing is known."""
        alpha = share * self.alpha
        scale = 1.0
        if self._confidence.is_exact:
            step = max(ceil(log(self._reach / self._first, STEP) - 1e-9), 0)
            # Σ 1/((j+1)(j+2)) over all scales j is 1: together they spend α, however far pulls grow.
            alpha /= (step + 1) * (step + 2)
            scale = self._confidence.limit * self._first * STEP**step
        tuning = Tuning(np.array([alpha]), np.array([self._rho]), np.array([scale]))
        width = float(self._confidence.width(self.evidence, tuning)[0])
        return self.estimate - width, self.estimate + width
