"""Anytime elimination: exact or asymptotic confidence at every moment, whatever the shift."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orthobandit._checks import check_choice, check_fraction, check_positive, check_whole
from orthobandit._types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Plan, Tally
from orthobandit.estimate.baseline import AutoRegression, Baseline, check_baseline
from orthobandit.estimate.confidence import Asymptotic, Bounded, Confidence
from orthobandit.estimate.evidence import Evidence, Tuning, events
from orthobandit.policy._states import check_late, check_observed, clear
from orthobandit.policy.anytime.changes import extended, without
from orthobandit.policy.anytime.rounds import EVIDENCE, rivals_of
from orthobandit.policy.anytime.run import Run
from orthobandit.policy.anytime.state import AnytimeState, dump, load, stacked, updated
from orthobandit.policy.base import FOREVER, Decision

GOALS = ("identify", "earn")
PAIRS_AT_ONCE = 1_000_000  # that replications are advanced with together, to bound memory


def _mode(rewards: tuple[float, float] | None, confidence: Confidence | None) -> Confidence:
    """Return the mode of confidence: what was asked for, or the best that is known to hold."""
    if confidence is not None and not isinstance(confidence, Confidence):
        raise ParameterError(f"confidence={confidence!r} must be Asymptotic(), Bounded or SubGaussian")
    if rewards is None:
        return Asymptotic() if confidence is None else confidence
    if np.shape(rewards) != (2,):
        raise ParameterError(f"rewards={rewards!r} must be the lowest and the highest, e.g. (0, 1)")
    bounded = Bounded(*map(float, rewards))
    if confidence not in (None, bounded):
        raise ParameterError(
            f"rewards={rewards!r} ask for {bounded}, and confidence={confidence!r} for another mode; give one"
        )
    return bounded


@dataclass(frozen=True)
class AnytimeElimination:
    """Drop arms as soon as they are proven worse, at any time, under any shift.

    Rounds come in batches that grow by a constant factor. Every batch adds to unbiased estimates of all
    pairs (:mod:`orthobandit.estimate.augmented`), whose intervals hold at all times at once
    (:mod:`orthobandit.estimate.confidence`). Every arm is tested against the leader of the moment: if it is
    best, it is no worse than any rival, whichever the past suggests. Arms that fail are dropped, and the
    next batch is planned for the pairs that are still open. The first two batches, which warm up the
    baseline and tune the boundaries, are not counted. Beyond the paper (Kim, Kim & Oh 2025): no unknown
    constants, and no union over rivals.

    Parameters
    ----------
    delta : float
        Failure probability of everything that is claimed in a run.
    epsilon : float
        Stop as soon as the leader is proven within ε of the best arm; 0 to stop at a sole survivor.
    goal : {"identify", "earn"}
        Fewest rounds to the declaration, or least regret on the way.
    rewards : (float, float), optional
        Where every reward lies, e.g. ``(0, 1)`` for sales or clicks. If it is known, say it: claims are
        then exact at every sample size.
    confidence : Confidence, optional
        By default ``Bounded(*rewards)`` where `rewards` are given, and :class:`Asymptotic` where not, which
        waits until it may speak. :class:`SubGaussian` is exact for unbounded rewards of known scale.
    baseline : Baseline
        Forecast of the moving level. A good one narrows intervals, a bad one widens them, none biases them;
        autoregressive by default.
    growth : float
        Each batch adds this share of the rounds so far.
    mixing : float
        Share of the exact centred design in plans that identify.
    pilot : int, optional
        Fewest rounds of the warm-up and of the pilot together; by default 20(r + 1), and 14(r + 1) to earn.
        The pilot goes on by itself until it has seen enough to tune by.

    Examples
    --------
    >>> policy = AnytimeElimination(delta=0.1)
    >>> state = policy.start(ArmSet([[0.0], [1.0]]))
    >>> policy.plan(state).probabilities.tolist()
    [0.5, 0.5]
    """

    delta: float = 0.05
    epsilon: float = 0.0
    goal: str = "identify"
    rewards: tuple[float, float] | None = None
    confidence: Confidence = None  # type: ignore[assignment]  # never None once made
    baseline: Baseline = AutoRegression()  # noqa: RUF009
    growth: float = 0.03
    mixing: float = 0.05
    pilot: int | None = None

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_choice("goal", self.goal, GOALS)
        check_positive("growth", self.growth)
        check_fraction("mixing", self.mixing)
        if not 0 <= self.epsilon < np.inf:
            raise ParameterError(f"epsilon={self.epsilon} must be a finite number of at least 0")
        object.__setattr__(self, "confidence", _mode(self.rewards, self.confidence))
        check_baseline(self.baseline)
        if self.pilot is not None:
            check_whole("pilot", self.pilot, least=4)

    def start(
        self,
        arms: ArmSet,
        batch: tuple[int, ...] = (),
        *,
        seed: int = 0,  # noqa: ARG002
        replications: Any = None,  # noqa: ARG002
    ) -> AnytimeState:
        """Return the state before the first round; the policy draws no random numbers."""
        run = Run.fresh(arms, self)
        return stacked(
            arms, [run] * int(np.prod(batch, dtype=np.int64)), batch, Tally.zeros(len(arms), batch)
        )

    def plan(self, state: AnytimeState) -> Plan:
        """Return the plan in force, with the rounds that are left of it."""
        left = np.where(state.declared >= 0, FOREVER, state.length - state.late - state.tally.rounds)
        centre = self.confidence.centre(state.values, state.probabilities > 0)
        rivals = rivals_of(state.active, state.leader, state.values)
        if not self.confidence.is_exact:
            # What the level is like is not known before the warm-up; such rounds are no evidence.
            rivals = np.where(state.stage[..., np.newaxis] > 0, rivals, -1)
        # One arm alone teaches nothing about others, should an arm be added while such rounds are in flight.
        rivals = np.where(np.asarray(state.declared >= 0)[..., np.newaxis], -1, rivals)
        return Plan(state.probabilities, left, centre, state.plans, rivals)

    def observe(self, state: AnytimeState, plan: Plan, tally: Tally) -> AnytimeState:
        """Return the state after the tallied rounds; arms are dropped when a batch is complete."""
        check_observed(self.plan(state), plan, tally)
        self.confidence.check_residuals(tally)
        merged = state.tally + tally
        return self._advanced(replace(state, tally=merged, rounds=state.rounds + tally.rounds))

    def late(self, state: AnytimeState, plan: Plan, tally: Tally) -> AnytimeState:
        """Return the state after rounds that were drawn under an earlier plan and came in after its end.

        They count for their own plan: boundaries hold in the order of draws, however late rewards are. Also
        takes rounds whose plan was restricted to some arms before they were drawn.

        Parameters
        ----------
        state : AnytimeState
        plan : Plan
            As :meth:`plan` returned it, or restricted to some arms and renormalised.
        tally : Tally
        """
        check_late(self.plan(state), plan, tally)
        self.confidence.check_residuals(tally)
        batch = state.stage.shape
        open_runs = np.asarray((state.declared < 0) & (tally.rounds > 0))
        state = replace(state, rounds=state.rounds + tally.rounds * open_runs)
        runs = []
        for place in np.ndindex(batch):
            run = Run.of(state, place)
            if open_runs[place]:
                run = run.with_late(self, state.arms, plan.at(place), tally[place])
            runs.append(run)
        return self._advanced(stacked(state.arms, runs, batch, state.tally))

    def _advanced(self, state: AnytimeState) -> AnytimeState:
        """Close the batches that are complete: drop arms, plan the next."""
        played = state.tally.rounds + state.late
        done = np.asarray((state.declared < 0) & (played >= state.length))
        if not done.any():
            return state
        kinds = 4 * state.stage + 2 * state.drawn.any(axis=-1) + (state.tally.rounds > 0)
        changed = state
        for kind in np.unique(kinds[done]):
            for place in self._groups(np.argwhere(done & (kinds == kind)), len(state.arms)):
                run = Run.of(state, place).advanced(self, state.arms, state.tally[place])
                changed = updated(changed, place, run, state.tally)
        return replace(changed, tally=clear(state.tally, done))

    def _groups(self, places: Whole, count: int) -> Iterator[tuple[Whole, ...]]:
        """Return places of replications (n, axes) in groups whose arrays of pairs are of moderate size."""
        size = max(1, PAIRS_AT_ONCE // count**2)
        for first in range(0, len(places), size):
            yield tuple(places[first : first + size].T)

    def decide(self, state: AnytimeState) -> Decision:
        """Return what is known now.

        The best arm is ever dropped with probability at most δ, and on the same event the leader is within
        `epsilon` of it: the largest upper bound on what a survivor could be better by.
        """
        return Decision(
            active=state.active,
            leader=state.leader,
            declared=state.declared,
            epsilon=state.epsilon,
            certainty=1 - self.delta,
            mode=self.confidence.name,
        )

    def upper_bounds(self, state: AnytimeState) -> Array:
        """Return the most that each arm can be better than each other, (..., K, K).

        Entry (i, j) bounds (x_i − x_j)ᵀθ. For any arm i, with probability 1 − δ all bounds of its row hold at
        all times at once. So whichever arm is best, it is better than j by at most the largest entry of
        column j. Infinite where nothing is known yet.
        """
        parts = {name: getattr(state, name) for name in EVIDENCE}
        seen = events(state.scattered, state.largest)
        evidence = Evidence(**parts, events=seen[..., np.newaxis, np.newaxis])
        bounds = evidence.estimates + self.confidence.width(
            evidence, Tuning(state.alpha, state.rho, state.scale)
        )
        return np.asarray(np.where(np.eye(len(state.arms), dtype=np.bool_), 0.0, bounds))

    def retire(self, state: AnytimeState, arm: int) -> AnytimeState:
        """Take an arm out of the race and out of all further plans, whatever is known about it.

        Rounds of the plan in force that were observed count; later ones under it are refused. Tests that the
        arm took part in start again, with half of what is left of the 5 % of δ kept in reserve, and arms
        that only they had dropped come back. From now on the claims are about the best of
        the arms that are left. They hold with probability 1 − δ for each choice of arms that does not depend
        on the rewards; if it does, as when the seeming best is retired, with 1 − mδ, m being the number of
        arms that could have become the best of the rest.

        Parameters
        ----------
        state : AnytimeState
        arm : int
            In every replication.
        """
        if not 0 <= arm < len(state.arms):
            raise ParameterError(f"arm={arm} is not an arm; arms are 0 to {len(state.arms) - 1}")
        last = state.retired.sum(axis=-1) >= len(state.arms) - 1
        if np.any(last & ~state.retired[..., arm]):
            raise ParameterError(f"arm={arm} is the last that is not retired; an experiment needs an arm")
        runs = [
            without(Run.of(state, place), self, state.arms, state.tally[place], arm)
            for place in np.ndindex(state.stage.shape)
        ]
        batch = state.stage.shape
        return stacked(state.arms, runs, batch, Tally.zeros(len(state.arms), batch))

    def extend(self, state: AnytimeState, arms: ArmSet) -> AnytimeState:
        """Add arms to the race; all that is known about the others stays.

        Tests of new arms and evidence on new pairs start now, with boundaries tuned by the data so far.
        Failure probability for bounds of old arms on new ones comes from the 5 % of δ kept in reserve, half
        of what is left at each extension. So the claims are about the best of all arms, new
        ones included, with probability 1 − δ; see :meth:`retire` if the choice depends on rewards.

        Parameters
        ----------
        state : AnytimeState
        arms : ArmSet
            The arms so far, in the same order, followed by the new ones. They may have more features than
            before, which are 0 for the arms so far: ``ArmSet.one_hot(4)`` extends ``ArmSet.one_hot(3)``.
        """
        old, new = state.arms.features, arms.features[: len(state.arms)]
        width = old.shape[1]
        if len(arms) <= len(old) or not np.array_equal(new[:, :width], old) or new[:, width:].any():
            raise ParameterError(f"arms must begin with the {len(old)} arms so far, and add at least one")
        runs = [
            extended(Run.of(state, place), self, (state.arms, arms), state.tally[place])
            for place in np.ndindex(state.stage.shape)
        ]
        return stacked(arms, runs, state.stage.shape, Tally.zeros(len(arms), state.stage.shape))

    def dump(self, state: AnytimeState) -> dict[str, Any]:
        """Return the state as plain lists and numbers that survive ``json.dumps`` exactly."""
        return dump(state)

    def load(self, arms: ArmSet, data: dict[str, Any]) -> AnytimeState:
        """Invert :meth:`dump`."""
        return load(arms, data)
