"""Evidence on all pairs of arms: memory and time in K², arms can be retired and added."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Tally
from orthobandit.estimate.augmented import PairGeometry, with_diagonal
from orthobandit.estimate.confidence.boundaries import normal_mixture
from orthobandit.estimate.confidence.evidence import (
    Batch,
    Evidence,
    Tuning,
    draws_waited,
    expected_shares,
    quiet_arms,
)
from orthobandit.estimate.confidence.modes import Confidence
from orthobandit.estimate.orthogonal import centred_sums
from orthobandit.policy.anytime.delta import cautious_gaps, own_delta, shares, split_delta, tuned
from orthobandit.policy.anytime.fields import ALL, EVIDENCE, Place, Stage, holds
from orthobandit.policy.anytime.plans import Wanted, earning_plan, identifying_plan, wide_plan
from orthobandit.policy.anytime.stages import CALM, AnytimeState, finest_share, over_pairs, rivals_of
from orthobandit.policy.contract import PlanRecord

if TYPE_CHECKING:
    from orthobandit.policy.anytime.policy import AnytimeElimination

BEGUN = ("alpha", "rho", "scale", "left")  # fields that are set where rounds begin to count
PAIRS_AT_ONCE = 1_000_000  # pairs of all replications that advance together: 8 MB an array


@dataclass(frozen=True, eq=False)
class AllPairs(AnytimeState):
    """Anytime elimination with evidence on all pairs; leading axes (...) are replications.

    Evidence on the pair (i, j) bounds (x_i − x_j)ᵀθ. On the diagonal it is a test of the claim that arm i is
    best: in every batch against one rival, fixed before, than which it would be no worse. So arm i needs no
    union over rivals, whichever they are.

    Attributes
    ----------
    totals, weights, variances, slack, pooled, peaks : (..., K, K) arrays
        See :class:`~orthobandit.estimate.confidence.evidence.Evidence`.
    alpha, rho, scale : (..., K, K) arrays
        See :class:`~orthobandit.estimate.confidence.evidence.Tuning`.
    left : (..., K) array
        What is left of δ for each arm, should it be the best.
    met : (..., K, K) array of bool
        Rivals that each arm was tested against.
    first_plan : (..., K, K) array of int
        Number of the first plan whose rounds each entry of the evidence counts: of entries that began when an
        arm was retired or added, the next after that.
    """

    totals: Array = field(metadata=holds(np.float64, "KK"))
    weights: Array = field(metadata=holds(np.float64, "KK"))
    variances: Array = field(metadata=holds(np.float64, "KK"))
    slack: Array = field(metadata=holds(np.float64, "KK"))
    pooled: Array = field(metadata=holds(np.float64, "KK"))
    peaks: Array = field(metadata=holds(np.float64, "KK"))
    alpha: Array = field(metadata=holds(np.float64, "KK", start=0.5))
    rho: Array = field(metadata=holds(np.float64, "KK", start=1.0))
    scale: Array = field(metadata=holds(np.float64, "KK", start=1.0))
    left: Array = field(metadata=holds(np.float64, "K"))
    met: Mask = field(metadata=holds(np.bool_, "KK", start=False))
    first_plan: Whole = field(metadata=holds(np.int64, "KK"))

    @classmethod
    def start(cls, policy: "AnytimeElimination", arms: ArmSet, batch: tuple[int, ...]) -> "AllPairs":
        """Return the state before the first round; arms that are all the same settle the matter."""
        state = cls.fresh(
            arms,
            batch,
            probabilities=wide_plan(arms),
            left=own_delta(policy),
            is_expected=policy.expect is not None,
        )
        return state if arms.dimension else state.settle_at_once()

    def groups(self, done: Mask) -> Iterator[Place]:
        """Yield places of replications of one kind, in groups whose arrays of pairs are of moderate size."""
        # Replications are advanced together only where the same steps apply to all of them.
        kinds = 4 * self.stage + 2 * self.drawn.any(axis=-1) + (self.tally.rounds > 0)
        size = max(1, PAIRS_AT_ONCE // len(self.arms) ** 2)
        for kind in np.unique(kinds[done]):
            chosen = done & (kinds == kind)
            if self.batch and chosen.size <= size and chosen.all():
                yield ALL
                return
            places = np.argwhere(chosen)
            for first in range(0, len(places), size):
                yield tuple(places[first : first + size].T)

    def evidence(self) -> Evidence:
        """Return the evidence for i over j in entry (i, j)."""
        waited = draws_waited(self.totals, self.weights, self.variances, self._rest_on_quiet())
        return replace(self._sums(), events=over_pairs(self.sizes.events), waited=waited)

    def _sums(self) -> Evidence:
        """Return the sums of the evidence, without what decides whether they may be claimed."""
        return Evidence(**{name: getattr(self, name) for name in EVIDENCE})

    def _rest_on_quiet(self) -> Mask:
        """Tell which entries (..., K, K) rest on an arm that has scattered much less than others."""
        quiet = quiet_arms(self.relative, self.drawn)
        if not quiet.any():
            return np.zeros(self.met.shape, dtype=np.bool_)
        pairs = quiet[..., np.newaxis] | quiet[..., np.newaxis, :]
        # A test rests on the arm and on all rivals that it has met.
        tests = quiet | np.any(self.met & quiet[..., np.newaxis, :], axis=-1)
        return np.where(np.eye(pairs.shape[-1], dtype=np.bool_), tests[..., np.newaxis], pairs)

    def _entries(self, some: Whole) -> tuple[Evidence, Tuning]:
        """Return evidence and tuning (m,) of some entries alone, by their places in the flattened arrays."""
        sums = {name: np.take(getattr(self, name), some) for name in EVIDENCE}
        quiet = np.take(self._rest_on_quiet(), some)
        evidence = Evidence(
            **sums,
            events=np.take(self.sizes.events, some // len(self.arms) ** 2),
            waited=draws_waited(sums["totals"], sums["weights"], sums["variances"], quiet),
        )
        alpha, rho, scale = (np.take(one, some) for one in (self.alpha, self.rho, self.scale))
        return evidence, Tuning(alpha, rho, scale, grid=self.grid)

    def with_evidence(self, change: Callable[[Array], Array]) -> "AllPairs":
        """Return the run with every array of evidence changed in the same way."""
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in EVIDENCE}
        return self.changed(**changed)

    def tuning(self) -> Tuning:
        """Return the tuning of all entries."""
        return Tuning(self.alpha, self.rho, self.scale, grid=self.grid)

    def geometry(self) -> PairGeometry:
        """Return what the plan in force can say about all pairs."""
        return PairGeometry.of(self.arms.positions, self.probabilities)

    def count(self, confidence: Confidence, tally: Tally, rivals: Whole) -> "AllPairs":
        """Add a batch to the evidence on all pairs that its plan could estimate, and on all arms."""
        geometry = self.geometry()
        counts = np.asarray(tally.counts, dtype=np.float64)
        sums = geometry.sums(counts, tally.sums, tally.squares, self.values)
        variance = geometry.variance
        pooled = np.zeros_like(variance)
        if not confidence.is_exact:
            pooled = over_pairs(tally.squares.sum(axis=-1)) * self._expected_factor(geometry)
            # Decided by the plan and what came before it, so that no draw can choose what is counted.
            draws = self.drawn - counts + self.length[..., np.newaxis] * self.probabilities
            variance = np.where(geometry.are_doubtful(self.probabilities, draws), np.inf, variance)
        factor, reach, estimates, squares, pooled = (
            with_rivals(pairs, rivals)
            for pairs in (variance, self._felt_reach(geometry, confidence), *sums, pooled)
        )
        # A test against an arm that has been retired since is no matter any more.
        kept = ~np.take_along_axis(self.retired, rivals, axis=-1)
        # Nor are rounds drawn before an entry began: whoever chose that moment may have known their rewards.
        has_begun = self.first_plan <= self.plans[..., np.newaxis, np.newaxis]
        factor = np.where(has_begun, factor, np.inf)
        kept &= np.diagonal(has_begun, axis1=-2, axis2=-1)
        tests = np.diagonal(factor, axis1=-2, axis2=-1)
        batch = Batch(
            rounds=over_pairs(counts.sum(axis=-1)),
            largest=over_pairs(tally.largest.max(axis=-1)),
            excess=over_pairs(self.excess),
            factor=with_diagonal(factor, np.where(kept, tests, np.inf)),
            square=factor,
            reach=reach,
            estimates=estimates,
            squares=squares,
            pooled=pooled,
        )
        now = self._sums().and_of(batch, self.tuning(), confidence)
        met = self.met.copy()
        against = rivals[..., np.newaxis]
        before = np.take_along_axis(met, against, axis=-1)
        np.put_along_axis(met, against, before | kept[..., np.newaxis], axis=-1)
        return self.changed(met=met, **{name: getattr(now, name) for name in EVIDENCE})

    def _felt_reach(self, geometry: PairGeometry, confidence: Confidence) -> Array:
        """Return max |g(a)| (..., K, K) where single rounds can be felt, and 0 in the other replications."""
        felt = np.asarray((self.excess > 0) | confidence.is_exact)
        if felt.all():
            return geometry.reach(self.probabilities)
        out = np.zeros_like(geometry.variance)
        if felt.any():
            some = PairGeometry(geometry.inner[felt], geometry.variance[felt])
            out[felt] = some.reach(self.probabilities[felt])
        return out

    def _expected_factor(self, geometry: PairGeometry) -> Array:
        """Return E g²·u² (..., K, K) in units of E u²: v, or more if arms that weigh scatter more."""
        carried = geometry.carried(expected_shares(self.probabilities, self.relative, self.drawn))
        known = np.where(np.isfinite(geometry.variance), geometry.variance, 0.0)
        return np.maximum(known, carried)

    def proven(self, confidence: Confidence) -> Mask:
        """Tell in entry (i, j) if j is proven better than i; on the diagonal, if i fails its test."""
        evidence = self.evidence()
        return confidence.exceeds(replace(evidence, totals=-evidence.totals), self.tuning())

    def eliminate(self, confidence: Confidence) -> "AllPairs":
        """Drop every arm that fails its test, or that some survivor is proven better than."""
        pairs = self.active[..., np.newaxis] & self.active[..., np.newaxis, :]
        some = np.flatnonzero(pairs & (self.totals < 0))
        against, variances, alpha, scale = (
            np.take(one, some) for one in (self.totals, self.variances, self.alpha, self.scale)
        )
        # Few are near their boundaries, and the others need not be copied.
        some = some[confidence.may_exceed(-against, variances, alpha, scale)]
        evidence, tuning = self._entries(some)
        proven = np.zeros(pairs.shape, dtype=np.bool_)
        proven.flat[some] = confidence.exceeds(replace(evidence, totals=-evidence.totals), tuning)
        left = self.active & ~np.any(proven, axis=-1)
        # Proofs in a circle contradict each other: some interval has failed, and nothing follows.
        return self.changed(active=np.where(left.any(axis=-1, keepdims=True), left, self.active))

    def drop(self, record: PlanRecord) -> "AllPairs":
        """Return the runs with the survivors of a record alone; evidence on all pairs stays."""
        return self.changed(active=record.active)

    def bound_lead(self, policy: "AnytimeElimination", leader: Whole, others: Mask) -> Array:
        """Return the largest upper bound (...) of the others (..., K) over the leader."""
        count = len(self.arms)
        places = np.flatnonzero(others)
        evidence, tuning = self._entries(places * count + np.take(leader, places // count))
        bounds = np.zeros(others.shape)
        bounds.flat[places] = evidence.estimates + policy.confidence.width(evidence, tuning)
        return np.asarray(np.max(bounds, axis=-1))

    def begin_evidence(self, policy: "AnytimeElimination", pilot: Array) -> "AllPairs":
        """Split δ over pairs by the gaps of the pilot, and tune the boundaries for the plan in force."""
        variance = PairGeometry.of(self.arms.positions, pilot).variance
        gaps = cautious_gaps(self.estimates(), variance, self.noise, self.watched)
        for_arms, for_pairs = shares(policy)
        alpha = with_diagonal(split_delta(for_pairs, gaps, variance, self.noise), for_arms)
        run = self.changed(alpha=alpha, left=self.left - for_arms - for_pairs)
        if policy.expect is not None:
            gaps = cautious_gaps(self.estimates(), variance, self.noise, self.watched, policy.expect)
        return run.tune(policy, gaps)

    def begin(self, begins_to_count: Mask, record: PlanRecord) -> "AllPairs":
        """Take the split of δ and the tuning of boundaries from the record of the first plan that counts."""
        if not begins_to_count.any():
            return self
        begun = dict[str, Any]()
        for name in BEGUN:
            before = getattr(self, name)
            axes = tuple(range(begins_to_count.ndim, before.ndim))
            begun[name] = np.where(np.expand_dims(begins_to_count, axes), record.details[name], before)
        return self.changed(**begun)

    def details_since(self, counted: "AllPairs") -> Mapping[str, NDArray[Any]]:
        """Return the split of δ and the tuning of boundaries, if evidence began with the newest plan."""
        has_begun = np.any((counted.stage < Stage.COUNTING) & (self.stage == Stage.COUNTING))
        return {name: getattr(self, name) for name in BEGUN} if has_begun else {}

    def without_arm(self, policy: "AnytimeElimination", arm: int) -> "AllPairs":
        """Return one run without an arm; arms that only it, or tests against it, had dropped come back."""
        run = self
        retired = self.retired | (np.arange(len(self.arms)) == arm)
        active = ~retired
        if self.stage == Stage.COUNTING:
            run = self._test_again(self.met[:, arm])
            active = active & ~np.any(run.proven(policy.confidence) & ~retired, axis=1)
        # Proofs in a circle contradict each other: nothing follows.
        return run.changed(retired=retired, active=active if active.any() else ~retired)

    def _test_again(self, again: Mask) -> "AllPairs":
        """Start the tests of arms that have lost a rival again, at half of what is left of δ.

        They count rounds of plans to come. Had they counted rounds that are drawn and not settled, somebody
        who knows such rewards could begin a test just before a run of bad luck. Given all that was drawn
        before its start, a test that begins with the next draw fails wrongly with probability α, whoever
        chose the moment.
        """
        diagonal = np.diag(again)
        spent = np.where(again, self.left / 2.0, 0.0)
        return replace(
            self.with_evidence(lambda pairs: np.where(diagonal, 0.0, pairs)),
            alpha=np.where(diagonal, np.diag(spent), self.alpha),
            left=self.left - spent,
            met=self.met & ~again[:, np.newaxis],
            first_plan=np.where(diagonal, self.plans + 1, self.first_plan),
        )

    def with_arms(self, policy: "AnytimeElimination", arms: ArmSet) -> "AllPairs":
        """Return one run with more arms; entries on them count the rounds of plans to come."""
        run = self.grow(arms, left=own_delta(policy), first_plan=self.plans + 1)
        return run._share_delta(len(self.arms), shares(policy)) if self.stage == Stage.COUNTING else run

    def _share_delta(self, before: int, own: tuple[float, float]) -> "AllPairs":
        """Give new pairs of old arms half of what each row has left, and new arms what all had at first."""
        count = len(self.left)
        for_arms, for_pairs = own
        alpha = self.alpha.copy()
        spent = np.full(count, for_arms + for_pairs)
        spent[:before] = self.left[:before] / 2.0
        alpha[:before, before:] = (spent[:before] / (count - before))[:, np.newaxis]
        alpha[before:] = for_pairs / (count - 1)
        new = np.arange(before, count)
        alpha[new, new] = for_arms
        return self.changed(alpha=alpha, left=self.left - spent)

    def tune_new(self, policy: "AnytimeElimination") -> "AllPairs":
        """Tune the boundaries of entries whose counted rounds begin with the plan in force."""
        fresh = self.first_plan == self.plans
        if self.stage < Stage.COUNTING or self.declared >= 0 or not fresh.any():
            return self
        variance = self.geometry().variance
        rounds = np.maximum(self.length, 1)
        gaps = cautious_gaps(self.estimates(), variance, self.noise, rounds, policy.expect)
        anew = self.tune(policy, gaps)
        rho = np.where(fresh, anew.rho, self.rho)
        return self.changed(rho=rho, scale=np.where(fresh, anew.scale, self.scale))

    def tune(self, policy: "AnytimeElimination", gaps: Array) -> "AllPairs":
        """Return the run with boundaries that suit the plan in force, all of whose rounds are to come."""
        geometry = self.geometry()
        is_exact = policy.confidence.is_exact
        reach = geometry.reach(self.probabilities) if is_exact else np.ones_like(gaps)
        rivals = rivals_of(self.active, self.leader, self.values)
        variance, reach, gaps = (with_rivals(pairs, rivals) for pairs in (geometry.variance, reach, gaps))
        tuning = tuned(self.alpha, gaps, variance, reach, policy, (self.noise, self.rounds))
        return self.changed(rho=tuning.rho, scale=tuning.scale)

    def estimates(self) -> Array:
        """Return estimated rewards (..., K), up to a common level."""
        return np.asarray((self.arms.positions @ self.coefficients[..., np.newaxis])[..., 0])

    def centred_sums(self, counts: Whole, sums: Array) -> tuple[Array, Array]:
        """Return Σ x̃x̃ᵀ and Σ x̃·reward of rounds under the plan in force."""
        return centred_sums(self.arms, self.probabilities, counts, sums)

    def differ_from(self, leader: Whole) -> Mask:
        """Tell which arms (..., K) differ from the leader (...) in some feature."""
        positions = self.arms.positions
        return np.asarray(np.any(positions != positions[leader][..., np.newaxis, :], axis=-1))

    def batch_share(self, policy: "AnytimeElimination") -> Array:
        """Return the share (...) of the rounds so far that a batch adds, by the tests of the survivors."""
        totals, variances, alpha = (
            np.diagonal(one, axis1=-2, axis2=-1) for one in (self.totals, self.variances, self.alpha)
        )
        return pace(policy, np.where(self.active, -totals, 0.0), variances, alpha)

    def redesign(self, policy: "AnytimeElimination") -> Array:
        """Return the distributions (..., K) to play next."""
        others = self.active & self.differ_from(self.leader)
        best = np.take_along_axis(self.values, self.leader[..., np.newaxis], axis=-1)
        gaps = np.maximum(best - self.values, 0.0)
        wanted = Wanted.of(self.leader, others, gaps, self._leads())
        if policy.goal == "earn":
            return earning_plan(self.arms, self.active, wanted, self.gram, self.ridge)
        return identifying_plan(self.arms, wanted, policy.mixing, self.probabilities, self.retired)

    def _leads(self) -> Array:
        """Return what each arm (..., K) may lead the leader by, as far as plans care: no claim is made."""
        totals, weights, variances, alpha, rho = (
            self._column(one, self.leader)
            for one in (self.totals, self.weights, self.variances, self.alpha, self.rho)
        )
        some = np.where(weights > 0, weights, 1.0)
        width = normal_mixture(variances, alpha, rho) / some
        return np.asarray(np.where(weights > 0, totals / some + width, np.inf))

    @staticmethod
    def _column(pairs: Array, leader: Whole) -> Array:
        """Return the entries (..., K) of pairs (..., K, K) with an arm (...)."""
        return np.asarray(np.take_along_axis(pairs, leader[..., np.newaxis, np.newaxis], axis=-1)[..., 0])

    def upper_bounds(self, confidence: Confidence, of: int | None, over: int | None) -> Array:
        """Return bounds (..., K, K) on what arms can be better by, or one row or column (..., K)."""
        evidence = self.evidence()
        bounds = evidence.estimates + confidence.width(evidence, self.tuning())
        out = np.asarray(np.where(np.eye(len(self.arms), dtype=np.bool_), 0.0, bounds))
        if of is not None:
            return np.asarray(out[..., of, :])
        return out if over is None else np.asarray(out[..., over])

    def dump(self) -> dict[str, Any]:
        """Return the state as plain lists and numbers that survive ``json.dumps`` exactly."""
        return self.dump_fields()

    @classmethod
    def load(cls, arms: ArmSet, data: dict[str, Any]) -> "AllPairs":
        """Invert :meth:`dump`."""
        return cls(**cls.load_fields(arms, data)).frozen()


def pace(policy: "AnytimeElimination", against: Array, variances: Array, alpha: ArrayLike) -> Array:
    """Return the share (...) of the rounds so far that a batch adds: more while no arm is near its end.

    A test ends where S/√2V is about √(log(1/α) + 1), and in a share g of the rounds so far S/√V moves by √g.

    Parameters
    ----------
    policy : AnytimeElimination
    against, variances : (..., K) arrays
        S, by how much tests speak against arms, and V.
    alpha : array
        Levels of the tests.
    """
    goal = np.sqrt(np.maximum(1.0 - np.log(alpha), 1.0))
    reached = np.maximum(against, 0.0) / np.sqrt(2.0 * np.where(variances > 0, variances, np.inf))
    away = np.min(np.maximum(goal - reached, 0.0), axis=-1)
    most = policy.growth if policy.epsilon > 0 else max(policy.growth, CALM)
    return np.asarray(np.clip(away**2, finest_share(policy), most))


def with_rivals(pairs: Array, rivals: Whole) -> Array:
    """Return entries (..., K, K) of pairs with those of each arm and its rival (..., K) on the diagonal."""
    return with_diagonal(pairs, np.take_along_axis(pairs, rivals[..., np.newaxis], axis=-1)[..., 0])
