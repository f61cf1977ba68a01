"""G-BAI: the best arm on linear rewards from one G-optimal design, within a budget."""

from dataclasses import dataclass

from orthobandit._foundation.types import Array, Mask
from orthobandit.peers.budget_policy import BudgetPolicy, best_of, importance_scores, solved_g_design
from orthobandit.policy.phases import Ahead, Ended


@dataclass(frozen=True)
class GBAI(BudgetPolicy):
    """G-BAI (Xiong, Camilleri, Fazel, Jain & Jamieson 2023): the G-optimal design for the whole budget.

    Draws T rounds from the G-optimal design p of all arms and declares the largest x_aᵀA_p⁻¹Σ xr. The
    estimate is unbiased for the *average* parameter, also of one that changes over time: minimax optimal for
    such worlds. A shift common to all arms is such a change only if 1 is a linear function of the features;
    otherwise, **under a shift**, it is blind. Departs: none.

    Parameters
    ----------
    budget : int
        T.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = GBAI(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(4)))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.25, 0.25, 0.25, 0.25], 100)
    """

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the G-optimal design of all arms."""
        return solved_g_design(ahead.arms), self.rounds_of(ahead)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the best arm."""
        scores = importance_scores(ended.arms, ended.probabilities, ended.tally.sums)
        return scores, best_of(scores, ended.survivors), ended.carried
