"""Sample ratio and missing rewards for one look: scipy's tests for one distribution, and right for many."""

import numpy as np
import pytest
from scipy.stats import binom, chi2, chi2_contingency, chisquare

from orthobandit.estimate.health.missing import missing_p_value
from orthobandit.estimate.health.sample_ratio import ratio_p_value


def test_one_distribution_is_the_textbook_case():
    counts, p = np.array([[60, 25, 15]]), np.array([[0.5, 0.3, 0.2]])
    want = chisquare(counts[0], 100 * p[0]).pvalue
    assert ratio_p_value(p, counts) == pytest.approx(want, rel=1e-9)
    rounds, quiet = np.array([[60, 25, 15]]), np.array([[20, 12, 10]])
    table = chi2_contingency(np.stack([quiet[0], (rounds - quiet)[0]]), correction=False)
    # Without replacement: (N − 1)/N of the statistic.
    assert missing_p_value(rounds, quiet) == pytest.approx(chi2.sf(table.statistic * 99 / 100, 2), rel=1e-9)


def test_rare_arms_are_counted_together_and_impossible_ones_are_an_alarm():
    p = np.array([[0.98, 0.01, 0.01]])
    together = ratio_p_value(np.array([[0.98, 0.02]]), np.array([[90, 10]]))
    assert ratio_p_value(p, np.array([[90, 4, 6]])) == pytest.approx(together, rel=1e-9)
    assert ratio_p_value(np.array([[1.0, 0.0]]), np.array([[99, 1]])) == 0.0
    assert ratio_p_value(np.array([[1.0, 0.0]]), np.array([[99, 0]])) == 1.0
    assert missing_p_value(np.array([[50, 50]]), np.array([[50, 50]])) == 1.0


def test_counts_that_are_as_expected_but_for_rounding_are_fine():
    p = np.array([[0.1, 0.2, 0.7], [0.3, 0.6, 0.1]])
    assert ratio_p_value(p, np.array([[10, 20, 70], [30, 60, 10]])) == pytest.approx(1.0)
    apart = np.array([[0.3, 0.7, 0.0, 0.0], [0.0, 0.0, 0.1, 0.9]])
    assert ratio_p_value(apart, np.array([[30, 70, 0, 0], [0, 0, 10, 90]])) == pytest.approx(1.0)


@pytest.mark.parametrize("rows", range(50, 70))
def test_an_arm_that_is_always_drawn_is_fine(rows):
    assert ratio_p_value(np.array([[1.0, 0.0]]), np.array([[rows, 0]])) == 1.0
    assert missing_p_value(np.array([[rows, 0]]), np.array([[rows // 3, 0]])) == 1.0


def test_very_many_arms_need_no_covariances(monkeypatch):
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.full(30, 5.0))[np.newaxis]
    counts = rng.multinomial(5000, p)
    want = ratio_p_value(p, counts)
    monkeypatch.setattr("inside.estimate.MANY", 10)
    assert ratio_p_value(p, counts) == pytest.approx(want, rel=1e-9)


def test_p_values_are_uniform_whatever_the_plans():
    rng, runs, low = np.random.default_rng(1), 1000, np.zeros(2, dtype=int)
    plans = rng.dirichlet(np.ones(3), 50)
    for _ in range(runs):
        counts = rng.multinomial(40, plans)
        low += [
            ratio_p_value(plans, counts) <= 0.05,
            missing_p_value(counts, rng.binomial(counts, np.linspace(0.05, 0.5, 50)[:, np.newaxis])) <= 0.05,
        ]
    assert np.all(low <= binom.isf(1e-6, runs, 0.05))
    assert np.all(low >= binom.isf(1 - 1e-6, runs, 0.05))
