"""What policies that plan every round share: the protocol around two compiled steps."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from orthobandit._draws import draw_key
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import Plan, Tally
from orthobandit.policy._states import check_observed, load_array
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.compiled import ObserveStep, Packed, PlanStep, Steps

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


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
    rounds: Integers
    memory: Any
    number: Integers

    def __post_init__(self) -> None:
        for array in (self.probabilities, self.rounds, self.number, *self.memory):
            array.flags.writeable = False


class RoundPolicy(ABC):
    """The policy protocol around two compiled steps (see :mod:`orthobandit.policy.compiled`)."""

    plan_into: ClassVar[PlanStep]
    observe_into: ClassVar[ObserveStep]

    @abstractmethod
    def settings(self, arms: ArmSet) -> Any:
        """Return the named tuple that the compiled steps read."""

    @abstractmethod
    def begin(self, arms: ArmSet, seed: int, numbers: Integers) -> Any:
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
        told = np.asarray((tally.rounds > 0) & (state.rounds < FOREVER))
        played = np.flatnonzero(told).tolist()
        if not played:
            return state
        packed, count = self.pack(state), len(state.arms)
        counts, sums = tally.counts.reshape(-1, count), tally.sums.reshape(-1, count)
        settings = self.settings(state.arms)
        for i in played:
            arm = int(np.argmax(counts[i]))
            row, reward = packed.probabilities[i], float(sums[i, arm])
            if not type(self).observe_into(settings, packed.memory, i, row, arm, reward):
                raise RewardError(f"the reward {reward:g} cannot be used by {self}; see its documentation")
        self._replan(state.arms, packed, played)
        after = self.unpack(state.arms, packed, state.rounds.shape)
        return replace(after, number=np.asarray(state.number + told))

    def dump(self, state: RoundState) -> dict[str, Any]:
        """Return the state as plain lists and numbers."""
        memory = {name: array.tolist() for name, array in state.memory._asdict().items()}
        names = ("probabilities", "rounds", "number")
        return {**{name: getattr(state, name).tolist() for name in names}, **memory}

    def load(self, arms: ArmSet, data: dict[str, Any]) -> RoundState:
        """Invert :meth:`dump`."""
        rounds = load_array(data, "rounds", np.int64)
        batch = rounds.shape
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


def keys(seed: int, purpose: str, numbers: Integers) -> Integers:
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
        confidence=0.0,
        mode=mode,
    )
