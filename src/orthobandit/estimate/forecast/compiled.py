"""Compiled forecasts of the baseline: one step before each draw, one after each reward.

Multiplying all rewards by a constant multiplies all forecasts by it: nothing here has a unit of its own.
"""

from typing import NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array

NOTHING, GIVEN, MEAN, EXPONENTIAL, REGRESSION = range(5)

# The memory of a regression begins with what has been seen (SEEN, level, scatter, lowest, highest) and with
# the origin and unit in which it works; then come coefficients (n,), the inverse of the Gram matrix (n, n),
# the last residuals (lags,) and the last levels as they were fitted (fitted,), newest first.
SEEN, LEVEL, SCATTER, LOWEST, HIGHEST, ORIGIN, UNIT, HEAD = range(8)

# A regression begins after this many residuals, and twice as many as it has coefficients: with fewer it would
# fit them all and forecast wildly. They give its origin and its unit.
WARM_UP = 8
FAR = 1e4  # units at which it starts again in larger ones, before rounding eats what it knows


class Recipe(NamedTuple):
    """What a compiled forecaster does.

    `kind` is one of the names above; `rate` that of the exponential mean, or the ridge of a regression;
    `lags`, `fitted` and `periods` (n,) make its regressors: 1, the last residuals, the levels that were
    fitted to the last residuals, and a sine and cosine each.
    """

    kind: int
    rate: float
    lags: int
    periods: Array
    fitted: int = 0


@compiled
def past_count(recipe: Recipe) -> int:
    """Return how many of the regressors are in the units of residuals."""
    return recipe.lags + recipe.fitted


@compiled
def regressor_count(recipe: Recipe) -> int:
    """Return how many regressors a regression has."""
    return 1 + past_count(recipe) + 2 * recipe.periods.size


def fresh_memory(recipe: Recipe) -> Array:
    """Return the memory of a forecaster that has seen nothing; means keep (level, weight)."""
    if recipe.kind != REGRESSION:
        return np.zeros(2)
    n = int(regressor_count(recipe))
    return np.zeros(HEAD + n + n * n + int(past_count(recipe)))


@compiled
def forecast(recipe: Recipe, memory: Array, clock: int, regressors: Array) -> float:
    """Forecast the residual of the round after `clock` rounds; fills `regressors` (n,) on the way."""
    if recipe.kind == MEAN or recipe.kind == EXPONENTIAL or recipe.kind == GIVEN:
        return float(memory[0])
    if recipe.kind != REGRESSION:
        return 0.0
    if memory[SEEN] == 0.0:
        regressors[:] = 0.0  # nothing to regress on yet
        return 0.0
    regressors[0] = 1.0
    past = past_count(recipe)
    base = memory.size - past
    for k in range(past):
        regressors[1 + k] = memory[base + k]
    for k in range(recipe.periods.size):
        # The fraction of a period first: sines of large numbers lose their digits.
        angle = 2.0 * np.pi * ((clock / recipe.periods[k]) % 1.0)
        regressors[1 + past + 2 * k] = np.sin(angle)
        regressors[2 + past + 2 * k] = np.cos(angle)
    return regressed(memory, regressors, past)


@compiled
def regressed(memory: Array, regressors: Array, past: int) -> float:
    """Return the forecast of a regression, within the range of the residuals so far.

    `regressors` (n,) are 1, then `past` numbers in the units of residuals, then others; all 0 if the forecast
    was made before any residual was seen.
    """
    if memory[UNIT] == 0.0:
        return float(memory[LEVEL])
    value = 0.0
    for k in range(regressors.size):
        value += memory[HEAD + k] * _in_units(memory, regressors[k], 1 <= k <= past)
    # Kept to the range of what was seen, so that one bad fit cannot blow up a residual.
    value = memory[ORIGIN] + memory[UNIT] * value
    return float(min(max(value, memory[LOWEST]), memory[HIGHEST]))


