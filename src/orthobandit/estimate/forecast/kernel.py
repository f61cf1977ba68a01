"""A forecast of the level from who comes, where the level is a smooth function of unknown shape."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_positive, check_whole
from orthobandit._foundation.types import Array
from orthobandit.errors import ParameterError
from orthobandit.estimate.forecast import compiled as steps
from orthobandit.estimate.forecast.contract import Covariates, Forecast, Forecaster, RememberingForecaster

# Frequencies of the waves in one covariate, in units of its scale, and the standard deviations of what each
# part may add to the level before any data, relative to the residuals' unit.
FREQUENCIES = np.arange(0.5, 4.01, 0.5)
STRAIGHT, BENT, ALONE, JOINT = 1.0, 0.5, 1.0, 0.3
SEED = 20_180_710  # of the joint waves: every forecaster has the same ones


@dataclass(frozen=True)
class KernelRegression:
    """Ridge regression on smooth functions of named covariates: a level that depends on who comes.

    The level is the sum of a line and a parabola in each covariate, a smooth function of each covariate alone
    (waves whose weights fall as those of a Gaussian kernel) and, with less weight, a smooth function of all
    of them together (random Fourier features; Rahimi & Recht 2007). Recursive least squares, so a round costs
    the square of the number of features.

    Parameters
    ----------
    names : sequence of str
        Which covariates to use; each must come with every forecast.
    scales : sequence of float, optional
        How much each covariate typically varies, its standard deviation say; 1 by default.
    waves : int
        Joint random waves; 0 for a sum of functions of one covariate each.
    ridge : float
        The variance of noise over that of the level, about.

    Examples
    --------
    >>> forecaster = KernelRegression(("age",), scales=(10.0,)).forecaster()
    >>> for t in range(300):
    ...     age = float(t * 7 % 50)
    ...     forecaster.learn(forecaster.forecast(t, {"age": age}), (age / 10.0 - 2.0) ** 2)
    >>> round(forecaster.forecast(300, {"age": 40.0}).value, 1)
    4.0
    """

    names: tuple[str, ...]
    scales: tuple[float, ...] | None = None
    waves: int = 32
    ridge: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        if not self.names:
            raise ParameterError("names is empty; give at least one covariate")
        if self.scales is not None:
            object.__setattr__(self, "scales", tuple(self.scales))
            if len(self.scales) != len(self.names):
                raise ParameterError(f"scales has {len(self.scales)} numbers for {len(self.names)} names")
            for scale in self.scales:
                check_positive("scales", scale)
        check_whole("waves", self.waves, least=0)
        check_positive("ridge", self.ridge)

    def features(self, covariates: ArrayLike) -> Array:
        """Return the regressors (n, F) after the constant of covariates (n, m), in the order of `names`."""
        table = np.asarray(covariates, dtype=np.float64)
        table = table / (1.0 if self.scales is None else np.array(self.scales))
        width = table.shape[1]
        # Weights of a Gaussian kernel of one scale, so that each covariate's waves add a variance of 1.
        weights = np.exp(-(FREQUENCIES**2) / 4.0)
        weights = ALONE * np.sqrt(weights / weights.sum())
        angles = table[:, :, np.newaxis] * FREQUENCIES
        alone = np.concatenate([weights * np.cos(angles), weights * np.sin(angles)], axis=2)
        parts = [STRAIGHT * table, BENT * table**2, alone.reshape(len(table), -1)]
        if self.waves:
            rng = np.random.default_rng(SEED)
            pitch = rng.normal(size=(width, self.waves))
            phase = rng.uniform(0.0, 2.0 * np.pi, size=self.waves)
            parts.append(JOINT * np.sqrt(2.0 / self.waves) * np.cos(table @ pitch + phase))
        return np.concatenate(parts, axis=1)

    @property
    def size(self) -> int:
        """The number of regressors after the constant."""
        return len(self.names) * (2 + 2 * len(FREQUENCIES)) + self.waves

    def forecaster(self, memory: Mapping[str, Any] | None = None) -> Forecaster:
        """Return a forecaster that has seen nothing, or one that goes on from what ``to_json`` returned."""
        return _KernelForecaster(self, memory)


class _KernelForecaster(RememberingForecaster):
    def __init__(self, settings: KernelRegression, memory: Mapping[str, Any] | None = None) -> None:
        # As large as a regression on so many lags, but covariates are no residuals.
        recipe = steps.Recipe(steps.REGRESSION, float(settings.ridge), settings.size, np.zeros(0))
        super().__init__(recipe, memory)
        self._settings = settings

    def forecast(self, round: int, covariates: Covariates | None = None) -> Forecast:  # noqa: A002
        given = covariates or {}
        for name in self._settings.names:
            if name not in given or not np.isfinite(given[name]):
                raise ParameterError(f"covariate {name!r} is missing or not finite in round {round}")
        row: Sequence[float] = [float(given[name]) for name in self._settings.names]
        regressors = np.concatenate([[1.0], self._settings.features([row])[0]])
        value = steps.regressed(self._memory, regressors, 0)
        return Forecast(value, round, tuple(regressors.tolist()), number=self._number())

    def learn(self, forecast: Forecast, residual: float) -> None:
        self._settle(forecast, residual, 1 + self._settings.size)
        steps.learn_penalised(self._memory, np.array(forecast.regressors), residual, self._settings.ridge)
