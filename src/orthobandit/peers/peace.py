"""Peace: the value of the XY design is halved from phase to phase, within a budget."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.peers.budget_policy import TOLERANCE, BudgetPolicy, best_of, least_squares, solved_xy_design
from orthobandit.policy.phases import Ahead, Ended


def value_of(arms: ArmSet, survivors: Mask) -> float:
    """Return ρ of a set of arms, 0 when they do not differ."""
    if not arms.subset(survivors).dimension:
        return 0.0
    return solved_xy_design(arms, survivors.tobytes())[1]


def halved(arms: ArmSet, scores: Array, survivors: Mask, value: float) -> Mask:
    """Return the largest set of best-scored survivors whose ρ is at most half of `value`; one at least."""
    most = int(survivors.sum())
    least = 1
    # Sets of the best m grow with m, and so does ρ: bisection.
    while most - least > 1:
        middle = (least + most) // 2
        if value_of(arms, best_of(scores, survivors, middle)) > value / 2 * (1 + TOLERANCE):
            most = middle
        else:
            least = middle
    return best_of(scores, survivors, least)


@dataclass(frozen=True)
class Peace(BudgetPolicy):
    """Peace with a fixed budget (Katz-Samuels, Jain, Karnin & Jamieson 2020), after the code of Xiong et al.

    ⌈log₂ ρ⌉ epochs of equal length, ρ the value of the XY design of all arms. Each draws from the XY design
    of the survivors over all arms; least squares on that epoch; keeps the largest set of best arms whose ρ is
    at most half of the last. After the last epoch the best survivor is declared.

    **Under a shift** it is blind, as :mod:`~orthobandit.peers.budget_policy` says. Departs: drawn, where the
    code rounds the design to counts and plays those in random order; designs are certified, where the code
    takes a thousand Frank–Wolfe steps; ρ is that of pairs, as in the code, where the paper has a Gaussian
    width.

    Parameters
    ----------
    budget : int
        T.

    Examples
    --------
    >>> policy = Peace(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(2)))
    >>> plan.probabilities.round(3).tolist(), int(plan.rounds)
    ([0.5, 0.5], 50)
    """

    def phase_count(self, arms: ArmSet) -> int:
        """Return ⌈log₂ ρ⌉."""
        value = value_of(arms, np.ones(len(arms), dtype=np.bool_))
        return math.ceil(math.log2(max(value, 2.0)) - TOLERANCE)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the XY design of the survivors."""
        return solved_xy_design(ahead.arms, ahead.survivors.tobytes())[0], self.rounds_of(ahead)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the largest set of half the value, and one arm after the last epoch."""
        counts = np.asarray(ended.tally.counts, dtype=np.float64)
        scores = least_squares(ended.arms, counts, ended.tally.sums)
        if self.is_last(ended):
            return scores, best_of(scores, ended.survivors), ended.carried
        value = value_of(ended.arms, ended.survivors)
        return scores, halved(ended.arms, scores, ended.survivors, value), ended.carried
