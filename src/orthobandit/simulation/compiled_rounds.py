"""Compiled play of a batch of replications: each draws from its own plan, at its own clock.

Three loops: a plan's rounds in one block (:func:`play_paths`), round by round where the shift or a forecast
reacts to rewards (:func:`play_rounds`), and with the policy planning anew every round (:func:`play_plans`).
"""

from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.random import DrawTable, Words, fill_table, next_position, table_arm, tally_draws
from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate.forecast.compiled import Recipe, forecast, learn, regressor_count
from orthobandit.estimate.plan import residual_of
from orthobandit.policy.base import FOREVER
from orthobandit.policy.every_round import ObserveStep, PlanStep
from orthobandit.simulation.adversaries import Known, ShiftStep
from orthobandit.simulation.noise import NoiseStep, add_gaussian

# How play ended: compiled code returns a number, its caller raises the error.
FINE, UNSOLVED, REFUSED, SHIFT_NOT_FINITE, REWARD_NOT_FINITE = range(5)
SUMS = 6  # columns of sums in the making: n, Σ, Σ of squares, two corrections, the largest magnitude


class Truth(NamedTuple):
    """The environment in a compiled loop: means and gaps (K,), adversary and checkpoints (C,).

    The shift is read from a path unless it `is_answered`: asked of a compiled step, with its settings (S,).
    `noise_settings` (S,) are for the compiled step of the noise.
    """

    means: Array
    gaps: Array
    noise_settings: Array
    is_answered: bool
    settings: Array
    checkpoints: Whole


class Memory(NamedTuple):
    """The state that R replications carry from plan to plan; R is the first axis of every array.

    `counts` and `sums` (R, K) are over finished plans, as are the sums of each arm's probability, `chances`
    (R, K), noted only where the shift is adaptive; `regret` (R, C) is filled up to `upcoming` (R,).
    """

    clock: Whole
    arm_stream: Words
    noise_stream: Words
    counts: Array
    sums: Array
    chances: Array
    last_arm: Whole
    last_reward: Array
    clipped: Whole
    upcoming: Whole
    regret: Array


class Block(NamedTuple):
    """The plans in force: how to draw, probabilities, what they were before, sums in the making (R, K, SUMS).

    Probabilities and shares (R, K) are what an adversary is shown.
    """

    table: DrawTable
    probabilities: Array
    shares: Array
    sums: Array


class Window(NamedTuple):
    """Where ν is: replication r reads values[row[r]] from round base[r] + 1 on, and plays to stop[r]."""

    values: Array
    row: Whole
    base: Whole
    stop: Whole


class Residuals(NamedTuple):
    """Where residuals are made: forecasts of the baseline, the plans' centres, sums in the making.

    `memory` (R, n) is that of the forecasters, `values` (R, K), `low` and `high` (R,) and `limit` the
    centres, `rewards` the range a reward must lie in, `sums` (R, K, SUMS) of residuals, `refused` (R,) the
    round of a reward outside the range, from 1. Not used when `is_used` is false.
    """

    is_used: bool
    recipe: Recipe
    memory: Array
    values: Array
    low: Array
    high: Array
    limit: float
    rewards: tuple[float, float]
    sums: Array
    refused: Whole


@compiled
def regret_of(gaps: Array, before: Array, sums: Array) -> float:
    """Return the regret of `before` (K,) rounds and those counted in `sums` (K, SUMS)."""
    regret = 0.0
    for i in range(gaps.size):
        regret += gaps[i] * (before[i] + sums[i, 0])
    return regret


@compiled
def _pause(r: int, truth: Truth, memory: Memory, window: Window) -> int:
    """Return the clock at which replication r must be looked at: its next checkpoint, or the stop."""
    place = memory.upcoming[r]
    if place < truth.checkpoints.size:
        return int(min(truth.checkpoints[place], window.stop[r]))
    return int(window.stop[r])


@compiled
def _move_clock(r: int, clock: int, truth: Truth, memory: Memory, block: Block) -> None:
    memory.clock[r] = clock
    place = memory.upcoming[r]
    if place < truth.checkpoints.size and truth.checkpoints[place] == clock:
        memory.regret[r, place] = regret_of(truth.gaps, memory.counts[r], block.sums[r])
        memory.upcoming[r] += 1


@compiled
def play_paths(rows: Whole, truth: Truth, memory: Memory, block: Block, window: Window) -> None:
    """Draw arms and add (1, ν, ν²) to their sums; Gaussian noise is added when the plan ends."""
    for r in rows:
        path = window.values[window.row[r]]
        base = window.base[r]
        while memory.clock[r] < window.stop[r]:
            pause = _pause(r, truth, memory, window)
            values = path[memory.clock[r] - base : pause - base]
            tally_draws(block.table, r, memory.arm_stream[r], values, block.sums[r])
            _move_clock(r, pause, truth, memory, block)


