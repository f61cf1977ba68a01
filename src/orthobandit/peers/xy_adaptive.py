"""XY-adaptive allocation: the XY design of the survivors, blind to shifts."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.affine import affine_frame
from orthobandit._foundation.checks import check_fraction
from orthobandit._foundation.linalg import RangeFactor
from orthobandit._foundation.types import Array, Mask
from orthobandit.peers.xy_allocation import AllocationPolicy
from orthobandit.peers.xy_design import xy_design
from orthobandit.policy.base import FOREVER
from orthobandit.policy.phases import Ahead, Ended


@dataclass(frozen=True)
class XYAdaptive(AllocationPolicy):
    """XY-adaptive allocation (Soare, Lazaric & Munos 2014): XY designs of the survivors, in phases.

    Phase j: the XY design of the survivors' differences over all arms, with value ρ_j; it lasts until
    ρ_j/n_j ≤ α·ρ_{j−1}/n_{j−1}, from ρ₀ = 1 and n₀ = d(d+1) + 1; least squares on that phase; drop arms that
    another survivor leads by the width. With K the number of arms the widths are

    - "paper": 2σ√(2·‖x_i − x_j‖²_{A⁻¹}·log(6n_j²K²/(π²δ))), A = Σ xxᵀ of the phase;
    - "released" (Fiez et al.'s public code): σ√(2·‖x_i − x_j‖²_{A⁻¹}·log(π²j²K²/(3δ))).

    Right with probability 1 − δ for linear rewards with σ-sub-Gaussian noise. **Under a shift** every phase
    is off by A_p⁻¹μ_p times its mean shift, μ_p = Σ p_a x_a: the draws are random, but nothing is centred.

    Departs: designs are certified solutions and drawn from, where paper and released code allocate greedily;
    ρ is the value of the normalised design, as in the paper's analysis. (The released code divides by n the
    value of the unnormalised one, which makes phases grow by √(1/α) instead of 1/α.)

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.
    constants : {"paper", "released"}
        Width.
    alpha : float
        α; the paper has 0.1.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = XYAdaptive()
    >>> plan = policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 1.0]])))
    >>> plan.probabilities.round(3).tolist(), round(int(plan.rounds), -1)
    ([0.5, 0.5], 280)
    """

    alpha: float = 0.1

    carries = 1  # ρ/n of the phase before, in every entry

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction("alpha", self.alpha)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the XY design of the survivors and how long it takes to be 1/α times as precise."""
        design, value = xy_design(ahead.arms, ahead.survivors)
        d = affine_frame(ahead.arms.features, through_zero=True).dimension
        before = float(ahead.carried[0, 0]) if ahead.phase > 1 else 1 / (d * (d + 1) + 1)
        rounds = value / (self.alpha * before)
        return design, FOREVER if rounds >= FOREVER else math.ceil(rounds)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the arms that no survivor leads by the width."""
        arms = ended.arms
        tally = ended.tally
        n = int(tally.rounds)
        pairs = len(arms) ** 2 / self.delta
        released = self.constants == "released"
        tests = math.pi**2 * ended.phase**2 / 3 if released else 6 / math.pi**2 * float(n) ** 2
        counts = np.asarray(tally.counts, dtype=np.float64)
        scores, ahead_of = self.leads(arms, counts, tally.sums, math.log(tests * pairs))
        beaten = np.any(ahead_of[ended.survivors], axis=0)
        # The plan's own design: what the draws made of it differs by chance.
        factor = RangeFactor.of((arms.features * ended.probabilities[:, np.newaxis]).T @ arms.features)
        left = arms.features[ended.survivors]
        value = float(np.max(factor.norm_squared(left[:, np.newaxis] - left)))
        return scores, ended.survivors & ~beaten, np.full_like(ended.carried, value / n)
