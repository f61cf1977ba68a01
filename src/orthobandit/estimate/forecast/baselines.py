"""Baselines: forecasts of the moving level, fixed before each arm is drawn.

A forecast acts as a control variate. A good one shrinks intervals; a bad one, even a hostile one, widens them
and does nothing else: it is subtracted from the reward whatever arm comes next, so it cannot favour any. All
of this holds because it is made before the arm is drawn.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_positive, check_whole
from orthobandit._foundation.registry import WithOwn
from orthobandit.errors import Argument, ForecastError, ParameterError
from orthobandit.estimate.forecast import compiled as steps
from orthobandit.estimate.forecast.compiled import Recipe
from orthobandit.estimate.forecast.contract import (
    CompiledForecaster,
    Covariates,
    Forecast,
    Forecaster,
    NumberedForecaster,
    RememberingForecaster,
)


class Baseline(Protocol):
    """Settings of a forecaster, whose contract is that of :class:`~orthobandit.estimate.Forecaster`.

    One that can go on from a memory takes it as the only argument of :meth:`forecaster`.
    """

    def forecaster(self) -> Forecaster:
        """Return a forecaster that has seen nothing, and shares nothing with others."""
        ...


def check_baseline(baseline: object) -> None:
    """Raise :class:`ParameterError` unless `baseline` makes forecasters."""
    if not callable(getattr(baseline, "forecaster", None)):
        raise ParameterError(Argument("baseline", baseline), " must have a method `forecaster`")


@dataclass(frozen=True)
class CompiledBaseline(ABC):
    """A baseline with a compiled step, which the simulator runs inside its loops.

    Any other is asked round by round.
    """

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """What the compiled step does."""

    def forecaster(self, memory: Mapping[str, Any] | None = None) -> CompiledForecaster:
        """Return a forecaster that has seen nothing, or one that goes on from what ``to_json`` returned."""
        return CompiledForecaster(self.recipe, memory)


def _recipe(
    kind: int, rate: float = 1.0, lags: int = 0, periods: Sequence[float] = (), fitted: int = 0
) -> Recipe:
    return Recipe(kind, float(rate), int(lags), np.array(periods, dtype=np.float64), int(fitted))


@dataclass(frozen=True)
class NoBaseline(CompiledBaseline):
    """Forecasts 0: rewards as they are."""

    @property
    def recipe(self) -> Recipe:  # noqa: D102
        return _recipe(steps.NOTHING)


@dataclass(frozen=True)
class RunningMean(CompiledBaseline):
    """The mean of all residuals so far: right for a level that does not move."""

    @property
    def recipe(self) -> Recipe:  # noqa: D102
        return _recipe(steps.MEAN)


@dataclass(frozen=True)
class ExponentialMean(CompiledBaseline):
    """An exponentially weighted mean of past residuals: follows a level that wanders.

    Parameters
    ----------
    rate : float
        Weight of the newest residual, in (0, 1).
    """

    rate: float = 0.05

    def __post_init__(self) -> None:
        check_fraction("rate", self.rate)

    @property
    def recipe(self) -> Recipe:  # noqa: D102
        return _recipe(steps.EXPONENTIAL, self.rate)


@dataclass(frozen=True)
class AutoRegression(CompiledBaseline):
    """Recursive least squares of each residual on the `lags` before it and a constant.

    Residuals are taken from the mean of the first few and in units of their standard deviation, so that the
    units of rewards do not matter; forecasts keep to the range of past residuals.

    Parameters
    ----------
    lags : int
        How many past residuals to look at.
    ridge : float
        Penalty on the coefficients, in these units.
    """

    lags: int = 16
    ridge: float = 0.1

    def __post_init__(self) -> None:
        check_whole("lags", self.lags)
        check_positive("ridge", self.ridge)

    @property
    def recipe(self) -> Recipe:  # noqa: D102
        return _recipe(steps.REGRESSION, self.ridge, self.lags)


@dataclass(frozen=True)
class ARMA(AutoRegression):
    """An autoregressive moving average: an autoregression that also looks at the levels it has fitted.

    Residuals are noisy; the level that was fitted to each, with what it taught, is much less so. A wave obeys
    a recursion in its own last two levels, which residuals hide behind their noise: an autoregression must
    average over many lags, this learns the recursion (extended least squares). After 2,000 rounds of sin(2t)
    with noise of variance 1, 16 lags are off by a variance of 0.10, this by 0.02 with as many coefficients
    (``python -m benchmarks.bench_forecasts``).

    Parameters
    ----------
    lags : int
        How many past residuals to look at, and as many fitted levels.
    ridge : float
        Penalty on the coefficients, in the units of :class:`AutoRegression`.
    """

    lags: int = 8

    @property
    def recipe(self) -> Recipe:  # noqa: D102
        return _recipe(steps.REGRESSION, self.ridge, self.lags, fitted=self.lags)


@dataclass(frozen=True)
class SeasonalRegression(CompiledBaseline):
    """Recursive least squares on a sine and cosine of each period, a constant, and optional lags.

    Parameters
    ----------
    periods : sequence of float
        In rounds, e.g. ``(1440, 10080)`` for a day and a week of minutes.
    lags : int
        Past residuals to look at as well.
    ridge : float
        Penalty on the coefficients.
    """

    periods: tuple[float, ...]
    lags: int = 0
    ridge: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "periods", tuple(self.periods))
        if not self.periods:
            raise ParameterError("periods is empty; give at least one period in rounds")
        for period in self.periods:
            check_positive("periods", period)
        check_whole("lags", self.lags, least=0)
        check_positive("ridge", self.ridge)

    @property
    def recipe(self) -> Recipe:  # noqa: D102
        return _recipe(steps.REGRESSION, self.ridge, self.lags, self.periods)


class OnlineModel(Protocol):
    """The convention of online learning libraries such as river."""

    def predict_one(self, x: dict[str, float]) -> float | None:
        """Predict from named features."""
        ...

    def learn_one(self, x: dict[str, float], y: float) -> object:
        """Learn from named features and the outcome."""
        ...


@dataclass(frozen=True)
class OnlineRegression:
    """Any online regressor with `predict_one` and `learn_one`; sees covariates, time and lags.

    Parameters
    ----------
    model : callable
        Makes a new model, e.g. ``lambda: river.linear_model.LinearRegression()``.
    lags : int
        Past residuals offered as features ``lag1``, ``lag2``, ….

    Notes
    -----
    Features are the user's covariates, ``round``, and the lags. Runs round by round in Python.
    """

    model: Callable[[], OnlineModel]
    lags: int = 0

    def __post_init__(self) -> None:
        check_whole("lags", self.lags, least=0)

    def forecaster(self) -> Forecaster:
        """Return a forecaster with a new model."""
        return _OnlineForecaster(self.model(), self.lags)


class _OnlineForecaster(NumberedForecaster):
    def __init__(self, model: OnlineModel, lags: int) -> None:
        super().__init__()
        self._model = model
        self._last = [0.0] * lags

    def forecast(self, round: int, covariates: Covariates | None = None) -> Forecast:  # noqa: A002
        features = {"round": float(round), **(covariates or {})}
        features |= {f"lag{k + 1}": value for k, value in enumerate(self._last)}
        value = self._model.predict_one(dict(features))
        if value is not None and not np.isfinite(value):
            raise ForecastError(f"the baseline model predicted {value} for round {round}; it must be finite")
        return Forecast(float(value or 0.0), round, features=tuple(features.items()), number=self._number())

    def learn(self, forecast: Forecast, residual: float) -> None:
        self._settle(forecast, residual)
        self._model.learn_one(dict(forecast.features), residual)
        self._last = [residual, *self._last][: len(self._last)]

    def to_json(self) -> Any:
        raise ParameterError("an online regressor keeps its own memory; save the model itself")


@dataclass(frozen=True)
class CovariateRegression:
    """Recursive least squares of residuals on named user covariates and a constant.

    Parameters
    ----------
    names : sequence of str
        Which covariates to use; each must come with every forecast.
    ridge : float
        Penalty on the coefficients.
    """

    names: tuple[str, ...]
    ridge: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        check_positive("ridge", self.ridge)

    def forecaster(self, memory: Mapping[str, Any] | None = None) -> Forecaster:
        """Return a forecaster that has seen nothing, or one that goes on from what ``to_json`` returned."""
        return _CovariateForecaster(self.names, self.ridge, memory)


class _CovariateForecaster(RememberingForecaster):
    def __init__(self, names: tuple[str, ...], ridge: float, memory: Mapping[str, Any] | None = None) -> None:
        # As large as a regression on so many lags, but the covariates are no residuals.
        super().__init__(_recipe(steps.REGRESSION, ridge, len(names)), memory)
        self._names = names
        self._ridge = ridge

    def forecast(self, round: int, covariates: Covariates | None = None) -> Forecast:  # noqa: A002
        given = covariates or {}
        for name in self._names:
            if name not in given or not np.isfinite(given[name]):
                raise ParameterError(f"covariate {name!r} is missing or not finite in round {round}")
        regressors = np.array([1.0, *(float(given[name]) for name in self._names)])
        value = steps.regressed(self._memory, regressors, 0)
        return Forecast(value, round, tuple(regressors.tolist()), number=self._number())

    def learn(self, forecast: Forecast, residual: float) -> None:
        self._settle(forecast, residual, 1 + len(self._names))
        steps.learn_regressed(self._memory, np.array(forecast.regressors), residual, 0, self._ridge)


def _one_season(period: float, lags: int = 0) -> SeasonalRegression:
    return SeasonalRegression((period,), lags)


# Baselines by name, for the command line and for studies; their settings are the arguments of their makers.
BASELINES: Mapping[str, Callable[..., Baseline]] = {
    "none": NoBaseline,
    "mean": RunningMean,
    "exponential": ExponentialMean,
    "arma": ARMA,
    "autoregressive": AutoRegression,
    "seasonal": _one_season,
}
BASELINES = WithOwn("baseline", BASELINES, "orthobandit.baselines")
