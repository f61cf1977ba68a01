"""One replication of anytime elimination: what a finished batch changes."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orthobandit._linalg import solve_ridge
from orthobandit._types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Plan, Tally
from orthobandit.estimate.augmented import PairGeometry
from orthobandit.estimate.boundaries import normal_mixture
from orthobandit.estimate.confidence import Confidence
from orthobandit.estimate.evidence import (
    HIDDEN,
    Batch,
    Evidence,
    Sizes,
    Tuning,
    expected_shares,
    hardly_drawn,
    relative_squares,
)
from orthobandit.estimate.orthogonal import centred_sums
from orthobandit.policy.anytime.delta import TINY, cautious_gaps, shares, split_delta, tuned
from orthobandit.policy.anytime.plans import Wanted, earning_plan, identifying_plan, wide_plan
from orthobandit.policy.anytime.settings import Settings, warm_up

SHORTEST = 10  # rounds of a batch
INFORMED = 8.0  # events (see Sizes) that end the pilot, however many rounds it takes
LONGER = 0.5  # share of the rounds so far that a pilot goes on by while it has seen too little
SETTLED = 10.0  # times smaller residuals are, once differences between arms that dwarf noise are known
RIDGE = 0.1  # of the regression, in units of one round's information
EARLIER, NEWEST = 0.7, 0.3  # weights of the batches before and of the newest in the variance of a residual
REDESIGN = 2.0  # a distribution serves until there are this many times the rounds it was made from
# Names of the arrays of evidence, one entry a pair, and on the diagonal one a test.
EVIDENCE = ("totals", "weights", "variances", "slack", "pooled", "peaks")


@dataclass(frozen=True, eq=False)
class Run:
    """The state of one replication, without its tally; names and shapes as in the policy's state.

    Evidence on the pair (i, j) bounds (x_i − x_j)ᵀθ. On the diagonal it is a test of the claim that arm i is
    best: in every batch against one rival, fixed before, than which it would be no worse. So arm i needs no
    union over rivals, whichever they are.
    """

    active: NDArray[np.bool_]
    retired: NDArray[np.bool_]
    stage: int
    length: int
    late: int
    rounds: int
    designed: int
    plans: int
    probabilities: Array
    values: Array
    gram: Array
    moment: Array
    noise: float
    watched: int
    drawn: Array
    relative: Array
    squared: float
    scattered: float
    largest: float
    excess: float
    informed: float
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
    leader: int
    declared: int
    epsilon: float

    @classmethod
    def fresh(cls, arms: ArmSet, policy: Settings) -> "Run":
        """Return the run before the first round."""
        k, r = len(arms), arms.dimension
        pairs = np.zeros((k, k))
        run = cls(
            active=np.ones(k, dtype=np.bool_),
            retired=np.zeros(k, dtype=np.bool_),
            stage=0,
            length=1,
            late=0,
            rounds=0,
            designed=0,
            plans=1,
            probabilities=np.array(wide_plan(arms)),
            values=np.zeros(k),
            gram=np.zeros((r, r)),
            moment=np.zeros(r),
            noise=0.0,
            watched=0,
            drawn=np.zeros(k),
            relative=np.zeros(k),
            squared=0.0,
            scattered=0.0,
            largest=0.0,
            excess=0.0,
            informed=0.0,
            totals=pairs,
            weights=pairs,
            variances=pairs,
            slack=pairs,
            pooled=pairs,
            peaks=pairs,
            alpha=np.full((k, k), 0.5),
            rho=np.ones((k, k)),
            scale=np.ones((k, k)),
            left=np.full(k, policy.delta),
            met=np.zeros((k, k), dtype=np.bool_),
            leader=0,
            declared=-1,
            epsilon=np.inf,
        )
        return run if r else replace(run, epsilon=0.0)._settled(0)

    def with_evidence(self, change: Callable[[Array], Array]) -> "Run":
        """Return the run with every array of evidence changed in the same way."""
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in EVIDENCE}
        return replace(self, **changed)

    @classmethod
    def of(cls, state: Any, place: tuple[int, ...]) -> "Run":
        """Take one replication out of a batch."""
        return cls(**{field.name: getattr(state, field.name)[place] for field in fields(cls)})

    def advanced(self, policy: Settings, arms: ArmSet, tally: Tally) -> "Run":
        """Return the run after a complete batch; `tally` (K,) has what was played under the plan in force."""
        geometry = PairGeometry.of(arms.positions, self.probabilities)
        run = self.absorbed(policy.confidence, arms, geometry, tally) if tally.rounds else self
        run = replace(run, plans=self.plans + 1, late=0)
        if run.rounds == 1:
            return replace(run, length=max(warm_up(policy, arms) - 1, 1))
        if run.stage == 0:
            return run._warmed(policy, arms)
        gaps = None
        if run.stage == 1:
            if run.informed < INFORMED:
                return replace(run, length=max(int(np.ceil(LONGER * run.rounds)), SHORTEST))
            gaps = cautious_gaps(run.estimates(arms), geometry.variance, run.noise, run.watched)
            for_arms, for_pairs = shares(policy)
            alpha = split_delta(for_pairs, gaps, geometry.variance, run.noise)
            np.fill_diagonal(alpha, for_arms)
            run = replace(run, alpha=alpha, left=run.left - for_arms - for_pairs, stage=2)
        else:
            run = run._eliminated(policy.confidence)
        run = run.led(arms, policy)
        if run.declared >= 0:
            return run
        run = run._planned(policy, arms, self)
        return run if gaps is None else run.tuned(policy.confidence, arms, gaps)

    def _warmed(self, policy: Settings, arms: ArmSet) -> "Run":
        """Begin the pilot, with estimates to take residuals from.

        Residuals of the warm-up held the differences between arms, and its forecasts swung with them: of the
        largest, only what exceeds twice their spread is remembered.
        """
        values = _fitted(self.estimates(arms), arms, policy.confidence)
        largest = max(self.largest - 2.0 * float(np.ptp(values)), 0.0)
        return replace(self, stage=1, length=warm_up(policy, arms), values=values, largest=largest)

    def absorbed(
        self,
        confidence: Confidence,
        arms: ArmSet,
        geometry: PairGeometry,
        tally: Tally,
        rivals: Whole | None = None,
    ) -> "Run":
        """Add rounds under the plan in force to the regression and, after the pilot, to the evidence."""
        run = self._watched(tally)
        if self.stage == 2:
            against = rivals_of(self.active, self.leader, self.values) if rivals is None else rivals
            run = run._counted(confidence, geometry, tally, against)
        return run._regressed(arms, tally)

    def with_late(self, policy: Settings, arms: ArmSet, plan: Plan, tally: Tally) -> "Run":
        """Return the run with rounds of an earlier plan, or of one restricted to some arms.

        They count as they would have done in time: with the geometry, the values and the rivals that were
        fixed before their draws. What they may be counted for does not depend on how many they are.
        """
        then = replace(self, probabilities=plan.probabilities, values=plan.values, length=0)
        rivals = plan.rivals
        if rivals is None or np.any(rivals < 0):
            run, count = replace(then._regressed(arms, tally), noise=self.noise), 0
        else:
            geometry = PairGeometry.of(arms.positions, plan.probabilities)
            run = then.absorbed(policy.confidence, arms, geometry, tally, rivals)
            count = int(tally.rounds)
        return replace(
            run,
            probabilities=self.probabilities,
            values=self.values,
            length=self.length,
            late=self.late + count,
        )

    def _sizes(self) -> Sizes:
        return Sizes(self.watched, self.squared, self.scattered, self.largest, self.excess)

    def _watched(self, tally: Tally) -> "Run":
        """Note how large residuals are; of the warm-up, only how large one can be.

        The first round of all, whose forecast knows nothing of the level, is left out.
        """
        drawn = self.drawn + tally.counts
        if not self.stage:
            most = float(tally.largest.max()) if self.rounds > tally.rounds else 0.0
            return replace(self, largest=max(self.largest, most), drawn=drawn, relative=drawn)
        alone, before, informed = Sizes().and_of(tally), self._sizes(), self.informed
        if SETTLED * alone.largest < before.largest <= 2.0 * float(np.ptp(self.values)):
            # What was large were differences between arms, before they were known: nothing that noise did.
            before, informed = Sizes(), 0.0
        sizes = before.and_of(tally)
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

    def _counted(self, confidence: Confidence, geometry: PairGeometry, tally: Tally, rivals: Whole) -> "Run":
        """Add a batch to the evidence on all pairs that its plan could estimate, and on all arms."""
        counts = np.asarray(tally.counts, dtype=np.float64)
        sums = geometry.sums(counts, tally.sums, tally.squares, self.values)
        variance = geometry.variance
        pooled = np.zeros_like(variance)
        if not confidence.is_exact:
            pooled = float(tally.squares.sum()) * self._expected_factor(geometry)
            # Decided by the plan and what came before it, so that no draw can choose what is counted.
            unseen = hardly_drawn(self.probabilities, self.length, self.drawn - counts)
            hidden = geometry.carried(np.where(unseen, self.probabilities, 0.0)) > HIDDEN * variance
            variance = np.where(hidden, np.inf, variance)
        # A test against an arm that has been retired since is no matter any more.
        every, kept = np.arange(len(rivals)), ~self.retired[rivals]
        factor, reach, estimates, squares, pooled = (
            _with_rivals(pairs, rivals)
            for pairs in (variance, geometry.reach(self.probabilities), *sums, pooled)
        )
        factor[every[~kept], every[~kept]] = np.inf
        batch = Batch(
            rounds=float(counts.sum()),
            excess=self.excess,
            factor=factor,
            reach=reach,
            estimates=estimates,
            squares=squares,
            pooled=pooled,
        )
        now = self.evidence().and_of(batch, self.tuning(), confidence)
        met = self.met.copy()
        met[every[kept], rivals[kept]] = True
        return replace(self, met=met, **{name: getattr(now, name) for name in EVIDENCE})

    def _expected_factor(self, geometry: PairGeometry) -> Array:
        """Return E g²·u² (K, K) of all pairs in units of E u²; v, or more if arms that weigh scatter more."""
        shares = expected_shares(self.probabilities, self.relative, self.drawn)
        known = np.where(np.isfinite(geometry.variance), geometry.variance, 0.0)
        return np.maximum(known, geometry.carried(shares))

    def _regressed(self, arms: ArmSet, tally: Tally) -> "Run":
        """Add a batch to the regression, weighted by what its residuals scatter.

        A quiet batch counts no more than the batches before: where events are rare it has seen none.
        """
        sums = tally.sums + tally.counts * self.values
        gram, moment = centred_sums(arms, self.probabilities, tally.counts, sums)
        scatter = float(tally.squares.sum() / tally.rounds)
        noise = EARLIER * self.noise + NEWEST * scatter if self.stage == 2 else scatter
        if self.stage == 1 and self.watched:  # not yet, where rounds of the warm-up come late
            noise = self.squared / self.watched
        unit = max(scatter, self.noise if self.stage == 2 else noise) or 1.0
        return replace(
            self,
            gram=self.gram + gram / unit,
            moment=self.moment + moment / unit,
            noise=noise,
        )

    def estimates(self, arms: ArmSet) -> Array:
        """Return estimated rewards (K,), up to a common level."""
        return np.asarray(arms.positions @ solve_ridge(self.gram, self.moment, self._ridge))

    @property
    def _ridge(self) -> float:
        return RIDGE * (float(np.trace(self.gram)) / max(self.rounds, 1) or TINY)

    def evidence(self) -> Evidence:
        """Return the evidence for i over j in entry (i, j)."""
        events = np.asarray(self._sizes().events)
        return Evidence(**{name: getattr(self, name) for name in EVIDENCE}, events=events)

    def tuning(self) -> Tuning:
        """Return the tuning of all entries."""
        return Tuning(self.alpha, self.rho, self.scale)

    def proven(self, confidence: Confidence) -> NDArray[np.bool_]:
        """Tell in entry (i, j) if j is proven better than i; on the diagonal, if i fails its test."""
        evidence = self.evidence()
        return confidence.exceeds(replace(evidence, totals=-evidence.totals), self.tuning())

    def _eliminated(self, confidence: Confidence) -> "Run":
        """Drop every arm that fails its test, or that some survivor is proven better than."""
        pairs = self.active[:, np.newaxis] & self.active
        left = self.active & ~np.any(self.proven(confidence) & pairs, axis=1)
        # Proofs in a circle contradict each other: some interval has failed, and nothing follows.
        return replace(self, active=left) if left.any() else self

    def led(self, arms: ArmSet, policy: Settings) -> "Run":
        """Find the leader and how far it can be from the best; declare it if that settles the matter."""
        values = self.estimates(arms)
        leader = int(np.argmax(np.where(self.active, values, -np.inf)))
        run = replace(self, leader=leader, values=_fitted(values, arms, policy.confidence))
        survivors = np.flatnonzero(self.active)
        if np.all(arms.positions[survivors] == arms.positions[survivors[0]]):
            return replace(run, epsilon=0.0)._settled(int(survivors[0]))
        others = survivors[survivors != leader]
        differs = np.any(arms.positions[others] != arms.positions[leader], axis=1)
        bounds = run._upper_bounds(policy.confidence, others[differs], leader)
        run = replace(run, epsilon=max(float(bounds.max()), 0.0))
        return run._settled(leader) if run.epsilon <= policy.epsilon else run

    def _upper_bounds(self, confidence: Confidence, others: NDArray[np.int64], leader: int) -> Array:
        """Return the most that each of the others can be better than the leader."""
        at = (others, np.full(len(others), leader))
        evidence = self.evidence()
        part = replace(evidence, **{name: getattr(evidence, name)[at] for name in EVIDENCE})
        tuning = Tuning(self.alpha[at], self.rho[at], self.scale[at])
        return np.asarray(part.estimates + confidence.width(part, tuning))

    def _leads(self, others: NDArray[np.int64]) -> Array:
        """Return what each of the others may lead the leader by, as far as plans care: no claim is made."""
        at = (others, np.full(len(others), self.leader))
        weights = np.where(self.weights[at] > 0, self.weights[at], np.inf)
        width = normal_mixture(self.variances[at], self.alpha[at], self.rho[at]) / weights
        return np.asarray(np.where(np.isfinite(weights), self.totals[at] / weights + width, np.inf))

    def _settled(self, arm: int) -> "Run":
        mass = (np.arange(len(self.active)) == arm).astype(np.float64)
        return replace(
            self,
            leader=arm,
            declared=arm,
            probabilities=mass,
        )

    def _planned(self, policy: Settings, arms: ArmSet, before: "Run") -> "Run":
        """Plan the next batch; the distribution stays while survivors, leader and data are much the same."""
        length = max(int(np.ceil(policy.growth * self.rounds)), SHORTEST)
        run = replace(self, length=length)
        same = self.leader == before.leader and np.array_equal(self.active, before.active)
        if same and self.rounds < REDESIGN * self.designed:
            return run
        survivors = np.flatnonzero(self.active)
        others = survivors[np.any(arms.positions[survivors] != arms.positions[self.leader], axis=1)]
        gaps = np.maximum(self.values[self.leader] - self.values[others], 0.0)
        wanted = Wanted.of(self.leader, others, gaps, self._leads(others))
        if policy.goal == "earn":
            p = earning_plan(arms, self.active, wanted, self.gram, self._ridge)
        else:
            p = identifying_plan(arms, wanted, policy.mixing, self.probabilities, self.retired)
        return replace(run, probabilities=p, designed=self.rounds)

    def tuned(self, confidence: Confidence, arms: ArmSet, gaps: Array) -> "Run":
        """Return the run with boundaries that suit the plan in force, all of whose rounds are to come."""
        geometry = PairGeometry.of(arms.positions, self.probabilities)
        reach = geometry.reach(self.probabilities) if confidence.is_exact else np.ones_like(gaps)
        rivals = rivals_of(self.active, self.leader, self.values)
        variance, reach, gaps = (_with_rivals(pairs, rivals) for pairs in (geometry.variance, reach, gaps))
        tuning = tuned(self.alpha, gaps, variance, reach, confidence, (self.noise, self.rounds))
        return replace(self, rho=tuning.rho, scale=tuning.scale)


def rivals_of(active: Mask, leader: ArrayLike, values: Array) -> Whole:
    """Return the arm (..., K) that each is tested against: the leader, and the leader its runner-up."""
    is_leader = np.arange(active.shape[-1]) == np.asarray(leader)[..., np.newaxis]
    second = np.argmax(np.where(active & ~is_leader, values, -np.inf), axis=-1)
    return np.where(is_leader, second[..., np.newaxis], np.asarray(leader)[..., np.newaxis])


def _with_rivals(pairs: Array, rivals: Whole) -> Array:
    """Return entries (K, K) of pairs with those of each arm and its rival (K,) on the diagonal."""
    out = pairs.copy()
    np.fill_diagonal(out, pairs[np.arange(len(pairs)), rivals])
    return out


def _fitted(values: Array, arms: ArmSet, confidence: Confidence) -> Array:
    """Return estimates that residuals can be taken from.

    They average 0 under the wide plan, so that new estimates move no level under the forecaster's feet. If
    they spread wider than the declared range of means, they are shrunk, so that residuals stay in it.
    """
    low, high = confidence.range
    spread, level = float(np.ptp(values)), float(wide_plan(arms) @ values)
    shrink = min(1.0, (high - low) / spread) if spread > 0 and np.isfinite(high - low) else 1.0
    return (values - level) * shrink
