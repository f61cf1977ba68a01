"""Baselines: forecasts of the moving level, fixed before each arm is drawn.

A forecast acts as a control variate. A good one shrinks intervals; a bad one, even a hostile one, only
widens them: it is subtracted from the reward whatever arm comes next, so it cannot favour any.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from orthobandit._checks import check_fraction, check_positive, check_whole
from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import _forecast
from orthobandit.estimate._forecast import Recipe

Covariates = Mapping[str, float]


@dataclass(frozen=True)
class Forecast:
    """A forecast that was made before its arm was drawn; only such a one can be learnt from."""

    value: float
    round: int
    regressors: tuple[float, ...] = ()
    features: tuple[tuple[str, float], ...] = ()


class Forecaster(ABC):
    """The running forecaster of one experiment."""

    @abstractmethod
    def forecast(self, round: int, covariates: Covariates | None = None) -> Forecast:  # noqa: A002
        """Forecast the level of the round after `round` rounds, before its arm is drawn."""

    @abstractmethod
    def learn(self, forecast: Forecast, residual: float) -> None:
        """Take in reward − x_aᵀθ̂ of the round that was forecast."""

    @abstractmethod
    def to_json(self) -> Any:
        """Return the memory as plain lists and numbers, if it can be kept."""


class Baseline(Protocol):
    """Settings of a forecaster."""

    def forecaster(self) -> Forecaster:
        """Return a forecaster that has seen nothing."""
        ...


@dataclass(frozen=True)
class _Compiled(ABC):
    """Baselines with a compiled step, which the simulator runs inside its loops."""

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """What the compiled step does."""

    def forecaster(self, memory: Sequence[float] | None = None) -> "CompiledForecaster":
        """Return a forecaster that has seen nothing, or one that goes on from what ``to_json`` returned."""
        return CompiledForecaster(self.recipe, memory)


class CompiledForecaster(Forecaster):
    """The compiled step, one round at a time."""

    def __init__(self, recipe: Recipe, memory: Sequence[float] | None = None) -> None:
        self._recipe = recipe
        fresh = _forecast.fresh_memory(recipe)
        self._memory = fresh if memory is None else np.array(memory, dtype=np.float64)
        if self._memory.shape != fresh.shape:
            raise ParameterError(f"memory has {self._memory.size} numbers; this baseline keeps {fresh.size}")

    def forecast(self, round: int, covariates: Covariates | None = None) -> Forecast:  # noqa: A002, ARG002, D102
        regressors = np.zeros(_forecast.regressor_count(self._recipe))
        value = _forecast.forecast(self._recipe, self._memory, round, regressors)
        return Forecast(float(value), round, tuple(regressors.tolist()))

    def learn(self, forecast: Forecast, residual: float) -> None:  # noqa: D102
        if not np.isfinite(residual):
            raise RewardError(f"residual={residual} of round {forecast.round} must be a finite number")
        _forecast.learn(self._recipe, self._memory, np.array(forecast.regressors), residual)

    def to_json(self) -> list[float]:  # noqa: D102
        return [float(value) for value in self._memory]


def _recipe(kind: int, rate: float = 1.0, lags: int = 0, periods: Sequence[float] = ()) -> Recipe:
    return Recipe(kind, float(rate), int(lags), np.array(periods, dtype=np.float64))


@dataclass(frozen=True)
class NoBaseline(_Compiled):
    """Forecasts 0: rewards as they are."""

    @property
    def recipe(self) -> Recipe:  # noqa: D102
        return _recipe(_forecast.NOTHING)


@dataclass(frozen=True)
class RunningMean(_Compiled):
    """The mean of all residuals so far: right for a level that does not move."""

    @property
    def recipe(self) -> Recipe:  # noqa: D102
        return _recipe(_forecast.MEAN)


@dataclass(frozen=True)
class ExponentialMean(_Compiled):
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
        return _recipe(_forecast.EXPONENTIAL, self.rate)


@dataclass(frozen=True)
class AutoRegression(_Compiled):
    """Recursive least squares of each residual on the `lags` before it and a constant.

    Parameters
    ----------
    lags : int
        How many past residuals to look at.
    ridge : float
        Penalty on the coefficients.
    """

    lags: int = 16
    ridge: float = 0.1

    def __post_init__(self) -> None:
        check_whole("lags", self.lags)
        check_positive("ridge", self.ridge)

    @property
    def recipe(self) -> Recipe:  # noqa: D102
        return _recipe(_forecast.REGRESSION, self.ridge, self.lags)


@dataclass(frozen=True)
class SeasonalRegression(_Compiled):
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
        return _recipe(_forecast.REGRESSION, self.ridge, self.lags, self.periods)


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


class _OnlineForecaster(Forecaster):
    def __init__(self, model: OnlineModel, lags: int) -> None:
        self._model, self._last = model, [0.0] * lags

    def forecast(self, round: int, covariates: Covariates | None = None) -> Forecast:  # noqa: A002
        features = {"round": float(round), **(covariates or {})}
        features |= {f"lag{k + 1}": value for k, value in enumerate(self._last)}
        value = self._model.predict_one(dict(features))
        if value is not None and not np.isfinite(value):
            raise ParameterError(f"the baseline model predicted {value} for round {round}; it must be finite")
        return Forecast(float(value or 0.0), round, features=tuple(features.items()))

    def learn(self, forecast: Forecast, residual: float) -> None:
        if not np.isfinite(residual):
            raise RewardError(f"residual={residual} of round {forecast.round} must be a finite number")
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

    def forecaster(self) -> Forecaster:
        """Return a forecaster that has seen nothing."""
        return _CovariateForecaster(self.names, self.ridge)


class _CovariateForecaster(Forecaster):
    def __init__(self, names: tuple[str, ...], ridge: float) -> None:
        # A regression whose lags are the covariates: same memory, other regressors.
        self._names = names
        self._recipe = _recipe(_forecast.REGRESSION, ridge, len(names))
        self._memory = _forecast.fresh_memory(self._recipe)

    def forecast(self, round: int, covariates: Covariates | None = None) -> Forecast:  # noqa: A002
        given = covariates or {}
        for name in self._names:
            if name not in given or not np.isfinite(given[name]):
                raise ParameterError(f"covariate {name!r} is missing or not finite in round {round}")
        regressors = np.array([1.0, *(float(given[name]) for name in self._names)])
        value = float(self._memory[: regressors.size] @ regressors)
        return Forecast(value, round, tuple(regressors.tolist()))

    def learn(self, forecast: Forecast, residual: float) -> None:
        if not np.isfinite(residual):
            raise RewardError(f"residual={residual} of round {forecast.round} must be a finite number")
        _forecast.learn(self._recipe, self._memory, np.array(forecast.regressors), residual)

    def to_json(self) -> list[float]:
        return [float(value) for value in self._memory]
