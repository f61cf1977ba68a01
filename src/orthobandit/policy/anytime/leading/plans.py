"""Where to play next with very many arms: few that are worth playing, for those still in the race."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from orthobandit._foundation.linalg import inverse_root
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import Design, centred_design, earning_design
from orthobandit.design.leader import Request, leader_probabilities, playable_arms
from orthobandit.policy.anytime.plans import FAINT, GAP, Wanted, least_cost, wide_plan

ROWS = 4096  # arms that are looked at at a time
ERRORS = 3.0  # standard errors of the regression that an arm may lead the leader by, as far as plans care
FEW = 100  # survivors up to which plans that earn are made for all of them at once
# survivors that may be played where there are more: the best, for each dimension; any
BEST = 5
SAMPLE = 1000
# share of what is spent, and tolerance, of the design that spans them
GUARD = 0.02
ROUGH = 0.1


@lru_cache(maxsize=2)
def playable(arms: ArmSet) -> Whole:
    """Return the arms (m,) that plans which identify are made of; kept, because every batch asks for them."""
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
    """What a plan is made for.

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

    @property
    def weights(self) -> Array:
        """How much each pair weighs (n,), as for few arms; what it may lead by is the regression's word."""
        return Wanted.of(self.leader, self.others, self.gaps, ERRORS * self.errors - self.gaps).weights


def identifying(race: Race, mixing: float, now: Array) -> Array:
    """Return the distribution (K,) that settles open pairs in few rounds, mixed with the wide one."""
    pool = playable(race.arms)
    wide = wide_plan(race.arms)[pool]
    request = Request(race.leader, race.others, race.weights, pool, wide, mixing)
    start = now[pool] if now[pool].any() else wide
    return leader_probabilities(race.arms, request, start)


def earning(race: Race) -> Array:
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
