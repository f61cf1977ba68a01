"""Boundaries by bets: against products of bets, under games of all outcomes, and by their shape."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import erfc, ndtr
from scipy.stats import binom

from inside.estimate import EXPECTED, NEAR, WIDE, LogBets, normal_boundary, tightest_rho
from orthobandit.estimate import Asymptotic, Evidence, Tuning
from orthobandit.estimate.confidence.bets import BOLDEST, Spent, bets_boundary, reaches_bets

GRIDS = {"near": NEAR, "wide": WIDE, "expected": EXPECTED}


def spent(increments):
    """Return what bets on these increments (..., n) cost."""
    size = np.abs(increments)
    return Spent((size**2).sum(-1), (size**3).sum(-1), size.max(-1, initial=0.0))


def bets(rho, scale, grid):
    """Return every bet with its share, written down once more, in steps of √2, cut at 0.95/c.

    They are |N(0, 1/ρ)|, or their logarithms are normal around that of 1/√ρ.
    """
    bet = 2.0 ** (np.arange(-80, 41) / 2) / np.sqrt(rho)
    edges = np.append(0.0, bet[:-1] * 2**0.25)
    if isinstance(grid, LogBets):
        logs = np.append(-np.inf, np.log(edges[1:] * np.sqrt(rho)))
        left = sum(share * ndtr(-logs / deviation) for deviation, share in zip(*grid, strict=True))
    else:
        left = sum(
            share * erfc(edges * np.sqrt(rho * multiple / 2)) for multiple, share in zip(*grid, strict=True)
        )
    shares, cap = -np.diff(left, append=0.0), 0.95 / scale
    kept = bet < cap
    return np.append(bet[kept], cap), np.append(shares[kept], 1 - shares[kept].sum())


def wealth(increments, rho, scale, grid):
    """Return what 1 becomes, by bets on increments (..., n): Σ_k π_k·∏(1 + λ_k·x)."""
    bet, share = bets(rho, scale, grid)
    return np.prod(1 + bet * increments[..., np.newaxis], axis=-2) @ share


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("rho", [1e-3, 1.0, 40.0])
def test_the_boundary_is_reached_no_sooner_than_by_the_bets_themselves(grid, rho):
    rng = np.random.default_rng(1)
    for n in (1, 3, 10, 300):
        x = rng.choice([-1.0, -0.2, 0.0, 0.1, 0.7, 1.0], (200, n), p=[0.05, 0.2, 0.2, 0.3, 0.15, 0.1])
        final = wealth(x, rho, 1.0, grid)
        for alpha in (0.5, 0.05, 1e-6):
            reached = reaches_bets(x.sum(-1), spent(x), Tuning(alpha, rho, 1.0, grid))
            assert np.all(final[reached] * alpha >= 1 - 1e-9)


def test_where_rounds_are_small_the_boundary_is_that_of_the_bets():
    x = np.random.default_rng(2).normal(0.05, 0.02, (50, 400))
    final = wealth(x, 30.0, 1.0, WIDE)
    tuning = Tuning(1 / final, 30.0, 1.0, WIDE)
    assert bets_boundary(spent(x), tuning) == pytest.approx(x.sum(-1), rel=0.01)


@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("rise", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("rho", [0.05, 3.0])
def test_under_a_fair_game_the_mean_is_at_most_one(scale, rise, rho):
    # Every path of ten rounds that gain `rise` or lose the whole scale, on average nothing.
    lose = rise / (rise + scale)
    paths = np.array(list(product([rise, -scale], repeat=10)))
    odds = np.prod(np.where(paths > 0, 1 - lose, lose), axis=-1)
    cost = spent(paths)
    log_share = np.log(bets(rho, scale, WIDE)[1])
    bet = bets(rho, scale, WIDE)[0]
    v, third, peak = (np.asarray(part)[:, np.newaxis] for part in cost)
    value = bet * paths.sum(-1, keepdims=True) - bet**2 * (v / 2 + bet * third / (3 * (1 - bet * peak)))
    assert odds @ np.exp(value + log_share).sum(-1) <= 1 + 1e-12
    # And so no boundary is crossed more often than its level says.
    for alpha in (0.5, 0.1, 0.01):
        ends = [
            reaches_bets(paths[:, :n].sum(-1), spent(paths[:, :n]), Tuning(alpha, rho, scale, WIDE))
            for n in range(1, 11)
        ]
        assert odds @ np.any(ends, axis=0) <= alpha


@pytest.mark.parametrize(
    "grid", [WIDE, pytest.param(EXPECTED, marks=pytest.mark.slow)], ids=["wide", "expected"]
)
def test_rare_losses_of_the_whole_scale_fool_no_boundary(grid):
    # Gains of 0.01 and, once in 201 rounds, a loss of 2: most paths look like a sure gain for long.
    rng, alpha, runs = np.random.default_rng(3), 0.1, 2000
    x = np.where(rng.random((runs, 1500)) < 1 / 201, -2.0, 0.01)
    crossed = np.zeros(runs, dtype=bool)
    for n in range(10, 1501, 10):
        crossed |= reaches_bets(x[:, :n].sum(-1), spent(x[:, :n]), Tuning(alpha, 2.0, 2.0, grid))
    assert crossed.sum() <= binom.isf(1e-4, runs, alpha)  # false alarms: once in 10⁴


@pytest.mark.parametrize("grid", GRIDS.values(), ids=GRIDS)
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6, 1e-30])
@pytest.mark.parametrize("rho", [1e-4, 0.5, 300.0])
def test_newton_ends_just_above_the_root(grid, alpha, rho):
    v = np.array([0.0, 1e-3, 1.0, 50.0, 1e4, 1e7])
    cost, tuning = Spent(v, 0.3 * v, 0.8), Tuning(alpha, rho, 1.0, grid)
    bound = bets_boundary(cost, tuning)
    assert np.all(reaches_bets(bound * (1 + 1e-9), cost, tuning))
    assert not np.any(reaches_bets(bound * (1 - 1e-6), cost, tuning))
    assert not np.any(reaches_bets(-bound, cost, tuning))


@pytest.mark.parametrize("grid", [NEAR, WIDE], ids=["near", "wide"])
@pytest.mark.parametrize("alpha", [0.1, 1e-3, 1e-8])
@pytest.mark.parametrize("guess", [1e-2, 1.0, 1e2])
def test_where_rounds_are_tiny_it_is_the_normal_boundary(grid, alpha, guess):
    v = 1e4
    rho = guess * tightest_rho(v, alpha)
    tiny = bets_boundary(Spent(v, 0.0, 0.0), Tuning(alpha, rho, 1e-9, grid))
    assert tiny == pytest.approx(float(normal_boundary(v, alpha, rho, grid)), rel=0.01)


def test_what_the_scale_costs_is_that_no_bet_is_higher():
    tuning = Tuning(0.05, 1.0, np.array([1.0, 10.0, 100.0]), NEAR)
    least = np.log(1 / 0.05) * tuning.scale / BOLDEST
    assert np.all(bets_boundary(Spent(0.01, 0.0, 0.0), tuning) >= least)


def test_it_grows_with_what_was_spent_and_shrinks_with_alpha():
    v = np.linspace(0.1, 500.0, 60)
    bound = bets_boundary(Spent(v, 0.1 * v, 0.5), Tuning(0.05, 3.0, 1.0, WIDE))
    assert np.all(np.diff(bound) > 0)
    assert np.all(bets_boundary(Spent(v, 0.2 * v, 0.5), Tuning(0.05, 3.0, 1.0, WIDE)) > bound)
    assert np.all(bets_boundary(Spent(v, 0.1 * v, 0.9), Tuning(0.05, 3.0, 1.0, WIDE)) > bound)
    assert np.all(bets_boundary(Spent(v, 0.1 * v, 0.5), Tuning(0.01, 3.0, 1.0, WIDE)) > bound)


@pytest.mark.parametrize("rho", [1e-30, 1e-6, 1.0, 1e9, 1e24])
def test_it_is_finite_and_ordered_at_any_level(rho):
    alpha = np.array([0.5, 1e-4, 1e-30, 1e-300])
    bound = bets_boundary(Spent(100.0, 20.0, 0.9), Tuning(alpha, rho, 1.0, WIDE))
    assert np.all(np.isfinite(bound))
    assert np.all(np.diff(bound) > 0)


def test_shapes_broadcast():
    cost, tuning = Spent(np.ones((3, 1)), 0.1, 0.5), Tuning(np.array([0.1, 0.2]), 1.0, 1.0, WIDE)
    assert bets_boundary(cost, tuning).shape == (3, 2)
    assert reaches_bets(5.0, cost, tuning).shape == (3, 2)
    assert bets_boundary(Spent(1.0, 0.1, 0.5), Tuning(0.1, 1.0, 1.0, NEAR)).shape == ()


@pytest.mark.parametrize(
    ("off", "least", "most"), [(1.0, 1.0, 1.11), (2.0, 1.1, 1.19), (0.5, 1.1, 1.19), (100.0, 1.19, 1.75)]
)
def test_the_boundary_is_tight_around_the_bet_that_is_expected(off, least, most):
    # A bet of λ alone reaches 1/α soonest, of all λ, at V = 2·log(1/α)/λ²; `off` is what the hint is off by.
    alpha, bet = 0.05, 0.03
    v = 2 * np.log(1 / alpha) / bet**2
    lowest = np.sqrt(2 * v * np.log(1 / alpha))
    found = bets_boundary(Spent(v, 0.0, 0.0), Tuning(alpha, (bet * off) ** -2, 1e-9, EXPECTED))
    assert least < found / lowest < most


def test_bets_that_a_round_without_a_limit_would_have_ruined_are_lost():
    tuning = Tuning(np.asarray(0.05), np.asarray(1.0), np.asarray(1.0), EXPECTED)

    def width(peak):
        parts = (np.asarray(part) for part in (0.0, 1.0, 1e4, 0.0, 0.0, peak))
        return float(Asymptotic().width(Evidence(*parts), tuning))

    widths = [width(peak) for peak in (0.0, 1.0, 5.0, 25.0)]
    assert np.all(np.diff(widths) > 0)
    assert np.isfinite(widths).all()
    # With no events, bets cost what they cost normal increments.
    assert widths[0] == pytest.approx(bets_boundary(Spent(1e4, 0.0, 0.0), replace(tuning, scale=1e-9)))
    unheard_of = Spent(np.asarray(1e40), np.asarray(0.0), np.asarray(1e20))
    assert bets_boundary(unheard_of, replace(tuning, scale=np.asarray(1e-300))) == np.inf
    assert not reaches_bets(1e60, unheard_of, replace(tuning, scale=np.asarray(1e-300)))
