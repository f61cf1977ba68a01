"""Where anytime elimination plays next: designs for the pairs of the leader that are still open.

``identifying_plan`` and ``earning_plan`` weigh all arms. Their twins for very many arms,
``identifying_plan_of_many`` and ``earning_plan_of_many``, play few of them.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from orthobandit._foundation.linalg import inverse_root, ridge_norms
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import Design, centred_design, contrast_design, earning_design
from orthobandit.design.compiled_contrasts import leader_weights
from orthobandit.design.leader import Request, leader_probabilities, playable_arms
from orthobandit.policy.anytime.delta import TINY

GAP = 0.01  # tolerance of designs: a plan that is 1 % off optimal costs about 1 % more rounds
# Least cost of a round, relative to the median gap. Where an arm is played rarely, regret per decision hardly
# depends on how rarely, but the time to the decision does: this ends experiments several times sooner.
LEADER_COST = 0.2
FAINT = 1e-5  # plans that earn leave out arms below this share of the largest probability
# With very many arms:
GENERAL = 1000  # arms in general position, above which the wide plan of some of them is not solved for
ROWS = 4096  # arms that are looked at at a time
ERRORS = 3.0  # standard errors of the regression that an arm may lead the leader by, as far as plans care
FEW = 100  # survivors up to which plans that earn are made for all of them at once
# Where there are more, those may be played that seem best, so many for each dimension …
BEST = 5
SAMPLE = 1000  # … and about so many others, spread evenly over all
# Share of a plan that goes to a design which spans all survivors, so that none is out of reach, and its
# tolerance: for 2 % of the rounds a rough design will do.
GUARD = 0.02
ROUGH = 0.1


@dataclass(frozen=True, eq=False)
class Wanted:
    """The pairs (leader, other) that are open; leading axes (...) are replications.

    Attributes
    ----------
    leader : (...) array of int
    others : (..., K) array of bool
        Arms that are still in and not the same as the leader.
    gaps : (..., K) array
        How much better than each the leader seems, at least 0.
    weights : (..., K) array
        Importance of the pairs, the largest being 1; 0 where there is none.
    """

    leader: Whole
    others: Mask
    gaps: Array
    weights: Array

    @classmethod
    def of(cls, leader: Whole, others: Mask, gaps: Array, lead: Array) -> "Wanted":
        """Weigh the pairs by :func:`pair_weights`."""
        return cls(leader, others, gaps, pair_weights(gaps, lead, others))

    def __getitem__(self, run: Any) -> "Wanted":
        """Return the pairs of one replication."""
        return Wanted(self.leader[run], self.others[run], self.gaps[run], self.weights[run])

    def listed(self) -> tuple[Whole, Array]:
        """Return the pairs (m, 2) of a single replication, and their weights (m,)."""
        others = np.flatnonzero(self.others)
        return np.column_stack([np.full(len(others), self.leader), others]), self.weights[others]


def pair_weights(gaps: Array, lead: Array, others: Mask) -> Array:
    """Weigh pairs with a leader (..., K) by the rounds they take: 1/target², the largest being 1.

    The target is the gap, but nothing finer than half the interval of the pair, and half of the most that any
    arm may lead the leader by: near ties wait until the leader is surely good. Otherwise two arms that are
    nearly tied, but far from the best, would get all the rounds.

    Parameters
    ----------
    gaps, lead : (..., K) arrays
        How much worse than the leader each arm seems, and how much better it may be.
    others : (..., K) array of bool
        Pairs that count; the others weigh 0.
    """
    known = np.where(np.isfinite(lead) & others, lead, 0.0)
    most = known.max(axis=-1, keepdims=True)
    target = np.where(others, np.maximum(gaps, np.maximum((known + gaps) / 2.0, most / 2.0)), 0.0)
    # A pair that is tied to rounding would otherwise outweigh all others without bound.
    target = np.maximum(target, 1e-3 * np.maximum(target.max(axis=-1, keepdims=True), TINY))
    least = np.min(np.where(others, target, np.inf), axis=-1, keepdims=True)
    return np.where(others, (least / target) ** 2, 0.0)


def wide_plan(arms: ArmSet, retired: Mask | None = None) -> Array:
    """Return the exact centred design (K,) of the arms that are not retired."""
    return _wide(arms, b"" if retired is None or not retired.any() else retired.tobytes())


@lru_cache(maxsize=16)
def _wide(arms: ArmSet, mask: bytes) -> Array:
    # Kept, because every replication and every batch asks for it again.
    left = ~np.frombuffer(mask, dtype=np.bool_) if mask else np.ones(len(arms), dtype=np.bool_)
    p = np.zeros(len(arms))
    if len(arms) > GENERAL and arms.dimension == len(arms) - 1:
        # Arms in general position are drawn alike by the optimum, which a solver would take long to find.
        p[left] = 1.0 / np.count_nonzero(left)
    elif mask:
        p[left] = centred_design(arms.subset(left), GAP).probabilities
    else:
        return centred_design(arms, GAP).probabilities
    p.flags.writeable = False
    return p


def identifying_plan(arms: ArmSet, wanted: Wanted, mixing: float, now: Array, retired: Mask) -> Array:
    """Return distributions (..., K) that settle open pairs in the fewest rounds, mixed with the wide one.

    Solves min_p max_j weight_j·‖x_leader − x_j‖²_{Σ_p⁻¹} over all arms but the retired ones, starting from
    the plans `now`.
    """
    starts = np.where(retired.any(axis=-1, keepdims=True), 0.0, now)
    focused, found = _solve_together(arms, wanted, ~retired, starts=starts)
    for run in map(tuple, np.argwhere(~found)):
        pairs, weights = wanted[run].listed()
        earlier = Design(arms, now[run], "contrast", 0, 0.0) if starts[run].any() else None
        design = contrast_design(arms, pairs, weights, gap=GAP, start=earlier, support=~retired[run])
        focused[run] = design.probabilities
    wide = wide_plan(arms)
    if retired.any():
        wide = np.array([wide_plan(arms, one) for one in retired.reshape(-1, len(arms))])
        wide = wide.reshape(retired.shape)
    p = (1.0 - mixing) * focused + mixing * wide
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def earning_plan(arms: ArmSet, active: Mask, wanted: Wanted, gram: Array, ridge: Array) -> Array:
    """Return distributions (..., K) on the survivors that settle the open pairs at the least regret.

    Solves min_p (Σ p·cost) × max_j weight_j·‖x_leader − x_j‖²_{Σ_p⁻¹}. An arm costs its estimated gap, and
    every arm what the leader may lack: the largest expected improvement of another arm over it.
    """
    positions = arms.positions
    errors = ridge_norms(gram, positions - positions[wanted.leader][..., np.newaxis, :], ridge)
    costs = least_cost(wanted.gaps, errors, wanted.others)[..., np.newaxis] + np.where(
        wanted.others, wanted.gaps, 0.0
    )
    costs = costs / costs.max(axis=-1, keepdims=True)
    p, found = _solve_together(arms, wanted, active, costs=costs)
    for run in map(tuple, np.argwhere(~found)):
        pairs, weights = wanted[run].listed()
        p[run] = earning_design(arms, pairs, weights, costs[run], gap=GAP, support=active[run]).probabilities
    # Arms that would be drawn once in 10⁵ rounds teach nothing and make single residuals weigh enormously.
    p = np.where(p > FAINT * p.max(axis=-1, keepdims=True), p, 0.0)
    return np.asarray(p / p.sum(axis=-1, keepdims=True))


def _solve_together(
    arms: ArmSet,
    wanted: Wanted,
    playable: Mask,
    *,
    costs: Array | None = None,
    starts: Array | None = None,
) -> tuple[Array, Mask]:
    """Return :func:`leader_weights` (..., K) of replications with any leading axes, and which were found."""
    shape = playable.shape

    def flat(one: Array | None) -> Array | None:
        return None if one is None else np.ascontiguousarray(one).reshape(-1, shape[-1])

    p, found = leader_weights(
        arms.positions,
        np.ascontiguousarray(playable).reshape(-1, shape[-1]),
        np.atleast_1d(wanted.leader).ravel(),
        np.ascontiguousarray(wanted.weights).reshape(-1, shape[-1]),
        costs=flat(costs),
        starts=flat(starts),
        gap=GAP,
    )
    return p.reshape(shape), found.reshape(shape[:-1])


def least_cost(gaps: Array, errors: Array, others: Mask) -> Array:
    """Return what a round of any arm costs (...): the largest expected improvement on the leader.

    Parameters
    ----------
    gaps, errors : (..., K) arrays
        How much better than each the leader seems, and the standard errors of that.
    others : (..., K) array of bool
        Arms that count; at least one.
    """
    # E max(Z − gap, 0) of a normal Z with this standard error: error·φ(gap/error) − gap·Φ(−gap/error).
    ratio = np.where(others, gaps, 0.0) / np.where(others, errors, 1.0)
    density = np.exp(-(ratio**2) / 2.0) / np.sqrt(2.0 * np.pi)
    lack = np.where(others, errors * density - gaps * scipy.special.ndtr(-ratio), 0.0)
    # The median of those that count: they come first in each row.
    ascending = np.sort(np.where(others, gaps, np.inf), axis=-1)
    count = np.count_nonzero(others, axis=-1)[..., np.newaxis]
    middle = np.concatenate([(count - 1) // 2, count // 2], axis=-1)
    median = np.take_along_axis(ascending, middle, axis=-1).mean(axis=-1)
    return np.asarray(np.maximum(np.maximum(lack.max(axis=-1), LEADER_COST * median), TINY))


@lru_cache(maxsize=2)
def _arms_left(arms: ArmSet, mask: bytes) -> ArmSet:
    # Kept, because every batch asks for it again.
    return arms.subset(~np.frombuffer(mask, dtype=np.bool_))


@lru_cache(maxsize=4)
def playable(arms: ArmSet) -> Whole:
    """Return the arms (m,) that plans which identify are made of, out of very many."""
    # Kept, because every batch asks for it again.
    out = playable_arms(Design(arms, wide_plan(arms), "centred", 0, 0.0))
    out.flags.writeable = False
    return out


def linear_values(arms: ArmSet, some: Whole, coefficients: Array) -> Array:
    """Return (x − origin)ᵀθ of some arms (n,), θ (r,) in the basis of the hull."""
    slope = arms.basis.T @ coefficients
    out = np.empty(len(some))
    for start in range(0, len(some), ROWS):
        rows = some[start : start + ROWS]
        y = arms.features.take(rows, axis=0)
        y -= arms.frame.origin
        out[start : start + len(rows)] = y @ slope
    return out


@dataclass(frozen=True, eq=False)
class Race:
    """The comparison that a plan for very many arms is made for: the leader against all others.

    Attributes
    ----------
    arms : ArmSet
    leader : int
    others : (n,) array of int
        Arms that are still in and not the same as the leader.
    gaps, errors : (n,) arrays
        How much better than each the leader seems, and the standard errors of that.
    """

    arms: ArmSet
    leader: int
    others: Whole
    gaps: Array
    errors: Array

    @classmethod
    def of(cls, arms: ArmSet, leader: int, others: Whole, gaps: Array, information: Array) -> "Race":
        """Take the errors from the information (r, r) of the regression."""
        root = arms.basis.T @ inverse_root(information)
        errors = np.empty(len(others))
        for start in range(0, len(errors), ROWS):
            rows = others[start : start + ROWS]
            y = arms.features.take(rows, axis=0)
            y -= arms.features[leader]
            seen = y @ root
            errors[start : start + len(rows)] = np.sqrt(np.einsum("ij,ij->i", seen, seen))
        return cls(arms, leader, others, gaps, errors)

    def without(self, retired: Mask) -> "Race":
        """Return the same comparison among the arms that are not retired (K,), by their places there."""
        left = np.flatnonzero(~retired)
        leader = int(np.searchsorted(left, self.leader))
        few = _arms_left(self.arms, retired.tobytes())
        return replace(self, arms=few, leader=leader, others=np.searchsorted(left, self.others))

    @property
    def weights(self) -> Array:
        """Weights (n,) of the pairs, as for few arms, with the regression's estimate of possible leads."""
        return pair_weights(self.gaps, ERRORS * self.errors - self.gaps, self._all)

    @property
    def least_cost(self) -> float:
        """What a round of any arm costs."""
        return float(least_cost(self.gaps, self.errors, self._all))

    @property
    def _all(self) -> Mask:
        return np.ones(len(self.others), dtype=np.bool_)


