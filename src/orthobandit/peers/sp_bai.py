"""SP-BAI: the best arm under shifts, in phases as long as it needs."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.checks import check_choice, check_fraction, check_positive, check_whole
from orthobandit._foundation.linalg import diameter, whitened
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import anchor_design, contrast_design
from orthobandit.peers.xy_design import xy_design
from orthobandit.policy.author_rounds import R1, R2, rounded, successor_ridge
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.phases import (
    Ahead,
    Ended,
    PhasedPolicy,
    PhasedState,
    unclaimed_decision,
)

VARIANTS = ("anchor", "released")


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
