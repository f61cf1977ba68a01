"""OneShot: exploration with one design that is told the gap."""

from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_positive, check_whole
from orthobandit._foundation.types import Array, Mask
from orthobandit.policy.author_rounds import one_shot_rounds, successor_ridge
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.phases import (
    Ahead,
    DesignRule,
    Ended,
    PhasedPolicy,
    PhasedState,
    check_design,
    design_on,
    unclaimed_decision,
)


@dataclass(frozen=True)
class OneShot(PhasedPolicy):
    """One-shot exploration that **knows the gap**: "G-Opt" in the experiments of SP-BAI (Kim, AISTATS 2026).

    Draw from the DEO of all arms for T = ⌈4R₁·4d/Δ²·log(4d/(Δδ)) + 2R₂·32d^{1.5}/Δ·log(d/δ)⌉ rounds,
    R₁ = R₂ = 1/3, where Δ is the distance of the second-best arm to the best; estimate by orthogonalised
    regression with ridge max(1, log(T/δ)) and declare the arm that looks best. No shift biases it. Nobody
    who runs an experiment knows Δ, so this is a yardstick and not a rival; the published 387,106 samples on
    the small-gap instance are this T.

    Nothing is claimed: the size has no union over the arms, R₁ and R₂ were chosen by experiment (its author
    reports 29 % wrong on random arms at δ = 0.1), and with a gap that is too large nothing holds. Departs:
    d is the affine dimension r.

    Parameters
    ----------
    gap : float
        Δ > 0, of the instance that is played.
    delta : float
        δ.
    design : {"anchor", "centred", "contrast"} or callable
        As in :class:`~orthobandit.policy.sbe.SBE`; "anchor" is DEO.
    longest : int, optional
        Explore for no more rounds than this, as the author's runs on random arms do (5,000,000).

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = OneShot(gap=0.5, delta=0.1)
    >>> plan = policy.plan(policy.start(ArmSet([[0.0], [1.0]])))
    >>> plan.probabilities.tolist(), int(plan.rounds)
    ([0.5, 0.5], 192)
    """

    gap: float
    delta: float = 0.05
    design: str | DesignRule = "anchor"
    longest: int | None = None

    def __post_init__(self) -> None:
        check_positive("gap", self.gap)
        check_fraction("delta", self.delta)
        check_design(self.design)
        if self.longest is not None:
            check_whole("longest", self.longest)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the design of all arms and T."""
        rounds = one_shot_rounds(self.gap, self.delta, ahead.arms.dimension)
        longest = FOREVER if self.longest is None else self.longest
        return design_on(self.design, ahead.arms), min(rounds, longest)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the arm that looks best."""
        gaps = ended.gaps(successor_ridge(int(ended.tally.rounds), self.delta))
        return -gaps, np.arange(len(gaps)) == np.argmin(gaps), ended.carried

    def decide(self, state: PhasedState) -> Decision:
        """Return the declared arm, if the exploration is over; nothing is claimed."""
        return unclaimed_decision(state, "none (is told the gap)")
