"""Where anytime elimination plays next: designs for the pairs of the leader that are still open."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from orthobandit._foundation.linalg import solve_ridge
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import Design, centred_design, contrast_design, contrast_weights, earning_design
from orthobandit.policy.anytime.delta import TINY

GAP = 0.01  # tolerance of designs: plans need not be optimal to the last digit
# Least cost of a round, relative to the median gap. Where an arm is played rarely, regret per decision hardly
# depends on how rarely, but the time to the decision does: this ends experiments several times sooner.
LEADER_COST = 0.3
FAINT = 1e-5  # plans that earn leave out arms below this share of the largest probability


@dataclass(frozen=True, eq=False)
class Wanted:
    """The pairs (leader, other) that are open, their importance, and the estimated gaps: all (m, ...)."""

    pairs: Whole
    weights: Array
    gaps: Array

    @classmethod
    def of(cls, leader: int, others: Whole, gaps: Array, lead: Array) -> "Wanted":
        """Weigh each pair by the rounds it takes: 1/target², the largest being 1.

        The target is the gap, but nothing finer than half the interval of the pair, and half of the most
        that any arm may lead the leader by (`lead`, m): near ties wait until the leader is surely good.
        Otherwise two arms that are nearly tied, but far from the best, would get all the rounds.
        """
        known = np.where(np.isfinite(lead), lead, 0.0)
        target = np.maximum(gaps, np.maximum((known + gaps) / 2.0, known.max() / 2.0))
        target = np.maximum(target, 1e-3 * max(float(target.max()), TINY))
        pairs = np.column_stack([np.full(len(others), leader), others])
        return cls(pairs, (target.min() / target) ** 2, gaps)

    def contrasts(self, arms: ArmSet) -> Array:
        """Return the differences (m, r), each scaled by the root of its weight."""
        first, second = arms.positions[self.pairs[:, 0]], arms.positions[self.pairs[:, 1]]
        return np.asarray((first - second) * np.sqrt(self.weights)[:, np.newaxis])


def wide_plan(arms: ArmSet, retired: Mask | None = None) -> Array:
    """Return the exact centred design (K,) of the arms that are not retired."""
    return _wide(arms, b"" if retired is None or not retired.any() else retired.tobytes())


@lru_cache(maxsize=16)
def _wide(arms: ArmSet, mask: bytes) -> Array:
    # Kept, because every replication and every batch asks for it again.
    if not mask:
        return centred_design(arms, GAP).probabilities
    p = np.zeros(len(arms))
    left = ~np.frombuffer(mask, dtype=np.bool_)
    p[left] = centred_design(arms.subset(left), GAP).probabilities
    p.flags.writeable = False
    return p


def identifying_plan(arms: ArmSet, wanted: Wanted, mixing: float, now: Array, retired: Mask) -> Array:
    """Return the distribution (K,) that settles open pairs in the fewest rounds, mixed with the wide one.

    Solves min_p max_j weight_j·‖x_leader − x_j‖²_{Σ_p⁻¹} over all arms but the retired ones, starting from
    the plan `now`.
    """
    focused = np.zeros(len(arms))
    left = np.flatnonzero(~retired)
    start = None if len(left) < len(arms) else now
    found = contrast_weights(arms.positions[left], wanted.contrasts(arms), start=start, gap=GAP)
    if found is None:
        earlier = None if start is None else Design(arms, now, "contrast", 0, 0.0)
        settings: dict[str, Any] = {"gap": GAP, "start": earlier, "support": ~retired}
        focused = contrast_design(arms, wanted.pairs, wanted.weights, **settings).probabilities
    else:
        focused[left] = found
    p = (1.0 - mixing) * focused + mixing * wide_plan(arms, retired)
    return np.asarray(p / p.sum())


def earning_plan(arms: ArmSet, active: Mask, wanted: Wanted, gram: Array, ridge: float) -> Array:
    """Return the distribution (K,) on the survivors that settles the open pairs at the least regret.

    Solves min_p (Σ p·cost) × max_j weight_j·‖x_leader − x_j‖²_{Σ_p⁻¹}. An arm costs its estimated gap, and
    every arm what the leader may lack: the largest expected improvement of another arm over it.
    """
    leader = wanted.pairs[:, 0]
    others = wanted.pairs[:, 1]
    difference = arms.positions[others] - arms.positions[leader]
    solved = solve_ridge(gram, difference, ridge)
    error = np.sqrt(np.einsum("ij,ij->i", solved, difference))
    costs = np.full(len(arms), least_cost(wanted.gaps, error))
    costs[others] += wanted.gaps
    costs /= costs.max()
    p = np.zeros(len(arms))
    left = np.flatnonzero(active)
    found = contrast_weights(arms.positions[left], wanted.contrasts(arms), costs=costs[left], gap=GAP)
    if found is None:
        settings: dict[str, Any] = {"gap": GAP, "support": active}
        p = earning_design(arms, wanted.pairs, wanted.weights, costs, **settings).probabilities
    else:
        p[left] = found
    p = np.where(p > FAINT * p.max(), p, 0.0)
    return np.asarray(p / p.sum())


def least_cost(gaps: Array, errors: Array) -> float:
    """Return what a round of any arm costs: the largest expected improvement of another arm on the leader.

    Parameters
    ----------
    gaps, errors : (m,) arrays
        How much better than each the leader seems, and the standard errors of that.
    """
    ratio = gaps / errors
    density = np.exp(-(ratio**2) / 2.0) / np.sqrt(2.0 * np.pi)
    lack = float(np.max(errors * density - gaps * scipy.special.ndtr(-ratio)))
    return max(lack, LEADER_COST * float(np.median(gaps)), TINY)
