"""Replications of anytime elimination: what a finished batch changes."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Tally
from orthobandit.estimate.augmented import PairGeometry, with_diagonal
from orthobandit.estimate.confidence.boundaries import WIDE, normal_mixture
from orthobandit.estimate.confidence.evidence import Evidence, Tuning
from orthobandit.estimate.confidence.modes import Confidence
from orthobandit.policy.anytime.delta import cautious_gaps, own_delta, shares, split_delta, tuned
from orthobandit.policy.anytime.plans import Wanted, earning_plan, identifying_plan, wide_plan
from orthobandit.policy.anytime.rounds import EVIDENCE, Rounds, rivals_of, with_rivals
from orthobandit.policy.anytime.settings import Settings, warm_up

SHORTEST = 10  # rounds of a batch
CALM = 0.1  # share of the rounds so far that a batch adds while no arm is near its end
INFORMED = 8.0  # events (see Sizes) that end the pilot, however many rounds it takes
LONGER = 0.5  # share of the rounds so far that a pilot goes on by while it has seen too little
REDESIGN = 2.0  # a distribution serves until there are this many times the rounds it was made from


@dataclass(frozen=True, eq=False)
class Run(Rounds):
    """Replications that warm up, tune themselves, drop arms, and plan where to play next."""

    @classmethod
    def fresh(cls, arms: ArmSet, policy: Settings) -> "Run":
        """Return one run, without leading axes, before the first round."""
        k = len(arms)
        r = arms.dimension
        pairs = np.zeros((k, k))
        none = np.zeros((), dtype=np.int64)
        nothing = np.zeros(())
        run = cls(
            active=np.ones(k, dtype=np.bool_),
            retired=np.zeros(k, dtype=np.bool_),
            stage=none,
            length=none + 1,
            late=none,
            rounds=none,
            designed=none,
            plans=none + 1,
            probabilities=np.array(wide_plan(arms)),
            values=np.zeros(k),
            gram=np.zeros((r, r)),
            moment=np.zeros(r),
            noise=nothing,
            watched=none,
            drawn=np.zeros(k),
            relative=np.zeros(k),
            squared=nothing,
            scattered=nothing,
            largest=nothing,
            excess=nothing,
            informed=nothing,
            totals=pairs,
            weights=pairs,
            variances=pairs,
            slack=pairs,
            pooled=pairs,
            peaks=pairs,
            alpha=np.full((k, k), 0.5),
            rho=np.ones((k, k)),
            scale=np.ones((k, k)),
            left=np.full(k, own_delta(policy)),
            met=np.zeros((k, k), dtype=np.bool_),
            first_plan=np.zeros((k, k), dtype=np.int64),
            leader=none,
            declared=none - 1,
            epsilon=nothing + np.inf,
        )
        return run if r else replace(run, epsilon=nothing)._settled(none, np.ones((), dtype=np.bool_))

    def advanced(self, policy: Settings, arms: ArmSet, tally: Tally) -> "Run":
        """Return the runs after a complete batch, along one leading axis and all of one kind.

        `tally` (n, K) has what was played under the plans in force: rounds in all of them, or in none. Either
        all have drawn before, or none has.
        """
        geometry = PairGeometry.of(arms.positions, self.probabilities)
        run = self.absorbed(policy.confidence, arms, geometry, tally) if tally.rounds.all() else self
        run = replace(run, plans=self.plans + 1, late=np.zeros_like(self.late))
        if not self.drawn.any():
            return run._lasting(max(warm_up(policy, arms) - 1, 1))
        if self.phase == 0:
            return run._warmed(policy, arms)
        if self.phase == 1:
            ready = run.informed >= INFORMED
            run = run._lasting(np.maximum(np.ceil(LONGER * run.rounds), SHORTEST))
            if not ready.any():
                return run
            part = replace(geometry, inner=geometry.inner[ready], variance=geometry.variance[ready])
            return run.put(ready, Run.of(run, ready)._begun(policy, arms, part))
        run = run._eliminated(policy.confidence).led(arms, policy)
        return run._planned(policy, arms, self)

    def _lasting(self, rounds: ArrayLike) -> "Run":
        """Return the runs with other lengths of the batch to come."""
        length = np.broadcast_to(np.asarray(rounds, dtype=np.int64), self.length.shape)
        return replace(self, length=length)

    def _begun(self, policy: Settings, arms: ArmSet, geometry: PairGeometry) -> "Run":
        """End the pilot: split δ, plan the first batch that counts, and tune the boundaries for it."""
        gaps = cautious_gaps(self.estimates(arms), geometry.variance, self.noise, self.watched)
        for_arms, for_pairs = shares(policy)
        alpha = split_delta(for_pairs, gaps, geometry.variance, self.noise)
        run = replace(
            self,
            alpha=with_diagonal(alpha, for_arms),
            left=self.left - for_arms - for_pairs,
            stage=np.full_like(self.stage, 2),
            # Whether the asymptotic mode may speak is for rounds that count to say: the pilot's may have been
            # of another kind, as when all was quiet after a burst.
            scattered=np.zeros_like(self.scattered),
        ).led(arms, policy)
        return run._planned(policy, arms, self).tuned(policy.confidence, arms, gaps)

    def _warmed(self, policy: Settings, arms: ArmSet) -> "Run":
        """Begin the pilot, with estimates to take residuals from.

        Residuals of the warm-up held the differences between arms, and its forecasts swung with them: of the
        largest, only what exceeds twice their spread is remembered.
        """
        values = fitted(self.estimates(arms), arms, policy.confidence)
        largest = np.maximum(self.largest - 2.0 * np.ptp(values, axis=-1), 0.0)
        run = replace(self, stage=np.full_like(self.stage, 1), values=values, largest=largest)
        return run._lasting(warm_up(policy, arms))

    def proven(self, confidence: Confidence) -> Mask:
        """Tell in entry (i, j) if j is proven better than i; on the diagonal, if i fails its test."""
        evidence = self.evidence()
        return confidence.exceeds(replace(evidence, totals=-evidence.totals), self.tuning())

    def _eliminated(self, confidence: Confidence) -> "Run":
        """Drop every arm that fails its test, or that some survivor is proven better than."""
        pairs = self.active[..., np.newaxis] & self.active[..., np.newaxis, :]
        left = self.active & ~np.any(self.proven(confidence) & pairs, axis=-1)
        # Proofs in a circle contradict each other: some interval has failed, and nothing follows.
        return replace(self, active=np.where(left.any(axis=-1, keepdims=True), left, self.active))

    def led(self, arms: ArmSet, policy: Settings) -> "Run":
        """Find the leader and how far it can be from the best; declare it if that settles the matter."""
        values = self.estimates(arms)
        leader = np.asarray(np.argmax(np.where(self.active, values, -np.inf), axis=-1))
        others = self.active & _differ(arms, leader)
        bounds = self._upper_bounds(policy.confidence, leader, others)
        run = replace(
            self,
            leader=leader,
            values=fitted(values, arms, policy.confidence),
            epsilon=np.asarray(np.max(bounds, axis=-1)),
        )
        alike = ~others.any(axis=-1)  # survivors are the same arm: the first will do
        first = np.where(alike, np.argmax(self.active, axis=-1), leader)
        return run._settled(first, alike | (run.epsilon <= policy.epsilon))

    def _upper_bounds(self, confidence: Confidence, leader: Whole, others: Mask) -> Array:
        """Return the most that each of the others (..., K) can be better than the leader; 0 for the rest."""
        out = np.zeros(others.shape)
        index = np.asarray(leader)[..., np.newaxis, np.newaxis]

        def column(pairs: Array) -> Array:
            every = np.broadcast_to(pairs, (*others.shape, others.shape[-1]))
            return np.asarray(np.take_along_axis(every, index, axis=-1)[..., 0][others])

        whole = self.evidence()
        part = Evidence(**{name: column(getattr(whole, name)) for name in (*EVIDENCE, "events", "waited")})
        tuning = Tuning(column(self.alpha), column(self.rho), column(self.scale), grid=WIDE)
        out[others] = part.estimates + confidence.width(part, tuning)
        return out

    def _leads(self, others: Whole) -> Array:
        """Return what each of the others may lead the leader by, as far as plans care: no claim is made.

        For a single run, as the next one.
        """
        at = (others, np.full(len(others), self.leader))
        weights = np.where(self.weights[at] > 0, self.weights[at], np.inf)
        width = normal_mixture(self.variances[at], self.alpha[at], self.rho[at]) / weights
        return np.asarray(np.where(np.isfinite(weights), self.totals[at] / weights + width, np.inf))

    def _replanned(self, policy: Settings, arms: ArmSet) -> Array:
        """Return the distribution (K,) to play next."""
        survivors = np.flatnonzero(self.active)
        leader = int(self.leader)
        others = survivors[np.any(arms.positions[survivors] != arms.positions[leader], axis=1)]
        gaps = np.maximum(self.values[leader] - self.values[others], 0.0)
        wanted = Wanted.of(leader, others, gaps, self._leads(others))
        if policy.goal == "earn":
            return earning_plan(arms, self.active, wanted, self.gram, float(self.ridge))
        return identifying_plan(arms, wanted, policy.mixing, self.probabilities, self.retired)

    def _settled(self, arm: Whole, is_settled: Mask) -> "Run":
        """Declare an arm (...) where the matter is settled, and play it alone."""
        mass = (np.arange(self.active.shape[-1]) == np.asarray(arm)[..., np.newaxis]).astype(np.float64)
        return replace(
            self,
            leader=np.where(is_settled, arm, self.leader),
            declared=np.where(is_settled, arm, self.declared),
            probabilities=np.where(np.asarray(is_settled)[..., np.newaxis], mass, self.probabilities),
        )

    def _planned(self, policy: Settings, arms: ArmSet, before: "Run") -> "Run":
        """Plan the next batch; a distribution stays while survivors, leader and data are much the same."""
        totals, variances, alpha = (
            np.diagonal(one, axis1=-2, axis2=-1) for one in (self.totals, self.variances, self.alpha)
        )
        share = pace(policy, np.where(self.active, -totals, 0.0), variances, alpha)
        run = self._lasting(np.maximum(np.ceil(share * self.rounds), SHORTEST))
        same = (self.leader == before.leader) & np.all(self.active == before.active, axis=-1)
        stays = (same & (self.rounds < REDESIGN * self.designed)) | (self.declared >= 0)
        length = np.where(self.declared >= 0, self.length, run.length)
        p = np.array(self.probabilities)
        designed = np.where(stays, self.designed, self.rounds)
        for place in np.argwhere(~stays):
            at = tuple(place)
            p[at] = Run.of(self, at)._replanned(policy, arms)
        return replace(run, length=length, probabilities=p, designed=designed)

    def tuned(self, confidence: Confidence, arms: ArmSet, gaps: Array) -> "Run":
        """Return the run with boundaries that suit the plan in force, all of whose rounds are to come."""
        geometry = PairGeometry.of(arms.positions, self.probabilities)
        reach = geometry.reach(self.probabilities) if confidence.is_exact else np.ones_like(gaps)
        rivals = rivals_of(self.active, self.leader, self.values)
        variance, reach, gaps = (with_rivals(pairs, rivals) for pairs in (geometry.variance, reach, gaps))
        tuning = tuned(self.alpha, gaps, variance, reach, confidence, (self.noise, self.rounds))
        return replace(self, rho=tuning.rho, scale=tuning.scale)


def pace(policy: Settings, against: Array, variances: Array, alpha: ArrayLike) -> Array:
    """Return the share (...) of the rounds so far that a batch adds: more while no arm is near its end.

    A test ends where S/√2V is about √(log(1/α) + 1), and in a share g of the rounds so far S/√V moves by √g.

    Parameters
    ----------
    policy : Settings
    against, variances : (..., K) arrays
        S, by how much tests speak against arms, and V.
    alpha : array
        Levels of the tests.
    """
    goal = np.sqrt(np.maximum(1.0 - np.log(alpha), 1.0))
    reached = np.maximum(against, 0.0) / np.sqrt(2.0 * np.where(variances > 0, variances, np.inf))
    away = np.min(np.maximum(goal - reached, 0.0), axis=-1)
    most = policy.growth if policy.epsilon > 0 else max(policy.growth, CALM)
    return np.asarray(np.clip(away**2, policy.growth, most))


def _differ(arms: ArmSet, leader: Whole) -> Mask:
    """Tell which arms (..., K) are not the leader (...) in all but name."""
    return np.asarray(np.any(arms.positions != arms.positions[leader][..., np.newaxis, :], axis=-1))


def fitted(values: Array, arms: ArmSet, confidence: Confidence) -> Array:
    """Return estimates (..., K) that residuals can be taken from.

    They average 0 under the wide plan, so that new estimates move no level under the forecaster's feet. If
    they spread wider than the declared range of means, they are shrunk, so that residuals stay in it.
    """
    low, high = confidence.range
    spread = np.ptp(values, axis=-1, keepdims=True)
    level = values[..., np.newaxis, :] @ wide_plan(arms)
    if np.isfinite(high - low):
        values = values - level
        return values * np.where(spread > high - low, (high - low) / np.where(spread > 0, spread, 1.0), 1.0)
    return np.asarray(values - level)
