"""RAGE: linear rewards in phases with XY designs, blind to shifts."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.checks import check_choice, check_fraction, check_positive
from orthobandit._foundation.linalg import RangeFactor
from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.peers.xy_design import linear_scores, xy_design
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision

# How many tests the logarithm counts for each pair of arms.
CONSTANTS = {"proof": 1, "released": 2}
ROUNDING = 10  # the released code's factor of its rounding to whole counts
SLACK = 1 + 1 / ROUNDING


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
