"""A proposal: the assignment that `ask` returns."""

from dataclasses import dataclass

from orthobandit._foundation.types import Array


@dataclass(frozen=True, eq=False)
class Proposal:
    """An arm to show, with everything that was fixed before it was drawn.

    Attributes
    ----------
    id : int
        Number to report the reward under; proposals are numbered from 1 in the order of draws.
    arm, label : int, str
    plan : int
        Number of the plan in force.
    probabilities : (K,) array
        Probabilities that the arm was drawn from.
    baseline : float
        Forecast of the objective's level.
    held : bool
        Whether the proposal is in the holdout, which is shown the reference arm.
    """

    id: int
    arm: int
    label: str
    plan: int
    probabilities: Array
    baseline: float
    held: bool = False
