"""Rounds of several plans, step by step: what was in force side by side is one step."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from orthobandit._types import Array, Whole
from orthobandit.estimate.tally import Tally


@dataclass(frozen=True, eq=False)
class Steps:
    """G plans with their tallies, in S steps; those of one step are taken to be of one time.

    Attributes
    ----------
    probabilities : (G, K) array
    rounds : (G,) array of int
        How long each plan is in force.
    tally : Tally
        Of residuals (G, K).
    values : (S, K) array
        What was taken from the rewards of each arm, the same for all plans of a step.
    first : (S,) array of int
        The first plan of each step, ascending from 0; every step has one. One step by default.
    """

    probabilities: Array
    rounds: Whole
    tally: Tally
    values: Array
    first: Whole = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @cached_property
    def step(self) -> Whole:
        """Which step each plan (G,) is of."""
        ends = np.append(self.first, len(self.probabilities))
        return np.repeat(np.arange(len(self.first)), np.diff(ends))

    @cached_property
    def whole(self) -> Tally:
        """The tally (S, K) of each step."""
        return self.tally.gathered(self.first)
