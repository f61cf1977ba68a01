"""Arms are drawn with exactly the probabilities of the plan: an exact binomial test of every arm's count."""

import numpy as np
import pytest
from scipy.stats import binomtest

from inside._foundation import draw_arms, stream

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6  # for all arms of a distribution together
DRAWS = 200_000

DISTRIBUTIONS = {
    "one arm": [1.0],
    "two even arms": [0.5, 0.5],
    "uneven": [0.7, 0.2, 0.1],
    "zeros among them": [0.0, 0.4, 0.0, 0.0, 0.6, 0.0],
    "rare": [1 - 1e-4 - 1e-5, 1e-4, 1e-5],
    "many": (np.arange(1, 201) / np.arange(1, 201).sum()).tolist(),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_counts_are_binomial(name):
    probabilities = np.array(DISTRIBUTIONS[name])
    drawn = draw_arms(stream(3, "arms"), probabilities, DRAWS)
    counts = np.bincount(drawn, minlength=len(probabilities))
    for count, probability in zip(counts.tolist(), probabilities.tolist(), strict=True):
        assert binomtest(count, DRAWS, probability).pvalue > FALSE_ALARM / len(probabilities)


def test_consecutive_draws_are_independent():
    drawn = draw_arms(stream(4, "arms"), np.array([0.5, 0.5]), DRAWS)
    repeats = int(np.sum(drawn[1:] == drawn[:-1]))
    assert binomtest(repeats, DRAWS - 1, 0.5).pvalue > FALSE_ALARM


def test_streams_of_neighbouring_replications_are_independent():
    first, second = (draw_arms(stream(4, "arms", i), np.array([0.5, 0.5]), DRAWS) for i in (0, 1))
    assert binomtest(int(np.sum(first == second)), DRAWS, 0.5).pvalue > FALSE_ALARM


def test_the_same_test_finds_a_slightly_wrong_probability():
    drawn = draw_arms(stream(5, "arms"), np.array([0.51, 0.49]), DRAWS)
    assert binomtest(int(np.sum(drawn == 0)), DRAWS, 0.5).pvalue < FALSE_ALARM
