"""Compiled forecasts of the baseline: one step before each draw, one after each reward."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orthobandit._compile import compiled

Array = NDArray[np.float64]

NOTHING, GIVEN, MEAN, EXPONENTIAL, REGRESSION = range(5)


class Recipe(NamedTuple):
    """What a compiled forecaster does.

    `kind` is one of the names above; `rate` that of the exponential mean, or the ridge of a regression;
    `lags` and `periods` (n,) make its regressors: 1, the last residuals, and a sine and cosine each.
    """

    kind: int
    rate: float
    lags: int
    periods: Array


@compiled
def regressor_count(recipe: Recipe) -> int:
    """Return how many regressors a regression has."""
    return 1 + recipe.lags + 2 * recipe.periods.size


def fresh_memory(recipe: Recipe) -> Array:
    """Return the memory of a forecaster that has seen nothing.

    Means keep (level, weight). A regression keeps its coefficients (n,), the inverse of its Gram matrix
    (n, n) and the last residuals (lags,), one after the other.
    """
    if recipe.kind != REGRESSION:
        return np.zeros(2)
    n = regressor_count(recipe)
    return np.concatenate([np.zeros(n), np.eye(n).ravel() / recipe.rate, np.zeros(recipe.lags)])


@compiled
def forecast(recipe: Recipe, memory: Array, clock: int, regressors: Array) -> float:
    """Forecast the residual of the round after `clock` rounds; fills `regressors` (n,) on the way."""
    if recipe.kind == MEAN or recipe.kind == EXPONENTIAL or recipe.kind == GIVEN:
        return float(memory[0])
    if recipe.kind != REGRESSION:
        return 0.0
    n = regressor_count(recipe)
    regressors[0] = 1.0
    for k in range(recipe.lags):
        regressors[1 + k] = memory[n + n * n + k]
    for k in range(recipe.periods.size):
        angle = 2.0 * np.pi * ((clock / recipe.periods[k]) % 1.0)
        regressors[1 + recipe.lags + 2 * k] = np.sin(angle)
        regressors[2 + recipe.lags + 2 * k] = np.cos(angle)
    value = 0.0
    for k in range(n):
        value += memory[k] * regressors[k]
    return value


@compiled
def learn(recipe: Recipe, memory: Array, regressors: Array, residual: float) -> None:
    """Take in the residual of the round that was forecast with these regressors."""
    if recipe.kind == MEAN:
        memory[1] += 1.0
        memory[0] += (residual - memory[0]) / memory[1]
    elif recipe.kind == EXPONENTIAL:
        # The weight makes the first levels plain averages instead of averages with a made-up zero.
        memory[1] = recipe.rate + (1.0 - recipe.rate) * memory[1]
        memory[0] += recipe.rate / memory[1] * (residual - memory[0])
    elif recipe.kind == REGRESSION:
        _recursive_least_squares(memory, regressors, residual, regressor_count(recipe))
        base = memory.size - recipe.lags
        for k in range(recipe.lags - 1, 0, -1):
            memory[base + k] = memory[base + k - 1]
        if recipe.lags:
            memory[base] = residual


@compiled
def _recursive_least_squares(memory: Array, x: Array, y: float, n: int) -> None:
    inverse = memory[n : n + n * n].reshape((n, n))
    gain = np.zeros(n)
    for i in range(n):
        for j in range(n):
            gain[i] += inverse[i, j] * x[j]
    denominator, error = 1.0, y
    for i in range(n):
        denominator += x[i] * gain[i]
        error -= memory[i] * x[i]
    for i in range(n):
        memory[i] += gain[i] * error / denominator
        for j in range(n):
            inverse[i, j] -= gain[i] * gain[j] / denominator
