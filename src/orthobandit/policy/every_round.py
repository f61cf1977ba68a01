"""Policies that plan every round: what they share, and how a simulator runs them in compiled code.

A policy that changes its plan after every round would make a simulator cross between Python and compiled
code once a round. Such policies therefore also offer their two steps as compiled functions of plain arrays:

``plan_into(settings, memory, i, probabilities) -> int``
    Writes the next distribution of replication `i` to ``probabilities`` (K,) and returns for how many rounds
    it is in force: 1, or :data:`~orthobandit.policy.base.FOREVER` when no later reward changes it. A negative
    number says that a solver has missed its tolerance; the caller stops and calls :meth:`Steps.fail`.
    On entry ``probabilities`` holds the previous plan, where solvers start. Does not change `memory`.
``observe(settings, memory, i, probabilities, arm, reward) -> bool``
    Updates the memory of replication `i` in place after one round played under ``probabilities`` (K,).
    False says that the policy cannot use such a reward. Not called under a plan that is in force for ever.

`settings` and `memory` are named tuples; `memory` holds arrays whose first axis is the replication. The
functions read and write row `i` alone, so replications may be run in any order and in any number of threads.
The loop of a simulator, the same for every policy::

    steps = policy.compiled(arms)
    packed = policy.pack(state)                       # writable copies, one leading axis
    for i in range(replications):                     # in compiled code, with the functions as arguments
        for t in range(rounds):
            arm = draw(packed.probabilities[i])
            reward = ...
            if packed.rounds[i] == 1:
                observe(steps.settings, packed.memory, i, packed.probabilities[i], arm, reward)
                packed.rounds[i] = plan_into(steps.settings, packed.memory, i, packed.probabilities[i])
    state = policy.unpack(arms, packed, batch)

The methods ``plan`` and ``observe`` of these policies call the same two functions, so a compiled run equals a
run through the protocol bit by bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.random import draw_key
from orthobandit._foundation.release import stamp
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import DesignError, ParameterError, RewardError, TallyError
from orthobandit.estimate import Baseline, Plan, Tally
from orthobandit.policy._states import check_late, check_observed, check_pairs_fit, check_state, load_array
from orthobandit.policy.base import FOREVER, Decision

StateT = TypeVar("StateT")

PlanStep = Callable[[Any, Any, int, Array], int]
ObserveStep = Callable[[Any, Any, int, Array, int, float], bool]


@dataclass(frozen=True, eq=False)
class Steps:
    """The compiled steps of a policy on given arms.

    Attributes
    ----------
    settings : named tuple
        What all replications share; never written to.
    plan_into, observe : compiled functions
        As described in the module's documentation.
    """

    settings: Any
    plan_into: PlanStep
    observe: ObserveStep

    def fail(self) -> None:
        """Raise the error that a negative result of `plan_into` stands for."""
        raise DesignError(
            "a plan could not be solved to its tolerance; are the features on wildly different scales?",
            gap=float("inf"),
            tolerance=1e-8,
        )


class Packed(NamedTuple):
    """A state as plain arrays with one leading axis of R replications.

    Attributes
    ----------
    probabilities : (R, K) array
        The plans in force.
    rounds : (R,) array of int
        Rounds that they are in force: 1 or `FOREVER`.
    memory : named tuple of arrays (R, ...)
        What the policy remembers.
    """

    probabilities: Array
    rounds: Whole
    memory: Any


class CompiledPolicy(Protocol[StateT]):
    """A policy that plans every round and can do so in compiled code."""

    def compiled(self, arms: ArmSet) -> Steps:
        """Return the compiled steps on these arms."""
        ...

    def pack(self, state: StateT) -> Packed:
        """Return writable copies of the state's arrays, with all batch axes flattened into one."""
        ...

    def unpack(self, arms: ArmSet, packed: Packed, batch: tuple[int, ...]) -> StateT:
        """Invert :meth:`pack`."""
        ...


