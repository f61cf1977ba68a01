"""One replication of anytime elimination: what a finished batch changes."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orthobandit._types import Array
from orthobandit.arms import ArmSet
from orthobandit.estimate import Tally
from orthobandit.estimate.augmented import PairGeometry
from orthobandit.estimate.boundaries import normal_mixture
from orthobandit.estimate.confidence import Confidence
from orthobandit.estimate.evidence import Tuning
from orthobandit.policy.anytime.delta import cautious_gaps, shares, split_delta, tuned
from orthobandit.policy.anytime.plans import Wanted, earning_plan, identifying_plan, wide_plan
from orthobandit.policy.anytime.rounds import EVIDENCE, Rounds, rivals_of, with_rivals
from orthobandit.policy.anytime.settings import Settings, warm_up

SHORTEST = 10  # rounds of a batch
INFORMED = 8.0  # events (see Sizes) that end the pilot, however many rounds it takes
LONGER = 0.5  # share of the rounds so far that a pilot goes on by while it has seen too little
REDESIGN = 2.0  # a distribution serves until there are this many times the rounds it was made from


@dataclass(frozen=True, eq=False)
class Run(Rounds):
    """A replication that warms up, tunes itself, drops arms, and plans where to play next."""

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

    def advanced(self, policy: Settings, arms: ArmSet, tally: Tally) -> "Run":
        """Return the run after a complete batch; `tally` (K,) has what was played under the plan in force."""
        geometry = PairGeometry.of(arms.positions, self.probabilities)
        run = self.absorbed(policy.confidence, arms, geometry, tally) if tally.rounds else self
        run = replace(run, plans=self.plans + 1, late=0)
        if not self.drawn.any():
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
            # Whether the asymptotic mode may speak is for rounds that count to say: the pilot's may have been
            # of another kind, as when all was quiet after a burst.
            left = run.left - for_arms - for_pairs
            run = replace(run, alpha=alpha, left=left, stage=2, scattered=0.0)
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
        values = fitted(self.estimates(arms), arms, policy.confidence)
        largest = max(self.largest - 2.0 * float(np.ptp(values)), 0.0)
        return replace(self, stage=1, length=warm_up(policy, arms), values=values, largest=largest)

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
        run = replace(self, leader=leader, values=fitted(values, arms, policy.confidence))
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
            p = earning_plan(arms, self.active, wanted, self.gram, self.ridge)
        else:
            p = identifying_plan(arms, wanted, policy.mixing, self.probabilities, self.retired)
        return replace(run, probabilities=p, designed=self.rounds)

    def tuned(self, confidence: Confidence, arms: ArmSet, gaps: Array) -> "Run":
        """Return the run with boundaries that suit the plan in force, all of whose rounds are to come."""
        geometry = PairGeometry.of(arms.positions, self.probabilities)
        reach = geometry.reach(self.probabilities) if confidence.is_exact else np.ones_like(gaps)
        rivals = rivals_of(self.active, self.leader, self.values)
        variance, reach, gaps = (with_rivals(pairs, rivals) for pairs in (geometry.variance, reach, gaps))
        tuning = tuned(self.alpha, gaps, variance, reach, confidence, (self.noise, self.rounds))
        return replace(self, rho=tuning.rho, scale=tuning.scale)


def fitted(values: Array, arms: ArmSet, confidence: Confidence) -> Array:
    """Return estimates that residuals can be taken from.

    They average 0 under the wide plan, so that new estimates move no level under the forecaster's feet. If
    they spread wider than the declared range of means, they are shrunk, so that residuals stay in it.
    """
    low, high = confidence.range
    spread, level = float(np.ptp(values)), float(wide_plan(arms) @ values)
    shrink = min(1.0, (high - low) / spread) if spread > 0 and np.isfinite(high - low) else 1.0
    return (values - level) * shrink
