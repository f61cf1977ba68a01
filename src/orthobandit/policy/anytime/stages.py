"""The stages of anytime elimination: warm-up → pilot → evidence, whichever way evidence is laid out.

The warm-up lets the baseline learn the level, and the pilot shows how large residuals and gaps are. Neither
counts. Then every batch adds to the evidence, which drops arms, finds the leader and may declare it; the next
batch is planned for what is still open.

A batch that is complete is closed in two steps. Its rounds are counted (:meth:`AnytimeState.counted`), which
is arithmetic. Then either the next plan is made (:meth:`AnytimeState.plan_next`), the only place where
anything is decided, or one that was made and recorded before is taken (:meth:`AnytimeState.adopt`), which
leads to the same state, bit by bit.

What this module leaves to a layout of evidence (all pairs, or survivors against leaders) are the abstract
methods of :class:`AnytimeState`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orthobandit._foundation.linalg import solve_ridge
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Plan, Tally
from orthobandit.estimate.confidence.boundaries import Grid, LogBets
from orthobandit.estimate.confidence.evidence import Sizes, relative_squares
from orthobandit.estimate.confidence.modes import Confidence
from orthobandit.policy.anytime.delta import TINY, grid_of
from orthobandit.policy.anytime.fields import Fields, Place, Stage
from orthobandit.policy.anytime.plans import wide_plan
from orthobandit.policy.contract import Batch, PlanRecord

if TYPE_CHECKING:
    from orthobandit.policy.anytime.policy import AnytimeElimination

# Rounds per dimension of the warm-up, and again of the pilot; where they cost regret, fewer.
# `verify.py` has the same numbers.
PILOT = {"identify": 10, "earn": 5}
INFORMED = (
    8.0  # events (see Sizes) that end the pilot, however many rounds they take: where rewards are rare, many
)
LONGER = 0.5  # share of the rounds so far that a pilot goes on by while it has seen too little
SHORTEST = 10  # rounds of a batch: early on a share of the rounds so far would be one or two
CALM = 0.1  # share of the rounds so far that a batch adds while no arm is near its end
FINER = 4.0  # times closer together looks at the evidence are near the end of an arm, where a gap is expected
REDESIGN = 2.0  # a distribution serves until there are this many times the rounds it was made from
SETTLED = 10.0  # times smaller residuals are, once differences between arms that dwarf noise are known
RIDGE = 0.1  # of the regression, in units of one round's information: it steadies the first plans, no more
# Weights of the batches before and of the newest in the variance of a residual, which may change with time.
EARLIER = 0.7
NEWEST = 0.3


def warm_up(policy: "AnytimeElimination", arms: ArmSet) -> int:
    """Return the rounds of the warm-up, and the fewest of the pilot."""
    if policy.pilot is not None:
        return max(policy.pilot // 2, 1)
    return PILOT[policy.goal] * (arms.dimension + 1)


def finest_share(policy: "AnytimeElimination") -> float:
    """Return the least share of the rounds so far that a batch adds, where an arm is near its end."""
    return policy.growth if policy.expect is None else policy.growth / FINER


@dataclass(frozen=True, eq=False)
class AnytimeState(Fields, ABC):
    """The memory of :class:`~orthobandit.AnytimeElimination`, and what rounds change in it.

    A state holds replications in any stage. Methods with a leading underscore, and those that a layout
    implements, work on replications that are all in the same stage.
    """

    # What a layout of evidence implements

    @abstractmethod
    def count(self, confidence: Confidence, tally: Tally, rivals: Whole) -> Self:
        """Add rounds under the plan in force to the evidence; `rivals` (..., K) as in the plan."""

    @abstractmethod
    def eliminate(self, confidence: Confidence) -> Self:
        """Drop every arm that is proven worse than another."""

    @abstractmethod
    def bound_lead(self, policy: "AnytimeElimination", leader: Whole, others: Mask) -> Array:
        """Return the most (...) that any of the others (..., K) can be better than the leader; at least 0."""

    @abstractmethod
    def begin_evidence(self, policy: "AnytimeElimination", pilot: Array) -> Self:
        """Split δ and tune boundaries for the plan in force, by what was seen under that of the pilot."""

    def follow_leader(self, policy: "AnytimeElimination") -> Self:  # noqa: ARG002
        """Return the run with evidence on the leader begun, in layouts that have none on some arms."""
        return self

    @abstractmethod
    def drop(self, record: PlanRecord) -> Self:
        """Return the runs with the survivors of a record alone, and what their evidence rests on."""

    @abstractmethod
    def begin(self, begins_to_count: Mask, record: PlanRecord) -> Self:
        """Begin the evidence that begins with the plan in force, tuned as its record says.

        `begins_to_count` tells where (...) rounds of this plan are the first that count.
        """

    @abstractmethod
    def details_since(self, counted: Self) -> Mapping[str, NDArray[Any]]:
        """Return what :meth:`drop` and :meth:`begin` need of the plan that was made from `counted`."""

    @abstractmethod
    def estimates(self) -> Array:
        """Return estimated rewards (..., K), up to a common level."""

    @abstractmethod
    def centred_sums(self, counts: Whole, sums: Array) -> tuple[Array, Array]:
        """Return Σ x̃x̃ᵀ and Σ x̃·reward of rounds under the plan in force."""

    @abstractmethod
    def differ_from(self, leader: Whole) -> Mask:
        """Tell which survivors (..., K) differ from the leader (...) in some feature."""

    @abstractmethod
    def batch_share(self, policy: "AnytimeElimination") -> Array:
        """Return the share (...) of the rounds so far that the next batch adds."""

    @abstractmethod
    def redesign(self, policy: "AnytimeElimination") -> Array:
        """Return the distributions (..., K) to play next."""

    @abstractmethod
    def without_arm(self, policy: "AnytimeElimination", arm: int) -> Self:
        """Return one run in which an arm is retired, and all that rested on it is to be proven again."""

    def conclude(self, policy: "AnytimeElimination", arm: int, active: Mask) -> Self:  # noqa: ARG002
        """Return one run in which somebody else has declared an arm, and these arms (K,) survive."""
        return self.changed(active=active)

    @abstractmethod
    def with_arms(self, policy: "AnytimeElimination", arms: ArmSet) -> Self:
        """Return one run with more arms after those so far, and evidence on them that begins next."""

    @abstractmethod
    def tune_new(self, policy: "AnytimeElimination") -> Self:
        """Tune the boundaries of evidence that begins with the plan in force; the others keep theirs."""

    @abstractmethod
    def upper_bounds(self, confidence: Confidence, of: int | None, over: int | None) -> Array:
        """Return bounds (..., K, K) on what arms can be better by, or one row or column (..., K)."""

    @abstractmethod
    def dump(self) -> dict[str, Any]:
        """Return the state as plain values that survive ``json.dumps`` exactly."""

    # What happens to a state

    def observe(self, tally: Tally) -> Self:
        """Add rounds of the plan in force to its tally."""
        return self.with_rounds(self.tally + tally, tally.rounds)

    def count_late(self, confidence: Confidence, batches: Sequence[Batch]) -> Self:
        """Count rounds of other plans than that in force, plan by plan in the order of their numbers."""
        runs = list[tuple[Place, Self, Self]]()
        for place in np.ndindex(self.batch):
            before = run = self[place]
            if before.declared >= 0:
                continue
            for batch in sorted(batches, key=lambda each: int(each.plan.number[place])):
                tally = batch.tally[place]
                if tally.rounds:
                    run = run.with_rounds(run.tally, tally.rounds)
                    run = run._add_late(confidence, batch.plan.at(place), tally)
            if run is not before:
                runs.append((place, before, run))
        return self.with_runs(runs, self.tally) if runs else self

    @property
    def is_due(self) -> Mask:
        """Tell where (...) the batch is complete, so that the next plan can be made."""
        return np.asarray((self.declared < 0) & (self.tally.rounds + self.late >= self.length))

    def close_batches(self, policy: "AnytimeElimination") -> Self:
        """Count the batches that are complete, and put the plans in force that follow from them."""
        due = self.is_due
        if not due.any():
            return self
        return self.close(due, policy.confidence, lambda _, counted: counted.plan_next(policy))

    def close(self, due: Mask, confidence: Confidence, put_in_force: Callable[[Place, Self], Self]) -> Self:
        """Count the batches of some replications (...), and put their next plans in force.

        `put_in_force` takes a place and the counted runs there, which are all in the same stage.
        """
        parts = [(place, self[place]) for place in self.groups(due)]
        runs = [(place, run, put_in_force(place, run.counted(confidence))) for place, run in parts]
        return self.with_runs(runs, self.tally.without(due))

    def groups(self, done: Mask) -> Iterator[Place]:
        """Yield places of replications that are advanced together: here, each by itself."""
        for place in np.argwhere(done):
            yield tuple(place)

    def counted(self, confidence: Confidence) -> Self:
        """Return runs whose tally has been counted; it was played in time by all of them or by none."""
        return self.absorb(confidence, self.tally) if self.tally.rounds.all() else self

    def adopt(self, plan: Plan, record: PlanRecord) -> Self:
        """Return counted runs with a recorded plan in force; nothing is decided, designed or tuned."""
        values = record.details["values"]
        is_pilot = (self.stage == Stage.WARM_UP) & (record.stage == Stage.PILOT)
        begins_to_count = (self.stage < Stage.COUNTING) & (record.stage == Stage.COUNTING)
        return (
            self.drop(record)
            .changed(
                plans=plan.number,
                late=np.zeros_like(self.late),
                probabilities=plan.probabilities,
                stage=record.stage,
                leader=record.leader,
                declared=record.declared,
                epsilon=record.epsilon,
                values=values,
                length=record.details["length"],
                designed=record.details["designed"],
                largest=np.where(is_pilot, self._settled(values), self.largest),
                scattered=np.where(begins_to_count, 0.0, self.scattered),
            )
            .begin(begins_to_count, record)
        )

    def plan_next(self, policy: "AnytimeElimination") -> Self:
        """Decide all that follows from counted batches: return runs with their next plan in force."""
        run = self.changed(plans=self.plans + 1, late=np.zeros_like(self.late))
        match self.common_stage:
            case Stage.WARM_UP if np.all(self.drawn.sum(axis=-1) == self.tally.rounds):
                # The first round of all is a batch by itself: its forecast knows nothing of the level.
                return run._lasting(max(warm_up(policy, self.arms) - 1, 1))
            case Stage.WARM_UP:
                return run._begin_pilot(policy)
            case Stage.PILOT:
                run = run._lasting(np.maximum(np.ceil(LONGER * run.rounds), SHORTEST))
                is_informed = np.asarray(run.informed >= INFORMED)
                if is_informed.all():
                    return run._end_pilot(policy)
                if is_informed.any():
                    part = run[is_informed]
                    return run.with_runs([((is_informed,), part, part._end_pilot(policy))], run.tally)
                return run
            case Stage.COUNTING:
                # Drop first, then look for a leader among those left; the plan is made for the pairs still
                # open.
                run = run.eliminate(policy.confidence).find_leader(policy)
                return run._plan_batch(policy, self).follow_leader(policy)

    def _begin_pilot(self, policy: "AnytimeElimination") -> Self:
        """Begin the pilot, with estimates to take residuals from."""
        values = fitted(self.estimates(), self.arms, policy.confidence)
        stage = np.full_like(self.stage, Stage.PILOT)
        run = self.changed(stage=stage, values=values, largest=self._settled(values))
        return run._lasting(warm_up(policy, self.arms))

    def _settled(self, values: Array) -> Array:
        """Return the largest residual (...) to remember of a warm-up that led to these values (..., K).

        Its residuals held the differences between arms, and its forecasts swung with them: only what exceeds
        twice their spread is remembered.
        """
        return np.asarray(np.maximum(self.largest - 2.0 * np.ptp(values, axis=-1), 0.0))

    def _end_pilot(self, policy: "AnytimeElimination") -> Self:
        """Plan the first batch that counts, and begin the evidence."""
        run = self.changed(
            stage=np.full_like(self.stage, Stage.COUNTING),
            # Whether the asymptotic mode may speak is for rounds that count to say: the pilot's may have been
            # of another kind, as when all was quiet after a burst.
            scattered=np.zeros_like(self.scattered),
        )
        run = run.find_leader(policy)._plan_batch(policy, self)
        return run.begin_evidence(policy, self.probabilities)

    def find_leader(self, policy: "AnytimeElimination") -> Self:
        """Find the leader and how far it can be from the best; declare it if that settles the matter."""
        values = self.estimates()
        leader = np.asarray(np.argmax(np.where(self.active, values, -np.inf), axis=-1))
        others = self.active & self.differ_from(leader)
        epsilon = self.bound_lead(policy, leader, others)
        if not policy.confidence.takes_values:
            epsilon = np.where(others.any(axis=-1), np.inf, 0.0)
        values = fitted(values, self.arms, policy.confidence)
        run = self.changed(leader=leader, values=values, epsilon=epsilon)
        are_alike = ~others.any(axis=-1)  # survivors are the same arm: the first will do
        arm = np.where(are_alike, np.argmax(self.active, axis=-1), leader)
        return run.declare(arm, are_alike | (epsilon <= policy.epsilon))

    def settle_at_once(self) -> Self:
        """Declare the first arm before the first round, because all are the same."""
        nothing = np.zeros(self.batch)
        first = np.zeros(self.batch, dtype=np.int64)
        return self.changed(epsilon=nothing).declare(first, np.ones(self.batch, dtype=np.bool_)).frozen()

    def declare(self, arm: Whole, is_settled: Mask) -> Self:
        """Declare an arm (...) where the matter is settled, and play it alone."""
        if not np.any(is_settled):
            return self
        mass = (np.arange(len(self.arms)) == np.asarray(arm)[..., np.newaxis]).astype(np.float64)
        return self.changed(
            leader=np.where(is_settled, arm, self.leader),
            declared=np.where(is_settled, arm, self.declared),
            probabilities=np.where(np.asarray(is_settled)[..., np.newaxis], mass, self.probabilities),
        )

    def _plan_batch(self, policy: "AnytimeElimination", before: Self) -> Self:
        """Plan the next batch; a distribution stays while survivors, leader and data are much the same."""
        is_over = self.declared >= 0
        length = np.maximum(np.ceil(self.batch_share(policy) * self.rounds), SHORTEST)
        same = (self.leader == before.leader) & np.all(self.active == before.active, axis=-1)
        stays = (same & (self.rounds < REDESIGN * self.designed)) | is_over
        p = np.array(self.probabilities)
        if not stays.all():
            some = np.nonzero(~stays) if self.batch else ()
            p[some] = self[some].redesign(policy)
        run = self._lasting(np.where(is_over, self.length, length))
        return run.changed(probabilities=p, designed=np.where(stays, self.designed, self.rounds))

    def _lasting(self, rounds: ArrayLike) -> Self:
        """Return the runs with other lengths of the batch to come."""
        length = np.broadcast_to(np.asarray(rounds, dtype=np.int64), self.length.shape)
        return self.changed(length=length)

    # What rounds teach

    @property
    def grid(self) -> Grid | LogBets:
        """What boundaries are mixed over, in all replications."""
        return grid_of(bool(self.is_expected.any()))

    @property
    def common_stage(self) -> Stage:
        """The stage that all replications are in."""
        return Stage(int(np.max(self.stage)))

    @property
    def sizes(self) -> Sizes:
        """How large residuals were."""
        return Sizes(self.watched, self.squared, self.scattered, self.largest, self.excess)

    def absorb(self, confidence: Confidence, tally: Tally, rivals: Whole | None = None) -> Self:
        """Add rounds under the plan in force to the regression and, after the pilot, to the evidence."""
        # In this order: evidence is weighed by the sizes seen up to now, and counted with estimates from
        # before the batch; only then may the batch change the estimates.
        run = self._watch(tally)
        if not confidence.takes_values:
            run = run.changed(values=np.zeros_like(self.values))
        if self.common_stage == Stage.COUNTING:
            against = rivals_of(self.active, self.leader, self.values) if rivals is None else rivals
            run = run.count(confidence, tally, against)
        return run._regress(tally).changed(values=self.values)

    def _add_late(self, confidence: Confidence, plan: Plan, tally: Tally) -> Self:
        """Return one run with rounds of an earlier plan, or of one restricted to some arms.

        They count as they would have done in time: with the geometry, the values and the rivals that were
        fixed before their draws. What they may be counted for does not depend on how many they are.
        """
        then = self.changed(
            plans=np.asarray(plan.number),
            probabilities=plan.probabilities,
            values=plan.values,
            length=np.zeros_like(self.length),
        )
        # Rounds of the warm-up and of a declared arm are no evidence, however late they come.
        if plan.rivals is None or np.any(plan.rivals < 0):
            run = then._regress(tally).changed(noise=self.noise)
            count = 0
        else:
            run = then.absorb(confidence, tally, plan.rivals)
            count = int(tally.rounds)
        return run.changed(
            plans=self.plans,
            probabilities=self.probabilities,
            values=self.values,
            length=self.length,
            late=self.late + count,
        )

    def _watch(self, tally: Tally) -> Self:
        """Note how large residuals are; of the warm-up, only how large one can be.

        The first round of all, whose forecast knows nothing of the level, is left out.
        """
        drawn = self.drawn + tally.counts
        if self.common_stage == Stage.WARM_UP:
            most = np.where(self.rounds > tally.rounds, tally.largest.max(axis=-1), 0.0)
            return self.changed(largest=np.maximum(self.largest, most), drawn=drawn, relative=drawn)
        alone = Sizes().and_of(tally)
        before = self.sizes
        # What was large were differences between arms, before they were known: nothing that noise did.
        anew = SETTLED * alone.largest < before.largest
        anew &= before.largest <= 2.0 * np.ptp(self.values, axis=-1)
        informed = np.where(anew, 0.0, self.informed)
        sizes = Sizes(*(np.where(anew, 0, one) for one in astuple(before))).and_of(tally)
        return self.changed(
            drawn=drawn,
            relative=self.relative + relative_squares(tally),
            watched=sizes.rounds,
            squared=sizes.squared,
            scattered=sizes.scattered,
            largest=sizes.largest,
            excess=sizes.excess,
            informed=informed + alone.events,
        )

    def _regress(self, tally: Tally) -> Self:
        """Add a batch to the regression, weighted by what its residuals scatter.

        A quiet batch counts no more than the batches before: where events are rare it has seen none. Before
        the first event a batch counts for nothing: what it could weigh would depend on the unit of rewards.
        """
        gram, moment = self.centred_sums(tally.counts, tally.sums + tally.counts * self.values)
        scatter = tally.squares.sum(axis=-1) / tally.rounds
        noise = EARLIER * self.noise + NEWEST * scatter if self.common_stage == Stage.COUNTING else scatter
        if self.common_stage == Stage.PILOT:
            # The values of the pilot are a first guess, and their errors no noise of later rounds. Nothing
            # was watched yet where rounds of the warm-up come late.
            earlier = np.maximum(self.watched - tally.rounds, 0)
            noise = earlier * self.noise + tally.rounds * self._unexplained(gram, tally)
            noise = np.where(self.watched > 0, noise / np.maximum(earlier + tally.rounds, 1), scatter)
        unit = np.maximum(scatter, self.noise if self.common_stage == Stage.COUNTING else noise)
        unit = np.where(unit > 0, unit, np.inf)
        return self.changed(
            gram=self.gram + gram / over_pairs(unit),
            moment=self.moment + moment / unit[..., np.newaxis],
            noise=np.asarray(noise),
        )

    def _unexplained(self, gram: Array, tally: Tally) -> Array:
        """Return the variance (...) of residuals around a regression on the features of their arms.

        Takes Σ x̃x̃ᵀ as `gram`. As it is where a batch is too short for so many features.
        """
        squares = tally.squares.sum(axis=-1)
        _, moment = self.centred_sums(tally.counts, tally.sums)
        mean = np.trace(gram, axis1=-2, axis2=-1) / tally.rounds
        solved = solve_ridge(gram, moment, RIDGE * np.where(mean > 0, mean, TINY))
        left = tally.rounds - self.arms.dimension
        is_long = 2 * left >= tally.rounds
        around = np.maximum(squares - np.sum(solved * moment, axis=-1), 0.0) / np.where(is_long, left, 1)
        return np.asarray(np.where(is_long, around, squares / tally.rounds))

    @property
    def coefficients(self) -> Array:
        """The regression's θ (..., r), in the basis of the arms' hull."""
        return np.asarray(solve_ridge(self.gram, self.moment, self.ridge))

    @property
    def ridge(self) -> Array:
        """Ridge of the regression."""
        mean = np.trace(self.gram, axis1=-2, axis2=-1) / np.maximum(self.rounds, 1)
        return np.asarray(RIDGE * np.where(mean > 0, mean, TINY))


def rivals_of(active: Mask, leader: ArrayLike, values: Array) -> Whole:
    """Return the arm (..., K) that each is tested against: the leader, and the leader its runner-up."""
    is_leader = np.arange(active.shape[-1]) == np.asarray(leader)[..., np.newaxis]
    second = np.argmax(np.where(active & ~is_leader, values, -np.inf), axis=-1)
    return np.where(is_leader, second[..., np.newaxis], np.asarray(leader)[..., np.newaxis])


def over_pairs(values: Array) -> Array:
    """Return numbers (...) of replications so that they broadcast with matrices (..., K, K)."""
    return np.asarray(values)[..., np.newaxis, np.newaxis]


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
