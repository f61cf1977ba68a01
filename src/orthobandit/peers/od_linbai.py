"""OD-LinBAI: halving on linear rewards with G-optimal designs, within a budget."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.affine import affine_frame
from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.peers.budget_policy import BudgetPolicy, best_of, least_squares, solved_g_design
from orthobandit.policy.phases import Ahead, Ended


@dataclass(frozen=True)
class ODLinBAI(BudgetPolicy):
    """OD-LinBAI (Yang & Tan 2022): halve the dimension in phases with G-optimal designs.

    ⌈log₂ d⌉ phases of equal length, d the rank of the features. Phase k draws from the G-optimal design of
    the survivors, in their own span; least squares on that phase alone; keep the ⌈d/2^k⌉ best. The paper
    bounds the error by an exponential of T/(H·log₂ d), minimax optimal up to constants; no number comes with
    a given budget, so nothing is claimed.

    **Under a shift** it is blind, as :mod:`~orthobandit.peers.budget_policy` says. Departs: drawn, where the
    paper plays ⌈π_a·m⌉ rounds of each arm in random order; phases have T/⌈log₂ d⌉ rounds, where the paper
    keeps a few rounds back for that rounding.

    Parameters
    ----------
    budget : int
        T.

    Examples
    --------
    >>> policy = ODLinBAI(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(4)))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.25, 0.25, 0.25, 0.25], 50)
    """

    def phase_count(self, arms: ArmSet) -> int:
        """Return ⌈log₂ d⌉."""
        return math.ceil(math.log2(max(self.rank(arms), 2)))

    def rank(self, arms: ArmSet) -> int:
        """Return d."""
        return affine_frame(arms.features, through_zero=True).dimension

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the G-optimal design of the survivors."""
        probabilities = np.zeros(len(ahead.arms))
        probabilities[ahead.survivors] = solved_g_design(ahead.left)
        return probabilities, self.rounds_of(ahead)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the best half of the dimension, and one arm after the last phase."""
        counts = np.asarray(ended.tally.counts, dtype=np.float64)
        scores = least_squares(ended.arms, counts, ended.tally.sums)
        keep = 1 if self.is_last(ended) else math.ceil(self.rank(ended.arms) / 2**ended.phase)
        return scores, best_of(scores, ended.survivors, keep), ended.carried
