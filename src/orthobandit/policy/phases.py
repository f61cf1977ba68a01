"""Shared by policies that eliminate in phases: design rules, and the protocol around each phase.

A design rule says how to explore the arms that are left, by name or as a function. :class:`PhasedPolicy`
plays it for as long as the policy asks, then lets the policy say which arms to keep.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_choice, check_fits
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import DESIGNS, Design, contrast_design
from orthobandit.errors import Argument, ParameterError, ProbabilityError
from orthobandit.estimate import Baseline, Moments, OrthogonalRegression, Plan, Tally
from orthobandit.estimate.plan import checked_probabilities
from orthobandit.policy._states import (
    check_observed,
    check_pairs_fit,
    check_state,
    clear,
    dump_state,
    freeze,
    load_array,
    load_tally,
)
from orthobandit.policy.base import FOREVER, Decision


class HasProbabilities(Protocol):
    """What a design rule returns, e.g. a :class:`~orthobandit.design.base.Design`."""

    @property
    def probabilities(self) -> ArrayLike:
        """One probability per arm, (K,)."""
        ...


DesignRule = Callable[[ArmSet], HasProbabilities]

# The G-optimal design is for a baseline that stands still: it need not tell arms apart under another.
NAMED: dict[str, DesignRule] = {name: rule for name, rule in DESIGNS.items() if name != "g-optimal"}


def check_design(design: str | DesignRule) -> None:
    """Raise :class:`ParameterError` unless `design` is a known name or callable."""
    if not callable(design):
        check_choice("design", design, NAMED)


def design_on(design: str | DesignRule, arms: ArmSet) -> Array:
    """Return the probabilities (K,) that a design rule gives to these arms.

    The first arm is the reference of an anchor design.
    """
    result = (NAMED[design] if isinstance(design, str) else design)(arms)
    if not hasattr(result, "probabilities"):
        raise ParameterError(
            Argument("design", design),
            f" returned {type(result).__name__}; an object with `probabilities` is needed",
        )
    chosen = checked_probabilities(result.probabilities)
    if chosen.shape != (len(arms),):
        raise ProbabilityError(
            Argument("design", design),
            f" returned probabilities of shape {chosen.shape} for {len(arms)} arms",
        )
    return chosen


def pairs_of(left: Mask) -> Whole:
    """Return all pairs (m, 2) of the arms that are left (K,)."""
    chosen = np.flatnonzero(left)
    check_fits(
        f"a design for all pairs of {len(chosen):,} arms",
        16.0 * float(len(chosen)) ** 2,
        "AnytimeElimination plans for pairs with its leader alone",
    )
    first, second = np.triu_indices(len(chosen), 1)
    return np.column_stack([chosen[first], chosen[second]])


def pair_design(arms: ArmSet, left: Mask) -> Design:
    """Return the contrast design, over all arms, of all pairs of those that are left (K,)."""
    return _pair_design(arms, b"" if left.all() else left.tobytes())


@lru_cache(maxsize=64)
def _pair_design(arms: ArmSet, mask: bytes) -> Design:
    # Kept, because replications that have lost the same arms ask for it again.
    return contrast_design(arms, pairs_of(np.frombuffer(mask, dtype=np.bool_)) if mask else None)


def point_mass(arms: Whole, count: int) -> Array:
    """Return the distributions (..., count) that always play the given arms (...)."""
    return np.asarray(arms[..., np.newaxis] == np.arange(count), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class PhasedState:
    """The memory of a policy that eliminates in phases; leading axes (...) are replications.

    Attributes
    ----------
    arms : ArmSet
    active : (..., K) array of bool
        Survivors.
    phase, length : (...) array of int
        The phase in progress, from 1, and its rounds; `FOREVER` once an arm is declared.
    probabilities : (..., K) array
        The design of the phase in progress.
    tally : Tally
        What was seen in the phase in progress.
    carried : (..., C, K) array
        Sums over earlier phases, if the policy keeps any.
    leader, declared : (...) array of int
        The best-looking arm, and the declared one or −1.
    rounds : (...) array of int
        Rounds seen until an arm is declared.
    """

    arms: ArmSet
    active: Mask
    phase: Whole
    length: Whole
    probabilities: Array
    tally: Tally
    carried: Array
    leader: Whole
    declared: Whole
    rounds: Whole

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True, eq=False)
class Ahead:
    """A phase to be planned in one replication.

    Attributes
    ----------
    arms : ArmSet
    phase : int
        Its number, from 1.
    survivors : (K,) array of bool
    carried : (C, K) array
        Sums over the phases before.
    last : (K,) array or None
        The design of the phase before, if it was of the same survivors.
    """

    arms: ArmSet
    phase: int
    survivors: Mask
    carried: Array
    last: Array | None = None

    @cached_property
    def left(self) -> ArmSet:
        """The survivors as a set of arms."""
        return self.arms if self.survivors.all() else self.arms.subset(self.survivors)


@dataclass(frozen=True, eq=False)
class Ended:
    """A completed phase, of one replication or of several that completed the same (...).

    Attributes
    ----------
    arms : ArmSet
    phase : int
    survivors : (..., K) array of bool
    probabilities : (..., K) array
        Its design.
    tally : Tally
    carried : (..., C, K) array
        Sums over the phases before.
    """

    arms: ArmSet
    phase: int
    survivors: Mask
    probabilities: Array
    tally: Tally
    carried: Array

    def at(self, place: Any) -> "Ended":
        """Return the phase of some of the replications."""
        return replace(
            self,
            survivors=self.survivors[place],
            probabilities=self.probabilities[place],
            tally=self.tally[place],
            carried=self.carried[place],
        )

    def gaps(self, ridge: float) -> Array:
        """Return estimated gaps (..., K), by orthogonalised regression on this phase alone."""
        moments = Moments.of(self.arms, Plan(self.probabilities, self.tally.rounds), self.tally)
        return OrthogonalRegression(ridge=ridge).solve(self.arms, moments).gaps


class PhasedPolicy(ABC):
    """The policy protocol around a design for each phase and a verdict at its end.

    Survivors without any difference in features are equally good: the first is declared and played for ever.
    """

    baseline: Baseline | None = None  # rewards are tallied as they are
    carries = 0  # how many sums over earlier phases are kept for each arm

    def rows(self, arms: ArmSet) -> int:  # noqa: ARG002
        """Return how many rows (K,) of sums are carried from phase to phase."""
        return self.carries

    def pair_bytes(self, arms: ArmSet) -> float:  # noqa: ARG002
        """Return the bytes of every pair of arms that are needed at once."""
        return 0.0

    @abstractmethod
    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the design (K,) of a phase and how many rounds it lasts."""

    @abstractmethod
    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Return scores (K,) of the arms, survivors (K,) and the sums to carry (C, K) after a phase."""

    def judge_all(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Return the same for replications (m,) that completed a phase together, along the first axes."""
        verdicts = [self.judge(ended.at(row)) for row in range(len(ended.survivors))]
        scores, survivors, carried = (np.stack(part) for part in zip(*verdicts, strict=True))
        return scores, survivors, carried

    @abstractmethod
    def decide(self, state: Any) -> Decision:
        """Return what is known now."""

    def start(
        self, arms: ArmSet, batch: tuple[int, ...] = (), *, seed: int = 0, replications: Any = None
    ) -> PhasedState:
        """Return the state before the first round; nothing is randomised."""
        del seed, replications
        check_pairs_fit(self, arms, self.pair_bytes(arms))
        every = np.ones(len(arms), dtype=np.bool_)
        none = np.zeros((self.rows(arms), len(arms)))
        probabilities, length, declared = self._next(Ahead(arms, 1, every, none))
        zeros = np.zeros(batch, dtype=np.int64)
        return PhasedState(
            arms=arms,
            active=np.ones((*batch, len(arms)), dtype=np.bool_),
            phase=zeros + 1,
            length=zeros + length,
            probabilities=np.tile(probabilities, (*batch, 1)),
            tally=Tally.zeros(len(arms), batch),
            carried=np.tile(none, (*batch, 1, 1)),
            leader=zeros.copy(),
            declared=zeros + declared,
            rounds=zeros.copy(),
        )

    def plan(self, state: PhasedState) -> Plan:
        """Return the design in force and the rounds left of its phase; `FOREVER` once an arm is declared."""
        return Plan(state.probabilities, self._left(state), number=state.phase)

    def observe(self, state: PhasedState, plan: Plan, tally: Tally) -> PhasedState:
        """Return the state after the tallied rounds; arms are dropped when a phase is complete."""
        check_observed(self.plan(state), plan, tally)
        running = np.asarray(state.declared < 0)
        kept = clear(tally, ~running)
        state = replace(state, tally=state.tally + kept, rounds=state.rounds + kept.rounds)
        done = np.asarray(running & (state.tally.rounds == state.length))
        return self._end_phase(state, done) if done.any() else state

    def dump(self, state: PhasedState) -> dict[str, Any]:
        """Return the state as plain lists and numbers."""
        return dump_state(state)

    def load(self, arms: ArmSet, data: dict[str, Any]) -> PhasedState:
        """Invert :meth:`dump`."""
        check_state(data)
        batch = load_array(data, "phase", np.int64).shape
        shape = (*batch, len(arms))
        names = ("phase", "length", "leader", "declared", "rounds")
        return PhasedState(
            arms=arms,
            active=load_array(data, "active", np.bool_, shape),
            probabilities=load_array(data, "probabilities", np.float64, shape),
            tally=load_tally(data, "tally", shape),
            carried=load_array(data, "carried", np.float64, (*batch, self.rows(arms), len(arms))),
            **{name: load_array(data, name, np.int64, batch) for name in names},
        )

    def _left(self, state: PhasedState) -> Whole:
        return np.where(state.declared >= 0, FOREVER, state.length - state.tally.rounds)

    def _end_phase(self, state: PhasedState, done: Mask) -> PhasedState:
        """Drop arms and make the next plan where a phase is complete."""
        names = ("active", "length", "probabilities", "carried", "leader", "declared")
        new = {name: getattr(state, name).copy() for name in names}
        for phase in np.unique(state.phase[done]).tolist():
            rows = np.asarray(done & (state.phase == phase))
            every = Ended(state.arms, phase, state.active, state.probabilities, state.tally, state.carried)
            # Replications that end the same phase are judged together: one regression serves all of them.
            ended = every.at(rows)
            scores, active, carried = self.judge_all(ended)
            best = np.argmax(np.where(active, scores, -np.inf), axis=-1)
            probabilities, length, declared = self._plan_next(ended, active, carried)
            new["active"][rows] = active
            new["carried"][rows] = carried
            new["probabilities"][rows] = probabilities
            new["length"][rows] = length
            new["declared"][rows] = declared
            new["leader"][rows] = np.where(declared >= 0, declared, best)
        return replace(state, phase=state.phase + done, tally=clear(state.tally, done), **new)

    def _plan_next(self, ended: Ended, active: Mask, carried: Array) -> tuple[Array, Whole, Whole]:
        """Return designs (m, K), rounds (m,) and whom to declare (m,); equal cases are planned once."""
        same = np.all(active == ended.survivors, axis=1, keepdims=True)
        # Compared byte by byte: replications that lost the same arms share one design, which costs the most.
        parts = [np.ascontiguousarray(part).view(np.uint8) for part in (active, same)]
        parts.append(np.ascontiguousarray(carried.reshape(len(active), -1)).view(np.uint8))
        _, first, case = np.unique(np.hstack(parts), axis=0, return_index=True, return_inverse=True)
        plans = []
        for row in first.tolist():
            last = ended.probabilities[row] if same[row, 0] else None
            plans.append(self._next(Ahead(ended.arms, ended.phase + 1, active[row], carried[row], last)))
        probabilities, length, declared = zip(*plans, strict=True)
        place = case.reshape(-1)
        return np.array(probabilities)[place], np.array(length)[place], np.array(declared)[place]

    def _next(self, ahead: Ahead) -> tuple[Array, int, int]:
        """Return the design, its rounds, and whom to declare or −1."""
        if ahead.left.dimension:
            probabilities, rounds = self.explore(ahead)
            # At least one round: a phase of none would end without a tally to judge by.
            return probabilities, min(max(rounds, 1), FOREVER), -1
        first = int(np.argmax(ahead.survivors))
        return point_mass(np.asarray(first), len(ahead.arms)), FOREVER, first


def phased_decision(state: PhasedState, epsilon: Array, certainty: float, mode: str) -> Decision:
    """Return a decision that claims ε (...) for the leader, and 0 once an arm is declared."""
    return Decision(
        active=state.active,
        leader=state.leader,
        declared=state.declared,
        epsilon=np.where((state.declared >= 0) & (certainty > 0), 0.0, epsilon),
        certainty=certainty,
        mode=mode,
    )


def unclaimed_decision(state: PhasedState, mode: str) -> Decision:
    """Return a decision that drops and declares arms but claims nothing about it."""
    return phased_decision(state, np.full(state.declared.shape, np.inf), 0.0, mode)
