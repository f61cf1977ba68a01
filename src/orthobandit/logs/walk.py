"""Bucket by bucket through a log: forecast each level from what came before, then take it in."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.logs.blocks import Block
from orthobandit.logs.levels import Chooser, Levels
from orthobandit.logs.measure import Measure
from orthobandit.logs.timeline import Timeline
from orthobandit.logs.values import ArmValues

PILOT = 20  # rows, or five an arm, that come before the first that counts: they give level and scatter


class Pilot(NamedTuple):
    """What the steps that do not count have shown: how many steps and rows, and squared residuals."""

    steps: int
    rows: float
    squares: float

    @property
    def noise(self) -> float:
        """Standard deviation of a residual."""
        return float(np.sqrt(max(self.squares, 0.0) / self.rows))


@dataclass(frozen=True, eq=False)
class Walked:
    """A block as it was gone through.

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
    """The forecasts of a line."""

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
        """Go through a block that `values` have taken up."""
        forecasts = list[float]()
        plain = list[float]()
        every = list[dict[str, float]]()
        worth = [values.now]
        for place in range(len(block.first)):
            step = block.start + place
            now = values.now
            ahead = self._ahead(step)
            chosen = [line.chooser.choose(one) for line, one in zip(self._lines, ahead, strict=True)]
            self._lines[0].chooser.note(chosen[0], float(self._timeline.rows[step]))
            forecasts.append(self._kept(ahead[0][chosen[0]], now))
            plain.append(ahead[-1][chosen[-1]])
            every.append(ahead[0])
            values.learn(place, forecasts[-1])
            worth.append(values.now)
            self._learn(step, ahead, self._timeline.levels(step, float(block.arms[place] @ now)))
        return Walked(np.array(forecasts), np.array(plain), np.stack(worth), every)

    def _kept(self, forecast: float, values: Array) -> float:
        """Return a forecast, kept to what the declared range allows."""
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
        """Take in the level of each line."""
        rows = float(self._timeline.rows[step])
        time = float(self._timeline.times[step])
        taken = self._timeline.taken
        for line, forecasts, level, off in zip(self._lines, ahead, levels, taken, strict=True):
            line.chooser.learn(forecasts, level, rows)
            line.levels.learn(time, level - float(off[step]), rows)