def identifying_plan_of_many(race: Race, mixing: float, now: Array) -> Array:
    """Return the distribution (K,) that settles open pairs in few rounds, mixed with the wide one."""
    pool = playable(race.arms)
    wide = wide_plan(race.arms)[pool]
    request = Request(race.leader, race.others, race.weights, pool, wide, mixing)
    start = now[pool] if now[pool].any() else wide
    return leader_probabilities(race.arms, request, start)


def earning_plan_of_many(race: Race) -> Array:
    """Return the distribution (K,) on survivors that settles open pairs at little regret.

    Of more than a hundred survivors only those may be played that seem best, and some that span the others.
    """
    arms = race.arms
    others = race.others
    floor = race.least_cost
    if len(others) <= FEW:
        kept = np.append(others, race.leader)
        pairs = np.column_stack([np.full(len(others), len(others)), np.arange(len(others))])
        costs = floor + np.append(race.gaps, 0.0)
        design = earning_design(arms.subset(kept), pairs, race.weights, costs / costs.max(), gap=GAP)
        return _spread(len(arms), kept, design.probabilities)
    most = BEST * (arms.dimension + 1)
    best = np.argpartition(race.gaps, most)[:most] if len(others) > most else np.arange(len(others))
    sample = np.arange(0, len(others), max(1, len(others) // SAMPLE))
    places = np.union1d(best, sample)
    kept = np.append(others[places], race.leader)
    few = arms.subset(kept)
    if few.dimension < arms.dimension:  # these few do not span the others: all that are left, for now
        return _spread(len(arms), others, np.full(len(others), 1.0 / len(others)))
    guard = centred_design(few, ROUGH).probabilities
    played = (guard > 0) | (np.arange(len(kept)) == len(places)) | np.append(np.isin(places, best), False)
    costs = (floor + np.append(race.gaps[places], 0.0))[played]
    request = Request(
        race.leader, others, race.weights, kept[played], guard[played], GUARD, costs / costs.max()
    )
    return leader_probabilities(arms, request, guard[played])


def _spread(count: int, kept: Whole, probabilities: Array) -> Array:
    """Return probabilities (K,) of all arms, given those of some that are not faint."""
    out = np.zeros(count)
    out[kept] = np.where(probabilities > FAINT * probabilities.max(), probabilities, 0.0)
    return np.asarray(out / out.sum())
