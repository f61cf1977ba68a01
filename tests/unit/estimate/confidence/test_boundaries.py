"""The normal boundary against direct numerical integration of the mixture it comes from."""

import numpy as np
import pytest
from scipy.integrate import quad

from orthobandit.estimate.confidence.boundaries import (
    NEAR,
    WIDE,
    Grid,
    normal_boundary,
    normal_exponent,
    normal_level,
    normal_mixture,
    reaches_normal,
    tightest_rho,
)
from orthobandit.estimate.confidence.tightness import GUESSED_ROUNDS

GRIDS = {"near": NEAR, "wide": WIDE}
ALONE = Grid(np.ones(1), np.ones(1))


def integrated_normal(total, variance, rho):
    """2∫ exp(λS − λ²V/2) N(λ; 0, 1/ρ) dλ over λ > 0."""
    precision = variance + rho

    def integrand(x):
        return 2 * np.sqrt(rho / (2 * np.pi)) * np.exp(x * total - x * x * precision / 2)

    middle, wide = total / precision, 12 / np.sqrt(precision)
    return quad(integrand, max(middle - wide, 0.0), middle + wide, epsabs=0, limit=400)[0]


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize(("variance", "rho"), [(0.0, 2.0), (3.0, 0.3), (80.0, 25.0)])
def test_where_a_boundary_lies_the_mixture_has_just_reached_its_goal(alpha, variance, rho):
    grid = Grid(np.array([0.2, 1.0, 5.0]), np.array([0.3, 0.4, 0.3]))
    bound = float(normal_boundary(variance, alpha, rho, grid))
    mixture = sum(
        share * integrated_normal(bound, variance, rho * multiple)
        for multiple, share in zip(*grid, strict=True)
    )
    # Never sooner; later by what the closed forms give away, which is little unless α is large.
    assert 1 - 1e-7 <= mixture * alpha < (1.7 if alpha == 0.5 else 1.08)


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
@pytest.mark.parametrize("rho", [1e-4, 0.5, 300.0])
def test_newton_ends_just_above_the_root(grid, alpha, rho):
    variance = np.array([0.0, 1e-3, 1.0, 50.0, 1e4, 1e7])
    bound = normal_boundary(variance, alpha, rho, grid)
    assert np.all(reaches_normal(bound, variance, alpha, rho, grid))
    assert not np.any(reaches_normal(bound * (1 - 1e-6), variance, alpha, rho, grid))
    assert not np.any(reaches_normal(-bound, variance, alpha, rho, grid))


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
def test_shares_of_a_grid_add_up_to_one(grid):
    assert grid.shares.sum() == pytest.approx(1.0, abs=1e-15)
    assert np.all(grid.shares > 0)


@pytest.mark.parametrize(("grid", "cost"), [(NEAR, 1.02), (WIDE, 1.05)], ids=GRIDS)
def test_what_mixing_costs_where_the_guess_is_right(grid, cost):
    boundary, variance, alpha = normal_boundary, 400.0, 0.05
    rho = tightest_rho(variance, alpha)
    ratio = boundary(variance, alpha, rho, grid) / boundary(variance, alpha, rho, ALONE)
    assert 1.0 < ratio < cost


@pytest.mark.parametrize(
    ("factor", "cost"), [(1 / 400, 1.3), (1 / 20, 1.13), (1, 1.05), (20, 1.25), (100, 1.42), (400, 1.55)]
)
def test_a_wide_grid_is_nearly_as_good_whatever_the_guess(factor, cost):
    boundary, variance, alpha = normal_boundary, 4e4, 0.05
    rho = tightest_rho(variance, alpha)
    ratio = boundary(variance, alpha, rho * factor, WIDE) / boundary(variance, alpha, rho, ALONE)
    assert ratio < cost


def test_boundaries_grow_with_the_variance_and_shrink_with_alpha():
    variance = np.linspace(0.0, 500.0, 60)
    assert np.all(np.diff(normal_boundary(variance, 0.05, 3.0, WIDE)) > 0)
    assert np.all(normal_boundary(variance, 0.01, 3.0, WIDE) > normal_boundary(variance, 0.05, 3.0, WIDE))


def test_the_tightest_rho_is_nearly_the_best():
    boundary, variance, alpha = normal_boundary, 400.0, 0.02
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
    assert normal_boundary(np.ones((3, 1)), np.array([0.1, 0.2]), 1.0, WIDE).shape == (3, 2)
    assert reaches_normal(5.0, np.ones((3, 1)), np.array([0.1, 0.2]), 1.0, WIDE).shape == (3, 2)
    assert normal_boundary(1.0, 0.1, 1.0, NEAR).shape == ()


@pytest.mark.parametrize("rho", [1e-30, 1e-6, 1.0, 1e9, 1e24])
def test_boundaries_are_finite_and_ordered_at_any_level(rho):
    alpha = np.array([0.5, 1e-4, 1e-30, 1e-300])
    bound = normal_boundary(100.0, alpha, rho, WIDE)
    assert np.all(np.isfinite(bound))
    assert np.all(np.diff(bound) > 0)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("alpha", [0.025, 0.0005])
def test_intervals_tuned_in_other_units_are_at_most_half_as_wide_again(grid, alpha):
    # docs/limits.md says so of metrics without a declared range, whose boundaries suit a scatter of 1.
    guess = tightest_rho(GUESSED_ROUNDS, alpha)
    best = min(float(normal_boundary(1.0, alpha, rho, GRIDS[grid])) for rho in np.geomspace(0.01, 1.0, 60))
    for scatter in np.geomspace(0.01, 100.0, 21):
        for visitors in (1e4, 1e5, 1e6):
            variance = visitors * scatter**2
            width = float(normal_boundary(variance, alpha, guess, GRIDS[grid])) / np.sqrt(variance)
            assert width <= 1.5 * best, (scatter, visitors)
