"""Series of all cells at once: a forecast is constant in a cell, so that squares of residuals expand."""

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.logs.cells import Cells

LIKE_A_ROW = 10.0  # rows whose worth the ridge of covariates has


class Series:
    """Rows of cells as one series y = cᵀ(v − offset): sums, squares and range of every cell.

    Parameters
    ----------
    cells : Cells
    step : (G,) array of int
        Of S steps in time, that each cell is of.
    coefficients : (S, q) array
        c, known before the rows of each step.
    metric : int
        The column that the others are taken from.
    means : (S, q) array
        What the columns were on average before.

    Attributes
    ----------
    sums, squares, low, high : (G,) arrays
    taken : (S,) array
        What the other columns take off the level of the metric, as far as `means` tell: levels are forecast
        without it, for it changes with the coefficients.
    """

    def __init__(self, cells: Cells, step: Whole, coefficients: Array, metric: int, means: Array) -> None:
        used = np.flatnonzero(coefficients.any(axis=0))
        c = coefficients[step]
        others = np.where(np.arange(c.shape[1]) == metric, 0.0, coefficients)
        self.taken = np.einsum("sq,sq->s", others, means)
        self.sums = np.einsum("gq,gq->g", cells.sums[:, used], c[:, used])
        products = cells.products[:, used[:, np.newaxis], used]
        self.squares = np.einsum("gi,gij,gj->g", c[:, used], products, c[:, used])
        self.low, self.high = _ends(cells.low, cells.high, c)
        if cells.slopes is not None and cells.rest_low is not None and cells.rest_high is not None:
            left = c + cells.slopes[metric]
            left[:, metric] = 0.0
            low, high = _ends(cells.low, cells.high, left)
            self.low = np.maximum(self.low, cells.rest_low[:, metric] + low)
            self.high = np.minimum(self.high, cells.rest_high[:, metric] + high)


def _ends(low: Array, high: Array, coefficients: Array) -> tuple[Array, Array]:
    """Return what cᵀv lies between (G,), for v between `low` and `high` and c, all (G, q)."""
    one = low * coefficients
    other = high * coefficients
    return np.minimum(one, other).sum(axis=1), np.maximum(one, other).sum(axis=1)


def slopes_before(cells: Cells, first: Whole, metric: int, covariates: Whole) -> Array:
    """Return how a metric goes along with covariates, within cells: β of the rows before each step.

    Parameters
    ----------
    cells : Cells
        In the order of time, all with rows.
    first : (S,) array of int
        The first cell of each step.
    metric : int
        Its column.
    covariates : (c,) array of int
        Theirs.

    Returns
    -------
    (S + 1, c) array
        0 for covariates that do not vary; the last row is of all rows.
    """
    columns = np.append(covariates, metric).astype(np.int64)
    sums = cells.sums[:, columns]
    counts = cells.counts.astype(np.float64)
    products = cells.products[:, columns[:, np.newaxis], columns]
    around = products - sums[:, :, np.newaxis] * (sums / counts[:, np.newaxis])[:, np.newaxis]
    scatter = running(around, first)
    rows = running(np.maximum(counts - 1.0, 0.0), first)
    sizes = np.diagonal(scatter, axis1=1, axis2=2)[:, :-1]
    vary = (sizes > 0) & (rows > 0)[:, np.newaxis]
    scale = np.sqrt(np.where(vary, sizes, 1.0))
    unit = scatter[:, :-1, :-1] / scale[:, np.newaxis] / scale[:, :, np.newaxis]
    unit = np.where(vary[:, np.newaxis] & vary[:, :, np.newaxis], unit, 0.0)
    ridge = LIKE_A_ROW / np.maximum(rows, 1.0)[:, np.newaxis] + ~vary
    unit += ridge[:, np.newaxis] * np.eye(len(covariates))
    moment = np.where(vary, scatter[:, :-1, -1] / scale, 0.0)
    return np.asarray(np.linalg.solve(unit, moment[..., np.newaxis])[..., 0] / scale)


def running(values: Array, first: Whole) -> Array:
    """Return the sums (S + 1, ...) of values (G, ...) before each of S steps, and after all of them.

    Examples
    --------
    >>> running(np.array([1.0, 2.0, 3.0]), np.array([0, 2])).tolist()
    [0.0, 3.0, 6.0]
    """
    out = np.zeros((len(first) + 1, *values.shape[1:]))
    np.cumsum(np.add.reduceat(values, first, axis=0), axis=0, out=out[1:])
    return out
