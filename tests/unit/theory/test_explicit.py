"""Bounds whose constants are numbers, written out again and put beside each other."""

from math import inf, isclose, log, sqrt

import numpy as np
import pytest

from orthobandit import anchor_design
from orthobandit.errors import ParameterError
from orthobandit.simulation import exact_gap
from orthobandit.theory import (
    cauchy_schwarz_bound,
    ellipsoid_radius,
    error_bound,
    error_rounds,
    expected_regret_bound,
    explicit_error_bound,
    gap_regret_bound,
    pac_epsilon,
    uniform_error_bound,
)


def test_lemma_9_covariances_are_sums_over_pairs():
    design = anchor_design(exact_gap(4, 9, seed=3).arms)
    x = design.arms.features
    p = design.probabilities
    by_pairs = sum(
        p[i] * p[j] * np.outer(x[i] - x[j], x[i] - x[j]) for i in range(9) for j in range(i + 1, 9)
    )
    assert design.covariance == pytest.approx(by_pairs)
    assert design.mean == pytest.approx(p @ x)


@pytest.mark.parametrize("epsilon", [3.0, 0.3, 0.01])
def test_error_rounds_are_the_fewest_with_so_small_a_bound(epsilon):
    rounds = error_rounds(epsilon, 20.0, 30.0, 0.05, 5)
    assert error_bound(20.0, 30.0, rounds, 0.05, 5) <= epsilon
    assert rounds == 1 or error_bound(20.0, 30.0, rounds - 1, 0.05, 5) > epsilon
    assert error_rounds(epsilon, inf, 30.0, 0.05, 5) is None


@pytest.mark.parametrize("t", [1, 50, 10**6])
@pytest.mark.parametrize("d", [1, 5, 40])
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-9])
def test_lemma_19_is_as_printed(t, d, delta):
    printed = sqrt(log(t / delta)) + sqrt(27 * d * log(1 + t / (d * delta)) + 54 * log(t / delta))
    assert ellipsoid_radius(t, delta, d) == pytest.approx(printed, rel=1e-12)


def test_lemma_19_survives_the_smallest_delta():
    assert np.isfinite(ellipsoid_radius(10**18, 1e-300, 3))


def test_cauchy_schwarz_is_the_norm_times_the_radius():
    assert cauchy_schwarz_bound(7.0, 500, 0.1, 4) == pytest.approx(
        sqrt(7.0 / 500) * ellipsoid_radius(500, 0.1, 4)
    )
    assert cauchy_schwarz_bound(7.0, 500, 0.1, 4, C=2.0) == 2 * cauchy_schwarz_bound(7.0, 500, 0.1, 4)
    assert cauchy_schwarz_bound(inf, 500, 0.1, 4) == inf


def test_appendix_g_cauchy_schwarz_loses_the_root_of_the_dimension():
    # At the same L and many rounds, the ratio to the leading term of Theorem 4 is √(27d) up to logarithms.
    t, delta = 10**9, 0.05
    ratios = [cauchy_schwarz_bound(4.0, t, delta, d) / error_bound(4.0, 1.0, t, delta, d) for d in (100, 400)]
    assert ratios[1] / ratios[0] == pytest.approx(2.0, rel=0.1)


def test_corollary_16_is_as_printed_and_not_what_corollary_17_inverts_to():
    assert uniform_error_bound(1000, 0.05, 5) == pytest.approx(5 * sqrt(log(1000 / 0.05) / 1000))
    assert round(uniform_error_bound(1000, 0.05, 5), 3) == 0.498
    assert round(pac_epsilon(1000, 0.05, 5), 3) == 0.374
    assert uniform_error_bound(1000, 0.05, 5, C=3.0) == 3 * uniform_error_bound(1000, 0.05, 5)


def test_corollary_16_is_cauchy_schwarz_at_the_norm_of_the_design():
    # ‖x_i − x_1‖² ≤ 4d: the ratio stays between constants while d and t grow a thousandfold.
    ratios = [
        cauchy_schwarz_bound(4.0 * d, t, 0.05, d) / uniform_error_bound(t, 0.05, d)
        for d in (1, 30, 1000)
        for t in (10**4, 10**7)
    ]
    assert 5 < min(ratios) < max(ratios) < 25


