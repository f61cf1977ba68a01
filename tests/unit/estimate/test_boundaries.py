"""Boundaries against direct numerical integration of the mixtures they come from."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc, gammaln

from orthobandit.estimate.boundaries import (
    NEAR,
    WIDE,
    Grid,
    gamma_boundary,
    normal_boundary,
    normal_exponent,
    normal_level,
    normal_mixture,
    reaches_gamma,
    reaches_normal,
    tightest_rho,
)

GRIDS = {"near": NEAR, "wide": WIDE}
ALONE = Grid(np.ones(1), np.ones(1))
KINDS = {"gamma": (gamma_boundary, reaches_gamma), "normal": (normal_boundary, reaches_normal)}


def integrated_gamma(total, variance, rho):
    """∫ exp(λS + (λ + log(1−λ))V) f(λ) dλ over [0, 1) with the truncated gamma density of 1 − λ."""
    constant = rho * np.log(rho) - gammaln(rho) - np.log(gammainc(rho, rho))

    if rho >= 1:
        mode = (variance + rho - 1) / (total + variance + rho)

        def plain(u):
            exponent = (1 - u) * total + variance * (1 - u + np.log(u)) + (rho - 1) * np.log(u) - rho * u
            return np.exp(exponent + constant)

        return sum(
            quad(plain, *part, epsabs=0, epsrel=1e-11, limit=400)[0] for part in ((0, mode), (mode, 1))
        )

    # u = 1 − λ = t^(1/ρ) takes the singularity of u^(ρ−1) out of the integral.
    def integrand(t):
        u = t ** (1 / rho)
        exponent = (1 - u) * total + variance * (1 - u + np.log(u)) - rho * u
        return np.exp(exponent + constant) / rho

    return quad(integrand, 0, 1, epsabs=0, epsrel=1e-10, limit=400)[0]


def integrated_normal(total, variance, rho):
    """2∫ exp(λS − λ²V/2) N(λ; 0, 1/ρ) dλ over λ > 0."""
    precision = variance + rho

    def integrand(x):
        return 2 * np.sqrt(rho / (2 * np.pi)) * np.exp(x * total - x * x * precision / 2)

    middle, wide = total / precision, 12 / np.sqrt(precision)
    return quad(integrand, max(middle - wide, 0.0), middle + wide, epsabs=0, limit=400)[0]


INTEGRALS = {"gamma": integrated_gamma, "normal": integrated_normal}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize(("variance", "rho"), [(0.0, 2.0), (3.0, 0.3), (80.0, 25.0)])
def test_where_a_boundary_lies_the_mixture_has_just_reached_its_goal(kind, alpha, variance, rho):
    grid = Grid(np.array([0.2, 1.0, 5.0]), np.array([0.3, 0.4, 0.3]))
    bound = float(KINDS[kind][0](variance, alpha, rho, grid))
    mixture = sum(
        share * INTEGRALS[kind](bound, variance, rho * multiple)
        for multiple, share in zip(*grid, strict=True)
    )
    # Never sooner; later by what the closed forms give away, which is little unless α is large.
    assert 1 - 1e-7 <= mixture * alpha < (1.7 if alpha == 0.5 else 1.08)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("rho", [1e-4, 0.5, 300.0])
def test_newton_ends_just_above_the_root(kind, grid, alpha, rho):
    boundary, reaches = KINDS[kind]
    variance = np.array([0.0, 1e-3, 1.0, 50.0, 1e4, 1e7])
    bound = boundary(variance, alpha, rho, grid)
    assert np.all(reaches(bound, variance, alpha, rho, grid))
    assert not np.any(reaches(bound * (1 - 1e-6), variance, alpha, rho, grid))
    assert not np.any(reaches(-bound, variance, alpha, rho, grid))


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_shares_of_a_grid_add_up_to_one(grid):
    assert grid.shares.sum() == pytest.approx(1.0, abs=1e-15)
    assert np.all(grid.shares > 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("grid", "cost"), [(NEAR, 1.02), (WIDE, 1.05)], ids=GRIDS)
def test_what_mixing_costs_where_the_guess_is_right(kind, grid, cost):
    boundary, variance, alpha = KINDS[kind][0], 400.0, 0.05
    rho = tightest_rho(variance, alpha)
    ratio = boundary(variance, alpha, rho, grid) / boundary(variance, alpha, rho, ALONE)
    assert 1.0 < ratio < cost


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("factor", "cost"), [(1 / 400, 1.3), (1 / 20, 1.13), (1, 1.05), (20, 1.25), (100, 1.42), (400, 1.55)]
)
def test_a_wide_grid_is_nearly_as_good_whatever_the_guess(kind, factor, cost):
    boundary, variance, alpha = KINDS[kind][0], 4e4, 0.05
    rho = tightest_rho(variance, alpha)
    ratio = boundary(variance, alpha, rho * factor, WIDE) / boundary(variance, alpha, rho, ALONE)
    assert ratio < cost


def test_boundaries_grow_with_the_variance_and_shrink_with_alpha():
    variance = np.linspace(0.0, 500.0, 60)
    for boundary in (gamma_boundary, normal_boundary):
        assert np.all(np.diff(boundary(variance, 0.05, 3.0, WIDE)) > 0)
        assert np.all(boundary(variance, 0.01, 3.0, WIDE) > boundary(variance, 0.05, 3.0, WIDE))


def test_bounded_increments_cost_more_than_normal_ones_and_less_and_less():
    variance = np.array([10.0, 1e3, 1e5, 1e7])
    rho = tightest_rho(variance, 0.05)
    ratio = gamma_boundary(variance, 0.05, rho, NEAR) / normal_boundary(variance, 0.05, rho, NEAR)
    assert np.all(ratio > 1)
    assert np.all(np.diff(ratio) < 0)
    assert ratio[-1] == pytest.approx(1.0, abs=0.02)  # increments are small against √V


@pytest.mark.parametrize("boundary", [gamma_boundary, normal_boundary])
def test_the_tightest_rho_is_nearly_the_best(boundary):
    variance, alpha = 400.0, 0.02
    rho = tightest_rho(variance, alpha)
    every = rho * np.geomspace(0.05, 20.0, 41)
    assert boundary(variance, alpha, rho, ALONE) <= 1.02 * boundary(variance, alpha, every, ALONE).min()


def test_the_closed_form_lies_above_the_root_and_near_it():
    variance, rho = np.array([1.0, 100.0, 1e4]), np.array([1.0, 4.0, 2e3])
    for alpha in (0.1, 0.01, 1e-5):
        ratio = normal_mixture(variance, alpha, rho) / normal_boundary(variance, alpha, rho, ALONE)
        assert np.all((ratio > 1) & (ratio < 1.02))


def test_the_level_is_that_of_the_component_that_is_lowest_alone():
    assert normal_level(50.0, 0.1, 20.0, NEAR) == pytest.approx(normal_exponent(50.0, 0.09, 20.0))
    for guess, taken in ((20e-9, 20e-3), (20e9, 20e3)):
        assert normal_level(50.0, 0.1, guess, NEAR) == pytest.approx(normal_exponent(50.0, 0.0025, taken))


def test_shapes_broadcast():
    for boundary, reaches in KINDS.values():
        assert boundary(np.ones((3, 1)), np.array([0.1, 0.2]), 1.0, WIDE).shape == (3, 2)
        assert reaches(5.0, np.ones((3, 1)), np.array([0.1, 0.2]), 1.0, WIDE).shape == (3, 2)
        assert boundary(1.0, 0.1, 1.0, NEAR).shape == ()


def digits(total, variance, rho):
    """Return the logarithm of one gamma component in fifty digits, for large V and ρ."""
    with localcontext() as context:
        context.prec = 50
        s, v, r = map(Decimal, (total, variance, rho))

        def log_factorial(x):
            half_log = Decimal(2 * np.pi).ln() / 2
            return (x - Decimal("0.5")) * x.ln() - x + half_log + 1 / (12 * x) - 1 / (360 * x**3)

        a, z = v + r, s + v + r
        far = s - a * (z.ln() - a.ln())
        value = r * r.ln() - log_factorial(r) + log_factorial(a) - a * a.ln() + v + (far.exp() - 1).ln()
    return float(value) - np.log(gammainc(rho, rho))


@pytest.mark.parametrize("variance", [1e4, 1e8, 1e12, 1e14])
@pytest.mark.parametrize("ratio", [1e-2, 1.0, 1e9])
def test_the_gamma_mixture_keeps_its_digits_at_large_variances(variance, ratio):
    total = 4.0 * np.sqrt((1.0 + ratio) * variance)
    goal = digits(total, variance, ratio * variance)
    for nudge, found in ((-1e-6, True), (1e-6, False)):
        assert reaches_gamma(total, variance, np.exp(-goal - nudge), ratio * variance, ALONE) == found


@pytest.mark.parametrize("rho", [1e-30, 1e-6, 1.0, 1e9, 1e24])
def test_boundaries_are_finite_and_ordered_at_any_level(rho):
    alpha = np.array([0.5, 1e-4, 1e-30, 1e-300])
    for boundary, _ in KINDS.values():
        bound = boundary(100.0, alpha, rho, WIDE)
        assert np.all(np.isfinite(bound))
        assert np.all(np.diff(bound) > 0)
    assert np.all(gamma_boundary(100.0, alpha, rho, WIDE) >= normal_boundary(100.0, alpha, rho, WIDE))
