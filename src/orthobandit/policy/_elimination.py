"""One replication of anytime elimination: what a finished batch changes."""

from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orthobandit._linalg import solve_ridge
from orthobandit.arms import ArmSet
from orthobandit.estimate import Tally
from orthobandit.estimate.augmented import PairGeometry
from orthobandit.estimate.confidence import Asymptotic, Confidence, Evidence, Tuning
from orthobandit.policy._allocation import TINY, cautious_gaps, split_delta, tuned
from orthobandit.policy._replanning import Wanted, earning_plan, identifying_plan, wide_plan

Array = NDArray[np.float64]

# Rounds per dimension of the warm-up, and again of the pilot; where they cost regret, fewer.
PILOT = {"identify": 10, "earn": 7}
SHORTEST = 10  # rounds of a batch
RIDGE = 0.1  # of the regression, in units of one round's information
RESERVE = 0.05  # of δ that is kept for arms that come and go
# Of δ for bounds on all pairs, where an ε can stop the experiment and where not; the rest is for tests.
PAIRS = {True: 0.5, False: 0.1}
PLANNING = Asymptotic()  # the mode that plans go by; claims go by the mode that was asked for
REDESIGN = 2.0  # a distribution serves until there are this many times the rounds it was made from


class Settings(Protocol):
    """What is read of the policy."""

    @property
    def delta(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def goal(self) -> str: ...
    @property
    def confidence(self) -> Confidence: ...
    @property
    def growth(self) -> float: ...
    @property
    def mixing(self) -> float: ...
    @property
    def pilot(self) -> int | None: ...


def shares(policy: Settings) -> tuple[float, float]:
    """Return what each arm's row spends of δ on its test and on its bounds."""
    spent, part = (1.0 - RESERVE) * policy.delta, PAIRS[policy.epsilon > 0]
    return (1.0 - part) * spent, part * spent


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
    rounds: int
    designed: int
    plans: int
    probabilities: Array
    values: Array
    gram: Array
    moment: Array
    noise: float
    totals: Array
    weights: Array
    variances: Array
    slack: Array
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
        pilot = policy.pilot if policy.pilot is not None else 2 * PILOT[policy.goal] * (r + 1)
        run = cls(
            active=np.ones(k, dtype=np.bool_),
            retired=np.zeros(k, dtype=np.bool_),
            stage=0,
            length=max(pilot // 2, 1),
            rounds=0,
            designed=0,
            plans=1,
            probabilities=np.array(wide_plan(arms)),
            values=np.zeros(k),
            gram=np.zeros((r, r)),
            moment=np.zeros(r),
            noise=0.0,
            totals=pairs,
            weights=pairs,
            variances=pairs,
            slack=pairs,
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

    @classmethod
    def of(cls, state: Any, place: tuple[int, ...]) -> "Run":
        """Take one replication out of a batch."""
        return cls(**{field.name: getattr(state, field.name)[place] for field in fields(cls)})

    def advanced(self, policy: Settings, arms: ArmSet, tally: Tally, place: tuple[int, ...]) -> "Run":
        """Return the run after a complete batch."""
        counts, sums, squares = (
            np.asarray(part[place], dtype=np.float64) for part in (tally.counts, tally.sums, tally.squares)
        )
        geometry = PairGeometry.of(arms.positions, self.probabilities)
        run = self.absorbed(policy.confidence, arms, geometry, (counts, sums, squares))
        if run.stage == 0:
            return replace(run, stage=1, values=_fitted(run.estimates(arms), policy.confidence))
        gaps = None
        if run.stage == 1:
            gaps = cautious_gaps(run.estimates(arms), geometry.variance, run.noise, int(counts.sum()))
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

    def absorbed(
        self,
        confidence: Confidence,
        arms: ArmSet,
        geometry: PairGeometry,
        seen: tuple[Array, Array, Array],
    ) -> "Run":
        """Add rounds under the plan in force to the regression and, after the pilot, to the evidence."""
        run = self._counted(confidence, geometry, *seen) if self.stage == 2 else self
        return run._regressed(arms, *seen)

    def _counted(
        self, confidence: Confidence, geometry: PairGeometry, counts: Array, sums: Array, squares: Array
    ) -> "Run":
        """Add a batch to the evidence on all pairs that its plan could estimate, and on all arms."""
        factor = self._with_rivals(geometry.variance)
        known = np.isfinite(factor)
        weight = np.where(known, 1.0 / np.where(known, factor, 1.0), 0.0)
        slack, rounds = self.slack, counts.sum()
        if confidence.is_exact:
            reach = self._with_rivals(geometry.reach(self.probabilities))
            weight = np.minimum(weight, self.scale / (confidence.limit * np.maximum(reach, 1e-300)))
            slack = slack + confidence.bias * rounds * weight * np.sqrt(np.where(known, factor, 0.0))
        totals, variances = map(self._with_rivals, geometry.sums(counts, sums, squares, self.values))
        met = self.met.copy()
        met[np.arange(len(met)), self._rivals()] = True
        return replace(
            self,
            met=met,
            totals=self.totals + weight * totals,
            weights=self.weights + weight * rounds,
            variances=self.variances + weight**2 * variances,
            slack=slack,
        )

    def _rivals(self) -> NDArray[np.int64]:
        """Return the arm (K,) that each is tested against in this batch: the leader, or its runner-up."""
        behind = self.active & (np.arange(len(self.active)) != self.leader)
        second = int(np.argmax(np.where(behind, self.values, -np.inf)))
        return np.where(np.arange(len(self.active)) == self.leader, second, self.leader)

    def _with_rivals(self, pairs: Array) -> Array:
        """Return entries (K, K) of pairs with those of each arm and its rival on the diagonal."""
        out = pairs.copy()
        np.fill_diagonal(out, pairs[np.arange(len(pairs)), self._rivals()])
        return out

    def _regressed(self, arms: ArmSet, counts: Array, sums: Array, squares: Array) -> "Run":
        """Add a batch to the regression, weighted by what its residuals scatter."""
        centred = arms.positions - self.probabilities @ arms.positions
        rounds = counts.sum()
        scatter = max(float(squares.sum() / rounds), TINY)
        noise = scatter if self.stage < 2 else 0.7 * self.noise + 0.3 * scatter
        return replace(
            self,
            gram=self.gram + (centred * counts[:, np.newaxis]).T @ centred / scatter,
            moment=self.moment + centred.T @ (sums + counts * self.values) / scatter,
            noise=noise,
        )

    def estimates(self, arms: ArmSet) -> Array:
        """Return estimated rewards (K,), up to a common level."""
        return np.asarray(arms.positions @ solve_ridge(self.gram, self.moment, self._ridge))

    @property
    def _ridge(self) -> float:
        return RIDGE * max(float(np.trace(self.gram)) / max(self.rounds, 1), TINY)

    def evidence(self) -> tuple[Evidence, Tuning]:
        """Return the evidence for j over i, and its tuning, in entry (i, j)."""
        evidence = Evidence(-self.totals, self.weights, self.variances, self.slack)
        return evidence, Tuning(self.alpha, self.rho, self.scale)

    def _eliminated(self, confidence: Confidence) -> "Run":
        """Drop every arm that fails its test, or that some survivor is proven better than."""
        proven = confidence.exceeds(*self.evidence())
        pairs = self.active[:, np.newaxis] & self.active
        left = self.active & ~np.any(proven & pairs, axis=1)
        # Proofs in a circle contradict each other: some interval has failed, and nothing follows.
        return replace(self, active=left) if left.any() else self

    def led(self, arms: ArmSet, policy: Settings) -> "Run":
        """Find the leader and how far it can be from the best; declare it if that settles the matter."""
        values = self.estimates(arms)
        leader = int(np.argmax(np.where(self.active, values, -np.inf)))
        run = replace(self, leader=leader, values=_fitted(values - values[leader], policy.confidence))
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
        evidence, tuning = self.evidence()
        at = (others, np.full(len(others), leader))
        part = Evidence(*(getattr(evidence, field.name)[at] for field in fields(Evidence)))
        width = confidence.width(part, Tuning(*(getattr(tuning, field.name)[at] for field in fields(Tuning))))
        return np.asarray(width - part.estimates)

    def _settled(self, arm: int) -> "Run":
        mass = (np.arange(len(self.active)) == arm).astype(np.float64)
        return replace(
            self,
            leader=arm,
            declared=arm,
            probabilities=mass,
            plans=self.plans + (self.rounds > 0),
        )

    def _planned(self, policy: Settings, arms: ArmSet, before: "Run") -> "Run":
        """Plan the next batch; the distribution stays while survivors, leader and data are much the same."""
        length = max(int(np.ceil(policy.growth * self.rounds)), SHORTEST)
        run = replace(self, length=length, plans=self.plans + 1)
        same = self.leader == before.leader and np.array_equal(self.active, before.active)
        if same and self.rounds < REDESIGN * self.designed:
            return run
        survivors = np.flatnonzero(self.active)
        others = survivors[np.any(arms.positions[survivors] != arms.positions[self.leader], axis=1)]
        gaps = np.maximum(self.values[self.leader] - self.values[others], 0.0)
        lead = self._upper_bounds(PLANNING, others, self.leader)
        wanted = Wanted.of(self.leader, others, gaps, lead)
        if policy.goal == "earn":
            p = earning_plan(arms, self.active, wanted, self.gram, self._ridge)
        else:
            p = identifying_plan(arms, wanted, policy.mixing, self.probabilities, self.retired)
        return replace(run, probabilities=p, designed=self.rounds)

    def tuned(self, confidence: Confidence, arms: ArmSet, gaps: Array) -> "Run":
        """Return the run with boundaries that suit the plan in force, all of whose rounds are to come."""
        geometry = PairGeometry.of(arms.positions, self.probabilities)
        reach = geometry.reach(self.probabilities) if confidence.is_exact else np.ones_like(gaps)
        variance, reach, gaps = map(self._with_rivals, (geometry.variance, reach, gaps))
        tuning = tuned(self.alpha, gaps, variance, reach, confidence, (self.noise, self.rounds))
        return replace(self, rho=tuning.rho, scale=tuning.scale)


def _fitted(values: Array, confidence: Confidence) -> Array:
    """Shrink estimates that spread wider than the declared range of means, so that residuals stay in it."""
    low, high = confidence.range
    spread = float(values.max() - values.min())
    return values * min(1.0, (high - low) / spread) if spread > 0 and np.isfinite(high - low) else values
