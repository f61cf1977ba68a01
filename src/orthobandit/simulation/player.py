"""Play plans for a batch of replications, and tally rewards or residuals of forecasts."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from orthobandit._foundation.compile import compiled_for
from orthobandit._foundation.random import DrawTable, compiled_stream
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import Centre, Tally
from orthobandit.estimate.forecast.baselines import Baseline, CompiledBaseline
from orthobandit.estimate.forecast.compiled import GIVEN, NOTHING, Recipe, fresh_memory
from orthobandit.estimate.forecast.contract import Forecast
from orthobandit.simulation.adversaries import STEP, Adaptive, Past, no_step, step_of
from orthobandit.simulation.compiled_rounds import (
    REWARD_NOT_FINITE,
    SHIFT_NOT_FINITE,
    SUMS,
    Block,
    Memory,
    Residuals,
    Truth,
    Window,
    end_paths,
    play_paths,
    play_rounds,
    regret_of,
)
from orthobandit.simulation.environment import Environment
from orthobandit.simulation.noise import NOISE_STEP, noise_step
from orthobandit.simulation.shifts import CHUNK_ROUNDS, Oblivious

KEPT_CHUNKS = 32  # replications drift apart by whole plans; this many pieces of ν are kept for reuse


class Player:
    """The rounds of a batch of replications, each with its own streams and its own clock.

    A replication's numbers depend on the seed, its own number and its plans: not on the rest of the batch,
    nor on the checkpoints.

    Parameters
    ----------
    environment : Environment
    checkpoints : (C,) array of int
        Ascending; the regret is noted when so many rounds are played.
    seed : int
    replications : (R,) array of int
        Name the streams.
    baseline : Baseline, optional
        Forecasts the level before each draw; each replication has its own forecaster.
    """

    def __init__(
        self,
        environment: Environment,
        checkpoints: Whole,
        seed: int,
        replications: Whole,
        baseline: Baseline | None = None,
    ) -> None:
        self._shift = shift = environment.shift
        self._noise = environment.noise
        answered = step_of(shift, environment.means)
        self.step, settings = (no_step, np.zeros(0)) if answered is None else answered
        self.draw, noise_settings = noise_step(environment.noise)
        self.truth = Truth(
            means=np.array(environment.means),
            gaps=np.array(environment.gaps),
            noise_settings=noise_settings,
            is_answered=answered is not None,
            settings=settings,
            checkpoints=checkpoints,
        )
        self.memory = _fresh_memory(seed, replications, len(environment.arms), checkpoints.size)
        self._forecasters = Forecasters(baseline, replications.size, len(environment.arms))
        self._kernel: Callable[..., int] | None = None  # play_rounds, once its arguments are known
        self._seed = seed
        self._replications = replications
        self._windows = PathWindows(shift, seed, replications) if isinstance(shift, Oblivious) else None

    @property
    def is_compiled(self) -> bool:
        """Whether the shift is played without asking Python: by its path, or by a compiled step."""
        return self._windows is not None or self.truth.is_answered

    def window(self, left: Whole, end: Whole) -> Window:
        """Return a piece of the shift in which some of `left` can play on towards `end` (R,)."""
        if self._windows is not None:
            return self._windows.next(left, self.memory.clock, end)
        if not self.truth.is_answered:
            raise ParameterError(f"{self._shift!r} has no compiled step; it must be asked every round")
        nowhere = np.zeros(end.size, dtype=np.int64)
        # Cut into pieces so that Ctrl-C is heard.
        return Window(np.zeros((1, 1)), nowhere, nowhere, np.minimum(end, self.memory.clock + CHUNK_ROUNDS))

    def check_outcome(self, outcome: int) -> None:
        """Raise the error for a compiled step that returned a shift or a reward which is not finite."""
        if outcome == SHIFT_NOT_FINITE:
            checked_shift(self._shift, np.array([np.nan]), 1)
        if outcome == REWARD_NOT_FINITE:
            raise ParameterError(f"{self._noise!r} returned a reward that is not finite")

    def play(self, probabilities: Array, rounds: Whole, centre: Centre | None = None) -> Tally:
        """Play each replication for its number of rounds (R,) under its plan (R, K); tally the residuals."""
        memory = self.memory
        shift = self._shift
        # Forecasts use what was seen up to this plan; the draws of the plan never change its centre.
        residuals = self._forecasters.open(centre)
        chances = np.array(probabilities, order="C")  # writable: one compiled version serves every policy
        rows = np.flatnonzero(rounds)
        end = memory.clock + rounds
        sums = np.zeros((*chances.shape, SUMS))
        if isinstance(shift, Oblivious):
            block = Block(DrawTable.of(chances), chances, chances, sums)
            self._play_oblivious(rows, end, block, residuals)
        else:
            # What an adversary compares the plan with: average probabilities so far, 1/K before any.
            before = np.maximum(memory.clock, 1)[:, np.newaxis]
            shares = np.where(memory.clock[:, np.newaxis] > 0, memory.chances / before, 1 / chances.shape[1])
            block = Block(DrawTable.of(chances), chances, shares, sums)
            if self.truth.is_answered:
                self._play_adaptive(rows, end, block, residuals)
            else:
                self._play_asking(shift, rows, end, block, residuals)
            memory.chances[...] += chances * rounds[:, np.newaxis]
        memory.counts[...] += sums[..., 0]
        memory.sums[...] += sums[..., 1]
        return self._forecasters.tally(residuals, sums)

    def settle(self, rows: Whole, gap: Array) -> None:
        """Note the regret at all checkpoints to come if every further round costs `gap` (R,)."""
        memory = self.memory
        truth = self.truth
        nothing = np.zeros((truth.gaps.size, SUMS))
        for r in rows:
            left = truth.checkpoints[memory.upcoming[r] :]
            now = regret_of(truth.gaps, memory.counts[r], nothing)
            memory.regret[r, memory.upcoming[r] :] = now + gap[r] * (left - memory.clock[r])
            memory.upcoming[r] = truth.checkpoints.size

    def _play_oblivious(self, rows: Whole, end: Whole, block: Block, residuals: Residuals) -> None:
        clock = self.memory.clock
        # Sums of Gaussian rewards can be drawn as such; other noise, and forecasts, need every single one.
        sigma = None if residuals.is_used else self._noise.normal_scale
        left = rows
        while left.size:
            # A window holds one chunk of a shared path: replications ahead of it wait for the others.
            window = self._cut(self.window(left, end))
            ready = left[window.stop[left] > clock[left]]
            if sigma is not None:
                play_paths(ready, self.truth, self.memory, block, window)
            else:
                self._play_rounds(ready, block, window, residuals)
            left = left[clock[left] < end[left]]
        if sigma is not None:
            end_paths(rows, self.truth, self.memory, block, sigma)

    def _cut(self, window: Window) -> Window:
        """End a window after one round where a forecaster has to be asked."""
        if not self._forecasters.ask:
            return window
        return window._replace(stop=np.minimum(window.stop, self.memory.clock + 1))

    def _play_rounds(self, rows: Whole, block: Block, window: Window, residuals: Residuals) -> None:
        """Play round by round, with the forecasters asked before and told after where they are Python."""
        memory = self.memory
        # Asked before the arms are drawn, told after: a forecast must not know the draw it is used for.
        self._forecasters.before(residuals, rows, memory.clock)
        arguments: tuple[Any, ...] = (rows, self.truth, memory, block, window, residuals)
        if self.truth.is_answered:
            steps: tuple[Any, ...] = (self.step, self.draw)
            examples = [STEP, NOISE_STEP]
        else:
            arguments = (*arguments, None)
            steps = (self.draw,)
            examples = [NOISE_STEP]
        if self._kernel is None:
            self._kernel = compiled_for(play_rounds, arguments, examples)
        self.check_outcome(self._kernel(*arguments, *steps))
        self._forecasters.after(residuals, rows, memory.last_arm, memory.last_reward)

    def _play_adaptive(self, rows: Whole, end: Whole, block: Block, residuals: Residuals) -> None:
        clock = self.memory.clock
        left = rows
        while left.size:
            self._play_rounds(left, block, self._cut(self.window(left, end)), residuals)
            left = left[clock[left] < end[left]]

    def _play_asking(
        self, shift: Adaptive, rows: Whole, end: Whole, block: Block, residuals: Residuals
    ) -> None:
        memory = self.memory
        values = np.zeros((end.size, 1))
        left = rows
        while left.size:
            past = Past(
                rounds=memory.clock[left],
                last_arm=memory.last_arm[left],
                last_reward=memory.last_reward[left],
                counts=(memory.counts[left] + block.sums[left, :, 0]).astype(np.int64),
                sums=memory.sums[left] + block.sums[left, :, 1],
                probabilities=block.probabilities[left],
                shares=block.shares[left],
                means=self.truth.means,
            )
            values[left, 0] = checked_shift(shift, shift.values(past), left.size)
            window = Window(values, np.arange(end.size), memory.clock.copy(), memory.clock + 1)
            self._play_rounds(left, block, window, residuals)
            left = left[memory.clock[left] < end[left]]


class PathWindows:
    """Cuts ν into chunks: made once for all replications that share a path, else one for each."""

    def __init__(self, shift: Oblivious, seed: int, replications: Whole) -> None:
        self._shift = shift
        self._seed = seed
        self._replications = replications
        size = replications.size
        self._kept: OrderedDict[int, Array] = OrderedDict()
        self._own = np.empty((0 if shift.is_shared else size, CHUNK_ROUNDS))
        self._own_index = np.full(size, -1)

    def next(self, left: Whole, clock: Whole, end: Whole) -> Window:
        """Return a window in which at least the replications of `left` that are furthest behind can play."""
        index = clock // CHUNK_ROUNDS
        if not self._shift.is_shared:
            for r in left[self._own_index[left] != index[left]]:
                self._own[r] = self._made(int(index[r]), int(self._replications[r]))
                self._own_index[r] = index[r]
            stop = np.minimum(end, (index + 1) * CHUNK_ROUNDS)
            return Window(self._own, np.arange(end.size), index * CHUNK_ROUNDS, stop)
        first = int(index[left].min())
        base = np.full(end.size, first * CHUNK_ROUNDS)
        row = np.zeros(end.size, dtype=np.int64)
        return Window(self._shared(first), row, base, np.minimum(end, base + CHUNK_ROUNDS))

    def _shared(self, index: int) -> Array:
        if index not in self._kept:
            self._kept[index] = self._made(index, 0)[np.newaxis]
            if len(self._kept) > KEPT_CHUNKS:
                self._kept.popitem(last=False)
        return self._kept[index]

    def _made(self, index: int, replication: int) -> Array:
        path = self._shift.chunk(index, seed=self._seed, replication=replication)
        return checked_shift(self._shift, path, CHUNK_ROUNDS)


def checked_shift(shift: object, values: Array, count: int) -> Array:
    """Return the shift's values (count,), or raise if they are not `count` finite numbers."""
    array = np.array(values, dtype=np.float64)
    if array.shape != (count,):
        raise ParameterError(f"{shift!r} returned values of shape {array.shape}; ({count},) is needed")
    if not np.all(np.isfinite(array)):
        raise ParameterError(f"{shift!r} returned a value that is not finite")
    return array


