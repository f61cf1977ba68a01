"""One metric of a log followed bucket by bucket: forecast, residuals, evidence on every gap."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orthobandit._types import Array, Whole
from orthobandit.estimate import Confidence, ContrastSequence, Plan
from orthobandit.estimate.augmented import Pulls
from orthobandit.logs.cells import Cells
from orthobandit.logs.feeds import Feeds
from orthobandit.logs.levels import Chooser, Levels
from orthobandit.logs.residuals import Series, Slopes
from orthobandit.logs.savings import Savings
from orthobandit.logs.scores import Aim, Score, Seen

ROWS = 4  # of a bucket, at least, for its scatter to tell anything; buckets with fewer are joined
PILOT = 20  # rows, or five an arm, that come before the first that counts: they give level and scatter
GUESSED_ROUNDS = 10_000  # at which intervals are made tightest; they are valid at any number
MOST_PAIRED = 40  # arms; with more, only gaps to the reference arm are followed
MOMENTS = 200  # at which the evidence is kept for the picture over time
MOST_PULLS = 5_000_000  # numbers that the weights of all plans may take to be kept


@dataclass(frozen=True)
class Measure:
    """What is followed.

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


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What was known at the end of a bucket, and the shares (K,) of its rows that each arm had."""

    bucket: int
    rows: int
    level: float
    forecast: float | None
    sequence: ContrastSequence
    shares: Array


@dataclass
class _Line:
    """A series with its forecasts: the metric less its covariates, or the plain metric beside it."""

    levels: Levels
    chooser: Chooser


class Follower:
    """Follows one metric through the buckets of a log.

    For every bucket the coefficients of the series (metric less covariates, or less a ratio times another),
    the forecast of its level and the values of the arms come from earlier buckets: residuals are centred by
    what was known before any of its arms was drawn. The first buckets, the pilot, are not counted: they say
    what level and scatter are. The boundaries are fixed by the plans that the pilot had.

    Attributes
    ----------
    pairs : (m, 2) array of int
        Gaps that are followed: of every arm over the reference arm, then, unless there are many, of others.
    sequence : ContrastSequence or None
        The evidence on gaps; None if no bucket counted.
    scores : tuple of Score
        Averages over the rounds that counted: of the level of the reference arm, in the metric itself, then
        those asked for.
    rows : int
        That were counted.
    snapshots : list of Snapshot
    savings : Savings
    feeds : Feeds or None
        What was counted, if it is recorded.
    """

    def __init__(self, cells: Cells, measure: Measure, aims: Sequence[Aim] = ()) -> None:
        self.cells, self.measure = cells.with_rows(ROWS), measure
        self.pairs = pairs_of(len(cells.arms), measure.reference)
        self.sequence: ContrastSequence | None = None
        self.scores: tuple[Score, ...] = ()
        self._plain_seen = Seen.start(len(cells.arms))
        self._aims = (Aim.level(cells.plans, measure.reference), *aims)
        self.rows, self.snapshots, self.savings = 0, list[Snapshot](), Savings()
        self.feeds = Feeds() if measure.is_recorded else None
        lines = 2 if measure.covariates else 1
        self._lines = [
            _Line(Levels(cells.width, cells.is_clock), Chooser(measure.baseline)) for _ in range(lines)
        ]
        self._slopes = Slopes(measure.column, np.array(measure.covariates, dtype=np.int64))
        self._seen, self._sums = 0.0, np.zeros(len(cells.columns))  # rows, and sums of columns, so far
        self._values = np.zeros(len(cells.arms))
        self._pilot_rows, self._pilot_squares, self._pilot_plans = 0, 0.0, set[int]()
        self._pulls: Pulls | None = None

    @property
    def baseline(self) -> str:
        """The baseline that was used for most rows."""
        used = self._lines[0].chooser.used
        return max(used, key=lambda name: used[name], default="mean")

    def run(self) -> "Follower":
        """Go through all buckets in the order of time."""
        buckets = np.unique(self.cells.bucket)
        kept = set(buckets[np.unique(np.linspace(0, len(buckets) - 1, MOMENTS).astype(int))].tolist())
        for bucket, cells in self.cells.only(self.cells.counts > 0).by_bucket():
            time = float(self.cells.times[bucket])
            series = self._series(cells)
            ahead = [
                {name: value + one.taken for name, value in line.levels.forecasts(time).items()}
                for line, one in zip(self._lines, series, strict=True)
            ]
            forecast = None
            if self._is_ready():
                forecast = self._counted(series, ahead)
            else:
                self._pilot(series[0])
            self._learn(time, series, ahead)
            if bucket in kept and self.sequence is not None:
                self._keep(bucket, series[0], forecast)
        return self

    def run_once(self) -> "Follower":
        """Look at the log as a whole: what would come from earlier buckets comes from all rows.

        Forecast and values are then not known before the draws. They are wrong by about 1/√n, and weights
        g(a) have mean 0 whatever they are, so the estimates are off by about 1/n: no matter for an ordinary
        interval, which holds for one look at many rows.
        """
        cells = self.cells.only(self.cells.counts > 0)
        if not len(cells.counts):
            return self
        self._learn(float(self.cells.times[0]), self._series(cells), [{} for _ in self._lines])
        series = self._series(cells)[0]
        for _ in range(2):  # values of the arms are known the second time
            self._pilot_rows, self._pilot_squares, self.rows = 0, 0.0, 0
            self._pilot(series)
            self._begin()
            self._add(series, series.level(self._values))
            if self.measure.covariates:
                plain = self._series(cells)[1]
                self._plain_seen = Seen.start(len(cells.arms))
                self._add_plain(plain, plain.level(self._values))
            if self.sequence is not None:
                self._values = self._estimated(self.sequence)
        return self

    def _is_ready(self) -> bool:
        """Tell whether the pilot was long enough, and has seen scatter where nothing else tells of it."""
        is_known = self._pilot_squares > 0 or self.measure.confidence.is_exact
        return is_known and self._pilot_rows >= max(PILOT, 5 * len(self.cells.arms))

    def _series(self, cells: Cells) -> list[Series]:
        """Return the rows of a bucket as the series, and as the plain metric if it has covariates."""
        means = self._sums / max(self._seen, 1.0)
        return [Series(cells, c, self.measure.column, means) for c in self._coefficients()]

    def _coefficients(self) -> list[Array]:
        """Return c (q,) of the series, and of the plain metric if covariates are taken from it."""
        c = np.zeros(len(self.cells.columns))
        c[self.measure.column] = 1.0
        if self.measure.denominator is not None:
            c[self.measure.denominator] -= self.measure.ratio
        if not self.measure.covariates:
            return [c]
        adjusted = c.copy()
        adjusted[list(self.measure.covariates)] -= self._slopes.beta
        return [adjusted, c]

    def _pilot(self, series: Series) -> None:
        """Take in a bucket that does not count."""
        self._pilot_rows += int(series.counts.sum())
        self._pilot_squares += series.squared(series.level(self._values), self._values)
        self._pilot_plans.update(np.unique(series.cells.plan).tolist())

    def _counted(self, series: list[Series], ahead: list[dict[str, float]]) -> float:
        """Add a bucket to the evidence; return the forecast that was used."""
        if self.sequence is None:
            self._begin()
        chosen = [line.chooser.choose(one) for line, one in zip(self._lines, ahead, strict=True)]
        self._lines[0].chooser.note(chosen[0], float(series[0].counts.sum()))
        self.savings.add(series[0], ahead[0], self._values)
        if len(series) == 2:
            left, usual = (
                one.squared(forecasts[name], self._values)
                for one, forecasts, name in zip(series, ahead, chosen, strict=True)
            )
            self.savings.beside("covariates", left, usual)
            self._add_plain(series[1], ahead[1][chosen[1]])
        return self._add(series[0], ahead[0][chosen[0]])

    def _add_plain(self, series: Series, forecast: float) -> None:
        """Add the plain metric to the level that lifts are relative to."""
        plans, tally = series.tally(forecast, self._values)
        self._plain_seen = self._plain_seen.and_of(tally)
        self.scores[0].add(plans, tally, forecast, self._values, self._plain_seen)

    def _add(self, series: Series, forecast: float) -> float:
        """Add residuals to the evidence; return the forecast, kept to the declared range."""
        sequence, confidence = self.sequence, self.measure.confidence
        if sequence is None:
            raise AssertionError("the sequence was begun")
        centre = confidence.centre(self._values, np.ones(len(self._values), dtype=np.bool_))
        kept = float(np.clip(forecast, centre.low, centre.high))
        plans, tally = series.tally(kept, self._values, confidence.limit)
        p = self.cells.plans[plans]
        pulls = None if self._pulls is None else self._pulls.of_plans(plans)
        self.sequence = sequence.add(Plan(p, tally.rounds, centre), tally, pulls)
        for score in self.scores[1:] if self.measure.covariates else self.scores:
            score.add(plans, tally, kept, self._values, self.sequence)
        if self.feeds is not None:
            self.feeds.add(plans, self._values, tally)
        self.rows += int(series.counts.sum())
        return kept

    def _begin(self) -> None:
        """Fix the boundaries, from the pilot."""
        measure, count = self.measure, len(self.cells.arms)
        noise = float(np.sqrt(max(self._pilot_squares, 0.0) / self._pilot_rows))
        noise = noise or min(measure.confidence.limit / 4.0, 1.0)
        pilot = np.array(sorted(self._pilot_plans), dtype=np.int64)
        level = measure.delta / (count - 1)
        sequence = ContrastSequence.start(
            self.cells.arms, self.pairs, measure.confidence, level, noise=noise, rounds=GUESSED_ROUNDS
        )
        self.sequence = sequence.tuned_by(self.cells.plans[pilot])
        # The level of the reference arm serves K − 1 lifts; what else is averaged stands alone.
        deltas = [level, *[measure.delta] * (len(self._aims) - 1)]
        self.scores = tuple(
            Score(aim, measure.confidence, delta, noise=noise, rounds=GUESSED_ROUNDS, pilot=pilot)
            for aim, delta in zip(self._aims, deltas, strict=True)
        )
        if len(self.cells.plans) * len(self.pairs) * count <= MOST_PULLS:
            positions = self.cells.arms.positions
            self._pulls = Pulls.of(positions, sequence.coefficients, self.cells.plans)

    def _learn(self, time: float, series: list[Series], ahead: list[dict[str, float]]) -> None:
        """Take in a bucket after it was counted: levels, slopes, ratio, values of the arms."""
        cells, rows = series[0].cells, float(series[0].counts.sum())
        for line, one, forecasts in zip(self._lines, series, ahead, strict=True):
            level = one.level(self._values)
            line.chooser.learn(forecasts, level, rows)
            line.levels.learn(time, level - one.taken, rows)
        if self.measure.covariates:
            self._slopes.learn(cells)
        self._seen, self._sums = self._seen + rows, self._sums + cells.sums.sum(axis=0)
        if self.sequence is not None:
            self._values = self._estimated(self.sequence)

    def _estimated(self, sequence: ContrastSequence) -> Array:
        """Return values of the arms (K,): estimated gaps, each as far as it is known, linear in features."""
        count, reference, e = len(self.cells.arms), self.measure.reference, sequence.evidence
        estimates, weights = e.estimates[: count - 1], e.weights[: count - 1]
        variance = np.maximum(e.variances, e.pooled)[: count - 1]
        total = estimates**2 + variance / np.where(weights > 0, weights, 1.0) ** 2
        shrunk = np.divide(estimates**3, total, out=np.zeros(count - 1), where=total > 0)
        values = np.insert(shrunk, reference, 0.0)
        if self.cells.arms.dimension < count - 1:  # not any values are linear in the features
            positions = self.cells.arms.positions - self.cells.arms.positions[reference]
            values = positions @ np.linalg.lstsq(positions, values, rcond=None)[0]
        low, high = self.measure.confidence.range
        return np.asarray(values if np.ptp(values) <= high - low else np.zeros(count))

    def _keep(self, bucket: int, series: Series, forecast: float | None) -> None:
        shares = np.bincount(series.cells.arm, series.counts, minlength=len(self._values))
        level = series.level(self._values)
        if self.sequence is not None:
            self.snapshots.append(
                Snapshot(bucket, self.rows, level, forecast, self.sequence, shares / series.counts.sum())
            )


def pairs_of(count: int, reference: int) -> Whole:
    """Return the gaps (m, 2) that are followed: to the reference arm first, then all others if few."""
    others = [arm for arm in range(count) if arm != reference]
    rows = [(arm, reference) for arm in others]
    if count <= MOST_PAIRED:
        rows += [(i, j) for place, i in enumerate(others) for j in others[:place]]
    return np.array(rows, dtype=np.int64)
