"""A design: a distribution over arms together with what it is worth."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orthobandit.arms import ArmSet

Array = NDArray[np.float64]

# Called during long solves with (step, certified gap so far).
Progress = Callable[[int, float], None]


@dataclass(frozen=True, eq=False)
class Design:
    """Probabilities of the arms, and how well they identify the differences between arms.

    Attributes
    ----------
    arms : ArmSet
    probabilities : (K,) array
        Read-only, summing to one.
    method : str
        ``"g-optimal"``, ``"anchor"``, ``"centred"`` or ``"contrast"``.
    reference : int
        The arm that `reference_norm` measures differences to.
    optimality_gap : float
        Certified relative gap of the problem that `method` solves, from a fresh factorisation on all arms.
    """

    arms: ArmSet
    probabilities: Array
    method: str
    reference: int
    optimality_gap: float

    @cached_property
    def support(self) -> NDArray[np.int64]:
        """Arms with positive probability, in ascending order."""
        return np.flatnonzero(self.probabilities > 0)
