"""The contract of forecasters, clause by clause; see :class:`~orthobandit.estimate.Forecaster`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import ismethod
from typing import Any

import numpy as np

from orthobandit._foundation.random import stream
from orthobandit._foundation.types import Array
from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import Baseline, Forecast, Forecaster
from orthobandit.estimate.forecast import compiled as steps
from orthobandit.estimate.forecast.baselines import CompiledBaseline
from orthobandit.testing._play import require, require_object, setting_of


@dataclass(frozen=True)
class ForecastSetting:
    """The residuals that a check feeds to a forecaster: a sine wave with a jump halfway, and noise.

    Parameters
    ----------
    covariates : tuple of str
        Names of the covariates of each forecast; their values are standard normal.
    rounds : int
    seed : int
    has_unit : bool
        True for models with a unit of their own, whose forecasts need not scale with residuals.
    """

    covariates: tuple[str, ...] = ()
    rounds: int = 120
    seed: int = 0
    has_unit: bool = False

    def residuals(self) -> Array:
        """Return the residuals (rounds,) to learn, one after each forecast."""
        t = np.arange(self.rounds)
        noise = stream(self.seed, "contract residuals").standard_normal(self.rounds)
        return np.asarray(3.0 + np.sin(0.3 * t) + 2.0 * (t > self.rounds // 2) + 0.3 * noise)

    def given(self, round: int) -> Mapping[str, float] | None:  # noqa: A002
        """Return the covariates of a round."""
        if not self.covariates:
            return None
        drawn = stream(self.seed, "contract covariates", round).standard_normal(len(self.covariates))
        return dict(zip(self.covariates, drawn.tolist(), strict=True))


def check_forecaster(baseline: Baseline, **settings: Any) -> None:
    """Check every clause of the contract on the forecasters of a baseline.

    Parameters
    ----------
    baseline : Baseline
    **settings
        Fields of :class:`ForecastSetting`.

    Examples
    --------
    >>> from orthobandit.estimate import ExponentialMean
    >>> check_forecaster(ExponentialMean(0.1))
    """
    # A class may be a baseline itself, if `forecaster` is a method of the class.
    if not ismethod(getattr(baseline, "forecaster", None)):
        require_object(baseline)
    require(callable(getattr(baseline, "forecaster", None)), f"{baseline!r} has no method forecaster()")
    setting = setting_of(ForecastSetting, settings)
    for check in FORECASTER_CHECKS:
        check(baseline, setting)


def check_numbered_forecasts(baseline: Baseline, setting: ForecastSetting) -> None:
    """Check that forecasts are finite, belong to their round and are numbered 0, 1, 2, …."""
    made = _told(baseline.forecaster(), setting, setting.residuals())
    require(all(np.isfinite(one.value) for one in made), "a forecast is not finite")
    require([one.round for one in made] == list(range(len(made))), "a forecast belongs to another round")
    require([one.number for one in made] == list(range(len(made))), "forecasts are not numbered 0, 1, 2, …")


def check_forecasting_teaches_nothing(baseline: Baseline, setting: ForecastSetting) -> None:
    """Check that forecasting alone changes nothing: only learning from a forecast may."""
    plain = baseline.forecaster()
    asked = baseline.forecaster()
    for t, residual in enumerate(setting.residuals()):
        # A forecast for another round, as for a proposal whose reward never comes.
        asked.forecast(t + 5, setting.given(t))
        one = plain.forecast(t, setting.given(t))
        two = asked.forecast(t, setting.given(t))
        require(one.value == two.value, "a forecast depends on forecasts that were never learnt from")
        plain.learn(one, float(residual))
        asked.learn(two, float(residual))


def check_forecasters_are_apart(baseline: Baseline, setting: ForecastSetting) -> None:
    """Check that two forecasters made from one baseline do not share memory."""
    alone = [one.value for one in _told(baseline.forecaster(), setting, setting.residuals())]
    first, second = baseline.forecaster(), baseline.forecaster()
    beside = []
    for t, residual in enumerate(setting.residuals()):
        made = first.forecast(t, setting.given(t))
        other = second.forecast(t, setting.given(t))
        beside.append(made.value)
        first.learn(made, float(residual))
        second.learn(other, -7.0 * float(residual))
    require(beside == alone, "what one forecaster learns changes another")


def check_late_residuals(baseline: Baseline, setting: ForecastSetting) -> None:
    """Check that residuals may arrive late, in any order or not at all."""
    forecaster = baseline.forecaster()
    residuals = setting.residuals()
    made = [forecaster.forecast(t, setting.given(t)) for t in range(setting.rounds)]
    order = stream(setting.seed, "contract order").permutation(setting.rounds)
    for t in order[: setting.rounds // 2].tolist():
        try:
            forecaster.learn(made[t], float(residuals[t]))
        except ParameterError as error:
            raise AssertionError(f"a late residual is refused: {error}") from error
    value = forecaster.forecast(setting.rounds, setting.given(setting.rounds)).value
    require(bool(np.isfinite(value)), "a forecast is not finite after late residuals")


def check_refusals(baseline: Baseline, setting: ForecastSetting) -> None:
    """Check that bad input is refused and changes nothing.

    Bad input is the forecast of another forecaster, one that was learnt from already, and a residual that is
    not finite.
    """
    plain, bothered, other = (baseline.forecaster() for _ in range(3))
    for t, residual in enumerate(setting.residuals()[:20]):
        # Asked twice, so that its numbers run ahead of those of the forecaster under test.
        _ = other.forecast(t, setting.given(t))
        foreign = other.forecast(t, setting.given(t))
        one = plain.forecast(t, setting.given(t))
        two = bothered.forecast(t, setting.given(t))
        require(one.value == two.value, "what was refused changes later forecasts")
        _refused(bothered, foreign, 1.0, ParameterError, "a forecast of another forecaster is learnt from")
        for wrong in (np.nan, np.inf):
            _refused(bothered, two, wrong, RewardError, "a residual that is not finite is learnt from")
        plain.learn(one, float(residual))
        bothered.learn(two, float(residual))
        _refused(bothered, two, 1.0, ParameterError, "a forecast is learnt from twice")


def check_memory(baseline: Any, setting: ForecastSetting) -> None:
    """Check that a forecaster restored from JSON continues exactly as before.

    A forecaster that cannot be stored must raise :class:`ParameterError`.
    """
    forecaster = baseline.forecaster()
    residuals = setting.residuals()
    half = setting.rounds // 2
    _told(forecaster, setting, residuals[:half])
    # The residual of this forecast arrives only after the memory was stored.
    waiting = forecaster.forecast(half, setting.given(half))
    try:
        text = json.dumps(forecaster.to_json(), allow_nan=False)
    except ParameterError:
        return
    loaded = baseline.forecaster(json.loads(text))
    require(json.dumps(loaded.to_json(), allow_nan=False) == text, "a loaded memory differs")
    for one in (forecaster, loaded):
        one.learn(waiting, float(residuals[half]))
    going, resumed = (
        [(made.value, made.number) for made in _told(one, setting, residuals[half + 1 :], half + 1)]
        for one in (forecaster, loaded)
    )
    require(going == resumed, "a loaded memory goes on differently")


def check_units(baseline: Baseline, setting: ForecastSetting) -> None:
    """Check that forecasts scale with residuals: rewards times 100 give forecasts times 100."""
    if setting.has_unit:
        return
    plain = np.array([one.value for one in _told(baseline.forecaster(), setting, setting.residuals())])
    for factor in (100.0, -1e-3):
        scaled = _told(baseline.forecaster(), setting, factor * setting.residuals())
        got = np.array([one.value for one in scaled])
        wanted = factor * plain
        # Not bit by bit: multiplying by anything but a power of 2 rounds.
        near = np.abs(got - wanted) <= 1e-9 * np.abs(wanted).max()
        require(bool(near.all()), "forecasts depend on the units of rewards")


def check_compiled_step(baseline: Baseline, setting: ForecastSetting) -> None:
    """Check that the compiled step and the forecaster make the same forecasts, bit by bit."""
    if not isinstance(baseline, CompiledBaseline):
        return
    recipe = baseline.recipe
    memory = steps.fresh_memory(recipe)
    regressors = np.zeros(steps.regressor_count(recipe))
    forecaster = baseline.forecaster()
    for t, residual in enumerate(setting.residuals()):
        made = forecaster.forecast(t)
        value = steps.forecast(recipe, memory, t, regressors)
        require(value == made.value, "the compiled step and the forecaster differ")
        steps.learn(recipe, memory, regressors, float(residual))
        forecaster.learn(made, float(residual))


FORECASTER_CHECKS: tuple[Callable[[Any, ForecastSetting], None], ...] = (
    check_numbered_forecasts,
    check_forecasting_teaches_nothing,
    check_forecasters_are_apart,
    check_late_residuals,
    check_refusals,
    check_memory,
    check_units,
    check_compiled_step,
)


def _told(
    forecaster: Forecaster, setting: ForecastSetting, residuals: Array, start: int = 0
) -> list[Forecast]:
    """Forecast and learn round by round; return the forecasts."""
    made = []
    for t, residual in enumerate(residuals.tolist(), start=start):
        made.append(forecaster.forecast(t, setting.given(t)))
        forecaster.learn(made[-1], residual)
    return made


def _refused(
    forecaster: Forecaster, forecast: Forecast, residual: float, kind: type[Exception], message: str
) -> None:
    try:
        forecaster.learn(forecast, residual)
    except kind:
        return
    raise AssertionError(message)
