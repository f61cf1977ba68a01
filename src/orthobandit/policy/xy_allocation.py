"""XY-static and XY-adaptive allocation: XY designs in phases, blind to shifts."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.affine import affine_frame
from orthobandit._foundation.checks import check_choice, check_fraction, check_positive
from orthobandit._foundation.linalg import RangeFactor
from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.policy._phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.phased import xy_design

CONSTANTS = ("paper", "released")
LOOK_GROWTH = 1.35  # of the rounds between two looks of XY-static, as in the released code


@dataclass(frozen=True)
class AllocationPolicy(PhasedPolicy):
    """What both allocations share: widths, least squares and decisions."""

    delta: float = 0.05
    noise: float = 1.0
    constants: str = "paper"

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_positive("noise", self.noise)
        check_choice("constants", self.constants, CONSTANTS)

    def pair_bytes(self, arms: ArmSet) -> float:
        """Return the bytes of differences, leads and widths of every pair."""
        return 8.0 * int(arms.features.shape[1]) + 24.0

    def decide(self, state: PhasedState) -> Decision:
        """Return survivors and leader; nothing is claimed."""
        return unclaimed_decision(state, "none (drawn, not rounded; assumes that the baseline stands still)")

    def leads(self, arms: ArmSet, counts: Array, sums: Array, logs: float) -> tuple[Array, Mask]:
        """Return x_aᵀθ̂ (K,) by least squares and which arm leads which by more than the width (K, K).

        The width of y = x_i − x_j is σ‖y‖_{A⁻¹}√(2·logs) or, with the paper's constants, twice that.
        """
        features = arms.features
        factor = RangeFactor.of((features * counts[:, np.newaxis]).T @ features)
        norms = factor.norm_squared(features[:, np.newaxis] - features)
        scale = 2.0 if self.constants == "paper" else 1.0
        widths = scale * self.noise * np.sqrt(2 * max(logs, 0.0) * norms)
        # What lies outside the range has an infinite width; its score is never compared.
        white = np.nan_to_num(factor.whiten(features), posinf=0.0)
        scores = white @ (white.T @ sums)
        # Equal arms have no width and do not lead each other.
        return scores, (scores[:, np.newaxis] - scores >= widths) & (widths > 0)


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
