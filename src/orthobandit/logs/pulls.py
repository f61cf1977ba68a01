"""How a reward of each arm pulls at each gap, for many plans at once."""

from dataclasses import dataclass

import numpy as np

from orthobandit._linalg import RangeFactor
from orthobandit._types import Array, Mask, Whole
from orthobandit.arms import ArmSet


@dataclass(frozen=True, eq=False)
class FreePulls:
    """Pulls g(a) of n plans at the gaps of m arms over a reference arm, for arms that have nothing in common.

    They are 1/p of the arm and −1/p of the reference arm.

    Attributes
    ----------
    known : (n, m) array of bool
        Whether the plan can tell the arm from the reference arm.
    variance, reach : (n, m) arrays
        E g², and max |g(a)| over the arms that can be drawn; 1 where not known.
    inverse, own : (n, m) arrays
        1/p of the arm and of the reference arm; 0 where not known.
    others : (m,) array of int
    reference : int
    """

    known: Mask
    variance: Array
    reach: Array
    inverse: Array
    own: Array
    others: Whole
    reference: int

    @classmethod
    def of(cls, plans: Array, reference: int) -> "FreePulls":
        """Compute from plans (n, K)."""
        others = np.delete(np.arange(plans.shape[1]), reference)
        known = (plans[:, others] > 0) & (plans[:, [reference]] > 0)
        inverse = np.where(known, 1.0 / np.where(known, plans[:, others], 1.0), 0.0)
        own = np.where(known, 1.0 / np.where(known, plans[:, [reference]], 1.0), 0.0)
        variance = np.where(known, inverse + own, 1.0)
        reach = np.where(known, np.maximum(inverse, own), 1.0)
        return cls(known, variance, reach, inverse, own, others, reference)

    def push(self, sums: Array) -> Array:
        """Return Σ_a g(a)·s_a (n, m) for s (n, K); 0 where not known."""
        return np.asarray(self.inverse * sums[:, self.others] - self.own * sums[:, [self.reference]])

    def carry(self, squares: Array) -> Array:
        """Return Σ_a g(a)²·q_a (n, m) for q (n, K); 0 where not known."""
        mine, over = squares[:, self.others], squares[:, [self.reference]]
        return np.asarray(self.inverse**2 * mine + self.own**2 * over)


@dataclass(frozen=True, eq=False)
class FeaturedPulls:
    """The same for arms with shared features: g(a) = yᵀΣ⁺(x_a − μ), a table (n, m, K)."""

    known: Mask
    variance: Array
    reach: Array
    table: Array

    @classmethod
    def of(cls, plans: Array, positions: Array, reference: int) -> "FeaturedPulls":
        """Compute from plans (n, K) and positions (K, r) of the arms."""
        others = np.delete(np.arange(len(positions)), reference)
        centred = positions - (plans @ positions)[:, np.newaxis, :]
        covariance = np.einsum("nk,nki,nkj->nij", plans, centred, centred)
        factor = RangeFactor.of(covariance[:, np.newaxis])
        white = np.where((plans > 0)[:, :, np.newaxis], factor.whiten(centred), 0.0)
        seen = factor.whiten(
            np.broadcast_to(
                positions[others] - positions[reference], (len(plans), len(others), positions.shape[1])
            )
        )
        known = np.isfinite(seen).all(axis=2) & (seen != 0).any(axis=2)
        seen = np.where(known[:, :, np.newaxis], seen, 0.0)
        table = np.einsum("nmr,nkr->nmk", seen, white)
        return cls(
            known,
            np.where(known, np.einsum("nmr,nmr->nm", seen, seen), 1.0),
            np.where(known, np.abs(table).max(axis=2), 1.0),
            table,
        )

    def push(self, sums: Array) -> Array:  # noqa: D102
        return np.asarray(np.einsum("nmk,nk->nm", self.table, sums))

    def carry(self, squares: Array) -> Array:  # noqa: D102
        return np.asarray(np.einsum("nmk,nk->nm", self.table**2, squares))


Pulls = FreePulls | FeaturedPulls


def is_free(arms: ArmSet) -> bool:
    """Tell whether no arm's features say anything of another's reward: arms in general position."""
    return arms.dimension == len(arms) - 1


def pulls_of(arms: ArmSet, plans: Array, reference: int) -> Pulls:
    """Return the pulls of plans (n, K); see :func:`cost` for how many to ask for at a time."""
    if is_free(arms):
        return FreePulls.of(plans, reference)
    return FeaturedPulls.of(plans, arms.positions, reference)


def cost(arms: ArmSet) -> int:
    """Return the numbers that the pulls of one plan need."""
    return len(arms) if is_free(arms) else len(arms) * (len(arms) + arms.dimension)
