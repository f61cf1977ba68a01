"""Uniform allocation: every arm equally often, for ever."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from orthobandit.arms import ArmSet
from orthobandit.estimate import Baseline, Plan, Tally
from orthobandit.policy._states import check_observed, dump_state, freeze, load_tally
from orthobandit.policy.base import FOREVER, Decision


@dataclass(frozen=True, eq=False)
class UniformState:
    """The memory of :class:`UniformAllocation`: the arms and what was seen (..., K)."""

    arms: ArmSet
    tally: Tally

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True)
class UniformAllocation:
    """Draw every arm with the same probability; the largest mean reward leads.

    The classical randomised experiment. Since all arms are drawn alike at all times, a shift adds noise but
    no bias to differences in means. Nothing is claimed.

    Examples
    --------
    >>> policy = UniformAllocation()
    >>> policy.plan(policy.start(ArmSet.one_hot(4))).probabilities.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    baseline: ClassVar[Baseline | None] = None  # rewards are tallied as they are

    def start(
        self, arms: ArmSet, batch: tuple[int, ...] = (), *, seed: int = 0, replications: Any = None
    ) -> UniformState:
        """Return the state before the first round; nothing is randomised."""
        del seed, replications
        return UniformState(arms, Tally.zeros(len(arms), batch))

    def plan(self, state: UniformState) -> Plan:
        """Return the uniform distribution, in force for ever."""
        counts = state.tally.counts
        return Plan(np.full(counts.shape, 1 / counts.shape[-1]), FOREVER, number=1)

    def observe(self, state: UniformState, plan: Plan, tally: Tally) -> UniformState:
        """Return the state after the tallied rounds."""
        check_observed(self.plan(state), plan, tally)
        return replace(state, tally=state.tally + tally)

    def decide(self, state: UniformState) -> Decision:
        """Return the arm of the largest mean, the first arm before any data; nothing is claimed."""
        counts, sums = state.tally.counts, state.tally.sums
        mean = np.divide(sums, counts, out=np.full(sums.shape, -np.inf), where=counts > 0)
        batch = counts.shape[:-1]
        return Decision(
            active=np.ones(counts.shape, dtype=np.bool_),
            leader=np.asarray(np.argmax(mean, axis=-1)),
            declared=np.full(batch, -1, dtype=np.int64),
            epsilon=np.full(batch, np.inf),
            certainty=0.0,
            mode="none",
        )

    def dump(self, state: UniformState) -> dict[str, Any]:
        """Return the state as plain lists and numbers."""
        return dump_state(state)

    def load(self, arms: ArmSet, data: dict[str, Any]) -> UniformState:
        """Invert :meth:`dump`."""
        batch = np.shape(data.get("tally", {}).get("counts"))[:-1]
        return UniformState(arms, load_tally(data, "tally", (*batch, len(arms))))
