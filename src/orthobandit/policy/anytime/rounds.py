"""Replications of anytime elimination: what rounds teach, in time or late."""

from collections.abc import Callable
from dataclasses import astuple, dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orthobandit._foundation.linalg import solve_ridge
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Plan, Tally
from orthobandit.estimate.augmented import PairGeometry, with_diagonal
from orthobandit.estimate.confidence.boundaries import WIDE
from orthobandit.estimate.confidence.evidence import (
    Batch,
    Evidence,
    Sizes,
    Tuning,
    draws_waited,
    expected_shares,
    quiet_arms,
    relative_squares,
)
from orthobandit.estimate.confidence.modes import Confidence
from orthobandit.estimate.orthogonal import centred_sums
from orthobandit.policy.anytime.delta import TINY
from orthobandit.policy.anytime.settings import Settings

SETTLED = 10.0  # times smaller residuals are, once differences between arms that dwarf noise are known
RIDGE = 0.1  # of the regression, in units of one round's information
# weights of the batches before and of the newest in the variance of a residual
EARLIER = 0.7
NEWEST = 0.3
# Names of the arrays of evidence, one entry a pair, and on the diagonal one a test.
EVIDENCE = ("totals", "weights", "variances", "slack", "pooled", "peaks")


@dataclass(frozen=True, eq=False)
class Rounds:
    """The state of some replications, without their tallies; names and shapes as in the policy's state.

    Leading axes (...) are replications, all of them in the same stage; there may be none.

    Evidence on the pair (i, j) bounds (x_i − x_j)ᵀθ. On the diagonal it is a test of the claim that arm i is
    best: in every batch against one rival, fixed before, than which it would be no worse. So arm i needs no
    union over rivals, whichever they are.
    """

    active: NDArray[np.bool_]
    retired: NDArray[np.bool_]
    stage: Whole
    length: Whole
    late: Whole
    rounds: Whole
    designed: Whole
    plans: Whole
    probabilities: Array
    values: Array
    gram: Array
    moment: Array
    noise: Array
    watched: Whole
    drawn: Array
    relative: Array
    squared: Array
    scattered: Array
    largest: Array
    excess: Array
    informed: Array
    totals: Array
    weights: Array
    variances: Array
    slack: Array
    pooled: Array
    peaks: Array
    alpha: Array
    rho: Array
    scale: Array
    left: Array
    met: NDArray[np.bool_]
    first_plan: Whole
    leader: Whole
    declared: Whole
    epsilon: Array

    def with_evidence(self, change: Callable[[Array], Array]) -> Self:
        """Return the run with every array of evidence changed in the same way."""
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in EVIDENCE}
        return replace(self, **changed)

    @classmethod
    def of(cls, state: Any, place: Any) -> Self:
        """Take some replications out of a batch; `place` indexes the leading axes."""
        return cls(**{name: np.asarray(np.asarray(getattr(state, name))[place]) for name in cls.names()})

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of all arrays."""
        return [field.name for field in fields(cls)]

    def put(self, place: Any, others: Self) -> Self:
        """Return the run with other states of the replications at `place`."""
        arrays = {name: np.array(getattr(self, name)) for name in self.names()}
        for name, array in arrays.items():
            array[place] = getattr(others, name)
        return type(self)(**arrays)

    @property
    def phase(self) -> int:
        """The stage that all replications are in."""
        return int(np.max(self.stage))

    def absorbed(
        self,
        confidence: Confidence,
        arms: ArmSet,
        geometry: PairGeometry,
        tally: Tally,
        rivals: Whole | None = None,
    ) -> Self:
        """Add rounds under the plan in force to the regression and, after the pilot, to the evidence."""
        run = self._watched(tally)
        if self.phase == 2:
            against = rivals_of(self.active, self.leader, self.values) if rivals is None else rivals
            run = run._counted(confidence, geometry, tally, against)
        return run._regressed(arms, tally)

    def with_late(self, policy: Settings, arms: ArmSet, plan: Plan, tally: Tally) -> Self:
        """Return the run with rounds of an earlier plan, or of one restricted to some arms.

        They count as they would have done in time: with the geometry, the values and the rivals that were
        fixed before their draws. What they may be counted for does not depend on how many they are.
        """
        then = replace(
            self,
            plans=np.asarray(plan.number),
            probabilities=plan.probabilities,
            values=plan.values,
            length=np.zeros_like(self.length),
        )
        rivals = plan.rivals
        if rivals is None or np.any(rivals < 0):
            run = replace(then._regressed(arms, tally), noise=self.noise)
            count = 0
        else:
            geometry = PairGeometry.of(arms.positions, plan.probabilities)
            run = then.absorbed(policy.confidence, arms, geometry, tally, rivals)
            count = int(tally.rounds)
        return replace(
            run,
            plans=self.plans,
            probabilities=self.probabilities,
            values=self.values,
            length=self.length,
            late=self.late + count,
        )

    def _sizes(self) -> Sizes:
        return Sizes(self.watched, self.squared, self.scattered, self.largest, self.excess)

    def _watched(self, tally: Tally) -> Self:
        """Note how large residuals are; of the warm-up, only how large one can be.

        The first round of all, whose forecast knows nothing of the level, is left out.
        """
        drawn = self.drawn + tally.counts
        if self.phase == 0:
            most = np.where(self.rounds > tally.rounds, tally.largest.max(axis=-1), 0.0)
            return replace(self, largest=np.maximum(self.largest, most), drawn=drawn, relative=drawn)
        alone = Sizes().and_of(tally)
        before = self._sizes()
        # What was large were differences between arms, before they were known: nothing that noise did.
        anew = SETTLED * alone.largest < before.largest
        anew &= before.largest <= 2.0 * np.ptp(self.values, axis=-1)
        informed = np.where(anew, 0.0, self.informed)
        sizes = Sizes(*(np.where(anew, 0, one) for one in astuple(before))).and_of(tally)
        return replace(
            self,
            drawn=drawn,
            relative=self.relative + relative_squares(tally),
            watched=sizes.rounds,
            squared=sizes.squared,
            scattered=sizes.scattered,
            largest=sizes.largest,
            excess=sizes.excess,
            informed=informed + alone.events,
        )

    def _counted(self, confidence: Confidence, geometry: PairGeometry, tally: Tally, rivals: Whole) -> Self:
        """Add a batch to the evidence on all pairs that its plan could estimate, and on all arms."""
        counts = np.asarray(tally.counts, dtype=np.float64)
        sums = geometry.sums(counts, tally.sums, tally.squares, self.values)
        variance = geometry.variance
        pooled = np.zeros_like(variance)
        if not confidence.is_exact:
            pooled = _of_pairs(tally.squares.sum(axis=-1)) * self._expected_factor(geometry)
            # Decided by the plan and what came before it, so that no draw can choose what is counted.
            draws = self.drawn - counts + self.length[..., np.newaxis] * self.probabilities
            variance = np.where(geometry.are_doubtful(self.probabilities, draws), np.inf, variance)
        factor, reach, estimates, squares, pooled = (
            with_rivals(pairs, rivals)
            for pairs in (variance, geometry.reach(self.probabilities), *sums, pooled)
        )
        # A test against an arm that has been retired since is no matter any more.
        kept = ~np.take_along_axis(self.retired, rivals, axis=-1)
        # Nor are rounds drawn before an entry began: whoever chose that moment may have known their rewards.
        has_begun = self.first_plan <= self.plans[..., np.newaxis, np.newaxis]
        factor = np.where(has_begun, factor, np.inf)
        kept &= np.diagonal(has_begun, axis1=-2, axis2=-1)
        tests = np.diagonal(factor, axis1=-2, axis2=-1)
        batch = Batch(
            rounds=_of_pairs(counts.sum(axis=-1)),
            largest=_of_pairs(tally.largest.max(axis=-1)),
            excess=_of_pairs(self.excess),
            factor=with_diagonal(factor, np.where(kept, tests, np.inf)),
            reach=reach,
            estimates=estimates,
            squares=squares,
            pooled=pooled,
        )
        now = self.evidence().and_of(batch, self.tuning(), confidence)
        met = self.met.copy()
        against = rivals[..., np.newaxis]
        before = np.take_along_axis(met, against, axis=-1)
        np.put_along_axis(met, against, before | kept[..., np.newaxis], axis=-1)
        return replace(self, met=met, **{name: getattr(now, name) for name in EVIDENCE})

    def _expected_factor(self, geometry: PairGeometry) -> Array:
        """Return E g²·u² (..., K, K) in units of E u²: v, or more if arms that weigh scatter more."""
        shares = expected_shares(self.probabilities, self.relative, self.drawn)
        known = np.where(np.isfinite(geometry.variance), geometry.variance, 0.0)
        return np.maximum(known, geometry.carried(shares))

    def _regressed(self, arms: ArmSet, tally: Tally) -> Self:
        """Add a batch to the regression, weighted by what its residuals scatter.

        A quiet batch counts no more than the batches before: where events are rare it has seen none.
        """
        sums = tally.sums + tally.counts * self.values
        gram, moment = self._centred_sums(arms, tally, sums)
        scatter = tally.squares.sum(axis=-1) / tally.rounds
        noise = EARLIER * self.noise + NEWEST * scatter if self.phase == 2 else scatter
        if self.phase == 1:  # nothing was watched yet where rounds of the warm-up come late
            noise = np.where(self.watched > 0, self.squared / np.maximum(self.watched, 1), noise)
        unit = np.maximum(scatter, self.noise if self.phase == 2 else noise)
        unit = np.where(unit > 0, unit, 1.0)
        return replace(
            self,
            gram=self.gram + gram / _of_pairs(unit),
            moment=self.moment + moment / unit[..., np.newaxis],
            noise=np.asarray(noise),
        )

    def _centred_sums(self, arms: ArmSet, tally: Tally, sums: Array) -> tuple[Array, Array]:
        """Return Σ x̃x̃ᵀ and Σ x̃·reward of rounds under the plan in force."""
        return centred_sums(arms, self.probabilities, tally.counts, sums)

    def estimates(self, arms: ArmSet) -> Array:
        """Return estimated rewards (..., K), up to a common level."""
        solved = solve_ridge(self.gram, self.moment, self.ridge)
        return np.asarray((arms.positions @ solved[..., np.newaxis])[..., 0])

    @property
    def ridge(self) -> Array:
        """Ridge of the regression."""
        mean = np.trace(self.gram, axis1=-2, axis2=-1) / np.maximum(self.rounds, 1)
        return np.asarray(RIDGE * np.where(mean > 0, mean, TINY))

    def evidence(self) -> Evidence:
        """Return the evidence for i over j in entry (i, j)."""
        quiet = quiet_arms(self.relative, self.drawn)
        pairs = quiet[..., np.newaxis] | quiet[..., np.newaxis, :]
        # A test rests on the arm and on all rivals that it has met.
        tests = quiet | np.any(self.met & quiet[..., np.newaxis, :], axis=-1)
        pairs = np.where(np.eye(pairs.shape[-1], dtype=np.bool_), tests[..., np.newaxis], pairs)
        return Evidence(
            **{name: getattr(self, name) for name in EVIDENCE},
            events=_of_pairs(self._sizes().events),
            waited=draws_waited(self.totals, self.weights, self.variances, pairs),
        )

    def tuning(self) -> Tuning:
        """Return the tuning of all entries."""
        return Tuning(self.alpha, self.rho, self.scale, grid=WIDE)


def rivals_of(active: Mask, leader: ArrayLike, values: Array) -> Whole:
    """Return the arm (..., K) that each is tested against: the leader, and the leader its runner-up."""
    is_leader = np.arange(active.shape[-1]) == np.asarray(leader)[..., np.newaxis]
    second = np.argmax(np.where(active & ~is_leader, values, -np.inf), axis=-1)
    return np.where(is_leader, second[..., np.newaxis], np.asarray(leader)[..., np.newaxis])


def with_rivals(pairs: Array, rivals: Whole) -> Array:
    """Return entries (..., K, K) of pairs with those of each arm and its rival (..., K) on the diagonal."""
    return with_diagonal(pairs, np.take_along_axis(pairs, rivals[..., np.newaxis], axis=-1)[..., 0])


def _of_pairs(values: Array) -> Array:
    """Return numbers (...) of replications so that they broadcast with pairs (..., K, K)."""
    return np.asarray(values)[..., np.newaxis, np.newaxis]
