"""Where anytime elimination plays next: designs for the pairs of the leader that are still open.

``identifying_plan`` and ``earning_plan`` weigh all arms. Their twins for very many arms,
``identifying_plan_of_many`` and ``earning_plan_of_many``, play few of them.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from orthobandit._foundation.linalg import inverse_root, solve_ridge
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import Design, centred_design, contrast_design, contrast_weights, earning_design
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
        # A pair that is tied to rounding would otherwise outweigh all others without bound.
        target = np.maximum(target, 1e-3 * max(float(target.max()), TINY))
        pairs = np.column_stack([np.full(len(others), leader), others])
        return cls(pairs, (target.min() / target) ** 2, gaps)

    def contrasts(self, arms: ArmSet) -> Array:
        """Return the differences (m, r), each scaled by the root of its weight."""
        first = arms.positions[self.pairs[:, 0]]
        second = arms.positions[self.pairs[:, 1]]
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
    if len(arms) > GENERAL and arms.dimension == len(arms) - 1:
        # Arms in general position are drawn alike by the optimum, which a solver would take long to find.
        p[left] = 1.0 / np.count_nonzero(left)
    else:
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
    # Arms that would be drawn once in 10⁵ rounds teach nothing and make single residuals weigh enormously.
    p = np.where(p > FAINT * p.max(), p, 0.0)
    return np.asarray(p / p.sum())


def least_cost(gaps: Array, errors: Array) -> float:
    """Return what a round of any arm costs: the largest expected improvement of another arm on the leader.

    Parameters
    ----------
    gaps, errors : (m,) arrays
        How much better than each the leader seems, and the standard errors of that.
    """
    # E max(Z − gap, 0) of a normal Z with this standard error: error·φ(gap/error) − gap·Φ(−gap/error).
    ratio = gaps / errors
    density = np.exp(-(ratio**2) / 2.0) / np.sqrt(2.0 * np.pi)
    lack = float(np.max(errors * density - gaps * scipy.special.ndtr(-ratio)))
    return max(lack, LEADER_COST * float(np.median(gaps)), TINY)


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
        return Wanted.of(self.leader, self.others, self.gaps, ERRORS * self.errors - self.gaps).weights


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
    floor = least_cost(race.gaps, race.errors)
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
