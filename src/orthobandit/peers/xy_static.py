"""XY-static allocation: one XY design, blind to shifts."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.types import Array, Mask
from orthobandit.peers.xy_allocation import AllocationPolicy
from orthobandit.peers.xy_design import xy_design
from orthobandit.policy.base import FOREVER
from orthobandit.policy.phases import Ahead, Ended

LOOK_GROWTH = 1.35  # of the rounds between two looks of XY-static, as in the released code


@dataclass(frozen=True)
class XYStatic(AllocationPolicy):
    """XY-static allocation (Soare, Lazaric & Munos 2014): one design for all differences until one arm leads.

    The XY design min_p max ‖x_i − x_j‖²_{A_p⁻¹}, A_p = Σ p_a x_a x_aᵀ, of all pairs; least squares on all
    rounds; declare an arm that leads every other by the width. With n rounds so far the widths are

    - "paper": 2σ√(2·‖x_i − x_j‖²_{A⁻¹}·log(6n²K²/(π²δ))), A = Σ xxᵀ;
    - "released" (Fiez et al.'s public code): σ√(2·‖x_i − x_j‖²_{A⁻¹}·log(2k²K²/δ)) at look k.

    Right with probability 1 − δ for linear rewards with σ-sub-Gaussian noise. **Under a shift** θ̂ is off by
    A_p⁻¹μ_p times the mean shift, μ_p = Σ p_a x_a, whatever the number of rounds: the draws are random, but
    nothing is centred. No harm is done where all x_aᵀA_p⁻¹μ_p agree, as for one-hot features.

    Departs: the design is a certified solution and drawn from, as in the released code, where the paper
    allocates rounds greedily; looks are 1.35^k rounds apart instead of after every round.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.
    constants : {"paper", "released"}
        Width.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = XYStatic()
    >>> plan = policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 1.0]])))
    >>> plan.probabilities.round(3).tolist(), int(plan.rounds)
    ([0.5, 0.5], 2)
    """

    carries = 2  # counts and sums of all looks before

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the one design, and the rounds to the next look."""
        if ahead.last is not None:
            design = ahead.last
        else:
            design = xy_design(ahead.arms, np.ones(len(ahead.arms), dtype=np.bool_))[0]
        return design, math.ceil(min(LOOK_GROWTH ** min(ahead.phase, 140), float(FOREVER)))

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep all arms until one leads every other."""
        arms = ended.arms
        counts = ended.carried[0] + ended.tally.counts
        sums = ended.carried[1] + ended.tally.sums
        pairs = len(arms) ** 2 / self.delta
        released = self.constants == "released"
        tests = 2 * ended.phase**2 if released else 6 / math.pi**2 * float(counts.sum()) ** 2
        scores, ahead_of = self.leads(arms, counts, sums, math.log(tests * pairs))
        best = int(np.argmax(scores))
        alike = np.all(arms.features == arms.features[best], axis=1)
        survivors = alike if np.all(ahead_of[best] | alike) else ended.survivors
        return scores, survivors, np.stack([counts, sums])
