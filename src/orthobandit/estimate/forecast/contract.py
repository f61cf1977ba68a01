"""Forecasters: the memory of a baseline, asked before each draw and told after each reward.

Here is their contract; the baselines of the package, by name, are in
:mod:`~orthobandit.estimate.forecast.baselines`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array
from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate.forecast import compiled as steps
from orthobandit.estimate.forecast.compiled import Recipe

Covariates = Mapping[str, float]


@dataclass(frozen=True)
class Forecast:
    """A forecast that was made before its arm was drawn; only such a one can be learnt from, and only once.

    Attributes
    ----------
    value : float
        The forecast level.
    round : int
        Rounds before the one that is forecast.
    regressors, features : tuple
        What the forecaster looked at.
    number : int
        How many forecasts its forecaster had made before.
    """

    value: float
    round: int
    regressors: tuple[float, ...] = ()
    features: tuple[tuple[str, float], ...] = ()
    number: int = 0


class Forecaster(ABC):
    """The running forecaster of one experiment, and the contract that it keeps.

    :func:`orthobandit.testing.check_forecaster` plays every clause below on a baseline of yours.

    **Order.** A forecast is made before its arm is drawn, from what had been learnt by then, and never
    changes. One that is made after the draw can depend on the arm, and then everything built on it may be
    wrong. Forecasting itself teaches nothing: a forecast that is never learnt from leaves no trace but its
    number.

    **Late.** Residuals may be learnt in any order, any time after their forecasts, or never.

    **Repeated.** A forecast is learnt from at most once; a second time is refused with
    :class:`~orthobandit.errors.ParameterError`.

    **Ownership.** Forecasts are numbered 0, 1, 2, … by the forecaster that made them. It refuses those of
    another, and residuals that are not finite (:class:`~orthobandit.errors.RewardError`); what is refused
    changes nothing.

    **Units.** Multiplying all residuals by a constant multiplies all forecasts by it. A model that has a unit
    of its own says so in its documentation.

    **Memory and JSON.** ``json.dumps(to_json(), allow_nan=False)`` works, and ``baseline.forecaster(memory)``
    with what comes back goes on as if nothing had happened, open forecasts included. One that cannot keep
    its memory raises :class:`~orthobandit.errors.ParameterError` and says what to save instead.

    **Compiled.** A baseline that derives from
    :class:`~orthobandit.estimate.forecast.baselines.CompiledBaseline` has a compiled step besides; both give
    the same forecasts, bit by bit.
    """

    @abstractmethod
    def forecast(self, round: int, covariates: Covariates | None = None) -> Forecast:  # noqa: A002
        """Forecast the level of the round after `round` rounds, before its arm is drawn."""

    @abstractmethod
    def learn(self, forecast: Forecast, residual: float) -> None:
        """Take in reward − x_aᵀθ̂ of the round that was forecast."""

    @abstractmethod
    def to_json(self) -> Any:
        """Return the memory as plain lists and numbers, or say why it cannot be kept."""


class NumberedForecaster(Forecaster):
    """Numbers its forecasts, and refuses to learn from others or twice."""

    def __init__(self) -> None:
        self._made = 0
        self._open = set[int]()

    def _number(self) -> int:
        self._open.add(self._made)
        self._made += 1
        return self._made - 1

    def _settle(self, forecast: Forecast, residual: float, regressors: int = 0) -> None:
        """Cross a forecast off the list; refuse it, or its residual, before anything is changed."""
        if not np.isfinite(residual):
            raise RewardError(f"residual={residual} of round {forecast.round} must be a finite number")
        if forecast.number >= self._made or len(forecast.regressors) != regressors:
            raise ParameterError(
                f"forecast number {forecast.number} of round {forecast.round} was not made by this"
                " forecaster; learn from what its `forecast` returned"
            )
        if forecast.number not in self._open:
            raise ParameterError(
                f"forecast number {forecast.number} of round {forecast.round} was learnt from before;"
                " a round has one residual"
            )
        # Last: what was refused above has changed nothing.
        self._open.remove(forecast.number)

    def _numbers(self) -> dict[str, Any]:
        return {"made": self._made, "open": sorted(self._open)}

    def _restore(self, kept: Mapping[str, Any]) -> None:
        self._made = int(kept["made"])
        self._open = {int(number) for number in kept["open"]}


class RememberingForecaster(NumberedForecaster):
    """A forecaster whose memory is one array of numbers."""

    def __init__(self, recipe: Recipe, memory: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._recipe = recipe
        self._memory = steps.fresh_memory(recipe)
        if memory is None:
            return
        kept = np.array(memory["memory"], dtype=np.float64)
        if kept.shape != self._memory.shape:
            raise ParameterError(f"memory has {kept.size} numbers; this baseline keeps {self._memory.size}")
        self._memory = kept
        self._restore(memory)

    def to_json(self) -> dict[str, Any]:  # noqa: D102
        return {"memory": self._memory.tolist(), **self._numbers()}


class CompiledForecaster(RememberingForecaster):
    """The compiled step, one round at a time."""

    def forecast(self, round: int, covariates: Covariates | None = None) -> Forecast:  # noqa: A002, ARG002, D102
        regressors = np.zeros(steps.regressor_count(self._recipe))
        value = steps.forecast(self._recipe, self._memory, round, regressors)
        return Forecast(float(value), round, tuple(regressors.tolist()), number=self._number())

    def learn(self, forecast: Forecast, residual: float) -> None:  # noqa: D102
        self._settle(forecast, residual, steps.regressor_count(self._recipe))
        steps.learn(self._recipe, self._memory, np.array(forecast.regressors), residual)

    def ahead(self, round: int, count: int) -> tuple[Array, Array]:  # noqa: A002
        """Forecast so many rounds (n,) at once, and return their regressors (n, m).

        For callers that number forecasts themselves: learn from them with :meth:`take`, each once.
        """
        values = np.zeros(count)
        regressors = np.zeros((count, steps.regressor_count(self._recipe)))
        _ahead(self._recipe, self._memory, round, values, regressors)
        return values, regressors

    def take(self, regressors: Array, residuals: Array) -> None:
        """Learn from residuals (n,) of rounds with these regressors (n, m), one after the other."""
        if not np.all(np.isfinite(residuals)):
            raise RewardError("every residual must be a finite number")
        _take(self._recipe, self._memory, regressors, residuals)


@compiled
def _ahead(recipe: Recipe, memory: Array, first: int, values: Array, regressors: Array) -> None:
    for k in range(values.size):
        values[k] = steps.forecast(recipe, memory, first + k, regressors[k])


@compiled
def _take(recipe: Recipe, memory: Array, regressors: Array, residuals: Array) -> None:
    for k in range(residuals.size):
        steps.learn(recipe, memory, regressors[k], residuals[k])
