"""Forecasts round by round: what waits, what stands in, and what a restart keeps."""

import json

import numpy as np
import pytest

from inside._foundation import packed
from orthobandit.errors import ForecastError, ParameterError
from orthobandit.estimate import AutoRegression, CovariateRegression, RunningMean
from orthobandit.estimate.forecast.rounds import RoundForecasts, WaitingRows, check_restartable


def test_rows_wait_in_line():
    rng, rows, kept = np.random.default_rng(0), WaitingRows(), np.empty((0, 3))
    for _ in range(200):
        new = rng.normal(size=(rng.integers(1, 40), 3))
        rows.add(new)
        kept = np.concatenate([kept, new])
        count = int(rng.integers(0, len(kept) + 1))
        assert np.array_equal(rows.take(count), kept[:count])
        kept = kept[count:]
        assert np.array_equal(rows.array, kept)
        assert len(rows) == len(kept)


class Moody:
    """A baseline that fails on every third forecast."""

    class Forecasts:
        """Its forecaster."""

        def __init__(self):
            self.inner = RunningMean().forecaster()

        def forecast(self, round, covariates=None):  # noqa: A002
            if round % 3 == 2:
                raise ForecastError("not today")
            return self.inner.forecast(round, covariates)

        def learn(self, forecast, residual):
            self.inner.learn(forecast, residual)

    def forecaster(self):
        return self.Forecasts()


def test_the_mean_stands_in_for_forecasts_that_fail():
    forecasts = RoundForecasts(Moody())
    assert forecasts.ahead(1, 2).tolist() == [0.0, 0.0]
    forecasts.learn(np.array([1.0, 3.0]))
    assert forecasts.ahead(3, 2).tolist() == [2.0, 2.0]
    assert (forecasts.stood_in, forecasts.learnt) == (1, 2)
    forecasts.learn(np.array([5.0, 5.0]))  # the one that failed teaches the mean alone
    assert forecasts.learnt == 4


def test_what_was_left_out_is_not_learnt_but_makes_room():
    one, other = (RoundForecasts(RunningMean()) for _ in range(2))
    one.ahead(1, 3)
    one.learn(np.array([1.0, 100.0, 3.0]), np.array([True, False, True]))
    other.ahead(1, 2)
    other.learn(np.array([1.0, 3.0]))
    assert one.ahead(4, 1) == other.ahead(4, 1) == 2.0
    assert one.learnt == 2


@pytest.mark.parametrize("baseline", [RunningMean(), AutoRegression(lags=2), CovariateRegression(["age"])])
def test_a_restart_goes_on_with_what_waits(baseline):
    rng = np.random.default_rng(0)
    live = RoundForecasts(baseline)
    given = [{"age": float(rng.normal())} for _ in range(40)]
    live.ahead(1, 30, given[:30])
    live.learn(rng.normal(size=20))
    again = RoundForecasts(baseline, json.loads(json.dumps(live.to_json(packed))))
    rest = rng.normal(size=10)
    for forecasts in (live, again):
        forecasts.learn(rest)
    assert again.ahead(31, 10, given[30:]).tolist() == live.ahead(31, 10, given[30:]).tolist()
    check_restartable(baseline)


def test_a_missing_covariate_is_named_before_any_forecast():
    forecasts = RoundForecasts(CovariateRegression(["age"]))
    with pytest.raises(ParameterError, match="covariate 'age' is missing"):
        forecasts.check([{"age": 1.0}, {}])


def test_a_baseline_that_cannot_be_kept_is_refused():
    with pytest.raises(ParameterError, match="cannot go on after a restart"):
        check_restartable(OnlineModelOnly())


class OnlineModelOnly:
    """A baseline whose forecaster takes no memory."""

    def forecaster(self):
        return RunningMean().forecaster()
