"""Phased elimination with the G-optimal design: the textbook's linear bandit, blind to shifts."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._affine import affine_frame
from orthobandit._checks import check_fraction, check_positive
from orthobandit._linalg import solve_ridge
from orthobandit._types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.design import g_optimal_design
from orthobandit.estimate import Tally
from orthobandit.policy._phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision
from orthobandit.policy.base import FOREVER, Decision

RIDGE = 1.0  # keeps the regression solvable when the draws have left out an arm of the design


@dataclass(frozen=True)
class PhasedElimination(PhasedPolicy):
    """Phased elimination with G-optimal exploration (Lattimore & Szepesvári 2020, Algorithm 12).

    Phase ℓ with ε = 2^{−ℓ}: the G-optimal design π of the survivors for ⌈2dσ²/ε²·log(Kℓ(ℓ+1)/δ)⌉ rounds, d
    the rank of their features; least squares from that phase; drop arms that look more than 2ε worse than
    the best. Regret O(√(dT·log(KT))) for linear rewards without a shift; no centring protects it from one.

    Departs: arms are drawn i.i.d. from π instead of ⌈π_a·n⌉ times each, as all plans here are, so the
    textbook's confidence statement holds approximately only and nothing is claimed; a ridge of 1 keeps
    the regression solvable.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.

    Examples
    --------
    >>> policy = PhasedElimination(delta=0.1)
    >>> plan = policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 1.0]])))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.5, 0.5], 60)
    """

    delta: float = 0.05
    noise: float = 1.0

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_positive("noise", self.noise)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the G-optimal design of the survivors and its rounds."""
        arms, left, phase = ahead.arms, ahead.left, ahead.phase
        probabilities = np.zeros(len(arms))
        probabilities[ahead.survivors] = g_optimal_design(left).probabilities
        d = max(affine_frame(left.features, through_zero=True).dimension, 1)
        logs = math.log(len(arms) * phase * (phase + 1) / self.delta)
        rounds = 2 * d * self.noise**2 * logs * math.ldexp(1.0, 2 * min(phase, 500))
        return probabilities, FOREVER if rounds >= FOREVER else math.ceil(rounds)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the arms that look at most 2ε worse than the best."""
        scores = linear_scores(ended.arms, ended.tally)
        best = scores[ended.survivors].max()
        kept = ended.survivors & (best - scores <= math.ldexp(2.0, -ended.phase))
        return scores, kept, ended.carried

    def decide(self, state: PhasedState) -> Decision:
        """Return survivors and leader; nothing is claimed."""
        return unclaimed_decision(state, "none (drawn, not rounded)")


def linear_scores(arms: ArmSet, tally: Tally) -> Array:
    """Return x_aᵀθ̂ (K,) of the uncentred ridge regression on one tally (K,)."""
    gram = (arms.features * tally.counts[:, np.newaxis]).T @ arms.features
    return np.asarray(arms.features @ solve_ridge(gram, arms.features.T @ tally.sums, RIDGE))
