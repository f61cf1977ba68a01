"""Forecasts of a bucket's level from earlier ones."""

import numpy as np
import pytest

from orthobandit.estimate.forecast.buckets import Chooser, Levels

HOUR, DAY = 3600.0, 86_400.0


def errors(series, width=HOUR, is_clock=True):
    """Return the mean squared error of every baseline over the second half of a series."""
    levels, out = Levels(width, is_clock), {}
    for place, level in enumerate(series):
        ahead = levels.forecasts(place * width)
        if place >= len(series) // 2:
            for name, value in ahead.items():
                out.setdefault(name, []).append((level - value) ** 2)
        levels.learn(place * width, level, 100.0)
    return {name: float(np.mean(values)) for name, values in out.items()}


def test_nothing_is_forecast_before_the_first_bucket():
    assert Levels(HOUR, True).forecasts(0.0) == {}


def test_the_mean_weighs_buckets_by_their_rows():
    levels = Levels(1.0, False)
    levels.learn(0.0, 1.0, 30.0)
    levels.learn(1.0, 5.0, 10.0)
    assert levels.forecasts(2.0)["mean"] == pytest.approx(2.0)
    assert levels.forecasts(2.0)["last"] == pytest.approx((0.5 * 30.0 + 50.0) / 25.0)


def test_a_season_is_learnt_where_there_is_a_clock():
    hours = np.arange(24 * 28)
    season = np.sin(2 * np.pi * hours / 24) + (hours // 24 % 7 == 6)
    found = errors(season)
    assert found["seasonal"] < 0.02 * found["mean"]
    assert "seasonal" not in errors(season, width=1.0, is_clock=False)


def test_a_trend_is_followed_by_the_autoregression():
    rng = np.random.default_rng(1)
    walk = np.cumsum(rng.standard_normal(500))
    found = errors(walk)
    assert found["autoregressive"] < 1.5 < found["mean"]


def test_gaps_in_time_are_no_matter():
    levels = Levels(HOUR, True)
    for place in (0, 1, 2, 50, 51, 200, 201, 202, 203):
        levels.learn(place * HOUR, float(place % 3), 10.0)
    ahead = levels.forecasts(500 * HOUR)
    assert all(0.0 <= value <= 2.0 for value in ahead.values())


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_forecasts_change_with_the_units(scale):
    rng = np.random.default_rng(2)
    series = 3.0 + np.cumsum(rng.standard_normal(60))
    one, other = Levels(HOUR, True), Levels(HOUR, True)
    for place, level in enumerate(series):
        one.learn(place * HOUR, level, 10.0)
        other.learn(place * HOUR, scale * level, 10.0)
    for name, value in one.forecasts(60 * HOUR).items():
        assert other.forecasts(60 * HOUR)[name] == pytest.approx(scale * value, rel=1e-9)


def test_a_constant_series_is_forecast_as_it_is():
    levels = Levels(HOUR, True)
    for place in range(20):
        levels.learn(place * HOUR, 7.0, 10.0)
    ahead = levels.forecasts(20 * HOUR)
    assert [ahead[name] for name in ("mean", "last", "seasonal", "autoregressive")] == pytest.approx(
        [7.0] * 4
    )


def test_auto_takes_what_missed_least_and_names_are_obeyed():
    chooser = Chooser("auto")
    ahead = {"none": 0.0, "mean": 1.0, "last": 2.0}
    assert chooser.choose(ahead) == "mean"
    chooser.learn(ahead, 2.1, 10.0)
    assert chooser.choose(ahead) == "last"
    # What comes later starts from the largest loss so far: it is not best for want of misses.
    chooser.learn(ahead | {"autoregressive": 2.05}, 2.1, 10.0)
    assert chooser.choose(ahead | {"autoregressive": 2.05}) == "last"
    assert Chooser("seasonal").choose(ahead) == "mean"
    assert Chooser("none").choose(ahead) == "none"
