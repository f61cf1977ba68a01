"""What SBE remembers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orthobandit.arms import ArmSet
from orthobandit.estimate import Tally
from orthobandit.policy._states import freeze

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SBEState:
    """The memory of :class:`SBE`; leading axes (...) are replications.

    Attributes
    ----------
    arms : ArmSet
    active : (..., K) array of bool
        Survivors.
    phase : (...) array of int
        ℓ of the phase in progress, from 1.
    length : (...) array of int
        n_ℓ, or `FOREVER` once an arm is declared.
    probabilities : (..., K) array
        The design of the phase in progress.
    tally : Tally
        What was seen in the phase in progress.
    leader, declared : (...) array of int
        The best-looking arm, and the declared one or −1.
    rounds : (...) array of int
        Rounds seen since the start.
    plans : (...) array of int
        Plans made since the start.
    """

    arms: ArmSet
    active: Mask
    phase: Integers
    length: Integers
    probabilities: Array
    tally: Tally
    leader: Integers
    declared: Integers
    rounds: Integers
    plans: Integers

    def __post_init__(self) -> None:
        freeze(self)
