"""A batch of rounds as survivors against any arm see it."""

from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Tally
from orthobandit.estimate.augmented import RivalGeometry, is_doubtful
from orthobandit.estimate.confidence.evidence import Batch, expected_shares
from orthobandit.estimate.confidence.modes import Confidence
from orthobandit.policy.anytime.rounds import Rounds


def rival_of_most(rivals: Whole) -> int:
    """Return the leader, given the arm that each is tested against: that of most arms."""
    first = rivals[:3].tolist()
    return int(max(first, key=first.count))


def different(arms: ArmSet, kept: Whole, leader: int) -> Mask:
    """Tell which of the arms (n,) differ from the leader in some feature."""
    out = arms.features[kept, 0] != arms.features[leader, 0]
    alike = np.flatnonzero(~out)
    out[alike] = np.any(arms.features[kept[alike]] != arms.features[leader], axis=1)
    return np.asarray(out)


@dataclass(frozen=True, eq=False)
class Seen:
    """A batch as any survivor against any arm sees it.

    Attributes
    ----------
    kept : (n,) array of int
    geometry : RivalGeometry
        Of the plan.
    squares : list of (m,) arrays
        On the support: squared residuals and, in the asymptotic mode, the shares of them that arms should
        carry and doubts about that.
    sums : (m,) array
        Of residuals.
    values : (K,) array
        That residuals were taken from.
    total, rounds, largest, excess : float
        Σ of all squared residuals, rounds, the largest residual, and what in it is beyond light tails.
    wants_reach : bool
    """

    kept: Whole
    geometry: RivalGeometry
    squares: list[Array]
    sums: Array
    values: Array
    total: float
    rounds: float
    largest: float
    excess: float
    wants_reach: bool

    @classmethod
    def of(cls, run: Rounds, confidence: Confidence, geometry: RivalGeometry, tally: Tally) -> "Seen":
        """Look at a batch under a plan; what a contrast must wait for is decided before its draws."""
        s = geometry.support
        p = geometry.probabilities
        squares = [tally.squares[s]]
        if not confidence.is_exact:
            squares.append(expected_shares(p, run.relative[s], run.drawn[s]))
            squares.append(geometry.doubts(run.drawn[s] - tally.counts[s] + run.length * p))
        return cls(
            kept=np.flatnonzero(run.active),
            geometry=geometry,
            squares=squares,
            sums=tally.sums[s],
            values=run.values,
            total=float(tally.squares.sum()),
            rounds=float(tally.rounds),
            largest=float(tally.largest.max()),
            excess=float(run.excess),
            wants_reach=confidence.is_exact or float(run.excess) > 0,
        )

    def against(self, rival: int, own: tuple[int, int] | None) -> Batch:
        """Return the batch against an arm; its own entry, at a place, is against a rival of its own."""
        parts = self._parts(self.kept, rival)
        if own is not None:
            place, second = own
            for part, mine in zip(parts, self._parts(self.kept[[place]], second), strict=True):
                part[place] = mine[0]
        factor, reach, estimates, squares, pooled = parts
        return Batch(
            rounds=self.rounds,
            largest=self.largest,
            excess=self.excess,
            factor=factor,
            reach=reach,
            estimates=estimates,
            squares=squares,
            pooled=pooled,
        )

    def _parts(self, kept: Whole, rival: int) -> tuple[Array, Array, Array, Array, Array]:
        forms, estimates, reach = self.geometry.measured(
            kept, rival, self.squares, self.sums, wants_reach=self.wants_reach
        )
        estimates += self.rounds * (self.values[kept] - self.values[rival])
        factor = forms[0]
        pooled = np.zeros(len(kept))
        if len(forms) > 2:
            pooled = self.total * np.maximum(np.where(np.isfinite(factor), factor, 0.0), forms[2])
            factor = np.where(is_doubtful(factor, forms[3]), np.inf, factor)
        return factor, reach, estimates, forms[1], pooled
