"""Rates and lifts follow from gaps and one average: by corners of the box, by hand, and by search."""

import numpy as np
import pytest

from orthobandit.estimate.follow.rates import AverageReward, rates_of


def box(seed, count=4):
    rng = np.random.default_rng(seed)
    middle = np.append(0.0, rng.uniform(-0.1, 0.2, count - 1))
    half = np.append(0.0, rng.uniform(0.01, 0.1, count - 1))
    shares = rng.dirichlet(np.ones(count))
    level = rng.uniform(0.3, 0.6)
    return AverageReward(level, level - 0.02, level + 0.02, shares), (middle, middle - half, middle + half)


@pytest.mark.parametrize("seed", range(5))
def test_all_points_of_the_box_are_covered_and_its_corners_are_reached(seed):
    average, (middle, low, high) = box(seed)
    found = rates_of(average, (middle, low, high), 0)
    rng = np.random.default_rng(seed)
    # Corners and points between: g (n, K), M (n,).
    at = np.where(rng.random((20_000, 1)) < 0.5, rng.random((20_000, 5)), rng.integers(0, 2, (20_000, 5)))
    gaps = low + at[:, :4] * (high - low)
    level = average.low + at[:, 4] * (average.high - average.low)
    rates = level[:, np.newaxis] + gaps - (gaps @ average.shares)[:, np.newaxis]
    lifts = gaps / rates[:, :1]
    for values, ends in ((rates, (found.low, found.high)), (lifts, (found.lift_low, found.lift_high))):
        assert values.min(axis=0) == pytest.approx(ends[0], abs=1e-12)
        assert values.max(axis=0) == pytest.approx(ends[1], abs=1e-12)


def test_rates_differ_by_the_gaps_beside_them():
    average, gaps = box(7)
    found = rates_of(average, gaps, 0)
    assert found.estimates - found.estimates[0] == pytest.approx(gaps[0], abs=1e-12)
    assert found.estimates @ average.shares == pytest.approx(average.estimate)


def test_an_open_gap_leaves_rates_of_others_open_only_if_it_was_drawn():
    average = AverageReward(0.4, 0.38, 0.42, np.array([0.5, 0.5, 0.0]))
    gaps = (np.zeros(3), np.array([0.0, -0.1, -np.inf]), np.array([0.0, 0.1, np.inf]))
    found = rates_of(average, gaps, 0)
    assert np.isfinite([found.low[:2], found.high[:2]]).all()
    assert np.isinf([found.low[2], found.high[2], found.lift_low[2]]).all()
    drawn = AverageReward(0.4, 0.38, 0.42, np.array([0.5, 0.4, 0.1]))
    found = rates_of(drawn, gaps, 0, (0.0, 1.0))
    assert (found.low[0], found.high[0]) == (0.0, 1.0)
    assert np.isinf(found.lift_low[1])


def test_a_reference_that_may_earn_nothing_leaves_lifts_open():
    average = AverageReward(0.02, -0.01, 0.05, np.array([0.5, 0.5]))
    found = rates_of(average, (np.zeros(2), np.array([0.0, -0.01]), np.array([0.0, 0.03])), 0)
    assert (found.lift_low[1], found.lift_high[1]) == (-np.inf, np.inf)


def test_before_the_first_round_nothing_is_known():
    average = AverageReward(np.nan, -np.inf, np.inf, np.zeros(2))
    assert np.isnan(rates_of(average, (np.zeros(2), np.zeros(2), np.ones(2)), 0).estimates).all()