@dataclass(frozen=True, eq=False)
class RoundState:
    """The memory of a policy that plans every round; leading axes (...) are replications.

    Attributes
    ----------
    arms : ArmSet
    probabilities : (..., K) array
        The plan in force.
    rounds : (...) array of int
        How long it is in force: 1, or `FOREVER` when no later reward changes it.
    memory : named tuple of arrays (..., …)
        What the policy remembers; see its documentation.
    number : (...) array of int
        The plan's number: how many the policy was told the outcome of before.
    """

    arms: ArmSet
    probabilities: Array
    rounds: Whole
    memory: Any
    number: Whole

    def __post_init__(self) -> None:
        for array in (self.probabilities, self.rounds, self.number, *self.memory):
            array.flags.writeable = False


class RoundPolicy(ABC):
    """The policy protocol around two compiled steps, described above."""

    baseline: ClassVar[Baseline | None] = None  # rewards are tallied as they are
    plan_into: ClassVar[PlanStep]
    observe_into: ClassVar[ObserveStep]

    pair_bytes: ClassVar[float] = 0.0  # of every pair of arms that are remembered

    @abstractmethod
    def settings(self, arms: ArmSet) -> Any:
        """Return the named tuple that the compiled steps read."""

    @abstractmethod
    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> Any:
        """Return the memory before the first round of the replications called `numbers` (R,)."""

    @abstractmethod
    def decide(self, state: RoundState) -> Decision:
        """Return what is known now."""

    def start(
        self, arms: ArmSet, batch: tuple[int, ...] = (), *, seed: int = 0, replications: Any = None
    ) -> RoundState:
        """Return the state before the first round; `seed` and `replications` name its random numbers."""
        size = int(np.prod(batch))
        numbers = np.arange(size) if replications is None else np.asarray(replications)
        if replications is not None and numbers.shape != batch:
            raise ParameterError(f"replications has shape {numbers.shape}; the batch is {batch}")
        check_pairs_fit(self, arms, self.pair_bytes * size)
        packed = Packed(
            probabilities=np.zeros((size, len(arms))),
            rounds=np.ones(size, dtype=np.int64),
            memory=self.begin(arms, seed, numbers.reshape(-1).astype(np.int64)),
        )
        self._replan(arms, packed, range(size))
        return self.unpack(arms, packed, batch)

    def plan(self, state: RoundState) -> Plan:
        """Return the plan in force: for one round, or `FOREVER` once no reward changes it."""
        return Plan(state.probabilities, state.rounds, number=state.number)

    def observe(self, state: RoundState, plan: Plan, tally: Tally) -> RoundState:
        """Return the state after at most one more round of each replication; a last plan keeps its state."""
        check_observed(self.plan(state), plan, tally)
        return self._told(state, plan, tally)

    def late(self, state: RoundState, plan: Plan, tally: Tally) -> RoundState:
        """Return the state after a round of each replication that was drawn under an earlier plan.

        It is learnt from with the probabilities that it was drawn with.
        """
        check_late(self.plan(state), plan, tally)
        if np.any(tally.rounds > 1):
            raise TallyError(f"{type(self).__name__} learns from one round at a time; tally them singly")
        return self._told(state, plan, tally)

    def renumber(self, state: RoundState, number: int) -> RoundState:
        """Return the state with the plan in force under another number, after plans of somebody else."""
        return replace(state, number=np.full_like(state.number, number))

    def _told(self, state: RoundState, plan: Plan, tally: Tally) -> RoundState:
        told = np.asarray((tally.rounds > 0) & (state.rounds < FOREVER))
        played = np.flatnonzero(told).tolist()
        if not played:
            return state
        packed = self.pack(state)
        count = len(state.arms)
        counts = tally.counts.reshape(-1, count)
        sums = tally.sums.reshape(-1, count)
        settings = self.settings(state.arms)
        drawn_from = plan.probabilities.reshape(-1, count)
        for i in played:
            arm = int(np.argmax(counts[i]))
            # A copy: rows of a plan are read-only, and the compiled step was made for writable arrays.
            row = np.array(drawn_from[i])
            reward = float(sums[i, arm])
            if not type(self).observe_into(settings, packed.memory, i, row, arm, reward):
                raise RewardError(f"the reward {reward:g} cannot be used by {self}; see its documentation")
        self._replan(state.arms, packed, played)
        after = self.unpack(state.arms, packed, state.rounds.shape)
        return replace(after, number=np.asarray(state.number + told))

    def dump(self, state: RoundState) -> dict[str, Any]:
        """Return the state as plain lists and numbers."""
        memory = {name: array.tolist() for name, array in state.memory._asdict().items()}
        names = ("probabilities", "rounds", "number")
        return {**stamp(), **{name: getattr(state, name).tolist() for name in names}, **memory}

    def load(self, arms: ArmSet, data: dict[str, Any]) -> RoundState:
        """Invert :meth:`dump`."""
        check_state(data)
        rounds = load_array(data, "rounds", np.int64)
        batch = rounds.shape
        # The fields, types and shapes of the memory are known to `begin` alone.
        blank = self.begin(arms, 0, np.zeros(1, dtype=np.int64))
        memory = {
            name: load_array(data, name, array.dtype, (*batch, *array.shape[1:]))
            for name, array in blank._asdict().items()
        }
        probabilities = load_array(data, "probabilities", np.float64, (*batch, len(arms)))
        number = load_array(data, "number", np.int64, batch)
        return RoundState(arms, probabilities, rounds, type(blank)(**memory), number)

    def compiled(self, arms: ArmSet) -> Steps:
        """Return the compiled steps on these arms."""
        return Steps(self.settings(arms), type(self).plan_into, type(self).observe_into)

    def pack(self, state: RoundState) -> Packed:
        """Return writable copies of the state's arrays, with all batch axes flattened into one."""
        batch = state.rounds.ndim
        flat = (np.array(array).reshape((state.rounds.size, *array.shape[batch:])) for array in state.memory)
        return Packed(
            probabilities=np.array(state.probabilities).reshape(-1, len(state.arms)),
            rounds=np.array(state.rounds).reshape(-1),
            memory=type(state.memory)(*flat),
        )

    def unpack(self, arms: ArmSet, packed: Packed, batch: tuple[int, ...]) -> RoundState:
        """Invert :meth:`pack`."""
        shaped = (array.reshape((*batch, *array.shape[1:])) for array in packed.memory)
        return RoundState(
            arms=arms,
            probabilities=packed.probabilities.reshape((*batch, len(arms))),
            rounds=packed.rounds.reshape(batch),
            memory=type(packed.memory)(*shaped),
            number=np.zeros(batch, dtype=np.int64),
        )

    def _replan(self, arms: ArmSet, packed: Packed, which: Any) -> None:
        steps = self.compiled(arms)
        for i in which:
            packed.rounds[i] = steps.plan_into(steps.settings, packed.memory, i, packed.probabilities[i])
            if packed.rounds[i] < 0:
                steps.fail()


def keys(seed: int, purpose: str, numbers: Whole) -> Whole:
    """Return one key (R,) for the random numbers of each replication."""
    return np.array([draw_key(seed, purpose, int(number)) for number in numbers], dtype=np.int64)


def open_decision(state: RoundState, scores: Array, mode: str) -> Decision:
    """Return the decision of a policy that drops and claims nothing: the best of `scores` (..., K) leads."""
    batch = state.rounds.shape
    return Decision(
        active=np.ones((*batch, len(state.arms)), dtype=np.bool_),
        leader=np.asarray(np.argmax(scores, axis=-1)),
        declared=np.full(batch, -1, dtype=np.int64),
        epsilon=np.full(batch, np.inf),
        certainty=0.0,
        mode=mode,
    )


@compiled
def play(arm: int, probabilities: Array) -> int:
    """Play one arm this round."""
    probabilities[:] = 0.0
    probabilities[arm] = 1.0
    return 1


@compiled
def settle_on(arm: int, probabilities: Array) -> int:
    """Play one arm from now on."""
    probabilities[:] = 0.0
    probabilities[arm] = 1.0
    return FOREVER
