"""Compiled play of a batch of replications: each draws from its own plan, at its own clock."""

from typing import NamedTuple

import numpy as np

from orthobandit._compile import compiled
from orthobandit._random import DrawTable, Words, next_position, table_arm, tally_draws
from orthobandit._types import Array, Whole
from orthobandit.estimate.compiled_forecast import Recipe, forecast, learn, regressor_count
from orthobandit.estimate.plan import residual_of
from orthobandit.simulation.adversaries import LEADER, PLAN, PYTHON
from orthobandit.simulation.noise import add_gaussian, reward_of

SUMS = 6  # columns of sums in the making: n, Σ, Σ of squares, two corrections, the largest magnitude


class Truth(NamedTuple):
    """What the environment knows: means and gaps (K,), kinds and parameters, checkpoints (C,)."""

    means: Array
    gaps: Array
    noise: int
    noise_parameters: tuple[float, float, float]
    adversary: int
    adversary_parameters: tuple[float, float]
    checkpoints: Whole


class Memory(NamedTuple):
    """What R replications carry from plan to plan; all arrays lead with R.

    `counts` and `sums` (R, K) are over finished plans, `regret` (R, C) is filled up to `upcoming` (R,).
    """

    clock: Whole
    arm_stream: Words
    noise_stream: Words
    counts: Array
    sums: Array
    last_arm: Whole
    last_reward: Array
    clipped: Whole
    upcoming: Whole
    regret: Array


class Block(NamedTuple):
    """The plans in force: how to draw, an adversary's answers (R, K), sums in the making (R, K, SUMS)."""

    table: DrawTable
    answers: Array
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
        path, base = window.values[window.row[r]], window.base[r]
        while memory.clock[r] < window.stop[r]:
            pause = _pause(r, truth, memory, window)
            values = path[memory.clock[r] - base : pause - base]
            tally_draws(block.table, r, memory.arm_stream[r], values, block.sums[r])
            _move_clock(r, pause, truth, memory, block)


@compiled
def end_paths(rows: Whole, truth: Truth, memory: Memory, block: Block) -> None:
    """Turn the sums of ν that :func:`play_paths` made into sums of rewards."""
    sigma = truth.noise_parameters[0]
    for r in rows:
        for i in range(truth.means.size):
            add_gaussian(memory.noise_stream[r], truth.means[i], sigma, block.sums[r, i])


@compiled
def play_rounds(
    rows: Whole, truth: Truth, memory: Memory, block: Block, window: Window, residuals: Residuals
) -> None:
    """Play round by round, with ν read from the window or from the compiled adversary."""
    regressors = np.zeros(regressor_count(residuals.recipe))
    means, kind, table, (limit, strength) = truth.means, truth.noise, block.table, truth.adversary_parameters
    for r in rows:
        # Rows are taken out here: passing whole batches to a call in every round costs more than the round.
        path, base, answers, sums = (
            window.values[window.row[r]],
            window.base[r],
            block.answers[r],
            block.sums[r],
        )
        arm_stream, noise_stream = memory.arm_stream[r], memory.noise_stream[r]
        counts_before, sums_before = memory.counts[r], memory.sums[r]
        arm, reward, clipped = memory.last_arm[r], memory.last_reward[r], 0
        while memory.clock[r] < window.stop[r]:
            pause = _pause(r, truth, memory, window)
            for clock in range(memory.clock[r], pause):
                if truth.adversary == PYTHON:
                    shift = path[clock - base]
                elif truth.adversary == PLAN:
                    shift = answers[0]
                elif clock == 0:
                    shift = 0.0
                elif truth.adversary == LEADER:
                    shift = answers[_leader(counts_before, sums_before, sums)]
                else:
                    shift = min(max(-strength * reward, -limit), limit)
                level = 0.0
                if residuals.is_used:
                    level = forecast(residuals.recipe, residuals.memory[r], clock, regressors)
                arm = table_arm(table, r, next_position(arm_stream))
                reward, is_clipped = reward_of(means[arm] + shift, kind, truth.noise_parameters, noise_stream)
                _add(sums[arm], reward)
                clipped += is_clipped
                if residuals.is_used:
                    _tally_residual(residuals, r, arm, reward, level, clock + 1)
                    learn(
                        residuals.recipe, residuals.memory[r], regressors, reward - residuals.values[r, arm]
                    )
            _move_clock(r, pause, truth, memory, block)
        memory.last_arm[r], memory.last_reward[r] = arm, reward
        memory.clipped[r] += clipped


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


@compiled
def _leader(counts_before: Array, sums_before: Array, sums: Array) -> int:
    """Return the arm with the highest average reward, the first on ties, 0 if none was played."""
    leader, highest = 0, -np.inf
    for i in range(counts_before.size):
        count = counts_before[i] + sums[i, 0]
        if count > 0:
            average = (sums_before[i] + sums[i, 1]) / count
            if average > highest:
                leader, highest = i, average
    return leader
