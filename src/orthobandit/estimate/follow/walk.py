"""Bucket by bucket: forecast the level from earlier buckets, then learn it, and what each arm is worth."""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.estimate import ContrastSequence, Evidence, Tuning
from orthobandit.estimate.augmented import Pulls
from orthobandit.estimate.confidence.evidence import weights_of
from orthobandit.estimate.follow.cells import Measure
from orthobandit.estimate.follow.timeline import Block, Timeline
from orthobandit.estimate.forecast.buckets import Chooser, Levels

PILOT = 20  # rows, or five an arm, that come before the first that counts: they give level and scatter


class ArmValues:
    """What each arm is worth over the reference arm, from all steps before.

    Residuals of a step are taken from these values, and the values of the next step rest on its residuals:
    this must go step by step, so it keeps what it needs of the evidence on the gaps to the reference arm, and
    no more.

    Parameters
    ----------
    sequence : ContrastSequence
        Its first K − 1 contrasts are the gaps to the reference arm.
    reference : int

    Attributes
    ----------
    now : (K,) array
        The values.
    """

    def __init__(self, sequence: ContrastSequence, reference: int) -> None:
        self._arms = sequence.arms
        self._mode = sequence.confidence
        self._reference = reference
        count = len(self._arms)
        self._others = np.delete(np.arange(count), reference)
        # Only gaps to the reference arm: values of the arms follow from them, and each step must be quick.
        self._totals, self._variances, self._pooled = (np.zeros(count - 1) for _ in range(3))
        self._relative = np.zeros(count)
        self._drawn = np.zeros(count)
        self._weights = np.zeros(count - 1)
        self._span = float(np.subtract(*self._mode.range[::-1]))
        self._linear: Array | None = None
        if self._arms.dimension < count - 1:  # not any values are linear in the features
            positions = self._arms.positions - self._arms.positions[reference]
            self._linear = positions @ np.linalg.pinv(positions)
        self.now = np.zeros(count)

    def begin(self, block: Block, probabilities: Array, pulls: Pulls, tuning: Tuning) -> None:
        """Prepare a block: everything that depends on its plans (T, K) and counts, and not on rewards.

        How a residual of arm a pulls at a gap is w·g(a); its square counts w²g(a)² in the variance, and
        w²·max(v, Σ p·g²·loudness) times all squares of the plan in what is pooled.
        """
        m = len(self._others)
        edges = np.append(block.first, len(block.plans))
        factor = np.where(pulls.known, pulls.variance, np.inf)[:, :m]
        tuned = Tuning(tuning.alpha[:m], tuning.rho[:m], tuning.scale[:m])
        weights = weights_of(factor, pulls.reach[:, :m], tuned, self._mode)
        pull = weights[..., np.newaxis] * pulls.pull[:, :m]
        self._pull = np.ascontiguousarray(np.swapaxes(pull, 1, 2))
        self._squared = self._pull**2
        self._shares = pull**2 * probabilities[:, np.newaxis]
        self._least = weights**2 * pulls.variance[:, :m]
        moved = weights * block.counts.sum(axis=1, keepdims=True)
        self._moved = np.add.reduceat(moved, block.first, axis=0)
        # Weights do not depend on rewards, so those of all steps of the block are known before the first.
        self._weight = self._weights + np.cumsum(self._moved, axis=0)
        drawn = self._drawn + np.cumsum(block.arms, axis=0)
        self._weights = self._weight[-1]
        self._drawn = drawn[-1]
        self._undrawn = (drawn == 0).astype(np.float64)
        self._per_draw = (1.0 - self._undrawn) / np.maximum(drawn, 1.0)
        self._per_row = np.divide(1.0, block.counts, out=np.zeros_like(block.counts), where=block.counts > 0)
        self._block = block
        self._slices = [slice(*ends) for ends in pairwise(edges.tolist())]

    def learn(self, step: int, forecast: float) -> None:
        """Learn from one step of the block, whose level was forecast."""
        some = self._slices[step]
        line = self._block.lines[0]
        now = self.now
        n = self._block.counts[some]
        s = line.sums[some]
        shift = forecast + now
        sums = s - n * shift
        # As in a tally, but for rounding: Σ(y − shift)² is at least what the mean alone gives.
        squares = np.maximum(line.squares[some] - shift * (s + sums), sums * sums * self._per_row[some])
        size = len(self._others)
        self._totals += self._moved[step] * (now[self._others] - now[self._reference])
        self._totals += sums.ravel() @ self._pull[some].reshape(-1, size)
        self._variances += squares.ravel() @ self._squared[some].reshape(-1, size)
        by_arm = squares.sum(axis=0)
        total = float(by_arm.sum())
        arms = self._block.arms[step]
        self._relative += by_arm * (float(arms.sum()) / total) if total > 0 else arms
        loudness = self._relative * self._per_draw[step] + self._undrawn[step]
        self._pooled += squares.sum(axis=1) @ np.maximum(self._least[some], self._shares[some] @ loudness)
        self._estimate(self._totals, self._weight[step], self._larger(self._variances, self._pooled))

    def learn_from(self, evidence: Evidence) -> None:
        """Set the values from evidence."""
        m = len(self._others)
        variance = self._larger(evidence.variances, evidence.pooled)[:m]
        self._estimate(evidence.totals[:m], evidence.weights[:m], variance)

    def _larger(self, variances: Array, pooled: Array) -> Array:
        """Return the larger of variances and pooled variances; exact modes need no pooled ones."""
        return variances if self._mode.is_exact else np.maximum(variances, pooled)

    def _estimate(self, totals: Array, weights: Array, variance: Array) -> None:
        """Shrink each gap by how much of its square is noise, and make the values linear in the features."""
        some = np.where(weights > 0, weights, 1.0)
        gaps = np.where(weights > 0, totals / some, 0.0)
        squares = gaps**2
        total = squares + variance / some**2
        now = np.zeros(len(self.now))
        # gap²/(gap² + variance): a gap that is all noise is shrunk to nothing, one that is sure stays.
        now[self._others] = gaps * squares / np.where(total > 0, total, 1.0)
        if self._linear is not None:
            now = self._linear @ now
        # Values further apart than rewards can be would put residuals outside the declared range.
        self.now = now if self._span == np.inf or np.ptp(now) <= self._span else np.zeros(len(now))


