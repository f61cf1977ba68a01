"""One design, one regression, one verdict: exploration that is told the gap; and sample sizes of its kind."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._checks import check_fraction, check_positive, check_whole
from orthobandit._types import Array, Mask
from orthobandit.policy._design_rules import DesignRule, check_design, design_on
from orthobandit.policy._phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision
from orthobandit.policy.base import FOREVER, Decision

R1 = R2 = 1 / 3  # the author's factors of the two terms


def successor_phase_rounds(phase: int, delta: float, dimension: int, count: int) -> int:
    """Return the length of a phase of SBE in the experiments of SP-BAI's author.

    :func:`one_shot_rounds` with ε = 2^{−ℓ} for the gap and δ_ℓ = δ/(Kℓ(ℓ+1)) for δ. Departs: none.

    Examples
    --------
    >>> successor_phase_rounds(1, 0.1, dimension=10, count=11)
    12470
    """
    ell = check_whole("phase", phase)
    share = check_fraction("delta", delta) / (check_whole("count", count) * ell * (ell + 1))
    return one_shot_rounds(math.ldexp(1.0, -min(ell, 500)), share, dimension)


def one_shot_rounds(gap: float, delta: float, dimension: int) -> int:
    """Return how long SP-BAI's author explores with one design when the gap Δ is known ("G-Opt").

    ``⌈4R₁·4d/Δ²·log(4d/(Δδ)) + 2R₂·32d^{1.5}/Δ·log(d/δ)⌉``, at least 1 and at most `FOREVER`: Theorem 4 of
    Kim, Kim & Oh (2025) at the norm 2√d that DEO guarantees, without a union over the arms. Departs: none.

    Examples
    --------
    The published sample size of the small-gap instance with d = 10:

    >>> one_shot_rounds(2 - 2 * math.cos(0.2), 0.1, dimension=10)
    387106
    """
    d = check_whole("dimension", dimension)
    log_inverse = -math.log(delta)
    leading = 4 * R1 * 4 * d / gap**2 * (math.log(4 * d) - math.log(gap) + log_inverse)
    lower = 2 * R2 * 32 * d**1.5 / gap * (math.log(d) + log_inverse)
    return rounded(leading + lower)


def successor_ridge(rounds: int, delta: float) -> float:
    """Return the ridge max(1, log(n/δ)) of a phase of n rounds in SP-BAI and its author's experiments."""
    return max(1.0, math.log(rounds / delta))


def rounded(rounds: float) -> int:
    """Return a sample size as a whole number, at least 1 and at most `FOREVER`."""
    return FOREVER if rounds >= FOREVER else max(math.ceil(rounds), 1)


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
