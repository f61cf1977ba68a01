"""What an engine returns of a log: counts, sums and products per time bucket, plan, arm and segment."""

from dataclasses import dataclass, replace

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet


@dataclass(frozen=True, eq=False)
class Cells:
    """A log as a GROUP BY: one cell a (bucket, plan, arm, segment) that has rows; sorted by bucket.

    All that is asked of a log follows from these few numbers (docs/logs.md), so a
    billion rows are read once, by the engine that holds them. Values are counted from `offset`: a sum of
    squares keeps its digits whatever the level of a column.

    Attributes
    ----------
    arms : ArmSet
        K arms; one-hot without a file of features.
    plans : (P, K) array
        The distributions that arms were drawn from.
    times : (B,) array
        When each bucket begins: seconds since 1970 (UTC), or in units of the time column; ascending.
    width : float
        Length of a bucket, in the units of `times`; 0 if there is a single one without time.
    is_clock : bool
        Whether `times` are seconds since 1970.
    segments : tuple of str
        Names; ``("",)`` without segments.
    columns : tuple of str
        The q columns whose moments are kept: metrics first, then covariates.
    offset : (q,) array
        What was taken from each column before it was added up.
    bucket, plan, arm, segment : (G,) arrays of int
        Which bucket, plan, arm and segment a cell is.
    counts : (G,) array of int
        Rows (or units) whose columns are all there; sums are over these.
    missing : (G, q) array of int
        Rows of which a column was missing or not finite. Where missing values count as zero, these rows are
        in `counts` as well; where they are dropped, they are not.
    dropped : (G,) array of int
        Rows left out because a column was missing.
    sums : (G, q) array
        Σ(v − offset).
    products : (G, q, q) array
        Σ(v − offset)(v − offset)ᵀ; NaN for pairs that nobody asked for.
    low, high : (G, q) arrays
        Smallest and largest v − offset; 0 where `counts` is 0.
    capped : (G, q) array of int
        Rows whose value was cut to the cap.
    slopes : (q, q) array or None
        Guesses of how metrics (rows) go along with covariates, from a few rows.
    rest_low, rest_high : (G, q) arrays or None
        Smallest and largest of what each metric has left of it, v − slopes·v: with covariates a residual may
        be far smaller than either.
    """

    arms: ArmSet
    plans: Array
    times: Array
    width: float
    is_clock: bool
    segments: tuple[str, ...]
    columns: tuple[str, ...]
    offset: Array
    bucket: Whole
    plan: Whole
    arm: Whole
    segment: Whole
    counts: Whole
    missing: Whole
    dropped: Whole
    sums: Array
    products: Array
    low: Array
    high: Array
    capped: Whole
    slopes: Array | None = None
    rest_low: Array | None = None
    rest_high: Array | None = None

    @property
    def rows(self) -> int:
        """Rows that count."""
        return int(self.counts.sum())

    def only(self, kept: Mask | slice) -> "Cells":
        """Return some of the cells (G,)."""
        parts = {name: getattr(self, name) for name in PER_CELL}
        return replace(self, **{name: part[kept] for name, part in parts.items() if part is not None})

    def of_segment(self, segment: int) -> "Cells":
        """Return the cells of one segment."""
        return self.only(self.segment == segment)

    def with_rows(self, least: int) -> "Cells":
        """Return the cells with buckets that have few rows joined to those after them."""
        rows = np.bincount(self.bucket, self.counts, minlength=len(self.times))
        joined = np.arange(len(rows))
        first = 0
        gathered = 0.0
        for bucket, count in enumerate(rows.tolist()):
            joined[bucket] = first if gathered else bucket
            first = int(joined[bucket])
            gathered = gathered + count
            if gathered >= least:
                gathered = 0.0
        return replace(self, bucket=joined[self.bucket])


PER_CELL = (
    "bucket",
    "plan",
    "arm",
    "segment",
    "counts",
    "missing",
    "dropped",
    "sums",
    "products",
    "low",
    "high",
    "capped",
    "rest_low",
    "rest_high",
)


def totals_at(index: Whole, values: Array | Whole, length: int) -> Array:
    """Return the sums (length,) of values (n,) that have the same index."""
    return np.asarray(np.bincount(index, values, minlength=length), dtype=np.float64)
