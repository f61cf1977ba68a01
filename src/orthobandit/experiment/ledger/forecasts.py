"""Forecasts of a metric's level: made before each draw, learnt from when the draw is settled, in order."""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from orthobandit._foundation.json_arrays import unpacked
from orthobandit._foundation.types import Array, Mask
from orthobandit.errors import ForecastError, ParameterError
from orthobandit.estimate.forecast.baselines import Baseline
from orthobandit.estimate.forecast.contract import CompiledForecaster, Covariates, Forecast
from orthobandit.experiment.ledger.rows import Rows
from orthobandit.experiment.ledger.snapshot import pack

Given = Sequence[Covariates] | None


class Level:
    """The running forecaster of one metric, and the forecasts that wait for their rewards.

    A forecast that is not finite is refused; the mean of what was learnt so far stands in for it, and
    `stood_in` counts how often. `learnt` counts the rewards learnt from.
    """

    def __init__(self, baseline: Baseline, kept: Mapping[str, Any] | None = None) -> None:
        self._waiting: deque[Forecast | None] = deque()
        self._rows = Rows()
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
            self._rows = _loaded(kept["rows"])
            self._waiting = deque(None if one is None else _forecast(one) for one in kept["waiting"])

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
        """Forecast so many proposals (n,), the first of which has this number; before they are drawn."""
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
        for residual in learnt.tolist():
            self.learnt += 1
            self._mean += (residual - self._mean) / self.learnt
        if isinstance(self._forecaster, CompiledForecaster):
            rows = self._rows.take(count)
            self._forecaster.take(rows if kept is None else rows[kept], learnt)
            return
        for k in range(count):
            forecast = self._waiting.popleft()
            if (kept is None or kept[k]) and forecast is not None:
                self._forecaster.learn(forecast, float(residuals[k]))

    def to_json(self, pack: Callable[[Array], Any] = pack) -> dict[str, Any]:
        """Return the memory as plain lists and numbers; :class:`ParameterError` if the model has no such.

        What waits may be very long, and becomes what `pack` makes of it.
        """
        return {
            "memory": self._forecaster.to_json(),
            "mean": self._mean,
            "learnt": self.learnt,
            "stood_in": self.stood_in,
            "rows": pack(self._rows.array) if len(self._rows) else "",
            "waiting": [None if one is None else _plain(one) for one in self._waiting],
        }


def check_kept(baseline: Baseline) -> None:
    """Raise :class:`ParameterError` if a forecaster's memory cannot be kept across a restart."""
    try:
        memory = baseline.forecaster().to_json()
        baseline.forecaster(memory)  # type: ignore[call-arg]
    except (TypeError, ParameterError) as error:
        raise ParameterError(
            f"baseline={baseline!r} cannot go on after a restart ({error}); give one that can, such as"
            " AutoRegression or CovariateRegression, or use Experiment.memory"
        ) from None


def _loaded(kept: Any) -> Rows:
    """Return rows of regressors from what was kept of them; earlier releases kept lists."""
    out = Rows()
    if isinstance(kept, list):
        for rows in kept:
            out.add(np.array(rows, dtype=np.float64))
    elif kept:
        out.add(unpacked("rows", kept, np.float64, (None, None)))
    return out


def _plain(one: Forecast) -> dict[str, Any]:
    return {
        "value": one.value,
        "round": one.round,
        "regressors": list(one.regressors),
        "features": [list(pair) for pair in one.features],
        "number": one.number,
    }


def _forecast(data: Mapping[str, Any]) -> Forecast:
    features = tuple((str(name), float(value)) for name, value in data["features"])
    return Forecast(data["value"], data["round"], tuple(data["regressors"]), features, data["number"])
