"""One metric of a live experiment, followed round by round: residuals of settled proposals, and intervals.

Forecasts are made by :mod:`orthobandit.estimate.forecast.rounds`. Residuals come in the order of draws and
are added up by the distribution that they were drawn from. Every so many settled proposals, sums become
evidence.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Confidence, ContrastSequence, Plan, Tally
from orthobandit.estimate.confidence.sequence import guess_noise, start_gaps
from orthobandit.estimate.confidence.tightness import GUESSED_ROUNDS
from orthobandit.estimate.follow.rates import AverageReward, average_reward
from orthobandit.estimate.follow.regression import CentredRegression
from orthobandit.estimate.plan import Centre

MOST_ARMS = 200  # with more, intervals to the reference arm would take more room than they are worth
# Shares of δ: of the gaps of the arms there are at first, of those that come later, and of the average reward
# that rates rest on. Widths depend on them by a logarithm.
FIRST_SHARE = 0.95
LATER_SHARE = 0.025
LEVEL_SHARE = 0.025


class Sums:
    """A tally that grows in place."""

    def __init__(self, count: int, tally: Tally | None = None) -> None:
        start = Tally.zeros(count) if tally is None else tally
        self.counts = np.array(start.counts)
        self.sums = np.array(start.sums)
        self.squares = np.array(start.squares)
        self.largest = np.array(start.largest)

    def add(self, arms: Whole, values: Array) -> None:
        """Add rounds (n,) one after the other."""
        if len(arms) == 1:  # the same sums, by fewer steps
            arm = arms.item()
            value = values.item()
            self.counts[arm] += 1
            self.sums[arm] += value
            self.squares[arm] += value * value
            self.largest[arm] = max(self.largest[arm], abs(value))
            return
        np.add.at(self.counts, arms, 1)
        np.add.at(self.sums, arms, values)
        np.add.at(self.squares, arms, values**2)
        np.maximum.at(self.largest, arms, np.abs(values))

    @property
    def tally(self) -> Tally:
        """As an immutable tally."""
        return Tally(self.counts, self.sums, self.squares, self.largest)

    def padded(self, new: int) -> Tally:
        """Return the tally with `new` more arms."""
        parts = (self.counts, self.sums, self.squares, self.largest)
        return Tally(*(np.pad(part, (0, new)) for part in parts))


class GapIntervals:
    """Intervals for one metric's gaps to the reference arm, from all settled proposals, at all times at once.

    Arms that come later have a sequence of their own from then on.

    Parameters
    ----------
    confidence : Confidence
    arms : ArmSet
    reference : int
    delta : float
        Probability that any of the intervals is ever wrong.
    follows : bool
        Whether gaps are followed at all; otherwise no interval is ever finite.
    """

    def __init__(
        self, confidence: Confidence, arms: ArmSet, reference: int, delta: float, *, follows: bool = True
    ) -> None:
        self.confidence = confidence
        self.reference = reference
        self.delta = delta
        self.arms = arms
        self._sequences = list[ContrastSequence]()
        self._others = list[list[int]]()
        self._first_plans: list[int] = []
        self._pending: dict[int, Sums] = {}
        # Of point estimates. It takes a number for each pair of arms, so with very many arms there is none.
        is_small = follows and len(arms) <= MOST_ARMS
        self._regression = CentredRegression(len(arms)) if is_small else None
        self._earned = 0.0  # forecasts and residuals of all counted rounds, added up
        if follows and 1 < len(arms) <= MOST_ARMS:
            self._begin([arm for arm in range(len(arms)) if arm != reference])

    def _begin(self, others: list[int], first_plan: int = 0) -> None:
        # Arms that come later have half of what is left of their share, each time.
        later = len(self._sequences)
        share = LATER_SHARE / 2.0**later if later else FIRST_SHARE
        self._sequences.append(self._started(others, self.delta * share / len(others)))
        self._others.append(others)
        self._first_plans.append(first_plan)

    def _started(self, others: list[int], level: float) -> ContrastSequence:
        """Return a sequence of the gaps of some arms, each at a level, before its first round."""
        pairs = np.array([[arm, self.reference] for arm in others], dtype=np.int64)
        return start_gaps(self.arms, pairs, self.confidence, level, guess_noise(self.confidence))

    @cached_property
    def centre(self) -> Centre:
        """What is subtracted from values before they are tallied: the forecast, and no arm values."""
        zeros = np.zeros(len(self.arms))
        return self.confidence.centre(zeros, np.ones(len(self.arms), dtype=np.bool_))

    def add(self, distribution: int, arms: Whole, residuals: Array, forecasts: Array | float = 0.0) -> None:
        """Add settled rounds (n,) of a distribution, with the forecasts that residuals are around."""
        centre = self.centre
        known = np.minimum(np.maximum(forecasts, centre.low), centre.high)
        self._earned += float((known + residuals).sum())
        # By distribution: a sum of residuals is evidence only beside the probabilities they were drawn with.
        if distribution not in self._pending:
            self._pending[distribution] = Sums(len(self.arms))
        self._pending[distribution].add(arms, residuals)

    def flush(self, plans: Mapping[int, Plan]) -> list[tuple[Plan, Tally]]:
        """Add pending sums to the evidence, and return them with their plans."""
        taken = self._taken(plans)
        self._sequences = self._with(taken)
        self._regression = self._regression_with(taken)
        if self._regression is not None:
            self._regression.close(plans)
        self._pending = {}
        return taken

    def _taken(self, plans: Mapping[int, Plan]) -> list[tuple[Plan, Tally]]:
        """Return pending sums with their plans, centred as this metric is."""
        out = []
        # In the order in which distributions came into force: evidence is a sum over time.
        for number in sorted(self._pending):
            tally = self._pending[number].tally
            plan = plans[number]
            out.append((Plan(plan.probabilities, int(tally.rounds), self.centre, plan.number), tally))
        return out

    def _with(self, taken: list[tuple[Plan, Tally]]) -> list[ContrastSequence]:
        out = list(self._sequences)
        for plan, tally in taken:
            # Whoever added an arm may have known rewards of rounds drawn before: they are no evidence on it.
            out = [
                sequence.add(plan, tally) if int(plan.number) >= first else sequence
                for sequence, first in zip(out, self._first_plans, strict=True)
            ]
        return out

    def _regression_with(self, taken: list[tuple[Plan, Tally]]) -> CentredRegression | None:
        """Return the regression with more rounds, as sums of its own."""
        if self._regression is None or not taken:
            return self._regression
        out = self._regression.copy()
        for number, (_, tally) in zip(sorted(self._pending), taken, strict=True):
            out.add(number, tally)
        return out

    def intervals(self, plans: Mapping[int, Plan]) -> tuple[Array, Array, Array]:
        """Return estimates, lower and upper ends (K,) of each arm's gap to the reference arm.

        Estimates are least squares over all arms (:mod:`~orthobandit.estimate.follow.regression`), with more
        than 200 arms each pair's own; they need not lie in the intervals.
        """
        count = len(self.arms)
        taken = self._taken(plans)
        estimate = np.zeros(count)
        low = np.full(count, -np.inf)
        high = np.full(count, np.inf)
        low[self.reference] = high[self.reference] = 0.0
        for sequence, others in zip(self._with(taken), self._others, strict=True):
            estimate[others] = sequence.evidence.estimates
            low[others], high[others] = sequence.intervals()
        regression = self._regression_with(taken)
        if regression is not None:
            gaps, is_told = regression.gaps(self.arms, self.reference)
            estimate = np.where(is_told, gaps, estimate)
        least, most = self.confidence.range
        widest = most - least  # no two means are further apart
        return np.clip(estimate, -widest, widest), np.maximum(low, -widest), np.minimum(high, widest)

    def average(self, plans: Mapping[int, Plan]) -> AverageReward | None:
        """Return the average expected reward of all counted rounds; None where no gap is followed."""
        if not self._sequences:
            return None
        seen = self._with(self._taken(plans))[0].seen
        return average_reward(
            self._earned,
            seen,
            self.confidence,
            LEVEL_SHARE * self.delta / 2.0,
            noise=guess_noise(self.confidence),
            rounds=GUESSED_ROUNDS,
        )

    @property
    def deviation(self) -> float:
        """Standard deviation of the metric's residuals so far; NaN before the first."""
        sizes = self._sequences[0].seen.sizes if self._sequences else None
        return float(np.sqrt(sizes.squared / sizes.rounds)) if sizes is not None and sizes.rounds else np.nan

    def extend(self, arms: ArmSet, first_plan: int = 0) -> None:
        """Add arms; the sequences so far go on.

        Parameters
        ----------
        arms : ArmSet
            The arms so far, followed by the new ones.
        first_plan : int
            Number of the first plan whose rounds are evidence on the new arms.
        """
        self._sequences = [sequence.with_arms(arms) for sequence in self._sequences]
        before = len(self.arms)
        self.arms = arms
        self.__dict__.pop("centre", None)  # it has a value per arm
        if self._regression is not None:
            self._regression = (
                self._regression.extended(len(arms) - before) if len(arms) <= MOST_ARMS else None
            )
        if len(arms) <= MOST_ARMS:
            self._begin(list(range(before, len(arms))), first_plan)

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers."""
        return {
            "sequences": [sequence.to_json() for sequence in self._sequences],
            "others": [list(others) for others in self._others],
            "pending": dump_pending(self._pending),
            "regression": None if self._regression is None else self._regression.to_json(),
            "delta": self.delta,
            "earned": self._earned,
            "first_plans": list(self._first_plans),
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` returned; the arms must be those it had."""
        self._others = [list(others) for others in data["others"]]
        self.delta = float(data["delta"])
        self._earned = float(data["earned"])
        self._first_plans = list(data["first_plans"])
        regression = data["regression"]
        self._regression = None if regression is None else CentredRegression.from_json(regression)
        kept = zip(self._others, data["sequences"], strict=True)
        self._sequences = [self._started(others, self.delta).resumed(one) for others, one in kept]
        self._pending = load_pending(data["pending"], len(self.arms))


def dump_pending(pending: Mapping[int, Sums]) -> dict[str, Any]:
    """Return sums by distribution as plain lists and numbers."""
    return {str(number): sums.tally.to_json() for number, sums in pending.items()}


def load_pending(data: Mapping[str, Any], count: int) -> dict[int, Sums]:
    """Invert :func:`dump_pending`, for `count` arms."""
    return {int(number): Sums(count, Tally.from_json(tally)) for number, tally in data.items()}
