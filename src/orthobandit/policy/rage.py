"""RAGE: best-arm identification for linear rewards with XY designs, blind to shifts."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orthobandit._checks import check_fraction, check_positive
from orthobandit._linalg import RangeFactor
from orthobandit.arms import ArmSet
from orthobandit.design import contrast_design
from orthobandit.design._norms import diameter
from orthobandit.policy._phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.phased import linear_scores

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


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
    first, second = np.triu_indices(len(left), 1)
    pairs = np.column_stack([left[first], left[second]])
    mirrored = ArmSet(np.vstack([arms.features, -arms.features]))
    folded = contrast_design(mirrored, pairs).probabilities.reshape(2, -1).sum(axis=0)
    factor = RangeFactor.of((arms.features * folded[:, np.newaxis]).T @ arms.features)
    return folded, diameter(factor.whiten(arms.features[left] - arms.features[left[0]])) ** 2


@dataclass(frozen=True)
class RAGE(PhasedPolicy):
    """Randomised adaptive gap elimination (Fiez, Jain, Jamieson & Ratliff 2019, Algorithm 1).

    Phase t: XY design of the survivors' differences over all arms, with value ρ, for
    ⌈8·(2^{t+1})²·σ²·ρ·log(K²t²/δ)⌉ rounds; least squares from that phase; drop z if some survivor looks at
    least 2^{−(t+2)} better. One left: declare it. Sample size within logarithms of the lower bound for
    linear rewards without a shift; no centring protects it from one. Arms out of the race are still played
    for what they tell.

    Departs: arms are drawn i.i.d. from the design instead of rounded to whole counts (no factor 1 + ε, no
    least number of rounds), so the paper's confidence statement holds approximately only and nothing is
    claimed; a ridge of 1 keeps the regression solvable.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.

    Examples
    --------
    >>> policy = RAGE(delta=0.1)
    >>> plan = policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 1.0]])))
    >>> plan.probabilities.round(3).tolist(), round(int(plan.rounds), -1)
    ([0.5, 0.5], 1890)
    """

    delta: float = 0.05
    noise: float = 1.0

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_positive("noise", self.noise)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the XY design of the survivors and its rounds."""
        arms, survivors, phase = ahead.arms, ahead.survivors, ahead.phase
        probabilities, value = xy_design(arms, survivors)
        logs = math.log(len(arms) ** 2 * phase**2 / self.delta)
        rounds = 8 * math.ldexp(1.0, 2 * (min(phase, 500) + 1)) * self.noise**2 * value * logs
        return probabilities, FOREVER if rounds >= FOREVER else math.ceil(rounds)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the arms that look less than 2^{−(t+2)} worse than the best."""
        scores = linear_scores(ended.arms, ended.tally)
        best = scores[ended.survivors].max()
        kept = ended.survivors & (best - scores < math.ldexp(1.0, -(ended.phase + 2)))
        return scores, kept, ended.carried

    def decide(self, state: PhasedState) -> Decision:
        """Return survivors and leader; nothing is claimed."""
        return unclaimed_decision(state, "none (drawn, not rounded)")
