"""What every contextual policy is: a rule that gives each offer its distribution, and learns from its reward.

Three compiled steps do the work, in a simulator's loop as behind the protocol:

``plan_into(settings, memory, i, features, probabilities) -> int``
    Writes the distribution of replication `i` over the rows of ``features`` (K, d) to ``probabilities`` (K,)
    and returns 0, or −1 if that cannot be done. May note in `memory` what the features are like, but nothing
    that depends on rewards.
``observe(settings, memory, i, features, probabilities, arm, reward, forecast) -> None``
    Updates the memory of replication `i` after one round; `forecast` is the level that was forecast before
    the arm was drawn, 0 where there is no forecast.
``score(settings, memory, i, feature) -> float``
    Returns the policy's estimate of xᵀθ; forecasts learn from rewards less this.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from orthobandit._foundation.release import stamp
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import Baseline
from orthobandit.estimate.plan import Plan
from orthobandit.policy._states import check_state, load_array
from orthobandit.policy.contextual.offers import Offer
from orthobandit.policy.every_round import keys

PlanStep = Callable[[Any, Any, int, Array, Array], int]
ObserveStep = Callable[[Any, Any, int, Array, Array, int, float, float], None]
ScoreStep = Callable[[Any, Any, int, Array], float]


@dataclass(frozen=True, eq=False)
class ContextualState:
    """The memory of a contextual policy; leading axes (...) are replications.

    Attributes
    ----------
    dimension : int
        The number of features of every offer.
    memory : named tuple of arrays (..., …)
    rounds : (...) array of int
        Rounds that were learnt from.
    """

    dimension: int
    memory: Any
    rounds: Whole

    def __post_init__(self) -> None:
        for array in (self.rounds, *self.memory):
            array.flags.writeable = False


class ContextualPolicy(Protocol):
    """The contract between a contextual policy and whoever runs it.

    **What it is.** Immutable settings; all memory is in the state. A policy never draws, stores or plots.

    **Order.** A plan belongs to one offer and is fixed before its arm is drawn. Rewards may be observed late
    and in any order; whoever runs the policy settles them in the order of draws where claims are made.

    **Rounds with one arm** teach nothing about effects and change nothing but the count of rounds.

    **State and JSON.** ``json.dumps(dump(state), allow_nan=False)`` works, and ``load`` inverts it exactly.
    """

    @property
    def baseline(self) -> Baseline | None:
        """Settings of the forecaster of the level that runs beside the policy, or None."""
        return None

    def start(self, dimension: int, batch: tuple[int, ...] = (), *, seed: int = 0) -> ContextualState:
        """Return the state before the first round, for offers with so many features."""
        ...

    def plan(self, state: ContextualState, offer: Offer) -> Plan:
        """Return the distribution over the rows of an offer; for a state without leading axes."""
        ...

    def observe(
        self, state: ContextualState, offer: Offer, plan: Plan, arm: int, reward: float, forecast: float = 0.0
    ) -> ContextualState:
        """Return the state after the reward of one round, whose level had been forecast."""
        ...

    def dump(self, state: ContextualState) -> dict[str, Any]:
        """Return the state as plain lists and numbers."""
        ...

    def load(self, data: dict[str, Any]) -> ContextualState:
        """Invert :meth:`dump`."""
        ...


class Steps(NamedTuple):
    """The compiled steps of a policy and what they read; see the module's documentation."""

    settings: Any
    plan_into: PlanStep
    observe: ObserveStep
    score: ScoreStep


