"""Phased elimination: linear rewards in phases, blind to shifts."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.affine import affine_frame
from orthobandit._foundation.checks import check_fraction, check_positive
from orthobandit._foundation.types import Array, Mask
from orthobandit.design import g_optimal_design
from orthobandit.peers.xy_design import linear_scores
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision


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
    >>> from orthobandit import ArmSet
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
        arms = ahead.arms
        left = ahead.left
        phase = ahead.phase
        probabilities = np.zeros(len(arms))
        probabilities[ahead.survivors] = g_optimal_design(left).probabilities
        d = max(affine_frame(left.features, through_zero=True).dimension, 1)
        logs = math.log(len(arms) * phase * (phase + 1) / self.delta)
        # 2^{2ℓ} would overflow a double beyond ℓ = 511; such a phase is for ever anyway.
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
