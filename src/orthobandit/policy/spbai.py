"""SP-BAI: the best arm under shifts, in phases as long as it needs; and OneShot, which is told the gap."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.checks import check_choice, check_fraction, check_positive, check_whole
from orthobandit._foundation.linalg import diameter, whitened
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import anchor_design, contrast_design
from orthobandit.policy._phases import (
    Ahead,
    DesignRule,
    Ended,
    PhasedPolicy,
    PhasedState,
    check_design,
    design_on,
    unclaimed_decision,
)
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.phased import xy_design

R1 = R2 = 1 / 3  # the author's factors of the two terms, chosen by experiment; no proof covers them
VARIANTS = ("anchor", "released")


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
    # No phase that could ever be played has a smaller ε, and its square stays above 0.
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


def spbai_rounds(epsilon: float, share: float, dimension: int, variance: float) -> int:
    """Return ⌈R₁·V/ε²·log(V/(εδ_ℓ)) + R₂·32d√V/ε·log(d/δ_ℓ)⌉, at least 1 and at most `FOREVER`.

    Parameters
    ----------
    epsilon : float
        ε_ℓ.
    share : float
        δ_ℓ.
    dimension : int
        d, or the affine dimension of the arms.
    variance : float
        V, the largest ‖x_i − x_j‖²_{Σ⁻¹} of two survivors.
    """
    d = check_whole("dimension", dimension)
    V = check_positive("variance", variance)
    leading = R1 * V / epsilon**2 * (math.log(V) - math.log(epsilon) - math.log(share))
    lower = R2 * 32 * d * math.sqrt(V) / epsilon * (math.log(d) - math.log(share))
    return rounded(leading + lower)


@dataclass(frozen=True)
class SPBAI(PhasedPolicy):
    """Semiparametric best-arm identification (Kim, AISTATS 2026).

    Phase ℓ with ε = 2^{−ℓ}, survivors A and δ_ℓ = δ/(|A|²ℓ(ℓ+1)): draw i.i.d. from p = ½(½·anchor + ½·XY
    design) + ½·DEO of all arms for n = ⌈R₁·V/ε²·log(V/(εδ_ℓ)) + R₂·32d√V/ε·log(d/δ_ℓ)⌉ rounds,
    R₁ = R₂ = 1/3, where V is the largest ‖x_i − x_j‖²_{Σ_p⁻¹} of two survivors; estimate with ridge
    max(1, log(n/δ)) from that phase alone and keep arms whose gap to the best-looking survivor is below ε.
    One left: declare it. Arms that are out of the race are still played, for what they tell about the
    others.

    Two readings of the XY design are offered by name. "anchor": p on all arms that minimises the largest
    ‖x_i − x_a‖²_{Σ_p⁻¹} of the survivors' differences to the anchor a, the survivor of lowest index.
    "released", after the author's public code: q on the other survivors that minimises the largest
    ‖x_i − x_j‖² of *all pairs* of survivors in the inverse of Σ q_i (x_i − x_a)(x_i − x_a)ᵀ; the anchor is
    the arm that looked best in the last phase. Which of the two the published text means could not be
    established here.

    Departs: designs are certified solutions (the released code reads only the diagonal of M⁻¹ in its design
    steps, see docs/errata.md); d is the affine dimension r; the first anchor of "released" is the first arm,
    where the code draws it; survivors without any difference are equally good and the first is declared.

    Parameters
    ----------
    delta : float
        Failure probability δ that is aimed at. Whether it is kept depends on R₁ and R₂, which the author
        chose by experiment, so that ``decide().certainty`` is 0.
    variant : {"anchor", "released"}
        The XY design.
    longest : int, optional
        A phase that would last as long or longer is cut to this many rounds, and the survivor that then
        looks best is declared, as in the author's runs on random arms (5,000,000; there among all arms).
        Nothing is claimed then. By default no phase is cut.

    Examples
    --------
    >>> policy = SPBAI(delta=0.1)
    >>> plan = policy.plan(policy.start(ArmSet([[0.0], [1.0]])))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.625, 0.375], 231)
    """

    delta: float = 0.05
    variant: str = "anchor"
    longest: int | None = None

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_choice("variant", self.variant, VARIANTS)
        if self.longest is not None:
            check_whole("longest", self.longest)

    def rows(self, arms: ArmSet) -> int:  # noqa: ARG002
        """Return 1 where the leader of the last phase is carried on, as a mark (1, K), to be the anchor."""
        return int(self.variant == "released")

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return p and n of a phase."""
        arms = ahead.arms
        survivors = ahead.survivors
        phase = ahead.phase
        left = np.flatnonzero(survivors)
        # ½ for the DEO of all arms; of the other half, one for the anchor and one for the XY design.
        local = self._local(ahead, left) / 4
        local[_anchor(ahead)] += 0.25
        probabilities = local + anchor_design(arms).probabilities / 2
        share = self.delta / (len(left) ** 2 * phase * (phase + 1))
        variance = _largest_variance(arms, survivors, probabilities)
        epsilon = math.ldexp(1.0, -min(phase, 500))
        rounds = spbai_rounds(epsilon, share, arms.dimension, variance)
        return probabilities, min(rounds, self._longest)

    def _local(self, ahead: Ahead, left: Whole) -> Array:
        """Return the XY design (K,) of a phase with survivors `left`, before the anchor gets its half."""
        if self.variant == "anchor":
            pairs = np.column_stack([np.full(len(left) - 1, left[0]), left[1:]])
            return np.array(contrast_design(ahead.arms, pairs).probabilities)
        features = ahead.arms.features
        # Seen from the anchor, which is then the origin, the design is RAGE's of the survivors.
        seen = ArmSet(features[left] - features[_anchor(ahead)])
        local = np.zeros(len(features))
        local[left] = xy_design(seen, np.ones(len(left), dtype=np.bool_))[0]
        return local

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the arms that look less than ε worse than the best; the best alone if the phase was cut."""
        rounds = int(ended.tally.rounds)
        gaps = ended.gaps(successor_ridge(rounds, self.delta))
        gaps = gaps - gaps[ended.survivors].min()
        leads = np.arange(len(gaps)) == np.argmin(np.where(ended.survivors, gaps, np.inf))
        kept = ended.survivors & (gaps < math.ldexp(1.0, -ended.phase))
        carried = leads[np.newaxis].astype(np.float64) if len(ended.carried) else ended.carried
        return -gaps, leads if rounds >= self._longest else kept, carried

    def decide(self, state: PhasedState) -> Decision:
        """Return the survivors and the declared arm; nothing is claimed, since R₁ and R₂ are not proven."""
        why = "authors' constants" if self.longest is None else "phases are cut"
        return unclaimed_decision(state, f"none ({why})")

    @property
    def _longest(self) -> int:
        return FOREVER if self.longest is None else self.longest


def _anchor(ahead: Ahead) -> int:
    """Return the leader of the last phase where it is carried on, the first survivor otherwise."""
    return int(np.argmax(ahead.carried[0] if ahead.carried.any() else ahead.survivors))


def _largest_variance(arms: ArmSet, survivors: Mask, probabilities: Array) -> float:
    """Return max ‖x_i − x_j‖²_{Σ_p⁻¹} over pairs of survivors."""
    white, _ = whitened(arms.positions, probabilities)
    return diameter(white[survivors]) ** 2
