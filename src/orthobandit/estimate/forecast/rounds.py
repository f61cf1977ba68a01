"""Forecasts of a metric's level, round by round: made before each draw, learnt from once it has settled."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from orthobandit._foundation.json_arrays import unpacked
from orthobandit._foundation.types import Array, Mask
from orthobandit.errors import Argument, ForecastError, ParameterError
from orthobandit.estimate.forecast.baselines import Baseline
from orthobandit.estimate.forecast.contract import CompiledForecaster, Covariates, Forecast

Given = Sequence[Covariates] | None

FEWEST_ROWS = 256  # that there is room for, so that short lines do not grow with every proposal


class WaitingRows:
    """Rows (n, m) of numbers that wait in line; all have the same m.

    They come at the end and are taken from the front.

    Examples
    --------
    >>> rows = WaitingRows()
    >>> rows.add(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> rows.take(1).tolist(), len(rows)
    ([[1.0, 2.0]], 1)
    """

    def __init__(self) -> None:
        self._kept = np.empty((0, 0))
        self._head = self._end = 0

    def __len__(self) -> int:
        return self._end - self._head

    @property
    def array(self) -> Array:
        """All waiting rows (n, m). They are never written to again, so that no copy is needed."""
        return self._kept[self._head : self._end]

    def add(self, rows: Array) -> None:
        """Add rows (n, m) at the end."""
        count = len(rows)
        if self._end + count > len(self._kept):
            kept = self.array
            self._kept = np.empty((max(FEWEST_ROWS, 2 * (len(kept) + count)), rows.shape[1]))
            self._kept[: len(kept)] = kept.reshape(len(kept), rows.shape[1])
            self._head = 0
            self._end = len(kept)
        self._kept[self._end : self._end + count] = rows
        self._end += count

    def take(self, count: int) -> Array:
        """Take `count` rows (n, m) from the front."""
        # A copy: the room may be moved before the caller is done with the rows.
        taken = self._kept[self._head : self._head + count].copy()
        self._head += count
        return taken


class RoundForecasts:
    """The running forecaster of one metric, and the forecasts that wait for their rewards.

    A forecast that is not finite is refused; the mean of what was learnt so far stands in for it, and
    `stood_in` counts how often. `learnt` counts the rewards learnt from.
    """

    def __init__(self, baseline: Baseline, kept: Mapping[str, Any] | None = None) -> None:
        self._waiting: deque[Forecast | None] = deque()
        self._rows = WaitingRows()
        self._mean = 0.0
        self.learnt = 0
        self.stood_in = 0
        self._names: tuple[str, ...] = tuple(getattr(baseline, "names", ()))
        memory = None if kept is None else kept["memory"]
        self._forecaster = baseline.forecaster() if memory is None else baseline.forecaster(memory)  # type: ignore[call-arg]
        if kept is not None:
            self._mean = float(kept["mean"])
            self.learnt = int(kept["learnt"])
            self.stood_in = int(kept["stood_in"])
            self._rows = _load_rows(kept["rows"])
            self._waiting = deque(None if one is None else _load_forecast(one) for one in kept["waiting"])

    def check(self, covariates: Given) -> None:
        """Raise :class:`ParameterError` if a covariate is missing, before any forecast is made.

        A forecaster that has made some forecasts of a request when it refuses another could not be what the
        log says.
        """
        for name in self._names:
            for row in covariates or ({},):
                if name not in row:
                    raise ParameterError(f"covariate {name!r} is missing; the baseline forecasts from it")

    def ahead(self, number: int, count: int, covariates: Given = None) -> Array:
        """Forecast `count` proposals (n,) before they are drawn; the first has this number."""
        if isinstance(self._forecaster, CompiledForecaster):
            values, rows = self._forecaster.ahead(number - 1, count)
            self._rows.add(rows)
            return self._finite(values)
        out = np.empty(count)
        made: list[Forecast | None] = []
        for k in range(count):
            try:
                made.append(self._forecaster.forecast(number - 1 + k, covariates[k] if covariates else None))
            except ForecastError:
                # It must not stop a visitor: the mean stands in, and the report counts how often.
                made.append(None)
            one = made[-1]
            out[k] = np.nan if one is None else one.value
        self._waiting.extend(made)
        return self._finite(out)

    def _finite(self, values: Array) -> Array:
        if len(values) == 1 and math.isfinite(values.item()):
            return values
        bad = ~np.isfinite(values)
        if not bad.any():
            return values
        self.stood_in += int(np.count_nonzero(bad))
        return np.where(bad, self._mean, values)

    def learn(self, residuals: Array, kept: Mask | None = None) -> None:
        """Learn from the oldest forecasts (n,) that wait; those that are not `kept` are forgotten."""
        count = len(residuals)
        learnt = residuals if kept is None else residuals[kept]
        # One after the other, as single proposals would be learnt: batches of any size leave the same mean.
        for residual in learnt.tolist():
            self.learnt += 1
            self._mean += (residual - self._mean) / self.learnt
        if isinstance(self._forecaster, CompiledForecaster):
            # Forecasts wait in the order of draws, and draws settle in that order: the oldest are these.
            rows = self._rows.take(count)
            self._forecaster.take(rows if kept is None else rows[kept], learnt)
            return
        for k in range(count):
            forecast = self._waiting.popleft()
            if (kept is None or kept[k]) and forecast is not None:
                self._forecaster.learn(forecast, float(residuals[k]))

    def to_json(self, pack: Callable[[Array], Any]) -> dict[str, Any]:
        """Return the memory as plain values; :class:`ParameterError` if the model cannot give it.

        The waiting rows may be very long; `pack` turns that array into plain values.
        """
        return {
            "memory": self._forecaster.to_json(),
            "mean": self._mean,
            "learnt": self.learnt,
            "stood_in": self.stood_in,
            "rows": pack(self._rows.array) if len(self._rows) else "",
            "waiting": [None if one is None else _dump_forecast(one) for one in self._waiting],
        }


def check_restartable(baseline: Baseline) -> None:
    """Raise :class:`ParameterError` if a forecaster's memory cannot be kept across a restart."""
    try:
        memory = baseline.forecaster().to_json()
        baseline.forecaster(memory)  # type: ignore[call-arg]
    except (TypeError, ParameterError) as error:
        raise ParameterError(
            Argument("baseline", baseline),
            f" cannot go on after a restart ({error}); give one that can, such as"
            " AutoRegression or CovariateRegression, or use Experiment.memory",
        ) from None


def _load_rows(kept: Any) -> WaitingRows:
    """Return rows of regressors from what was kept of them."""
    out = WaitingRows()
    if kept:
        out.add(unpacked("rows", kept, np.float64, (None, None)))
    return out


def _dump_forecast(one: Forecast) -> dict[str, Any]:
    return {
        "value": one.value,
        "round": one.round,
        "regressors": list(one.regressors),
        "features": [list(pair) for pair in one.features],
        "number": one.number,
    }


def _load_forecast(data: Mapping[str, Any]) -> Forecast:
    features = tuple((str(name), float(value)) for name, value in data["features"])
    return Forecast(data["value"], data["round"], tuple(data["regressors"]), features, data["number"])
