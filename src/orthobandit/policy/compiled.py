"""How a simulator runs policies that plan every round without leaving compiled code.

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

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from orthobandit.arms import ArmSet
from orthobandit.errors import DesignError

Array = NDArray[np.float64]
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
    rounds: NDArray[np.int64]
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
