"""A metric in the order of time: one step a bucket, all that is known of each before anything is forecast."""

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.logs.blocks import Blocks
from orthobandit.logs.cells import Cells
from orthobandit.logs.measure import Measure
from orthobandit.logs.residuals import Series, running, slopes_before


class Timeline:
    """The buckets of a log that have rows, as steps 0 to S − 1.

    What is followed is the metric less its covariates, each times a slope from earlier buckets, or less a
    ratio times another column; with covariates the plain metric is beside it. These are the lines.

    Parameters
    ----------
    cells : Cells
        Some with rows.
    measure : Measure
    is_once : bool
        Whether slopes come from all rows, for a log that is looked at as a whole.

    Attributes
    ----------
    buckets : (S,) array of int
        In the cells.
    times, rows : (S,) arrays
        When each begins, and how many rows it has.
    sums, taken : lists of (S,) arrays
        Of each line: the sum of its rows, and what was taken off its level (:class:`Series`).
    squares : (S,) array
        Sum of squares of the first line.
    blocks : Blocks
    """

    def __init__(self, cells: Cells, measure: Measure, *, is_once: bool = False) -> None:
        some = cells.only(cells.counts > 0)
        self.buckets, first, step = np.unique(some.bucket, return_index=True, return_inverse=True)
        if is_once:
            self.buckets = self.buckets[:1]
            first = first[:1]
            step = np.zeros_like(step)
        self.times = cells.times[self.buckets]
        rows = running(some.counts.astype(np.float64), first)
        sums = running(some.sums, first)
        self.rows = np.diff(rows)
        means = sums / np.maximum(rows, 1.0)[:, np.newaxis]
        known = slice(1, None) if is_once else slice(-1)  # with the rows of the step, or without
        series = [
            Series(some, step, c[known], measure.column, means[known])
            for c in coefficients_of(some, first, measure)
        ]
        self.sums = [np.add.reduceat(one.sums, first) for one in series]
        self.squares = np.add.reduceat(series[0].squares, first)
        self.taken = [one.taken for one in series]
        self.blocks = Blocks(some, step, series)

    def levels(self, step: int, moved: float) -> list[float]:
        """Return the mean of every line in a step, less what the values of the arms add up to in its rows."""
        return [float((sums[step] - moved) / self.rows[step]) for sums in self.sums]


def coefficients_of(cells: Cells, first: Whole, measure: Measure) -> list[Array]:
    """Return c (S + 1, q) of the series, and of the plain metric if covariates are taken from it."""
    c = np.zeros((len(first) + 1, len(cells.columns)))
    c[:, measure.column] = 1.0
    if measure.denominator is not None:
        c[:, measure.denominator] -= measure.ratio
    if not measure.covariates:
        return [c]
    adjusted = c.copy()
    covariates = np.array(measure.covariates, dtype=np.int64)
    adjusted[:, covariates] -= slopes_before(cells, first, measure.column, covariates)
    return [adjusted, c]
