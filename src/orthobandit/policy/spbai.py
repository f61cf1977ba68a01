"""SP-BAI: the best arm under shifts, with designs for what is left and phases as long as it needs."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orthobandit._checks import check_fraction
from orthobandit._linalg import RangeFactor
from orthobandit.arms import ArmSet
from orthobandit.design import anchor_design, contrast_design
from orthobandit.design._norms import diameter
from orthobandit.estimate import Moments, OrthogonalRegression, Plan
from orthobandit.policy._phases import Ahead, Ended, PhasedPolicy, PhasedState, phased_decision
from orthobandit.policy._successor import spbai_rounds
from orthobandit.policy.base import Decision

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class SPBAI(PhasedPolicy):
    """Semiparametric best-arm identification (Kim, AISTATS 2026).

    Phase ℓ with ε = 2^{−ℓ}, survivors A and δ_ℓ = δ/(|A|²ℓ(ℓ+1)): draw i.i.d. from p = ½(½·anchor + ½·XY
    design of the survivors' differences to the anchor) + ½·DEO of all arms for n = ⌈R₁·V/ε²·log(V/(εδ_ℓ)) +
    R₂·32d√V/ε·log(d/δ_ℓ)⌉ rounds, R₁ = R₂ = 1/3, where V is the largest ‖x_i − x_j‖²_{Σ_p⁻¹} of two
    survivors; estimate with ridge max(1, log(n/δ)) from that phase alone and keep arms whose gap to the
    best-looking survivor is below ε. One left: declare it. Arms that are out of the race are still played,
    for what they tell about the others.

    Departs: designs are certified solutions (the released code reads only the diagonal of M⁻¹ in its design
    step); d is the affine dimension r; the anchor is the survivor of lowest index; survivors without any
    difference are equally good and the first is declared.

    Parameters
    ----------
    delta : float
        Failure probability δ. Whether it is kept depends on R₁ and R₂, which the authors chose by experiment.

    Examples
    --------
    >>> policy = SPBAI(delta=0.1)
    >>> plan = policy.plan(policy.start(ArmSet([[0.0], [1.0]])))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.625, 0.375], 231)
    """

    delta: float = 0.05

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return p and n of a phase."""
        arms, survivors, phase = ahead.arms, ahead.survivors, ahead.phase
        left = np.flatnonzero(survivors)
        pairs = np.column_stack([np.full(len(left) - 1, left[0]), left[1:]])
        local = contrast_design(arms, pairs).probabilities / 4
        local[left[0]] += 0.25
        probabilities = local + anchor_design(arms).probabilities / 2
        share = self.delta / (len(left) ** 2 * phase * (phase + 1))
        variance = _largest_variance(arms, survivors, probabilities)
        epsilon = math.ldexp(1.0, -min(phase, 500))
        return probabilities, spbai_rounds(epsilon, share, arms.dimension, variance)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the arms that look less than ε worse than the best."""
        rounds = int(ended.tally.rounds)
        moments = Moments.of(ended.arms, Plan(ended.probabilities, rounds), ended.tally)
        ridge = max(1.0, math.log(rounds / self.delta))
        gaps = OrthogonalRegression(ridge=ridge).solve(ended.arms, moments).gaps
        gaps = gaps - gaps[ended.survivors].min()
        return -gaps, ended.survivors & (gaps < math.ldexp(1.0, -ended.phase)), ended.carried

    def decide(self, state: PhasedState) -> Decision:
        """Return what is known now: survivors of phase ℓ are within 2ε_ℓ of the best on its good event."""
        claimed = np.where(state.phase > 1, np.ldexp(1.0, 2 - state.phase), np.inf)
        return phased_decision(state, claimed, 1 - self.delta, "authors' constants")


def _largest_variance(arms: ArmSet, survivors: Mask, probabilities: Array) -> float:
    """Return max ‖x_i − x_j‖²_{Σ_p⁻¹} over pairs of survivors."""
    centred = arms.positions - probabilities @ arms.positions
    factor = RangeFactor.of((centred * probabilities[:, np.newaxis]).T @ centred)
    return diameter(factor.whiten(centred[survivors])) ** 2
