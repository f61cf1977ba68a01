"""Residuals instead of rewards: forecasters beside the policy, and the centres of its plans."""

import numpy as np

from orthobandit._types import Array, Whole
from orthobandit.errors import RewardError
from orthobandit.estimate import Centre, Tally
from orthobandit.estimate.baseline import Baseline, CompiledBaseline
from orthobandit.estimate.compiled_forecast import GIVEN, NOTHING, Recipe, fresh_memory
from orthobandit.estimate.forecaster import Forecast
from orthobandit.simulation._kernels import SUMS, Residuals


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
        counts, totals, squares, largest = sums[..., 0], sums[..., 1], sums[..., 2], sums[..., -1]
        # Blocks of rewards are drawn by their sums, and no single one of them is known.
        return Tally(counts.astype(np.int64), totals, squares, largest if largest.any() else None)