class Pilot(NamedTuple):
    """The first steps, which do not count: how many steps and rows, and their squared residuals."""

    steps: int
    rows: float
    squares: float

    @property
    def noise(self) -> float:
        """Standard deviation of a residual."""
        return float(np.sqrt(max(self.squares, 0.0) / self.rows))


@dataclass(frozen=True, eq=False)
class Walked:
    """Forecasts and arm values of one block.

    Attributes
    ----------
    forecasts, plain : (S,) arrays
        Of the level of the series, kept to the declared range, and of the plain metric.
    values : (S + 1, K) array
        Of the arms, before each step and after the last.
    ahead : sequence of dict
        What every baseline forecast of the series.
    """

    forecasts: Array
    plain: Array
    values: Array
    ahead: list[dict[str, float]]


@dataclass
class _Line:
    """Level and choice of baseline of one line."""

    levels: Levels
    chooser: Chooser


class Walk:
    """Goes through the steps of a timeline, once.

    Parameters
    ----------
    timeline : Timeline
    measure : Measure
    width : float
        Length of a bucket.
    is_clock : bool
        Whether times are seconds since 1970.
    """

    def __init__(self, timeline: Timeline, measure: Measure, width: float, *, is_clock: bool) -> None:
        self._timeline = timeline
        self._confidence = measure.confidence
        self._lines = [_Line(Levels(width, is_clock), Chooser(measure.baseline)) for _ in timeline.sums]

    @property
    def used(self) -> dict[str, float]:
        """Rows that each baseline was used for."""
        return self._lines[0].chooser.used

    def pilot(self, count: int) -> Pilot:
        """Go through the first steps, which do not count, until they tell what level and scatter are.

        Parameters
        ----------
        count : int
            Number of arms; their values are 0 as yet.
        """
        timeline = self._timeline
        rows = 0.0
        left = 0.0
        for step in range(len(timeline.rows)):
            # Scatter must have been seen where nothing else tells of it.
            is_known = left > 0 or self._confidence.is_exact
            if is_known and rows >= max(PILOT, 5 * count):
                return Pilot(step, rows, left)
            levels = timeline.levels(step, 0.0)
            n = float(timeline.rows[step])
            m = levels[0]
            left += float(timeline.squares[step] - 2.0 * m * timeline.sums[0][step] + n * m**2)
            rows += n
            self._learn(step, self._ahead(step), levels)
        return Pilot(len(timeline.rows), rows, left)

    def through(self, block: Block, values: ArmValues) -> Walked:
        """Forecast and learn every step of a block that `values` were prepared for."""
        forecasts = list[float]()
        plain = list[float]()
        every = list[dict[str, float]]()
        worth = [values.now]
        for place in range(len(block.first)):
            step = block.start + place
            now = values.now
            ahead = self._ahead(step)
            # Chosen by how baselines did on earlier buckets: the choice is known before the draws as well.
            chosen = [line.chooser.choose(one) for line, one in zip(self._lines, ahead, strict=True)]
            self._lines[0].chooser.note(chosen[0], float(self._timeline.rows[step]))
            forecasts.append(self._kept(ahead[0][chosen[0]], now))
            plain.append(ahead[-1][chosen[-1]])
            every.append(ahead[0])
            # From here on the bucket has been seen; everything above used earlier ones alone.
            values.learn(place, forecasts[-1])
            worth.append(values.now)
            self._learn(step, ahead, self._timeline.levels(step, float(block.arms[place] @ now)))
        return Walked(np.array(forecasts), np.array(plain), np.stack(worth), every)

    def _kept(self, forecast: float, values: Array) -> float:
        """Return a forecast clipped to what the declared range allows."""
        if not self._confidence.is_exact:
            return forecast
        centre = self._confidence.centre(values, np.ones(len(values), dtype=np.bool_))
        return float(np.clip(forecast, centre.low, centre.high))

    def _ahead(self, step: int) -> list[dict[str, float]]:
        """Return every baseline's forecast of each line."""
        time = float(self._timeline.times[step])
        out = []
        for line, taken in zip(self._lines, self._timeline.taken, strict=True):
            off = float(taken[step])
            out.append({name: value + off for name, value in line.levels.forecasts(time).items()})
        return out

    def _learn(self, step: int, ahead: list[dict[str, float]], levels: list[float]) -> None:
        """Learn the level of each line."""
        rows = float(self._timeline.rows[step])
        time = float(self._timeline.times[step])
        taken = self._timeline.taken
        for line, forecasts, level, off in zip(self._lines, ahead, levels, taken, strict=True):
            line.chooser.learn(forecasts, level, rows)
            line.levels.learn(time, level - float(off[step]), rows)
