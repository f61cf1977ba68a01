"""Fixed-budget peers on linear rewards: OD-LinBAI, G-BAI, Peace, P1-Peace and Adjacent-BAI.

Each plays exactly `budget` rounds and declares an arm. Designs are certified; arms are drawn from them, where
some of the papers round designs to counts and play those in random order. None of them centres: a shift
that is common to all arms enters through A_p⁻¹μ_p, μ_p = Σ p_a x_a, times its mean. That is harmless where
all x_aᵀA_p⁻¹μ_p agree, as for one-hot features, and wrong otherwise: lift the arms to (1, x), or take
:class:`~orthobandit.policy.FixedBudget` and :class:`~orthobandit.policy.P1RAGE`, which do.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from orthobandit._foundation.affine import affine_frame
from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.linalg import RangeFactor
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import contrast_design, g_optimal_design
from orthobandit.policy._phases import Ahead, Ended, PhasedPolicy, PhasedState, pairs_of, unclaimed_decision
from orthobandit.policy.base import Decision
from orthobandit.policy.phased import xy_design

TOLERANCE = 1e-3  # of comparisons of ρ, which solvers find a little above its least value
MOST_PAIRS = 20_000  # beyond which finding adjacent arms would take minutes


@lru_cache(maxsize=256)
def _xy_design(arms: ArmSet, mask: bytes) -> tuple[Array, float]:
    # Kept, because replications and epochs that are left with the same arms ask for it again.
    return xy_design(arms, np.frombuffer(mask, dtype=np.bool_))


@lru_cache(maxsize=16)
def _g_design(arms: ArmSet) -> Array:
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


@dataclass(frozen=True)
class ODLinBAI(BudgetPolicy):
    """OD-LinBAI (Yang & Tan 2022): halve the dimension in phases with G-optimal designs.

    ⌈log₂ d⌉ phases of equal length, d the rank of the features. Phase k draws from the G-optimal design of
    the survivors, in their own span; least squares on that phase alone; keep the ⌈d/2^k⌉ best. The paper
    bounds the error by an exponential of T/(H·log₂ d), minimax optimal up to constants; no number comes with
    a given budget, so nothing is claimed.

    **Under a shift** it is blind, as the module's documentation says. Departs: drawn, where the paper plays
    ⌈π_a·m⌉ rounds of each arm in random order; phases have T/⌈log₂ d⌉ rounds, where the paper keeps a few
    rounds back for that rounding.

    Parameters
    ----------
    budget : int
        T.

    Examples
    --------
    >>> policy = ODLinBAI(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(4)))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.25, 0.25, 0.25, 0.25], 50)
    """

    def phase_count(self, arms: ArmSet) -> int:
        """Return ⌈log₂ d⌉."""
        return math.ceil(math.log2(max(self.rank(arms), 2)))

    def rank(self, arms: ArmSet) -> int:
        """Return d."""
        return affine_frame(arms.features, through_zero=True).dimension

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the G-optimal design of the survivors."""
        probabilities = np.zeros(len(ahead.arms))
        probabilities[ahead.survivors] = _g_design(ahead.left)
        return probabilities, self.rounds_of(ahead)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the best half of the dimension, and one arm after the last phase."""
        counts = np.asarray(ended.tally.counts, dtype=np.float64)
        scores = least_squares(ended.arms, counts, ended.tally.sums)
        keep = 1 if self.is_last(ended) else math.ceil(self.rank(ended.arms) / 2**ended.phase)
        return scores, best_of(scores, ended.survivors, keep), ended.carried


@dataclass(frozen=True)
class GBAI(BudgetPolicy):
    """G-BAI (Xiong, Camilleri, Fazel, Jain & Jamieson 2023): the G-optimal design for the whole budget.

    Draws T rounds from the G-optimal design p of all arms and declares the largest x_aᵀA_p⁻¹Σ xr. The
    estimate is unbiased for the *average* parameter, also of one that changes over time: minimax optimal for
    such worlds. A shift common to all arms is such a change only if 1 is a linear function of the features;
    otherwise, **under a shift**, it is blind. Departs: none.

    Parameters
    ----------
    budget : int
        T.

    Examples
    --------
    >>> policy = GBAI(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(4)))
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.25, 0.25, 0.25, 0.25], 100)
    """

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the G-optimal design of all arms."""
        return _g_design(ahead.arms), self.rounds_of(ahead)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the best arm."""
        scores = importance_scores(ended.arms, ended.probabilities, ended.tally.sums)
        return scores, best_of(scores, ended.survivors), ended.carried


def _value(arms: ArmSet, survivors: Mask) -> float:
    """Return ρ of a set of arms, 0 when they do not differ."""
    if not arms.subset(survivors).dimension:
        return 0.0
    return _xy_design(arms, survivors.tobytes())[1]


def halved(arms: ArmSet, scores: Array, survivors: Mask, value: float) -> Mask:
    """Return the largest set of best-scored survivors whose ρ is at most half of `value`; one at least."""
    most = int(survivors.sum())
    least = 1
    # Sets of the best m grow with m, and so does ρ: bisection.
    while most - least > 1:
        middle = (least + most) // 2
        if _value(arms, best_of(scores, survivors, middle)) > value / 2 * (1 + TOLERANCE):
            most = middle
        else:
            least = middle
    return best_of(scores, survivors, least)


@dataclass(frozen=True)
class Peace(BudgetPolicy):
    """Peace with a fixed budget (Katz-Samuels, Jain, Karnin & Jamieson 2020), after the code of Xiong et al.

    ⌈log₂ ρ⌉ epochs of equal length, ρ the value of the XY design of all arms. Each draws from the XY design
    of the survivors over all arms; least squares on that epoch; keeps the largest set of best arms whose ρ is
    at most half of the last. After the last epoch the best survivor is declared.

    **Under a shift** it is blind, as the module's documentation says. Departs: drawn, where the code rounds
    the design to counts and plays those in random order; designs are certified, where the code takes a
    thousand Frank–Wolfe steps; ρ is that of pairs, as in the code, where the paper has a Gaussian width.

    Parameters
    ----------
    budget : int
        T.

    Examples
    --------
    >>> policy = Peace(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(2)))
    >>> plan.probabilities.round(3).tolist(), int(plan.rounds)
    ([0.5, 0.5], 50)
    """

    def phase_count(self, arms: ArmSet) -> int:
        """Return ⌈log₂ ρ⌉."""
        value = _value(arms, np.ones(len(arms), dtype=np.bool_))
        return math.ceil(math.log2(max(value, 2.0)) - TOLERANCE)

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the XY design of the survivors."""
        return _xy_design(ahead.arms, ahead.survivors.tobytes())[0], self.rounds_of(ahead)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the largest set of half the value, and one arm after the last epoch."""
        counts = np.asarray(ended.tally.counts, dtype=np.float64)
        scores = least_squares(ended.arms, counts, ended.tally.sums)
        if self.is_last(ended):
            return scores, best_of(scores, ended.survivors), ended.carried
        value = _value(ended.arms, ended.survivors)
        return scores, halved(ended.arms, scores, ended.survivors, value), ended.carried


@dataclass(frozen=True)
class P1Peace(Peace):
    """P1-Peace (Xiong, Camilleri, Fazel, Jain & Jamieson 2023): Peace that drops arms only virtually.

    Epochs as :class:`~orthobandit.policy.Peace`. The first draws from the G-optimal design; later ones half
    from it and half from the average of the XY designs of X₁ ⊃ X₂ ⊃ …, X₁ all arms and each next the largest
    set of best arms with half the ρ. The estimate is the average of A_p⁻¹xr over all rounds, unbiased for the
    average parameter. After T rounds the largest x_aᵀθ̂ is declared.

    **Under a shift** it is blind unless 1 is a linear function of the features, as the module's documentation
    says; :class:`~orthobandit.policy.P1RAGE` is lifted to (1, x) and is not. Departs: designs are certified;
    designs change at the ends of epochs, where the code also renews them after the first round.

    Parameters
    ----------
    budget : int
        T.

    Examples
    --------
    >>> policy = P1Peace(budget=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(2)))
    >>> plan.probabilities.round(3).tolist(), int(plan.rounds)
    ([0.5, 0.5], 50)
    """

    carries = 1  # sums of importance-weighted scores

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the G-optimal design first, then half of it virtual elimination."""
        arms = ahead.arms
        spread = _g_design(arms)
        if ahead.phase == 1:
            return spread, self.rounds_of(ahead)
        designs: list[Array] = []
        left = np.ones(len(arms), dtype=np.bool_)
        while arms.subset(left).dimension:
            design, value = _xy_design(arms, left.tobytes())
            designs.append(design)
            left = halved(arms, ahead.carried[0], left, value)
        return (spread + np.mean(designs, axis=0)) / 2, self.rounds_of(ahead)

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Add the epoch; after the last, the best score alone is left."""
        scores = importance_scores(ended.arms, ended.probabilities, ended.tally.sums)
        carried = ended.carried + scores
        is_last = self.is_last(ended)
        survivors = best_of(carried[0], ended.survivors) if is_last else ended.survivors
        return carried[0], survivors, carried


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
    that can be best and second best for some θ (:func:`~orthobandit.policy.budget_peers.adjacent_pairs`);
    least squares; declare the largest x_aᵀθ̂. Fewer pairs than all make the design sharper. The paper proves
    an error that matches a lower bound for every arm set, when the parameter changes over time in any way.

    **Under a shift** common to all arms it is blind unless 1 is a linear function of the features, as the
    module's documentation says. Departs: the paper itself could not be had here, and the definition of
    adjacency is ours; arms are drawn from the design, where the paper rounds it to counts and plays those in
    random order.

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

    As for :func:`~orthobandit.policy.phased.xy_design`, arms and their mirror images make centred designs
    uncentred.
    """
    pairs = adjacent_pairs(arms)
    mirrored = ArmSet(np.vstack([arms.features, -arms.features]))
    folded = contrast_design(mirrored, pairs).probabilities.reshape(2, -1).sum(axis=0)
    factor = RangeFactor.of((arms.features * folded[:, np.newaxis]).T @ arms.features)
    apart = arms.features[pairs[:, 0]] - arms.features[pairs[:, 1]]
    return folded, float(np.max(factor.norm_squared(apart)))
