"""Forecasts of a bucket's level from earlier buckets: mean, last, seasonal, autoregressive, best so far."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from orthobandit._foundation.types import Array

DAY = 86_400.0
WEEK = 604_800.0
FADE = 0.5  # what the weight of a bucket is multiplied by with every later one, in "last"
REGRESSORS = 6  # of the autoregression


@dataclass
class Mean:
    """A weighted mean whose old weights may fade."""

    fade: float = 1.0
    total: float = 0.0
    weight: float = 0.0

    def add(self, value: float, weight: float) -> None:
        """Add a value."""
        self.total = self.fade * self.total + weight * value
        self.weight = self.fade * self.weight + weight

    def shrunk(self, by: float = 0.0) -> float:
        """Return the mean as if a weight `by` of zeros were in it; 0 before anything was added."""
        return self.total / (self.weight + by) if self.weight > 0 else 0.0


@dataclass
class Season:
    """How far the level of each slot of a cycle is from the mean, shrunk by one bucket of average size."""

    slot_of: Callable[[float], int]
    slots: dict[int, Mean] = field(default_factory=dict)

    def at(self, time: float, usual: float) -> float:
        """Return the deviation at a time; `usual` is the average weight of a bucket."""
        slot = self.slots.get(self.slot_of(time))
        return slot.shrunk(usual) if slot else 0.0

    def add(self, time: float, deviation: float, weight: float) -> None:
        """Add the deviation of a bucket."""
        self.slots.setdefault(self.slot_of(time), Mean()).add(deviation, weight)


class _View(NamedTuple):
    """What is known of a bucket at a time: the mean, deviations of its seasons, and regressors around it."""

    time: float
    mean: float
    seasons: list[float]
    row: Array


class Levels:
    """The level of one series, bucket by bucket: forecasts of the next from those before.

    All forecasts keep to the range of past levels and change with the units of the series, so that rescaling
    rewards changes no decision.

    Parameters
    ----------
    width : float
        Length of a bucket.
    is_clock : bool
        Whether times are seconds since 1970, so that there are days and weeks.

    Examples
    --------
    >>> levels = Levels(width=1.0, is_clock=False)
    >>> for time, level in enumerate([1.0, 3.0, 5.0]):
    ...     levels.learn(float(time), level, 10.0)
    >>> {name: round(value, 3) for name, value in levels.forecasts(3.0).items()}["mean"]
    3.0
    """

    def __init__(self, width: float, is_clock: bool) -> None:
        self._mean = Mean()
        self._last = Mean(FADE)
        self._low = np.inf
        self._high = -np.inf
        self._count = 0
        self._width = width or 1.0
        self._seasons = list[Season]()
        self._is_clock = is_clock
        self._day = DAY / self._width if is_clock and 0 < width <= DAY else 0.0
        if is_clock and 0 < width < DAY:
            self._seasons.append(Season(lambda time: int(time % DAY // width)))
        if is_clock and 0 < width <= DAY:
            self._seasons.append(Season(lambda time: int(time % WEEK // DAY)))
        days = [round(days * self._day) for days in (1, 7)] if self._day else [3, 4]
        self._lags = [1, 2, *days]
        self._past: dict[int, float] = {}
        self._gram = np.zeros((REGRESSORS, REGRESSORS))
        self._moment = np.zeros(REGRESSORS)
        self._view: _View | None = None  # of the next bucket

    def forecasts(self, time: float) -> dict[str, float]:
        """Return every baseline's forecast for the bucket that begins at a time; empty before the first."""
        if not self._count:
            return {}
        view = self._at(time)
        # The mean is always there, so that whatever was asked for has something to fall back on.
        ahead = {"none": 0.0, "mean": view.mean, "last": self._last.shrunk()}
        if self._seasons:
            ahead["seasonal"] = self._clipped(view.mean + sum(view.seasons))
        # With fewer buckets than regressors a regression fits noise.
        if self._count > REGRESSORS:
            ahead["autoregressive"] = self._clipped(view.mean + float(view.row @ self._coefficients()))
        return ahead

    def learn(self, time: float, level: float, weight: float) -> None:
        """Learn the level of a bucket with `weight` rows; buckets come in the order of time."""
        if self._count:
            view = self._at(time)
            deviation = level - view.mean
            weighted = weight * view.row
            self._gram += weighted[:, np.newaxis] * view.row
            self._moment += deviation * weighted
            for part, season in zip(view.seasons, self._seasons, strict=True):
                # Each season learns what the others leave: a Monday must not be learnt again as an hour of
                # the day.
                season.add(time, deviation - sum(view.seasons) + part, weight)
        self._mean.add(level, weight)
        self._last.add(level, weight)
        self._low, self._high = min(self._low, level), max(self._high, level)
        self._past[self._place(time)] = level
        self._count = self._count + 1
        self._view = None

    def _at(self, time: float) -> "_View":
        """Return the regressors of a bucket: recent levels, those a day and a week before, the season."""
        if self._view is None or self._view.time != time:
            mean = self._mean.shrunk()
            now = self._place(time)
            past = self._past
            usual = self._mean.weight / self._count
            seasons = [season.at(time, usual) for season in self._seasons]
            before = [past.get(now - lag, mean) - mean for lag in self._lags]
            row = np.array([*before, self._last.shrunk() - mean, sum(seasons)])
            self._view = _View(time, mean, seasons, row)
        return self._view

    def _place(self, time: float) -> int:
        """Return the number of a bucket that lags are counted in: of a clock by time, otherwise by order.

        Buckets of numbers may get longer as time goes on.
        """
        return round(time / self._width) if self._is_clock else self._count

    def _coefficients(self) -> Array:
        """Solve a ridge regression whose penalty is one bucket of usual size for each regressor."""
        gram = self._gram.copy()
        # In units of each regressor, so that rescaling rewards changes no forecast.
        sizes = self._gram.diagonal() / self._count
        gram.flat[:: REGRESSORS + 1] += np.maximum(sizes, 1e-12 * sizes.max() + 1e-300)
        return np.asarray(np.linalg.solve(gram, self._moment))

    def _clipped(self, value: float) -> float:
        return float(min(max(value, self._low), self._high))


class Chooser:
    """Which baseline to use: the one asked for or, for "auto", the one that missed least so far."""

    def __init__(self, asked: str) -> None:
        self._asked = asked
        self._losses = dict[str, float]()
        self.used = dict[str, float]()

    def choose(self, ahead: dict[str, float]) -> str:
        """Return the name of the forecast to use; the running mean where the one asked for is not ready."""
        if self._asked != "auto":
            return self._asked if self._asked in ahead else "mean"
        # What is not older than others has missed less only because it was not asked.
        ready = [name for name in ahead if name in self._losses and name != "none"]
        return min(ready, key=lambda name: self._losses[name], default="mean")

    def learn(self, ahead: dict[str, float], level: float, weight: float) -> None:
        """Add the loss of every forecast, now that the level is known."""
        # A baseline that comes later begins with the worst record of the others.
        worst = max((loss for name, loss in self._losses.items() if name != "none"), default=0.0)
        for name, value in ahead.items():
            start = self._losses.get(name, worst)
            self._losses[name] = start + weight * (level - value) ** 2

    def note(self, name: str, weight: float) -> None:
        """Count the rows that a baseline was used for."""
        self.used[name] = self.used.get(name, 0.0) + weight