@compiled
def _in_units(memory: Array, number: float, is_residual: bool) -> float:
    return (number - memory[ORIGIN]) / memory[UNIT] if is_residual else number


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
        past = past_count(recipe)
        learn_regressed(memory, regressors, residual, past, recipe.rate)
        base = memory.size - past
        _remember(memory, base, recipe.lags, residual)
        if recipe.fitted:
            _remember(memory, base + recipe.lags, recipe.fitted, regressed(memory, regressors, past))


@compiled
def _remember(memory: Array, base: int, count: int, value: float) -> None:
    """Put the newest of `count` numbers first; the first of all stands for those before it, too."""
    for k in range(count - 1, 0, -1):
        memory[base + k] = value if memory[SEEN] == 1.0 else memory[base + k - 1]
    if count:
        memory[base] = value


@compiled
def learn_regressed(memory: Array, regressors: Array, residual: float, past: int, ridge: float) -> None:
    """Take in a residual: note its size, and once there is a unit, regress it on the regressors."""
    _note(memory, residual)
    if regressors[0] == 0.0:
        return
    if memory[UNIT] == 0.0:
        if memory[SEEN] >= max(WARM_UP, 2 * regressors.size) and memory[SCATTER] > 0.0:
            _begin(memory, regressors.size, np.sqrt(memory[SCATTER] / memory[SEEN]), ridge)
        return
    target = (residual - memory[ORIGIN]) / memory[UNIT]
    largest = abs(target)
    scaled = np.empty(regressors.size)
    for k in range(regressors.size):
        scaled[k] = _in_units(memory, regressors[k], 1 <= k <= past)
        if 1 <= k <= past:
            largest = max(largest, abs(scaled[k]))
    if largest > FAR:
        _begin(memory, regressors.size, largest * memory[UNIT], ridge)
        return
    _recursive_least_squares(memory, scaled, target)


@compiled
def learn_penalised(memory: Array, regressors: Array, residual: float, ridge: float) -> None:
    """Take in a residual as :func:`learn_regressed` does; the ridge alone keeps the coefficients in check.

    They are scaled so that the ridge is noise over prior variance: fewer residuals than coefficients cannot
    make forecasts wild, and the regression begins as soon as there is a unit.
    """
    _note(memory, residual)
    if memory[UNIT] > 0.0:
        _recursive_least_squares(memory, regressors, (residual - memory[ORIGIN]) / memory[UNIT])
    elif memory[SEEN] >= WARM_UP and memory[SCATTER] > 0.0:
        _begin(memory, regressors.size, np.sqrt(memory[SCATTER] / memory[SEEN]), ridge)


@compiled
def _note(memory: Array, residual: float) -> None:
    """Update count, mean, squared scatter, lowest and highest (Welford)."""
    if memory[SEEN] == 0.0:
        memory[LOWEST] = residual
        memory[HIGHEST] = residual
    memory[SEEN] += 1.0
    change = residual - memory[LEVEL]
    memory[LEVEL] += change / memory[SEEN]
    memory[SCATTER] += change * (residual - memory[LEVEL])
    memory[LOWEST] = min(memory[LOWEST], residual)
    memory[HIGHEST] = max(memory[HIGHEST], residual)


@compiled
def _begin(memory: Array, n: int, unit: float, ridge: float) -> None:
    """Begin the regression: origin at the mean so far, and the unit given."""
    memory[ORIGIN] = memory[LEVEL]
    memory[UNIT] = unit
    for i in range(n):
        memory[HEAD + i] = 0.0
        for j in range(n):
            memory[HEAD + n + i * n + j] = 1.0 / ridge if i == j else 0.0


@compiled
def _recursive_least_squares(memory: Array, x: Array, y: float) -> None:
    n = x.size
    coefficients = memory[HEAD : HEAD + n]
    inverse = memory[HEAD + n : HEAD + n + n * n].reshape((n, n))
    gain = np.zeros(n)
    for i in range(n):
        for j in range(n):
            gain[i] += inverse[i, j] * x[j]
    denominator = 1.0
    error = y
    for i in range(n):
        denominator += x[i] * gain[i]
        error -= coefficients[i] * x[i]
    for i in range(n):
        coefficients[i] += gain[i] * error / denominator
        for j in range(n):
            inverse[i, j] -= gain[i] * gain[j] / denominator
