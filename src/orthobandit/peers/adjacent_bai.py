"""Adjacent-BAI: only pairs that can be best and second best count, within a budget."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from orthobandit._foundation.linalg import RangeFactor
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import contrast_design
from orthobandit.peers.budget_policy import BudgetPolicy, best_of, least_squares
from orthobandit.policy.phases import Ahead, Ended, pairs_of

MOST_PAIRS = 20_000  # beyond which finding adjacent arms would take minutes


def adjacent_pairs(arms: ArmSet) -> Whole:
    """Return the pairs (m, 2) of arms that can be best and second best: edges of the arms' convex hull.

    x_i and x_j are adjacent if some θ has x_iᵀθ = x_jᵀθ ≥ x_kᵀθ for all k, strictly for arms that do not lie
    between the two: then a small change of θ makes either the best. One linear program a pair.

    Examples
    --------
    The diagonals of a square are not edges, and its centre is never best:

    >>> adjacent_pairs(ArmSet([[0, 0], [1, 0], [1, 1], [0, 1], [0.5, 0.5]])).tolist()
    [[0, 1], [0, 3], [1, 2], [2, 3]]
    """
    features = arms.positions
    candidates = pairs_of(np.ones(len(arms), dtype=np.bool_))
    if features.shape[1] == 0:
        return candidates[:0]
    if len(candidates) > MOST_PAIRS:
        # All pairs contain the adjacent ones: the design is then only less sharp.
        return candidates
    unit = max(float(np.max(np.abs(features), initial=0.0)), 1e-300)
    points = features / unit
    kept = [pair for pair in candidates if _is_adjacent(points, int(pair[0]), int(pair[1]))]
    return np.array(kept, dtype=np.int64).reshape(-1, 2)


def _is_adjacent(points: Array, i: int, j: int) -> bool:
    """Tell whether some θ in the unit box puts i and j level and all arms off their segment below both."""
    if np.array_equal(points[i], points[j]):
        return False
    edge = points[j] - points[i]
    along = (points - points[i]) @ edge / (edge @ edge)
    # Arms on the segment are level with its ends for every such θ, and never better than both.
    nearest = points[i] + np.clip(along, 0.0, 1.0)[:, np.newaxis] * edge
    others = points[np.max(np.abs(points - nearest), axis=1) > 1e-9]
    if not len(others):
        return True
    r = points.shape[1]
    # Maximise the margin s with (x_k − x_i)ᵀθ + s ≤ 0 and (x_i − x_j)ᵀθ = 0.
    found = scipy.optimize.linprog(
        np.append(np.zeros(r), -1.0),
        A_ub=np.column_stack([others - points[i], np.ones(len(others))]),
        b_ub=np.zeros(len(others)),
        A_eq=np.append(points[i] - points[j], 0.0)[np.newaxis],
        b_eq=[0.0],
        bounds=[(-1.0, 1.0)] * r + [(0.0, 1.0)],
    )
    return bool(found.status == 0 and -found.fun > 1e-9)


@dataclass(frozen=True)
class AdjacentBAI(BudgetPolicy):
    """Adjacent-BAI (Maynard-Zhang, Xiong, Jamieson & Fazel, COLT 2026), from its abstract and a summary.

    One design for the whole budget: min_p max ‖x − x'‖²_{A_p⁻¹} over *adjacent* pairs of arms alone, those
    that can be best and second best for some θ (:func:`~orthobandit.peers.adjacent_bai.adjacent_pairs`);
    least squares; declare the largest x_aᵀθ̂. Fewer pairs than all make the design sharper. The paper proves
    an error that matches a lower bound for every arm set, when the parameter changes over time in any way.

    **Under a shift** common to all arms it is blind unless 1 is a linear function of the features, as
    :mod:`~orthobandit.peers.budget_policy` says. Departs: the paper itself could not be had here, and the
    definition of adjacency is ours; arms are drawn from the design, where the paper rounds it to counts and
    plays those in random order.

    Parameters
    ----------
    budget : int
        T.

    Examples
    --------
    >>> policy = AdjacentBAI(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(2)))
    >>> plan.probabilities.round(3).tolist(), int(plan.rounds)
    ([0.5, 0.5], 100)
    """

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the design of the adjacent pairs."""
        return adjacent_design(ahead.arms)[0], self.rounds_of(ahead)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the best arm."""
        counts = np.asarray(ended.tally.counts, dtype=np.float64)
        scores = least_squares(ended.arms, counts, ended.tally.sums)
        return scores, best_of(scores, ended.survivors), ended.carried


@lru_cache(maxsize=16)
def adjacent_design(arms: ArmSet) -> tuple[Array, float]:
    """Return the design (K,) of all adjacent pairs and the largest ‖x − x'‖²_{A_p⁻¹} of them.

    As for :func:`~orthobandit.peers.xy_design.xy_design`, arms and their mirror images make centred designs
    uncentred.
    """
    pairs = adjacent_pairs(arms)
    mirrored = ArmSet(np.vstack([arms.features, -arms.features]))
    folded = contrast_design(mirrored, pairs).probabilities.reshape(2, -1).sum(axis=0)
    factor = RangeFactor.of((arms.features * folded[:, np.newaxis]).T @ arms.features)
    apart = arms.features[pairs[:, 0]] - arms.features[pairs[:, 1]]
    return folded, float(np.max(factor.norm_squared(apart)))
