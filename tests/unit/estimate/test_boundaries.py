"""Boundaries against direct numerical integration of the mixtures they come from."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc, gammaln

from orthobandit.estimate.boundaries import (
    SHARE,
    chosen,
    gamma_mixture,
    log_gamma_mixture,
    normal_mixture,
    tightest_rho,
)

GRID = [(s, v, r) for s in (0.5, 4.0, 30.0) for v in (0.0, 3.0, 80.0) for r in (0.3, 2.0, 25.0)]


def integrated_gamma(total, variance, rho):
    """∫ exp(λS + (λ + log(1−λ))V) f(λ) dλ over [0, 1) with the truncated gamma density of 1 − λ."""
    constant = rho * np.log(rho) - gammaln(rho) - np.log(gammainc(rho, rho))

    # u = 1 − λ = t^(1/ρ) takes the singularity of u^(ρ−1) out of the integral.
    def integrand(t):
        u = t ** (1 / rho)
        exponent = (1 - u) * total + variance * (1 - u + np.log(u)) - rho * u
        return np.exp(exponent + constant) / rho

    return quad(integrand, 0, 1, epsabs=0, epsrel=1e-10, limit=400)[0]


@pytest.mark.parametrize(("total", "variance", "rho"), GRID)
def test_the_gamma_mixture_is_the_integral(total, variance, rho):
    expected = np.log(integrated_gamma(total, variance, rho))
    assert log_gamma_mixture(total, variance, rho) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("rho", [0.3, 2.0, 25.0])
def test_the_mixing_density_has_mass_one(rho):
    # At S = V = 0 the mixture is the mass of the density, so a martingale starts at one.
    assert log_gamma_mixture(0.0, 0.0, rho) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("rho", [1e-4, 0.5, 300.0])
def test_newton_ends_just_above_the_root(alpha, rho):
    variance = np.array([0.0, 1e-3, 1.0, 50.0, 1e4, 1e7])
    bound = gamma_mixture(variance, alpha, rho)
    goal = -np.log(alpha)
    assert np.all(log_gamma_mixture(bound, variance, rho) >= goal - 1e-7)
    assert np.all(log_gamma_mixture(bound * (1 - 1e-6), variance, rho) < goal)


def test_the_normal_mixture_is_the_integral_up_to_its_bound():
    # The one-sided mixture is 2∫ exp(λS − λ²V/2) N(λ; 0, 1/ρ) dλ over λ > 0; the form lies above its root.
    for variance, rho, alpha in [(1.0, 1.0, 0.1), (100.0, 4.0, 0.01), (0.0, 2.0, 0.05)]:
        total = float(normal_mixture(variance, alpha, rho))

        def integrand(x, total=total, precision=variance + rho, rho=rho):
            return 2 * np.sqrt(rho / (2 * np.pi)) * np.exp(x * total - x * x * precision / 2)

        mixture = quad(integrand, 0, total / (variance + rho) + 40, epsabs=0, limit=400)[0]
        assert 1 / alpha <= mixture * (1 + 1e-9)
        assert mixture < 3 / alpha


def test_boundaries_grow_with_the_variance_and_shrink_with_alpha():
    variance = np.linspace(0.0, 500.0, 60)
    for boundary in (gamma_mixture, normal_mixture):
        assert np.all(np.diff(boundary(variance, 0.05, 3.0)) > 0)
        assert np.all(boundary(variance, 0.01, 3.0) > boundary(variance, 0.05, 3.0))


def test_bounded_increments_cost_more_than_normal_ones_and_less_and_less():
    variance = np.array([10.0, 1e3, 1e5, 1e7])
    rho = tightest_rho(variance, 0.05)
    ratio = gamma_mixture(variance, 0.05, rho) / normal_mixture(variance, 0.05, rho)
    assert np.all(np.diff(ratio) < 0)
    # For V → ∞ increments are small against √V: what is left is the slack of the normal closed form.
    assert ratio[-1] == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("boundary", [gamma_mixture, normal_mixture])
def test_the_tightest_rho_is_nearly_the_best(boundary):
    variance, alpha = 400.0, 0.02
    rho = tightest_rho(variance, alpha)
    grid = rho * np.geomspace(0.05, 20.0, 41)
    assert boundary(variance, alpha, rho) <= 1.02 * boundary(variance, alpha, grid).min()


def test_shapes_broadcast():
    out = gamma_mixture(np.ones((3, 1)), np.array([0.1, 0.2]), 1.0)
    assert out.shape == (3, 2)
    assert normal_mixture(np.ones((3, 1)), np.array([0.1, 0.2]), 1.0).shape == (3, 2)


def digits_gamma(total, variance, rho):
    """Return the log-mixture in fifty digits, with Stirling's series for log Γ; for large V and ρ."""
    with localcontext() as context:
        context.prec = 50
        s, v, r = map(Decimal, (total, variance, rho))

        def log_factorial(x):
            half_log = Decimal(2 * np.pi).ln() / 2
            return (x - Decimal("0.5")) * x.ln() - x + half_log + 1 / (12 * x) - 1 / (360 * x**3)

        a, z = v + r, s + v + r
        value = r * r.ln() - log_factorial(r) + log_factorial(a) - a * z.ln() + s + v
    inside = np.log(gammainc(float(a), float(z))) - np.log(gammainc(rho, rho))
    return float(value) + inside


@pytest.mark.parametrize("variance", [1e4, 1e8, 1e12, 1e14])
@pytest.mark.parametrize("ratio", [1e-2, 1.0, 1e9])
def test_the_gamma_mixture_keeps_its_digits_at_large_variances(variance, ratio):
    total = 4.0 * np.sqrt((1.0 + ratio) * variance)
    expected = digits_gamma(total, variance, ratio * variance)
    assert log_gamma_mixture(total, variance, ratio * variance) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rho", [1e-30, 1e-6, 1.0, 1e9, 1e24])
def test_boundaries_are_finite_and_ordered_at_any_level(rho):
    alpha = np.array([0.5, 1e-4, 1e-30, 1e-300])
    for boundary in (gamma_mixture, normal_mixture):
        bound = boundary(100.0, alpha, rho)
        assert np.all(np.isfinite(bound))
        assert np.all(np.diff(bound) > 0)
    # The closed form of the normal one is loose at α = ½ only.
    assert np.all((gamma_mixture(100.0, alpha, rho) >= 0.99 * normal_mixture(100.0, alpha, rho))[1:])


def test_shares_of_the_grid_add_up_to_one_and_a_good_guess_keeps_most():
    assert SHARE.sum() == pytest.approx(1.0)
    assert chosen(50.0, 0.1, 20.0) == (pytest.approx(0.09), pytest.approx(20.0))


@pytest.mark.parametrize(("guess", "taken"), [(20e-9, 20e-3), (20e9, 20e3)])
def test_a_bad_guess_is_replaced_by_the_nearest_of_the_grid(guess, taken):
    assert chosen(50.0, 0.1, guess) == (pytest.approx(0.0025), pytest.approx(taken))
