"""Buckets of a log as tables of sums, and a series of residuals made from them."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Confidence

LIKE_A_ROW = 10.0  # rows whose worth the ridge of covariates has


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
    below : (G, J) array of int or None
        Rows whose value is at most each threshold of each quantile that is asked for.
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
    below: Whole | None = None

    @property
    def rows(self) -> int:
        """Rows that count."""
        return int(self.counts.sum())

    def time_words(self, time: float) -> str:
        """Return a time of the log in words: date and minute (UTC), or the number if there is no clock."""
        return time_words(time, is_clock=self.is_clock)

    def only(self, kept: Mask | slice) -> "Cells":
        """Return some of the cells (G,)."""
        parts = {name: getattr(self, name) for name in PER_CELL}
        return replace(self, **{name: part[kept] for name, part in parts.items() if part is not None})

    def of_segment(self, segment: int) -> "Cells":
        """Return the cells of one segment."""
        return self.only(self.segment == segment)

    def of_indicator(self, place: int, name: str) -> "Cells":
        """Return the cells of a metric that is 1 where a value is at most a threshold, and 0 elsewhere.

        Parameters
        ----------
        place : int
            Of the threshold, in `below`.
        name : str
            Of the metric.
        """
        if self.below is None:
            raise AssertionError("a quantile was asked for")
        ones = self.below[:, place, np.newaxis].astype(np.float64)
        none = np.zeros_like(self.missing[:, :1])
        return replace(
            self,
            columns=(name,),
            offset=np.zeros(1),
            missing=none,
            sums=ones,
            products=ones[..., np.newaxis],
            low=(ones >= self.counts[:, np.newaxis]).astype(np.float64),
            high=(ones > 0).astype(np.float64),
            capped=none,
            slopes=None,
            rest_low=None,
            rest_high=None,
            below=None,
        )

    def with_rows(self, least: int) -> "Cells":
        """Return the cells with small buckets joined to those after them, to at least `least` rows."""
        # Joined forwards: which buckets are joined rests on earlier rows, and stays so as the log grows.
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
    "below",
)


def time_words(time: float, *, is_clock: bool) -> str:
    """Return a time in words: date and minute (UTC) of seconds since 1970, or the number it is."""
    return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M}" if is_clock else f"{time:g}"


def totals_at(index: Whole, values: Array | Whole, length: int) -> Array:
    """Return the sums (length,) of values (n,) that have the same index."""
    return np.asarray(np.bincount(index, values, minlength=length), dtype=np.float64)


@dataclass(frozen=True)
class Measure:
    """Which metric is followed, and how.

    Attributes
    ----------
    column : int
        Of the metric, or of the numerator of a ratio.
    denominator : int or None
        Of a ratio; what is followed is the numerator less `ratio` times it.
    covariates : tuple of int
    confidence : Confidence
        In units of the column as kept, less its offset.
    delta : float
        For all gaps of the metric to the reference arm together.
    baseline : str
    reference : int
    ratio : float
    is_recorded : bool
        Whether to keep what was counted, for a certificate.
    is_two_valued : bool
        Whether all values of the log are 0 or 1, for intervals at one look.
    is_sequential : bool
        Whether the log may be looked at again when it has grown. Then a single bucket is the pilot of what
        comes, and not a log to be looked at as a whole.
    """

    column: int
    denominator: int | None
    covariates: tuple[int, ...]
    confidence: Confidence
    delta: float
    baseline: str
    reference: int
    ratio: float = 0.0
    is_recorded: bool = False
    is_two_valued: bool = False
    is_sequential: bool = False


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
        # The level of the metric itself is forecast; what the other columns add to it is known from their
        # means.
        others = np.where(np.arange(c.shape[1]) == metric, 0.0, coefficients)
        self.taken = np.einsum("sq,sq->s", others, means)
        self.sums = np.einsum("gq,gq->g", cells.sums[:, used], c[:, used])
        products = cells.products[:, used[:, np.newaxis], used]
        self.squares = np.einsum("gi,gij,gj->g", c[:, used], products, c[:, used])
        self.low, self.high = _ends(cells.low, cells.high, c)
        # Ends of a sum are far apart where metric and covariate go together. The engine also has the ends of
        # what slopes guessed from a few rows leave; only the rest of the coefficients is added to these.
        if cells.slopes is not None and cells.rest_low is not None and cells.rest_high is not None:
            left = c + cells.slopes[metric]
            left[:, metric] = 0.0
            low, high = _ends(cells.low, cells.high, left)
            self.low = np.maximum(self.low, cells.rest_low[:, metric] + low)
            self.high = np.minimum(self.high, cells.rest_high[:, metric] + high)


def _ends(low: Array, high: Array, coefficients: Array) -> tuple[Array, Array]:
    """Return the range (G,) of cᵀv for v between `low` and `high`; c, `low` and `high` are (G, q)."""
    one = low * coefficients
    other = high * coefficients
    return np.minimum(one, other).sum(axis=1), np.maximum(one, other).sum(axis=1)


def slopes_before(cells: Cells, first: Whole, metric: int, covariates: Whole) -> Array:
    """Return regression slopes of a metric on covariates, within cells, from the rows before each step.

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
    # Around the means of each cell: arms and times that differ in level must not look like a slope.
    around = products - sums[:, :, np.newaxis] * (sums / counts[:, np.newaxis])[:, np.newaxis]
    scatter = running_sums(around, first)
    # A cell of n rows has n − 1 degrees of freedom around its own mean.
    rows = running_sums(np.maximum(counts - 1.0, 0.0), first)
    sizes = np.diagonal(scatter, axis1=1, axis2=2)[:, :-1]
    vary = (sizes > 0) & (rows > 0)[:, np.newaxis]
    scale = np.sqrt(np.where(vary, sizes, 1.0))
    unit = scatter[:, :-1, :-1] / scale[:, np.newaxis] / scale[:, :, np.newaxis]
    unit = np.where(vary[:, np.newaxis] & vary[:, :, np.newaxis], unit, 0.0)
    # In units of each covariate's scatter, so that no unit matters; + 1 keeps covariates that do not vary
    # solvable.
    ridge = LIKE_A_ROW / np.maximum(rows, 1.0)[:, np.newaxis] + ~vary
    unit += ridge[:, np.newaxis] * np.eye(len(covariates))
    moment = np.where(vary, scatter[:, :-1, -1] / scale, 0.0)
    return np.asarray(np.linalg.solve(unit, moment[..., np.newaxis])[..., 0] / scale)


def running_sums(values: Array, first: Whole) -> Array:
    """Return the sums (S + 1, ...) of values (G, ...) before each of S steps, and after the last.

    Examples
    --------
    >>> running_sums(np.array([1.0, 2.0, 3.0]), np.array([0, 2])).tolist()
    [0.0, 3.0, 6.0]
    """
    out = np.zeros((len(first) + 1, *values.shape[1:]))
    np.cumsum(np.add.reduceat(values, first, axis=0), axis=0, out=out[1:])
    return out
