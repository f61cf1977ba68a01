"""What SBE remembers."""

from dataclasses import dataclass

from orthobandit._types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Tally
from orthobandit.policy._states import freeze


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
    phase: Whole
    length: Whole
    probabilities: Array
    tally: Tally
    leader: Whole
    declared: Whole
    rounds: Whole
    plans: Whole

    def __post_init__(self) -> None:
        freeze(self)
