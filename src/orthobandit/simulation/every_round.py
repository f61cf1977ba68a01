"""Compiled play of policies that plan every round: draw, reward, observe and plan in one loop."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled, compiled_for
from orthobandit._foundation.random import DrawTable, fill_table, next_position, table_arm
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import RewardError
from orthobandit.policy.base import FOREVER
from orthobandit.policy.every_round import ObserveStep, PlanStep
from orthobandit.simulation._kernels import SUMS, Memory, Truth, Window, regret_of
from orthobandit.simulation.adversaries import STEP, Known, ShiftStep
from orthobandit.simulation.noise import reward_of
from orthobandit.simulation.player import Player

# What became of a call of :func:`play_plans`.
FINE, UNSOLVED, REFUSED, NOT_FINITE = range(4)


class Plans(NamedTuple):
    """The policy's side of R replications.

    `probabilities` (R, K) and `rounds` (R,) are the plans to come, `current` (R, K) the plans last played and
    `played` (R,) how many different ones were; `memory` is the policy's own.
    """

    probabilities: Array
    rounds: Whole
    memory: Any
    current: Array
    played: Whole


@compiled
def play_plans(
    rows: Whole,
    truth: Truth,
    memory: Memory,
    window: Window,
    plans: Plans,
    settings: Any,
    plan_into: PlanStep,
    observe: ObserveStep,
    step: ShiftStep,
) -> int:
    """Play each replication until its stop or its last plan.

    Draws the same numbers as plans of one round that are played one by one.
    """
    count = truth.means.size
    shares = np.empty(count)
    table = DrawTable(np.zeros(1, np.int64), np.ones((1, count)), np.zeros((1, 2 * count), np.int64))
    row = np.empty((1, count))
    nothing = np.zeros((count, SUMS))
    for r in rows:
        path = window.values[window.row[r]]
        base = window.base[r]
        arm_stream = memory.arm_stream[r]
        noise_stream = memory.noise_stream[r]
        chances = plans.probabilities[r]
        while memory.clock[r] < window.stop[r] and plans.rounds[r] < FOREVER:
            if np.any(chances != plans.current[r]):
                plans.played[r] += 1
                plans.current[r] = chances
            row[0] = chances
            fill_table(row, table.columns, table.threshold, table.arms)
            if truth.is_answered:
                shift = _answer(r, truth, memory, chances, shares, step)
                if not np.isfinite(shift):
                    return NOT_FINITE
            else:
                shift = path[memory.clock[r] - base]
            arm = table_arm(table, 0, next_position(arm_stream))
            mean = truth.means[arm] + shift
            reward, is_clipped = reward_of(mean, truth.noise, truth.noise_parameters, noise_stream)
            memory.counts[r, arm] += 1
            memory.sums[r, arm] += reward
            memory.last_arm[r] = arm
            memory.last_reward[r] = reward
            memory.clipped[r] += is_clipped
            memory.clock[r] += 1
            place = memory.upcoming[r]
            if place < truth.checkpoints.size and truth.checkpoints[place] == memory.clock[r]:
                memory.regret[r, place] = regret_of(truth.gaps, memory.counts[r], nothing)
                memory.upcoming[r] += 1
            if not observe(settings, plans.memory, r, chances, arm, reward):
                return REFUSED
            plans.rounds[r] = plan_into(settings, plans.memory, r, chances)
            if plans.rounds[r] < 0:
                return UNSOLVED
    return FINE


@compiled
def _answer(r: int, truth: Truth, memory: Memory, chances: Array, shares: Array, step: ShiftStep) -> float:
    """Ask the step for ν under a plan, before its arm is drawn, and count the plan among those before."""
    clock = memory.clock[r]
    total = memory.chances[r]
    for i in range(chances.size):
        shares[i] = total[i] / clock if clock > 0 else 1.0 / chances.size
        total[i] += chances[i]
    known = Known(
        clock,
        memory.last_arm[r],
        memory.last_reward[r],
        memory.counts[r],
        memory.sums[r],
        chances,
        shares,
        truth.means,
    )
    return step(truth.settings, known)


class Learner:
    """Plays a policy that plans every round, through its compiled steps.

    Such a policy declares an arm only together with its last plan, so that no round in between needs a
    look at its decision.
    """

    def __init__(self, policy: Any, arms: ArmSet) -> None:
        self._policy = policy
        self._arms = arms
        self._steps = policy.compiled(arms)

    def play(self, state: Any, player: Player, rows: Whole, end: Whole, played: tuple[Array, Whole]) -> Any:
        """Play rows of a batch to their end (R,) or last plan; return the new state.

        `played` are the plans last played (R, K) and their number so far (R,), both brought up to date.
        """
        packed = self._policy.pack(state)
        clock = player.memory.clock
        steps = self._steps
        before = clock.copy()
        plans = Plans(packed.probabilities, packed.rounds, packed.memory, *played)
        about = (steps.settings, packed.memory, 0, packed.probabilities[0])
        while rows.size:
            window = player.window(rows, end)
            ready = rows[window.stop[rows] > clock[rows]]
            arguments = (ready, player.truth, player.memory, window, plans, steps.settings)
            kernel = compiled_for(play_plans, arguments, [(0, about), (False, (*about, 0, 0.0)), STEP])
            outcome = kernel(*arguments, steps.plan_into, steps.observe, player.step)
            if outcome == NOT_FINITE:
                player.refuse()
            if outcome == UNSOLVED:
                steps.fail()
            if outcome == REFUSED:
                raise RewardError(f"a reward cannot be used by {self._policy}; see its documentation")
            rows = rows[(clock[rows] < end[rows]) & (packed.rounds[rows] < FOREVER)]
        after = self._policy.unpack(self._arms, packed, (end.size,))
        return replace(after, number=state.number + clock - before)
