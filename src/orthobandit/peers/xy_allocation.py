"""What XY-static and XY-adaptive share: XY designs in phases, blind to shifts."""

from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.checks import check_choice, check_fraction, check_positive
from orthobandit._foundation.linalg import RangeFactor
from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.policy.base import Decision
from orthobandit.policy.phases import PhasedPolicy, PhasedState, unclaimed_decision

CONSTANTS = ("paper", "released")


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
