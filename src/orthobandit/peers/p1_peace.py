"""P1-Peace: Peace with importance-weighted scores."""

from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.types import Array, Mask
from orthobandit.peers.budget_policy import best_of, importance_scores, solved_g_design, solved_xy_design
from orthobandit.peers.peace import Peace, halved
from orthobandit.policy.phases import Ahead, Ended


@dataclass(frozen=True)
class P1Peace(Peace):
    """P1-Peace (Xiong, Camilleri, Fazel, Jain & Jamieson 2023): Peace that drops arms only virtually.

    Epochs as :class:`~orthobandit.peers.Peace`. The first draws from the G-optimal design; later ones half
    from it and half from the average of the XY designs of X₁ ⊃ X₂ ⊃ …, X₁ all arms and each next the largest
    set of best arms with half the ρ. The estimate is the average of A_p⁻¹xr over all rounds, unbiased for the
    average parameter. After T rounds the largest x_aᵀθ̂ is declared.

    **Under a shift** it is blind unless 1 is a linear function of the features
    (:mod:`~orthobandit.peers.budget_policy`); :class:`~orthobandit.peers.P1RAGE` is lifted to (1, x) and is
    not. Departs: designs are certified; designs change at the ends of epochs, where the code also renews them
    after the first round.

    Parameters
    ----------
    budget : int
        T.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = P1Peace(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(2)))
    >>> plan.probabilities.round(3).tolist(), int(plan.rounds)
    ([0.5, 0.5], 50)
    """

    carries = 1  # sums of importance-weighted scores

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the G-optimal design first, then half of it virtual elimination."""
        arms = ahead.arms
        spread = solved_g_design(arms)
        if ahead.phase == 1:
            return spread, self.rounds_of(ahead)
        designs: list[Array] = []
        left = np.ones(len(arms), dtype=np.bool_)
        while arms.subset(left).dimension:
            design, value = solved_xy_design(arms, left.tobytes())
            designs.append(design)
            left = halved(arms, ahead.carried[0], left, value)
        return (spread + np.mean(designs, axis=0)) / 2, self.rounds_of(ahead)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Add the epoch; after the last, the best score alone is left."""
        scores = importance_scores(ended.arms, ended.probabilities, ended.tally.sums)
        carried = ended.carried + scores
        is_last = self.is_last(ended)
        survivors = best_of(carried[0], ended.survivors) if is_last else ended.survivors
        return carried[0], survivors, carried
