"""Worst regret grows like √d and √T: a short version of `python -m benchmarks.scaling`, with fixed seeds."""

import numpy as np
import pytest
from benchmarks.scaling import Cell, bandit, fit, measure

pytestmark = pytest.mark.statistical


def test_regret_grows_with_dimension_more_like_a_square_root_than_a_line():
    exponent = fit([measure(bandit, d, horizon, 1) for d in (4, 8, 16, 32, 64) for horizon in (1e7, 2e7)])
    assert exponent.dimension[0] < 0.75


def test_regret_grows_with_the_horizon_like_a_square_root():
    exponent = fit([measure(bandit, 4, 1e4 * 2 ** (k / 2), 2) for k in range(16)])
    low, high = exponent.horizon[1:]
    assert 0.25 < low < 0.5 < high < 0.75


def test_the_fit_finds_exponents_that_are_there():
    cells = [
        Cell(d, T, np.array([[0.5], [3.0]]) * d**0.5 * T**0.7 * np.ones(4))
        for d in (2, 8)
        for T in (100, 900)
    ]
    exponent = fit(cells * 4, resamples=50)
    assert exponent.dimension == pytest.approx((0.5, 0.5, 0.5))
    assert exponent.horizon == pytest.approx((0.7, 0.7, 0.7))
