"""How much of the variance each baseline and the covariates saved."""

from collections.abc import Sequence

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.logs.blocks import Block

BESIDE = "mean"  # what others are compared with; it saves nothing itself, nor does the forecast 0


class Savings:
    """Sums of squared residuals that were left, beside what a running mean leaves of the same rows."""

    def __init__(self) -> None:
        self._left: dict[str, float] = {}
        self._beside: dict[str, float] = {}

    def add(self, block: Block, ahead: Sequence[dict[str, float]], values: Array) -> None:
        """Take in every baseline's forecast of the level of each step, with the values (S, K) of the arms."""
        names = dict.fromkeys(name for one in ahead for name in one if name != "none")
        made = {name: np.array([one.get(name, np.nan) for one in ahead]) for name in names}
        squares = dict(zip(names, block.squared(0, list(made.values()), values), strict=True))
        for name, left in squares.items():
            if name != BESIDE:
                there = np.isfinite(made[name])
                self.beside(name, float(left[there].sum()), float(squares[BESIDE][there].sum()))

    def beside(self, name: str, left: float, usual: float) -> None:
        """Take in squares that something left, and those without it."""
        self._left[name] = self._left.get(name, 0.0) + left
        self._beside[name] = self._beside.get(name, 0.0) + usual

    def shares(self) -> dict[str, float]:
        """Return the share saved by each; below 0 if it made things worse."""
        return {
            name: 1.0 - left / self._beside[name] if self._beside[name] > 0 else 0.0
            for name, left in self._left.items()
        }
