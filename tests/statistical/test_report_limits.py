"""Limits of means in a report are passed as rarely as they say, on skewed data too."""

import numpy as np
import pytest
from scipy import special, stats

from inside.reproduction import LEVEL, Measured

pytestmark = pytest.mark.statistical

TRIALS = 40_000
# Two limits at LEVEL each would be passed more often with a probability of 10⁻⁶.
MOST = stats.binom.isf(1e-6, TRIALS, 2 * LEVEL)
# Draws, and their mean; the coefficient of variation is 0.5, 0.53 and 1.
SKEWED = {
    "gamma(4)": (lambda rng, size: rng.gamma(4.0, size=size), 4.0),
    "log-normal(0.5)": (lambda rng, size: rng.lognormal(0.0, 0.5, size), np.exp(0.125)),
    "exponential": (lambda rng, size: rng.exponential(size=size), 1.0),
}


@pytest.mark.parametrize("name", SKEWED)
@pytest.mark.parametrize("count", [20, 100])
def test_means_of_skewed_values_pass_their_limits_rarely(name, count):
    draw, truth = SKEWED[name]
    values = draw(np.random.default_rng(33), (TRIALS, count))
    found = [Measured.mean(row) for row in values]
    passed = sum(one.high < truth for one in found) + sum(one.low > truth for one in found)
    assert passed <= MOST


@pytest.mark.parametrize("name", SKEWED)
@pytest.mark.parametrize("count", [8, 20])
def test_ratios_of_skewed_values_pass_their_limits_rarely(name, count):
    draw, _ = SKEWED[name]
    pairs = draw(np.random.default_rng(34), (TRIALS, 2, count))
    found = [Measured.ratio(top, bottom) for top, bottom in pairs]
    passed = sum(one.high < 1.0 for one in found) + sum(one.low > 1.0 for one in found)
    assert passed <= MOST


@pytest.mark.parametrize("name", ["gamma(4)", "exponential"])  # logarithms of log-normal values have no skew
@pytest.mark.parametrize("count", [20, 100])
def test_geometric_means_of_skewed_values_pass_their_limits_rarely(name, count):
    draw, _ = SKEWED[name]
    truth = np.exp(special.digamma({"gamma(4)": 4.0, "exponential": 1.0}[name]))
    found = [Measured.geometric(row) for row in draw(np.random.default_rng(35), (TRIALS, count))]
    passed = sum(one.high < truth for one in found) + sum(one.low > truth for one in found)
    assert passed <= MOST


def test_limits_by_students_t_alone_are_passed_far_more_often():
    values = np.random.default_rng(33).exponential(size=(TRIALS, 20))
    reach = special.stdtrit(19, 1 - LEVEL) * values.std(axis=1, ddof=1) / np.sqrt(20)
    passed = np.count_nonzero(values.mean(axis=1) + reach < 1.0)
    assert passed > stats.binom.isf(1e-6, TRIALS, 8 * LEVEL)
