"""Small policies that keep the protocol: enough to exercise the runner, with nothing to prove."""

# ruff: noqa: ARG002

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orthobandit import ArmSet, Plan, Tally
from orthobandit.policy import FOREVER, Decision


@dataclass(frozen=True)
class FixedPolicy:
    """Draws from one distribution (uniform by default), `rounds` at a time, and declares nothing."""

    probabilities: tuple[float, ...] = ()
    rounds: int = FOREVER

    baseline = None

    def start(
        self, arms: ArmSet, batch: tuple[int, ...] = (), *, seed: int = 0, replications: Any = None
    ) -> Tally:
        return Tally.zeros(len(arms), batch)

    def plan(self, state: Tally) -> Plan:
        chosen = self.probabilities or np.full(state.count, 1 / state.count)
        left = self.rounds - state.rounds % self.rounds
        return Plan(np.broadcast_to(chosen, state.counts.shape), left)

    def observe(self, state: Tally, plan: Plan, tally: Tally) -> Tally:
        return state + tally

    def decide(self, state: Tally) -> Decision:
        batch = state.rounds.shape
        return Decision(
            np.ones(state.counts.shape, dtype=bool),
            np.zeros(batch, dtype=np.int64),
            np.full(batch, -1),
            np.full(batch, np.inf),
            0.0,
            "none",
        )


@dataclass(frozen=True, eq=False)
class PhaseState:
    active: Any  # (..., K) bool
    tally: Tally  # of the current phase
    phase: Any  # (...) int


@dataclass(frozen=True)
class DropWorst:
    """Plays survivors uniformly in doubling phases and drops the one with the lowest average reward.

    With `stagger` the phases of replications that dropped different arms differ in length.
    """

    first: int = 50
    final_rounds: int = FOREVER
    stagger: int = 0

    baseline = None

    def start(
        self, arms: ArmSet, batch: tuple[int, ...] = (), *, seed: int = 0, replications: Any = None
    ) -> PhaseState:
        tally = Tally.zeros(len(arms), batch)
        return PhaseState(np.ones(tally.counts.shape, dtype=bool), tally, np.zeros(batch, dtype=np.int64))

    def _length(self, state: PhaseState) -> Any:
        dropped = (~state.active * np.arange(1, state.tally.count + 1)).sum(axis=-1)
        return self.first * 2**state.phase + self.stagger * dropped

    def plan(self, state: PhaseState) -> Plan:
        alive = state.active.sum(axis=-1)
        left = self._length(state) - state.tally.rounds
        return Plan(state.active / alive[..., None], np.where(alive == 1, self.final_rounds, left))

    def observe(self, state: PhaseState, plan: Plan, tally: Tally) -> PhaseState:
        total = state.tally + tally
        is_over = (total.rounds >= self._length(state)) & (state.active.sum(axis=-1) > 1)
        means = np.divide(total.sums, total.counts, out=np.zeros(total.sums.shape), where=total.counts > 0)
        worst = np.argmin(np.where(state.active, means, np.inf), axis=-1)
        is_dropped = is_over[..., None] & (np.arange(tally.count) == worst[..., None])
        kept = ~is_over[..., None]
        rest = Tally(total.counts * kept, total.sums * kept, total.squares * kept)
        return PhaseState(state.active & ~is_dropped, rest, state.phase + is_over)

    def decide(self, state: PhaseState) -> Decision:
        leader = np.argmax(state.active, axis=-1)
        is_single = state.active.sum(axis=-1) == 1
        declared = np.where(is_single, leader, -1)
        return Decision(state.active, leader, declared, np.where(is_single, 0.0, np.inf), 0.0, "none")


@dataclass(frozen=True)
class TakeTurns(FixedPolicy):
    """Plays one arm at a time for sure and believes raw averages: blind to any shift."""

    rounds: int = 20

    def plan(self, state: Tally) -> Plan:
        turn = state.rounds // self.rounds % state.count
        return Plan(np.eye(state.count)[turn], self.rounds)

    def decide(self, state: Tally) -> Decision:
        means = np.divide(state.sums, state.counts, out=np.zeros(state.sums.shape), where=state.counts > 0)
        return replace(super().decide(state), leader=np.argmax(means, axis=-1))


def nameless():
    """Return functions without a name of their own."""
    return [lambda: 1, lambda: 2, lambda: FixedPolicy, *(lambda k=k: k for k in (1, 2))]