class CompiledContextual(ABC):
    """The protocol of contextual policies around three compiled steps."""

    plan_into: ClassVar[PlanStep]
    observe_into: ClassVar[ObserveStep]
    score_of: ClassVar[ScoreStep]
    purpose: ClassVar[str] = "contextual"  # of the policy's own random numbers

    @abstractmethod
    def settings(self, dimension: int) -> Any:
        """Return the named tuple that the compiled steps read."""

    @abstractmethod
    def begin(self, dimension: int, keys: Whole) -> Any:
        """Return the memory before the first round of replications with these keys (R,)."""

    def steps(self, dimension: int) -> Steps:
        """Return the compiled steps for offers with so many features."""
        kind = type(self)
        return Steps(self.settings(dimension), kind.plan_into, kind.observe_into, kind.score_of)

    def start(self, dimension: int, batch: tuple[int, ...] = (), *, seed: int = 0) -> ContextualState:
        """Return the state before the first round, for offers with so many features."""
        size = int(np.prod(batch, dtype=np.int64))
        memory = self.begin(dimension, keys(seed, self.purpose, np.arange(size)))
        shaped = (array.reshape((*batch, *array.shape[1:])) for array in memory)
        return ContextualState(dimension, type(memory)(*shaped), np.zeros(batch, dtype=np.int64))

    def plan(self, state: ContextualState, offer: Offer) -> Plan:
        """Return the distribution over the rows of an offer; for a state without leading axes."""
        self._check(state, offer)
        probabilities = np.zeros(len(offer))
        steps = self.steps(state.dimension)
        if steps.plan_into(steps.settings, self._writable(state), 0, offer.features, probabilities) < 0:
            raise ParameterError(
                f"round {int(state.rounds)}: {type(self).__name__} cannot plan for an offer with {len(offer)}"
                " arms"
            )
        return Plan(probabilities, 1, number=int(state.rounds))

    def observe(
        self, state: ContextualState, offer: Offer, plan: Plan, arm: int, reward: float, forecast: float = 0.0
    ) -> ContextualState:
        """Return the state after the reward of one round, whose level had been forecast."""
        self._check(state, offer)
        if plan.probabilities.shape != (len(offer),):
            raise ParameterError(
                f"round {int(state.rounds)}: the plan has probabilities for"
                f" {plan.probabilities.shape[-1]} arms; the offer has {len(offer)}"
            )
        if not 0 <= arm < len(offer) or plan.probabilities[arm] <= 0:
            raise ParameterError(
                f"round {int(state.rounds)}: arm={arm} cannot have been drawn: the plan does not play it"
            )
        if not np.isfinite(reward) or not np.isfinite(forecast):
            raise RewardError(
                f"round {int(state.rounds)}: reward={reward} with forecast={forecast}: both must be finite"
                " numbers"
            )
        memory = self._writable(state)
        steps = self.steps(state.dimension)
        probabilities = np.array(plan.probabilities)
        # What plan_into notes of the features must be noted here, too: a plan leaves the state as it was.
        steps.plan_into(steps.settings, memory, 0, offer.features, np.zeros(len(offer)))
        steps.observe(steps.settings, memory, 0, offer.features, probabilities, arm, reward, forecast)
        flat = (np.asarray(array[0]) for array in memory)
        return ContextualState(state.dimension, type(memory)(*flat), np.asarray(state.rounds + 1))

    def estimate(self, state: ContextualState) -> Array:
        """Return the estimate of θ (..., d)."""
        steps = self.steps(state.dimension)
        batch = state.rounds.shape
        count = int(np.prod(batch, dtype=np.int64))
        flat = type(state.memory)(
            *(np.array(array).reshape((count, *array.shape[len(batch) :])) for array in state.memory)
        )
        rows = [
            [steps.score(steps.settings, flat, i, unit) for unit in np.eye(state.dimension)]
            for i in range(count)
        ]
        return np.array(rows).reshape((*batch, state.dimension))

    def dump(self, state: ContextualState) -> dict[str, Any]:
        """Return the state as plain lists and numbers."""
        memory = {name: array.tolist() for name, array in state.memory._asdict().items()}
        return {
            **stamp(),
            "dimension": state.dimension,
            "rounds": state.rounds.tolist(),
            "memory": memory,
        }

    def load(self, data: dict[str, Any]) -> ContextualState:
        """Invert :meth:`dump`."""
        check_state(data)
        dimension = int(data["dimension"])
        rounds = load_array(data, "rounds", np.int64)
        blank = self.begin(dimension, np.zeros(1, dtype=np.int64))
        memory = {
            name: load_array(data["memory"], name, array.dtype, (*rounds.shape, *array.shape[1:]))
            for name, array in blank._asdict().items()
        }
        return ContextualState(dimension, type(blank)(**memory), rounds)

    def _check(self, state: ContextualState, offer: Offer) -> None:
        if state.rounds.ndim:
            raise ParameterError("plan and observe take one replication; the state has leading axes")
        if offer.dimension != state.dimension:
            raise ParameterError(
                f"round {int(state.rounds)}: the offer has {offer.dimension} features; this experiment's"
                f" offers have {state.dimension}"
            )

    @staticmethod
    def _writable(state: ContextualState) -> Any:
        return type(state.memory)(*(np.array(array)[np.newaxis] for array in state.memory))