def test_mean_regret_is_as_printed_and_grows_by_the_logarithm_of_the_horizon():
    assert expected_regret_bound(0.25, 1000, 5, 10) == pytest.approx(5 / 0.25 * log(1000 * 5 * 10 / 0.25))
    marks = [expected_regret_bound(0.25, 10**k, 5, 10) for k in range(2, 8)]
    assert np.diff(marks) == pytest.approx(5 / 0.25 * log(10))
    # So does the theorem with δ = 1/T, times the number of phases and with its further term.
    with_failures = [gap_regret_bound(0.25, 10.0**-k, 5, 10) for k in range(2, 8)]
    assert np.diff(with_failures) == pytest.approx((5 / 0.25 + 5**1.5) * log(10) * log(4))


def explicit_by_hand(L, M, t, delta, r, ridge, contrasts, B, sigma, S):
    m = log(6 * r / delta)
    per_contrast = log(6 * contrasts / delta)
    gamma = sqrt(2 * M * m / t) + 2 * M * m / (3 * t)
    v = B**2 + sigma**2 * (1 + gamma)
    fixed = sqrt(2 * L * v * per_contrast / t) + sqrt(L * M) * B * per_contrast / (3 * t)
    vector = sqrt(r) * (sqrt(2 * v * m / t) + sqrt(M) * B * m / (3 * t))
    return fixed + sqrt(L) * gamma / (1 - gamma) * vector + sqrt(L * ridge / t) * S / (1 - gamma)


def test_the_explicit_bound_is_as_derived():
    given = (12.0, 20.0, 5000, 0.03, 4)
    found = explicit_error_bound(*given, ridge=9.0, contrasts=11, level=1.5, noise=0.7, norm=0.8)
    assert found == pytest.approx(explicit_by_hand(*given, 9.0, 11, 1.5, 0.7, 0.8), rel=1e-12)


def test_the_explicit_bound_has_the_rate_of_theorem_4():
    # Where rounds are many, √(L/t)·(√(2·5·log(6/δ)) + √β): constants do not depend on the rest.
    t, delta = 10**14, 0.05
    for L, M, r in ((4.0, 9.0, 1), (400.0, 500.0, 100)):
        beta = log(t / delta)
        leading = sqrt(L / t) * (sqrt(10 * log(6 / delta)) + sqrt(beta))
        assert explicit_error_bound(L, M, t, delta, r, ridge=beta) == pytest.approx(leading, rel=1e-3)


def test_the_explicit_bound_has_the_units_of_the_rewards():
    one = explicit_error_bound(4.0, 9.0, 4000, 0.05, 2, ridge=8.0, level=2.0, noise=1.0, norm=1.0)
    ten = explicit_error_bound(4.0, 9.0, 4000, 0.05, 2, ridge=8.0, level=20.0, noise=10.0, norm=10.0)
    assert isclose(ten, 10 * one, rel_tol=1e-12)


def test_too_few_rounds_prove_nothing():
    assert explicit_error_bound(4.0, 9.0, 50, 0.05, 1, ridge=5.0) == inf
    assert explicit_error_bound(inf, 9.0, 10**9, 0.05, 1, ridge=5.0) == inf


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: ellipsoid_radius(0, 0.1, 1), "rounds=0"),
        (lambda: ellipsoid_radius(1, 1.0, 1), "delta=1"),
        (lambda: cauchy_schwarz_bound(-1.0, 10, 0.1, 1), "L=-1"),
        (lambda: uniform_error_bound(10, 0.1, 0), "dimension=0"),
        (lambda: explicit_error_bound(1.0, float("nan"), 10, 0.1, 1, ridge=1.0), "M=nan"),
        (lambda: explicit_error_bound(1.0, 1.0, 10**6, 0.1, 1, ridge=0.0), "ridge=0"),
        (lambda: expected_regret_bound(0.0, 10, 1, 2), "gap=0"),
    ],
)
def test_bad_arguments_are_named(call, name):
    with pytest.raises(ParameterError, match=name):
        call()