@compiled
def end_paths(rows: Whole, truth: Truth, memory: Memory, block: Block, sigma: float) -> None:
    """Turn the sums of ν that :func:`play_paths` made into sums of rewards with N(0, σ²) noise."""
    for r in rows:
        for i in range(truth.means.size):
            add_gaussian(memory.noise_stream[r], truth.means[i], sigma, block.sums[r, i])


@compiled
def play_rounds(
    rows: Whole,
    truth: Truth,
    memory: Memory,
    block: Block,
    window: Window,
    residuals: Residuals,
    step: ShiftStep | None,
    draw: NoiseStep,
) -> int:
    """Play round by round, with ν read from the window or asked of the compiled step.

    Returns how it ended. Without a step of the shift no code asks for one.
    """
    regressors = np.zeros(regressor_count(residuals.recipe))
    means = truth.means
    table = block.table
    counts = np.empty(means.size)
    totals = np.empty(means.size)
    for r in rows:
        # Rows are taken out here: passing whole batches to a call in every round costs more than the round.
        path = window.values[window.row[r]]
        base = window.base[r]
        sums = block.sums[r]
        probabilities = block.probabilities[r]
        shares = block.shares[r]
        sums_before = memory.sums[r]
        arm_stream = memory.arm_stream[r]
        noise_stream = memory.noise_stream[r]
        arm = memory.last_arm[r]
        reward = memory.last_reward[r]
        clipped = 0
        if step is not None:
            counts[:] = memory.counts[r] + sums[:, 0]
            totals[:] = sums_before + sums[:, 1]
        while memory.clock[r] < window.stop[r]:
            pause = _pause(r, truth, memory, window)
            for clock in range(memory.clock[r], pause):
                if step is not None:
                    known = Known(clock, arm, reward, counts, totals, probabilities, shares, means)
                    shift = step(truth.settings, known)
                    if not np.isfinite(shift):
                        return SHIFT_NOT_FINITE
                else:
                    shift = path[clock - base]
                # Shift and forecast are fixed before the arm is drawn: neither may depend on it.
                level = 0.0
                if residuals.is_used:
                    level = forecast(residuals.recipe, residuals.memory[r], clock, regressors)
                arm = table_arm(table, r, next_position(arm_stream))
                reward, is_clipped = draw(means[arm] + shift, truth.noise_settings, noise_stream)
                if not np.isfinite(reward):
                    return REWARD_NOT_FINITE
                _add(sums[arm], reward)
                if step is not None:
                    counts[arm] += 1
                    totals[arm] = sums_before[arm] + sums[arm, 1]
                clipped += is_clipped
                if residuals.is_used:
                    _tally_residual(residuals, r, arm, reward, level, clock + 1)
                    learn(
                        residuals.recipe, residuals.memory[r], regressors, reward - residuals.values[r, arm]
                    )
            _move_clock(r, pause, truth, memory, block)
        memory.last_arm[r] = arm
        memory.last_reward[r] = reward
        memory.clipped[r] += clipped
    return FINE


@compiled
def _tally_residual(residuals: Residuals, r: int, arm: int, reward: float, level: float, clock: int) -> None:
    """Tally a residual; remember the first reward that must be refused."""
    if not residuals.rewards[0] <= reward <= residuals.rewards[1] and residuals.refused[r] == 0:
        residuals.refused[r] = clock
    bounds = (residuals.low[r], residuals.high[r])
    _add(
        residuals.sums[r, arm],
        residual_of(reward, level, residuals.values[r, arm], bounds, residuals.limit),
    )


@compiled
def _add(sums: Array, reward: float) -> None:
    """Count a reward and add it and its square, compensated (Kahan): 10⁹ equal rewards keep their digits."""
    sums[0] += 1
    for place, value in ((1, reward), (2, reward * reward)):
        corrected = value - sums[place + 2]
        total = sums[place] + corrected
        sums[place + 2] = (total - sums[place]) - corrected
        sums[place] = total
    sums[5] = max(sums[5], abs(reward))


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
    draw: NoiseStep,
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
            # A plan equal to the one before is no new plan: the paper counts changes.
            if np.any(chances != plans.current[r]):
                plans.played[r] += 1
                plans.current[r] = chances
            row[0] = chances
            fill_table(row, table.columns, table.threshold, table.arms)
            # The shift first, then the arm: an adversary never sees the draw of its round.
            if truth.is_answered:
                shift = _answer(r, truth, memory, chances, shares, step)
                if not np.isfinite(shift):
                    return SHIFT_NOT_FINITE
            else:
                shift = path[memory.clock[r] - base]
            arm = table_arm(table, 0, next_position(arm_stream))
            reward, is_clipped = draw(truth.means[arm] + shift, truth.noise_settings, noise_stream)
            if not np.isfinite(reward):
                return REWARD_NOT_FINITE
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
