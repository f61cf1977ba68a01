"""Tallies of residuals from cells: a forecast is constant in a cell, so that squares expand."""

import numpy as np

from orthobandit._types import Array, Whole
from orthobandit.estimate import Tally
from orthobandit.logs.cells import Cells

LIKE_A_ROW = 10.0  # rows whose worth the ridge of covariates has


class Series:
    """Rows of some cells as one series y = cᵀ(v − offset): counts, sums, squares and range of every cell.

    Parameters
    ----------
    cells : Cells
    coefficients : (q,) array
        c, known before the rows.
    metric : int
        The column that the others are taken from.
    """

    def __init__(self, cells: Cells, coefficients: Array, metric: int = 0) -> None:
        used = np.flatnonzero(coefficients)
        c = coefficients[used]
        self.cells, self.counts = cells, cells.counts.astype(np.float64)
        self.sums = cells.sums[:, used] @ c
        self.squares = np.einsum("i,gij,j->g", c, cells.products[:, used[:, np.newaxis], used], c)
        self.low, self.high = _ends(cells.low, cells.high, coefficients)
        if cells.slopes is not None and cells.rest_low is not None and cells.rest_high is not None:
            left = coefficients + cells.slopes[metric]
            left[metric] = 0.0
            low, high = _ends(cells.low, cells.high, left)
            self.low = np.maximum(self.low, cells.rest_low[:, metric] + low)
            self.high = np.minimum(self.high, cells.rest_high[:, metric] + high)

    def level(self, values: Array) -> float:
        """Return the mean of y less the values (K,) of the arms."""
        return float((self.sums.sum() - self.counts @ values[self.cells.arm]) / self.counts.sum())

    def squared(self, forecast: float, values: Array) -> float:
        """Return the sum of squared residuals."""
        shift = forecast + values[self.cells.arm]
        return float(np.sum(self.squares - 2.0 * shift * self.sums + self.counts * shift**2))

    def tally(self, forecast: float, values: Array, limit: float = np.inf) -> tuple[Whole, Tally]:
        """Return the plans (G,) of the cells and the tally (G, K) of y − forecast − values.

        Parameters
        ----------
        forecast : float
        values : (K,) array
        limit : float
            Magnitude that no residual exceeds; what rounding adds to it is cut.
        """
        shift = forecast + values[self.cells.arm]
        sums = self.sums - self.counts * shift
        squares = self.squares - 2.0 * shift * self.sums + self.counts * shift**2
        most = np.minimum(np.maximum(np.abs(self.low - shift), np.abs(self.high - shift)), limit)
        # Rounding may leave squares a little below what the mean alone gives, or above what is possible.
        least = np.divide(sums**2, self.counts, out=np.zeros_like(sums), where=self.counts > 0)
        squares = np.clip(squares, least, np.maximum(most**2 * self.counts, least))
        most = np.maximum(most, np.sqrt(squares / np.maximum(self.counts, 1.0)))
        plans, place = np.unique(self.cells.plan, return_inverse=True)
        count = len(self.cells.arms)
        at, shape = place * count + self.cells.arm, (len(plans), count)
        largest = np.zeros(shape[0] * shape[1])
        np.maximum.at(largest, at, np.where(self.counts > 0, most, 0.0))
        parts = [
            np.bincount(at, part, minlength=len(largest)).reshape(shape)
            for part in (self.counts, sums, squares)
        ]
        return plans, Tally(parts[0].astype(np.int64), parts[1], parts[2], largest.reshape(shape))


def _ends(low: Array, high: Array, coefficients: Array) -> tuple[Array, Array]:
    """Return what cᵀv lies between (G,), for v between `low` and `high` (G, q)."""
    ends = np.stack([low * coefficients, high * coefficients])
    return ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)


class Slopes:
    """How a metric goes along with covariates, within cells: β of the rows so far.

    Parameters
    ----------
    metric : int
        Its column.
    covariates : sequence of int
        Theirs.
    """

    def __init__(self, metric: int, covariates: Whole) -> None:
        self._columns = np.append(covariates, metric).astype(np.int64)
        self._scatter = np.zeros((len(self._columns),) * 2)
        self._rows = 0.0

    def learn(self, cells: Cells) -> None:
        """Take in cells: products around the means of each."""
        some = cells.only(cells.counts > 0)
        sums = some.sums[:, self._columns]
        products = some.products[:, self._columns[:, np.newaxis], self._columns]
        around = products - sums[:, :, np.newaxis] * (sums / some.counts[:, np.newaxis])[:, np.newaxis]
        self._scatter += around.sum(axis=0)
        self._rows += float(np.maximum(some.counts - 1, 0).sum())

    @property
    def beta(self) -> Array:
        """β; 0 for covariates that do not vary."""
        scatter, moment = self._scatter[:-1, :-1], self._scatter[:-1, -1]
        sizes = np.diagonal(scatter)
        vary = sizes > 0
        out = np.zeros(len(sizes))
        if vary.any() and self._rows > 0:
            scale = np.sqrt(sizes[vary])
            unit = scatter[np.ix_(vary, vary)] / scale / scale[:, np.newaxis]
            unit += LIKE_A_ROW / self._rows * np.eye(len(unit))
            out[vary] = np.linalg.solve(unit, moment[vary] / scale) / scale
        return out
