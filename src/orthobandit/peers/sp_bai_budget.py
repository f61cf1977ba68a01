"""SP-BAI with a budget: the phases of SP-BAI until the rounds are used up."""

from dataclasses import dataclass, replace

import numpy as np

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.peers.sp_bai import SPBAI
from orthobandit.policy.base import Decision
from orthobandit.policy.phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision


@dataclass(frozen=True)
class BudgetedSPBAI(PhasedPolicy):
    """SP-BAI with at most so many rounds, after the public code of its author (Kim, AISTATS 2026).

    The phases are those of :class:`~orthobandit.peers.SPBAI`. One that would go beyond the budget is cut to
    what is left of it. After the last round the survivor that looks best is declared. A run may end earlier,
    when one arm is left. No shift biases it. Nothing is claimed: the author reports no runs, and phases that
    are cut are shorter than even his constants ask for.

    Departs: as :class:`~orthobandit.peers.SPBAI` does; and phases are not limited to ten.

    Parameters
    ----------
    budget : int
        The most rounds that are played.
    delta : float
        Failure probability δ that phases aim at where they are not cut.
    variant : {"anchor", "released"}
        The XY design, as in :class:`~orthobandit.peers.SPBAI`.

    Examples
    --------
    >>> policy = BudgetedSPBAI(budget=200, delta=0.1)
    >>> plan = policy.plan(policy.start(ArmSet([[0.0], [1.0]])))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.625, 0.375], 200)
    """

    budget: int
    delta: float = 0.05
    variant: str = "anchor"

    def __post_init__(self) -> None:
        check_whole("budget", self.budget)
        # Made once, so that wrong settings are refused at once.
        _ = self._unlimited

    @property
    def _unlimited(self) -> SPBAI:
        return SPBAI(delta=self.delta, variant=self.variant)

    def rows(self, arms: ArmSet) -> int:
        """Return the rows of SP-BAI and one more, which has the rounds of the phases before."""
        return self._unlimited.rows(arms) + 1

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return p and n of a phase, n at most what is left of the budget."""
        probabilities, rounds = self._unlimited.explore(replace(ahead, carried=ahead.carried[:-1]))
        return probabilities, min(rounds, self.budget - int(ahead.carried[-1, 0]))

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep what SP-BAI keeps; the best alone once the budget is used."""
        scores, kept, carried = self._unlimited.judge(replace(ended, carried=ended.carried[:-1]))
        spent = ended.carried[-1:] + int(ended.tally.rounds)
        if spent[0, 0] >= self.budget:
            kept = np.arange(len(kept)) == np.argmax(np.where(kept, scores, -np.inf))
        return scores, kept, np.vstack([carried, spent])

    def decide(self, state: PhasedState) -> Decision:
        """Return the survivors and the declared arm; nothing is claimed."""
        return unclaimed_decision(state, "none (authors' constants, phases are cut)")
