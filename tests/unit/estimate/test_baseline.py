"""Baselines: each forecaster by hand on a short sequence."""

import json

import numpy as np
import pytest

from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import (
    AutoRegression,
    CovariateRegression,
    ExponentialMean,
    NoBaseline,
    OnlineRegression,
    RunningMean,
    SeasonalRegression,
)
from orthobandit.estimate.baseline import CompiledForecaster

COMPILED = [
    NoBaseline(),
    RunningMean(),
    ExponentialMean(0.25),
    AutoRegression(3),
    SeasonalRegression((7.0, 30.0), lags=2),
]


def forecasts(forecaster, residuals, covariates=None):
    """Return the forecast before each residual."""
    out = []
    for t, residual in enumerate(residuals):
        made = forecaster.forecast(t, None if covariates is None else covariates[t])
        out.append(made.value)
        forecaster.learn(made, residual)
    return out


def test_no_baseline_forecasts_zero():
    assert forecasts(NoBaseline().forecaster(), [3.0, -1.0, 8.0]) == [0.0, 0.0, 0.0]


def test_the_running_mean():
    assert forecasts(RunningMean().forecaster(), [3.0, -1.0, 4.0, 0.0]) == [0.0, 3.0, 1.0, 2.0]


def test_the_exponential_mean_starts_as_a_weighted_average():
    rate, seen = 0.25, [4.0, 8.0, -2.0, 1.0]
    expected = [0.0]
    for t in range(1, 4):
        weights = (1 - rate) ** np.arange(t - 1, -1, -1)
        expected.append(np.average(seen[:t], weights=weights))
    assert forecasts(ExponentialMean(rate).forecaster(), seen) == pytest.approx(expected)


def ridge(rows, outcomes, penalty):
    x, y = np.array(rows), np.array(outcomes)
    return np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y)


def test_recursive_least_squares_is_ridge_regression_on_lags():
    residuals = np.random.default_rng(0).standard_normal(60).cumsum()
    padded = np.concatenate([np.zeros(3), residuals])
    rows = [[1.0, *padded[t : t + 3][::-1]] for t in range(60)]
    got = forecasts(AutoRegression(3, ridge=0.5).forecaster(), residuals)
    expected = [0.0] + [ridge(rows[:t], residuals[:t], 0.5) @ rows[t] for t in range(1, 60)]
    assert got == pytest.approx(expected, abs=1e-8)


def test_seasonal_regression_is_ridge_regression_on_waves():
    rng = np.random.default_rng(1)
    residuals = np.sin(2 * np.pi * np.arange(80) / 7) + 0.1 * rng.standard_normal(80)
    angle = 2 * np.pi * np.arange(80) / 7
    rows = np.column_stack([np.ones(80), np.sin(angle), np.cos(angle)])
    got = forecasts(SeasonalRegression((7.0,)).forecaster(), residuals)
    expected = [0.0] + [ridge(rows[:t], residuals[:t], 0.1) @ rows[t] for t in range(1, 80)]
    assert got == pytest.approx(expected, abs=1e-8)
    assert np.abs(np.array(got[40:]) - residuals[40:]).max() < 0.5


def test_covariate_regression_is_ridge_regression_on_covariates():
    rng = np.random.default_rng(2)
    given = [{"load": float(a), "hour": float(b), "unused": 1.0} for a, b in rng.standard_normal((40, 2))]
    residuals = [1 + 2 * c["load"] - c["hour"] for c in given]
    rows = [[1.0, c["load"], c["hour"]] for c in given]
    got = forecasts(CovariateRegression(("load", "hour")).forecaster(), residuals, given)
    expected = [0.0] + [ridge(rows[:t], residuals[:t], 0.1) @ rows[t] for t in range(1, 40)]
    assert got == pytest.approx(expected, abs=1e-8)


def test_a_missing_covariate_is_named():
    with pytest.raises(ParameterError, match="'load' is missing or not finite in round 4"):
        CovariateRegression(("load",)).forecaster().forecast(4, {"hour": 1.0})


class LastValue:
    """An online model in river's convention: it predicts what it saw last."""

    def __init__(self):
        self.last, self.seen = None, []

    def predict_one(self, _):
        return self.last

    def learn_one(self, x, y):
        self.last = y
        self.seen.append((dict(x), y))


def test_any_online_model_can_forecast():
    made = []

    def model():
        made.append(LastValue())
        return made[-1]

    forecaster = OnlineRegression(model, lags=2).forecaster()
    given = [{"load": 0.5}, {"load": 0.7}, {"load": 0.1}]
    assert forecasts(forecaster, [3.0, 5.0, 2.0], given) == [0.0, 3.0, 5.0]
    assert made[0].seen[2] == ({"round": 2.0, "load": 0.1, "lag1": 5.0, "lag2": 3.0}, 2.0)


def test_an_online_model_must_predict_finite_numbers_and_keeps_its_own_memory():
    model = LastValue()
    model.last = np.nan
    forecaster = OnlineRegression(lambda: model).forecaster()
    with pytest.raises(ParameterError, match="predicted nan for round 0"):
        forecaster.forecast(0)
    with pytest.raises(ParameterError, match="save the model itself"):
        forecaster.to_json()


@pytest.mark.parametrize("baseline", COMPILED, ids=lambda baseline: type(baseline).__name__)
def test_memory_survives_json(baseline):
    rng = np.random.default_rng(4)
    forecaster = baseline.forecaster()
    forecasts(forecaster, rng.standard_normal(30))
    again = CompiledForecaster(baseline.recipe, json.loads(json.dumps(forecaster.to_json())))
    for t in range(30, 35):
        first, second = forecaster.forecast(t), again.forecast(t)
        assert first == second
        forecaster.learn(first, 0.3 * t)
        again.learn(second, 0.3 * t)


@pytest.mark.parametrize(
    "baseline", [*COMPILED, CovariateRegression(()), OnlineRegression(LastValue)], ids=lambda b: repr(b)[:20]
)
def test_residuals_must_be_finite(baseline):
    forecaster = baseline.forecaster()
    with pytest.raises(RewardError, match="residual=nan of round 0"):
        forecaster.learn(forecaster.forecast(0), float("nan"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ExponentialMean(1.0), "rate=1.0"),
        (lambda: AutoRegression(0), "lags=0"),
        (lambda: AutoRegression(2, ridge=0.0), "ridge=0.0"),
        (lambda: SeasonalRegression(()), "periods is empty"),
        (lambda: SeasonalRegression((0.0,)), "periods=0.0"),
        (lambda: CompiledForecaster(RunningMean().recipe, [1.0]), "memory has 1 numbers"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_forecast_cannot_be_changed_after_it_was_made():
    made = RunningMean().forecaster().forecast(0)
    with pytest.raises(AttributeError):
        made.value = 1.0
