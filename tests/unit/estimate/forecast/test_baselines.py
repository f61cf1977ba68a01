"""Baselines: each forecaster by hand on a short sequence."""

import json

import numpy as np
import pytest

from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import (
    ARMA,
    AutoRegression,
    CovariateRegression,
    ExponentialMean,
    Forecast,
    NoBaseline,
    OnlineRegression,
    RunningMean,
    SeasonalRegression,
)

COMPILED = [
    NoBaseline(),
    RunningMean(),
    ExponentialMean(0.25),
    AutoRegression(3),
    ARMA(2),
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


def regressed(residuals, rows, penalty):
    """Return forecasts by ridge regression in units of the first eight residuals, `rows` in them already."""
    residuals, out = np.asarray(residuals), [0.0]
    origin, unit = residuals[:8].mean(), residuals[:8].std()
    for t in range(1, len(residuals)):
        value = residuals[:t].mean()
        if t >= 8:
            coefficients = ridge(rows[8:t], (residuals[8:t] - origin) / unit, penalty) if t > 8 else 0.0
            value = origin + unit * np.sum(coefficients * np.asarray(rows[t]))
        out.append(np.clip(value, residuals[:t].min(), residuals[:t].max()))
    return out


def test_recursive_least_squares_is_ridge_regression_on_lags():
    residuals = 5.0 + np.random.default_rng(0).standard_normal(60).cumsum()
    units = (residuals - residuals[:8].mean()) / residuals[:8].std()
    rows = [[1.0, *units[max(t - 3, 0) : t][::-1]] for t in range(60)]
    got = forecasts(AutoRegression(3, ridge=0.5).forecaster(), residuals)
    assert got == pytest.approx(regressed(residuals, rows, 0.5), abs=1e-8)


def test_arma_is_ridge_regression_on_residuals_and_on_the_levels_fitted_to_them():
    residuals = 2.0 + np.random.default_rng(5).standard_normal(60).cumsum()
    begin = 10  # twice as many as there are coefficients
    origin, unit = residuals[:begin].mean(), residuals[:begin].std()
    fitted, rows, expected = [], [], []
    for t in range(60):
        seen = residuals[: t + 1]
        past = np.array([*residuals[max(t - 2, 0) : t][::-1], *fitted[max(t - 2, 0) : t][::-1]])
        rows.append(np.array([1.0, *((past - origin) / unit)]))

        def level(last, low, high, row=rows[t]):
            known = rows[begin:last]
            target = (residuals[begin:last] - origin) / unit
            value = origin + unit * np.sum(ridge(known, target, 0.1) * row) if known else origin
            return np.clip(value, low, high)

        before = residuals[:t].mean() if t else 0.0
        expected.append(level(t, seen[:-1].min(), seen[:-1].max()) if t >= begin else before)
        fitted.append(level(t + 1, seen.min(), seen.max()) if t >= begin - 1 else seen.mean())
    assert forecasts(ARMA(2).forecaster(), residuals) == pytest.approx(expected, abs=1e-8)


def test_arma_follows_a_wave_that_noise_hides_better_than_twice_as_many_lags():
    level = np.sin(2.0 * np.arange(4000))
    seen = level + np.random.default_rng(6).standard_normal(4000)
    missed = [
        np.mean((np.array(forecasts(baseline.forecaster(), seen)) - level)[2000:] ** 2)
        for baseline in (ARMA(8), AutoRegression(16))
    ]
    # About 0.02 and 0.11; the first would have to be three times what it is.
    assert missed[0] < 0.6 * missed[1]


def test_seasonal_regression_is_ridge_regression_on_waves():
    rng = np.random.default_rng(1)
    residuals = np.sin(2 * np.pi * np.arange(80) / 7) + 0.1 * rng.standard_normal(80)
    angle = 2 * np.pi * np.arange(80) / 7
    rows = np.column_stack([np.ones(80), np.sin(angle), np.cos(angle)])
    got = forecasts(SeasonalRegression((7.0,)).forecaster(), residuals)
    assert got == pytest.approx(regressed(residuals, rows, 0.1), abs=1e-8)
    assert np.abs(np.array(got[40:]) - residuals[40:]).max() < 0.5


def test_covariate_regression_is_ridge_regression_on_covariates():
    rng = np.random.default_rng(2)
    given = [{"load": float(a), "hour": float(b), "unused": 1.0} for a, b in rng.standard_normal((40, 2))]
    residuals = [1 + 2 * c["load"] - c["hour"] for c in given]
    rows = [[1.0, c["load"], c["hour"]] for c in given]
    got = forecasts(CovariateRegression(("load", "hour")).forecaster(), residuals, given)
    assert got == pytest.approx(regressed(residuals, rows, 0.1), abs=1e-8)


def test_a_covariate_regression_goes_on_from_its_memory():
    rng = np.random.default_rng(3)
    rule, given = CovariateRegression(("load",)), [{"load": float(a)} for a in rng.standard_normal(40)]
    residuals = [2 * c["load"] for c in given]
    whole = forecasts(rule.forecaster(), residuals, given)
    first = rule.forecaster()
    forecasts(first, residuals[:20], given[:20])
    again = rule.forecaster(json.loads(json.dumps(first.to_json())))
    assert forecasts(again, residuals[20:], given[20:]) == whole[20:]


SCALES = [2.0**-30, 2.0**-3, 2.0**40]


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("baseline", COMPILED, ids=lambda b: type(b).__name__)
def test_units_of_rewards_do_not_matter(baseline, scale):
    residuals = 7.0 + np.random.default_rng(5).standard_normal(200).cumsum()
    one, other = (forecasts(baseline.forecaster(), by * residuals) for by in (1.0, scale))
    assert other == [scale * value for value in one]


@pytest.mark.parametrize("baseline", COMPILED[3:], ids=lambda b: type(b).__name__)
def test_regressions_forecast_within_what_was_seen(baseline):
    residuals = np.random.default_rng(6).standard_t(1.5, 400) * 100.0 + 5000.0
    made = forecasts(baseline.forecaster(), residuals)
    lowest, highest = np.minimum.accumulate(residuals), np.maximum.accumulate(residuals)
    assert np.all((made[1:] >= lowest[:-1]) & (made[1:] <= highest[:-1]))


@pytest.mark.parametrize("baseline", COMPILED, ids=lambda b: type(b).__name__)
def test_forecasts_stay_finite_when_rewards_grow_beyond_measure(baseline):
    residuals = np.sin(np.arange(600)) * 10.0 ** np.linspace(0.0, 140.0, 600)
    assert np.all(np.isfinite(forecasts(baseline.forecaster(), residuals)))


def test_a_level_that_jumps_is_followed():
    rng = np.random.default_rng(7)
    residuals = np.repeat([0.0, 1e6], 300) + rng.standard_normal(600)
    made = np.array(forecasts(AutoRegression(4).forecaster(), residuals))
    assert np.abs(made[500:] - 1e6).max() < 1e3


@pytest.mark.parametrize(
    "baseline", [RunningMean(), AutoRegression(2), OnlineRegression(lambda: LastValue())]
)
def test_forecasts_of_others_and_repeated_ones_are_refused(baseline):
    forecaster = baseline.forecaster()
    with pytest.raises(ParameterError, match="number 0 of round 0 was not made by this forecaster"):
        forecaster.learn(Forecast(0.0, 0), 1.0)
    made = forecaster.forecast(0)
    forecaster.learn(made, 1.0)
    with pytest.raises(ParameterError, match="number 0 of round 0 was learnt from before"):
        forecaster.learn(made, 1.0)
    assert np.isfinite(forecaster.forecast(1).value)


def test_late_residuals_are_learnt_in_any_order_also_after_a_restart():
    rule = AutoRegression(2)
    forecaster = rule.forecaster()
    early = [forecaster.forecast(t) for t in range(12)]
    for made in early[6:]:
        forecaster.learn(made, 1e9 + made.round)
    forecaster = rule.forecaster(json.loads(json.dumps(forecaster.to_json())))
    for made in reversed(early[:6]):
        forecaster.learn(made, 1e9 + made.round)
    with pytest.raises(ParameterError, match="learnt from before"):
        forecaster.learn(early[3], 1e9)
    assert forecaster.forecast(12).value == pytest.approx(1e9 + 5.5)


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
    again = baseline.forecaster(json.loads(json.dumps(forecaster.to_json())))
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
        (lambda: RunningMean().forecaster({"memory": [1.0], "made": 0, "open": []}), "memory has 1 numbers"),
    ],
)
def test_wrong_settings_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_forecast_cannot_be_changed_after_it_was_made():
    made = RunningMean().forecaster().forecast(0)
    with pytest.raises(AttributeError):
        made.value = 1.0
