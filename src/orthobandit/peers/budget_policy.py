"""Fixed-budget peers on linear rewards: OD-LinBAI, G-BAI, Peace, P1-Peace and Adjacent-BAI.

Each plays exactly `budget` rounds and declares an arm. Designs are certified; arms are drawn from them, where
some of the papers round designs to counts and play those in random order. None of them centres: a shift
that is common to all arms enters through A_p⁻¹μ_p, μ_p = Σ p_a x_a, times its mean. That is harmless where
all x_aᵀA_p⁻¹μ_p agree, as for one-hot features, and wrong otherwise: lift the arms to (1, x), or take
:class:`~orthobandit.policy.FixedBudget` and :class:`~orthobandit.peers.P1RAGE`, which do.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.linalg import RangeFactor
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import g_optimal_design
from orthobandit.peers.xy_design import xy_design
from orthobandit.policy.base import Decision
from orthobandit.policy.phases import Ahead, Ended, PhasedPolicy, PhasedState, unclaimed_decision

TOLERANCE = 1e-3  # of comparisons of ρ, which solvers find a little above its least value


@lru_cache(maxsize=256)
def solved_xy_design(arms: ArmSet, mask: bytes) -> tuple[Array, float]:
    """Return the XY design of a set of arms and its ρ: replications and epochs ask for the same ones."""
    return xy_design(arms, np.frombuffer(mask, dtype=np.bool_))


@lru_cache(maxsize=16)
def solved_g_design(arms: ArmSet) -> Array:
    """Return the G-optimal design of all arms, solved once for all replications."""
    return g_optimal_design(arms).probabilities


def least_squares(arms: ArmSet, counts: Array, sums: Array) -> Array:
    """Return x_aᵀθ̂ (K,) by least squares on rounds counted by arm; −inf where they do not tell."""
    features = arms.features
    factor = RangeFactor.of((features * counts[:, np.newaxis]).T @ features)
    white = factor.whiten(features)
    is_known = np.asarray(np.isfinite(white).all(axis=1))
    white = np.where(is_known[:, np.newaxis], white, 0.0)
    return np.asarray(np.where(is_known, white @ (white.T @ sums), -np.inf))


def importance_scores(arms: ArmSet, design: Array, sums: Array) -> Array:
    """Return x_aᵀA_p⁻¹Σ xr (K,) of rounds drawn from a design p (K,): n times an unbiased estimate."""
    features = arms.features
    white = RangeFactor.of((features * design[:, np.newaxis]).T @ features).whiten(features)
    return np.asarray(white @ (white.T @ sums))


@dataclass(frozen=True)
class BudgetPolicy(PhasedPolicy):
    """What these policies share: a budget, split evenly into phases."""

    budget: int

    def __post_init__(self) -> None:
        check_whole("budget", self.budget)

    def phase_count(self, arms: ArmSet) -> int:  # noqa: ARG002
        """Return the number of phases."""
        return 1

    def phase_ends(self, arms: ArmSet) -> Whole:
        """Return the rounds after which phases end; the last is the budget."""
        count = min(max(self.phase_count(arms), 1), self.budget)
        return np.asarray(self.budget * np.arange(1, count + 1) // count, dtype=np.int64)

    def rounds_of(self, ahead: Ahead) -> int:
        """Return the rounds of a phase."""
        ends = self.phase_ends(ahead.arms)
        before = int(ends[ahead.phase - 2]) if ahead.phase > 1 else 0
        return int(ends[min(ahead.phase, len(ends)) - 1]) - before

    def is_last(self, ended: Ended) -> bool:
        """Tell whether the budget is used."""
        return ended.phase >= len(self.phase_ends(ended.arms))

    def decide(self, state: PhasedState) -> Decision:
        """Return the leader, and the declared arm once the budget is used; nothing is claimed."""
        return unclaimed_decision(state, "none (fixed budget; assumes that the baseline stands still)")


def best_of(scores: Array, among: Mask, keep: int = 1) -> Mask:
    """Return a mask (K,) of the `keep` highest scores among some arms, the first ones on ties."""
    order = np.argsort(-np.where(among, scores, -np.inf), kind="stable")
    out = np.zeros(len(scores), dtype=np.bool_)
    out[order[: min(keep, int(among.sum()))]] = True
    return out