def _fresh_memory(seed: int, replications: Whole, count: int, checkpoints: int) -> Memory:
    size = replications.size
    arm_stream, noise_stream = (
        np.array([compiled_stream(seed, purpose, int(r)) for r in replications]).reshape(size, 4)
        for purpose in ("arms", "noise")
    )
    return Memory(
        clock=np.zeros(size, dtype=np.int64),
        arm_stream=arm_stream,
        noise_stream=noise_stream,
        counts=np.zeros((size, count)),
        sums=np.zeros((size, count)),
        chances=np.zeros((size, count)),
        last_arm=np.full(size, -1, dtype=np.int64),
        last_reward=np.zeros(size),
        clipped=np.zeros(size, dtype=np.int64),
        upcoming=np.zeros(size, dtype=np.int64),
        regret=np.zeros((size, checkpoints)),
    )


class Forecasters:
    """The forecasters of a batch of replications, from plan to plan.

    Parameters
    ----------
    baseline : Baseline, optional
        With a compiled recipe it runs inside the compiled loop; any other is asked round by round.
    size, count : int
        Numbers of replications and arms.
    """

    def __init__(self, baseline: Baseline | None, size: int, count: int) -> None:
        recipe = baseline.recipe if isinstance(baseline, CompiledBaseline) else None
        self.ask = baseline is not None and recipe is None
        kind = GIVEN if self.ask else NOTHING
        self._recipe: Recipe = recipe if recipe is not None else Recipe(kind, 1.0, 0, np.zeros(0))
        self._memory = np.tile(fresh_memory(self._recipe), (size, 1))
        self._shape = (size, count)
        self._forecasters = [baseline.forecaster() for _ in range(size)] if self.ask and baseline else []
        self._made: dict[int, Forecast] = {}

    def open(self, centre: Centre | None) -> Residuals:
        """Return where the residuals of the next plans go; unused where rewards are tallied as they are."""
        size, count = self._shape
        is_used = centre is not None
        wide = np.full(size, np.inf)
        return Residuals(
            is_used=is_used,
            recipe=self._recipe,
            memory=self._memory,
            values=np.array(centre.values) if is_used and centre else np.zeros(self._shape),
            low=np.array(centre.low) if is_used and centre else -wide,
            high=np.array(centre.high) if is_used and centre else wide,
            limit=float(centre.limit) if is_used and centre else np.inf,
            rewards=centre.rewards if is_used and centre else (-np.inf, np.inf),
            # Compiled code wants an array of the type, also where it is never looked at.
            sums=np.zeros((size, count, SUMS) if is_used else (1, 1, SUMS)),
            refused=np.zeros(size, dtype=np.int64),
        )

    def before(self, residuals: Residuals, rows: Whole, clock: Whole) -> None:
        """Ask the forecasters that are not compiled; called before the arms are drawn."""
        if self.ask and residuals.is_used:
            for r in rows:
                self._made[r] = self._forecasters[r].forecast(int(clock[r]))
                residuals.memory[r, 0] = self._made[r].value

    def after(self, residuals: Residuals, rows: Whole, arms: Whole, rewards: Array) -> None:
        """Refuse rewards outside the declared range; tell the forecasters the residuals of the others."""
        refused = rows[residuals.refused[rows] > 0]
        if refused.size:
            raise RewardError(
                f"the reward of round {residuals.refused[refused[0]]} lies outside the declared range"
                f" {residuals.rewards}; declare a range that holds all rewards"
            )
        if self.ask and residuals.is_used:
            for r in rows:
                self._forecasters[r].learn(self._made[r], float(rewards[r] - residuals.values[r, arms[r]]))

    def tally(self, residuals: Residuals, sums: Array) -> Tally:
        """Return the tally of residuals, or that of the rewards in `sums` (R, K, SUMS) without a centre."""
        sums = residuals.sums if residuals.is_used else sums
        counts = sums[..., 0]
        totals = sums[..., 1]
        squares = sums[..., 2]
        largest = sums[..., -1]
        # Blocks of rewards are drawn by their sums, and no single one of them is known.
        return Tally(counts.astype(np.int64), totals, squares, largest if largest.any() else None)
