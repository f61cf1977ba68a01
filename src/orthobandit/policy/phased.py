"""Phased elimination and RAGE: linear rewards in phases, blind to shifts."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.affine import affine_frame
from orthobandit._foundation.checks import check_choice, check_fraction, check_positive
from orthobandit._foundation.linalg import RangeFactor, diameter, solve_ridge
from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.design import contrast_design, g_optimal_design
from orthobandit.estimate import Tally
from orthobandit.policy._phases import Ahead, Ended, PhasedPolicy, PhasedState, pairs_of, unclaimed_decision
from orthobandit.policy.base import FOREVER, Decision

RIDGE = 1.0  # keeps the regression solvable when the draws have left out an arm of the design
# How many tests the logarithm counts for each pair of arms.
CONSTANTS = {"proof": 1, "released": 2}
ROUNDING = 10  # the released code's factor of its rounding to whole counts
SLACK = 1 + 1 / ROUNDING


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


def linear_scores(arms: ArmSet, tally: Tally) -> Array:
    """Return x_aᵀθ̂ (K,) of the uncentred ridge regression on one tally (K,)."""
    gram = (arms.features * tally.counts[:, np.newaxis]).T @ arms.features
    return np.asarray(arms.features @ solve_ridge(gram, arms.features.T @ tally.sums, RIDGE))


def xy_design(arms: ArmSet, survivors: Mask) -> tuple[Array, float]:
    """Minimise ρ = max ‖x_i − x_j‖²_{A_p⁻¹} over pairs of survivors, A_p = Σ p_a x_a x_aᵀ without centring.

    Solved as a contrast design on the arms and their mirror images: a distribution that treats x and −x
    alike has mean zero and covariance A_p, and by convexity the best one can be taken to be of that kind;
    folding any other onto the arms only lowers the variances.

    Returns
    -------
    (K,) array, float
        The design and its ρ.
    """
    left = np.flatnonzero(survivors)
    mirrored = ArmSet(np.vstack([arms.features, -arms.features]))
    folded = contrast_design(mirrored, pairs_of(survivors)).probabilities.reshape(2, -1).sum(axis=0)
    factor = RangeFactor.of((arms.features * folded[:, np.newaxis]).T @ arms.features)
    return folded, diameter(factor.whiten(arms.features[left] - arms.features[left[0]])) ** 2


@dataclass(frozen=True)
class RAGE(PhasedPolicy):
    """Randomised adaptive gap elimination (Fiez, Jain, Jamieson & Ratliff 2019, Algorithm 1).

    Phase t: XY design of the survivors' differences over all arms, with value ρ; least squares from that
    phase; drop arms that another survivor beats clearly. One left: declare it. Sample size within logarithms
    of the lower bound for linear rewards without a shift; no centring protects it from one. Arms out of the
    race are still played for what they tell. With δ_t = δ/t², the two forms are

    - "proof", Algorithm 1: ⌈8·(2^{t+1})²·σ²·ρ·log(K²/δ_t)⌉ rounds; drop z if some survivor looks at least
      2^{−(t+2)} better.
    - "released", the authors' public code: max(⌈8·(2^{t−1})²·(1 + 1/10)·σ²·ρ·log(2K²/δ_t)⌉, 20·(arms in the
      design)) rounds, a sixteenth of the proof's; drop z if some survivor z' looks better by
      σ√(2·‖z' − z‖²_{A⁻¹}·log(2K²/δ_t)), A = Σ xxᵀ of the rounds played. The rule to compare samples with.

    Departs: arms are drawn i.i.d. from the design instead of rounded to whole counts (no factor 1 + ε and no
    least number of rounds in "proof"), so the paper's confidence statement holds approximately only and
    nothing is claimed; a ridge of 1 keeps the regression of "proof" solvable, and "released" keeps arms whose
    difference the draws do not tell; designs are certified solutions.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.
    constants : {"proof", "released"}
        Rounds of a phase and rule of elimination.

    Examples
    --------
    >>> policy = RAGE(delta=0.1)
    >>> plan = policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 1.0]])))
    >>> plan.probabilities.round(3).tolist(), round(int(plan.rounds), -1)
    ([0.5, 0.5], 1890)
    """

    delta: float = 0.05
    noise: float = 1.0
    constants: str = "proof"

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_positive("noise", self.noise)
        check_choice("constants", self.constants, CONSTANTS)

    def pair_bytes(self, arms: ArmSet) -> float:
        """Return the bytes of differences, leads and widths of every pair."""
        return 8.0 * int(arms.features.shape[1]) + 24.0

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the XY design of the survivors and its rounds."""
        arms = ahead.arms
        phase = min(ahead.phase, 500)
        probabilities, value = xy_design(arms, ahead.survivors)
        least = 1
        power = 2 * (phase + 1)
        factor = 1.0
        if self.constants == "released":
            support = int(np.count_nonzero(probabilities))
            least = 2 * ROUNDING * support
            power = 2 * (phase - 1)
            factor = SLACK
        rounds = 8 * math.ldexp(factor, power) * self.noise**2 * value * self._log(arms, phase)
        return probabilities, FOREVER if rounds >= FOREVER else max(math.ceil(rounds), least)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the arms that no survivor beats clearly."""
        if self.constants == "released":
            scores, widths = self._measured(ended)
            pairs = ended.survivors[:, np.newaxis] & ended.survivors
            # Entry (i, j): j beats i. Equal arms have no width and do not beat each other.
            beaten = pairs & (scores - scores[:, np.newaxis] >= widths) & (widths > 0)
            return scores, ended.survivors & ~beaten.any(axis=1), ended.carried
        scores = linear_scores(ended.arms, ended.tally)
        best = scores[ended.survivors].max()
        kept = ended.survivors & (best - scores < math.ldexp(1.0, -(ended.phase + 2)))
        return scores, kept, ended.carried

    def _measured(self, ended: Ended) -> tuple[Array, Array]:
        """Return x_aᵀθ̂ (K,) by least squares on a phase, and the widths (K, K) of all differences."""
        features = ended.arms.features
        tally = ended.tally
        factor = RangeFactor.of((features * tally.counts[:, np.newaxis]).T @ features)
        differences = features[:, np.newaxis] - features
        widths = np.sqrt(2 * self._log(ended.arms, ended.phase) * factor.norm_squared(differences))
        # What lies outside the range has an infinite width; its score is never compared.
        white = np.nan_to_num(factor.whiten(features), posinf=0.0)
        return white @ (white.T @ tally.sums), self.noise * widths

    def _log(self, arms: ArmSet, phase: int) -> float:
        """Return log(K²/δ_t), with 2K² for "released"."""
        pairs = CONSTANTS[self.constants] * len(arms) ** 2
        return math.log(pairs * phase**2 / self.delta)

    def decide(self, state: PhasedState) -> Decision:
        """Return survivors and leader; nothing is claimed."""
        return unclaimed_decision(state, "none (drawn, not rounded)")
