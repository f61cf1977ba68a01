"""One metric of a log by stratum: the rows of a bucket that were drawn from the same probabilities."""

from dataclasses import dataclass, replace

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate.follow.cells import Cells, totals_at


@dataclass(frozen=True, eq=False)
class Strata:
    """Counts, sums and squares of one metric, one cell per arm, segment and stratum.

    A stratum is a bucket and a plan. Given the past, its arms were drawn independently from one
    distribution, and a forecast for its bucket is one number, so that sums over its cells are all that
    estimates need. Cells without a row that counts are left out.

    Attributes
    ----------
    plans : (P, K) array
    bucket, plan : (N,) arrays of int
        Of each stratum; buckets ascend.
    stratum, arm : (G,) arrays of int
        Of each cell.
    counts, sums, squares, low, high : (G,) arrays
        Of the metric minus `offset`, and minus levels once :meth:`minus` took them away.
    offset : float
    buckets : int
        How many there are, B.
    """

    plans: Array
    bucket: Whole
    plan: Whole
    stratum: Whole
    arm: Whole
    counts: Array
    sums: Array
    squares: Array
    low: Array
    high: Array
    offset: float
    buckets: int

    @classmethod
    def of(cls, cells: Cells, column: int = 0) -> "Strata":
        """Return the strata of one column of the log."""
        kept = cells.only(cells.counts > 0)
        key = kept.bucket * len(kept.plans) + kept.plan
        # Cells are sorted by bucket, so that strata ascend in time.
        _, first, stratum = np.unique(key, return_index=True, return_inverse=True)
        return cls(
            plans=kept.plans,
            bucket=kept.bucket[first],
            plan=kept.plan[first],
            stratum=stratum.astype(np.int64),
            arm=kept.arm,
            counts=kept.counts.astype(np.float64),
            sums=kept.sums[:, column],
            squares=kept.products[:, column, column],
            low=kept.low[:, column],
            high=kept.high[:, column],
            offset=float(kept.offset[column]),
            buckets=len(kept.times),
        )

    def __len__(self) -> int:
        return len(self.bucket)

    @property
    def largest(self) -> Array:
        """Largest magnitude (G,) of a value."""
        return np.asarray(np.maximum(np.abs(self.low), np.abs(self.high)))

    def minus(self, levels: Array) -> "Strata":
        """Return the strata with a level (B,) taken from each bucket; one whose level is NaN is left out."""
        shift = levels[self.bucket[self.stratum]]
        kept = np.isfinite(shift)
        m = shift[kept]
        n = self.counts[kept]
        s = self.sums[kept]
        # Squares that are left of large ones may be below 0 by their rounding.
        squares = np.maximum(self.squares[kept] - 2.0 * m * s + n * m**2, 0.0)
        return replace(
            self,
            stratum=self.stratum[kept],
            arm=self.arm[kept],
            counts=n,
            sums=s - n * m,
            squares=squares,
            low=self.low[kept] - m,
            high=self.high[kept] - m,
        )

    def by_bucket(self, values: Array) -> Array:
        """Return the sums (B,) over buckets of something a cell (G,) has."""
        return totals_at(self.bucket[self.stratum], values, self.buckets)

    def by_stratum(self, values: Array) -> Array:
        """Return the sums (N,) over strata of something a cell (G,) has."""
        return totals_at(self.stratum, values, len(self))

    def of_arm(self, arm: int) -> tuple[Array, Array, Array]:
        """Return counts, sums and squares (N,) of one arm in every stratum."""
        mine = self.arm == arm
        n, s, q = (
            totals_at(self.stratum[mine], part[mine], len(self))
            for part in (self.counts, self.sums, self.squares)
        )
        return n, s, q

    def probability(self, arm: int) -> Array:
        """Return the probability (N,) of an arm in every stratum."""
        return np.asarray(self.plans[self.plan, arm])


def earlier(counts: Array, sums: Array) -> Array:
    """Return the mean (B,) over all earlier buckets, NaN where there are no rows in them.

    Examples
    --------
    >>> earlier(np.array([2.0, 0.0, 2.0]), np.array([2.0, 0.0, 6.0])).tolist()
    [nan, 1.0, 1.0]
    """
    before_n = np.concatenate(([0.0], np.cumsum(counts)[:-1]))
    before_s = np.concatenate(([0.0], np.cumsum(sums)[:-1]))
    means = np.divide(before_s, before_n, out=np.full(len(counts), np.nan), where=before_n > 0)
    return np.asarray(means)


def levels_before(strata: Strata, arm: int | None = None) -> Array:
    """Return for each bucket (B,) the mean over earlier ones: of all rows, or of an arm's; NaN for the first.

    Where an arm was not played before, the mean of all rows stands in.
    """
    ones = np.ones(len(strata.arm))
    mine = ones if arm is None else (strata.arm == arm).astype(np.float64)
    means = earlier(strata.by_bucket(mine * strata.counts), strata.by_bucket(mine * strata.sums))
    return means if arm is None else np.where(np.isnan(means), levels_before(strata), means)
