"""The split of δ by the pilot: rows never sum to more than δ, whatever the pilot saw."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inside.estimate import EXPECTED, WIDE
from orthobandit import AnytimeElimination, ArmSet
from orthobandit.estimate import PairGeometry
from orthobandit.policy.anytime.delta import cautious_gaps, split_delta, tuned

sizes = st.floats(-30, 30).map(lambda power: 10.0**power)


@given(
    st.integers(2, 8), st.integers(0, 2**32 - 1), sizes, sizes, st.floats(1e-6, 0.999), st.integers(1, 10**6)
)
def test_rows_sum_to_at_most_delta(count, seed, spread, noise, delta, rounds):
    rng = np.random.default_rng(seed)
    values = spread * rng.choice([0.0, 1.0, rng.standard_normal()], count)
    variance = rng.exponential(3.0, (count, count)) + 1e-3
    variance = np.where(rng.random((count, count)) < 0.2, np.inf, (variance + variance.T) / 2)
    gaps = cautious_gaps(values, variance, noise, rounds)
    alpha = split_delta(delta, gaps, variance, noise)
    others = alpha[~np.eye(count, dtype=bool)].reshape(count, count - 1)
    assert np.all(others > 0)
    assert np.all(others.sum(axis=1) <= delta)
    assert np.all(others >= 0.1 * delta / (count - 1))


def test_close_arms_get_most_of_delta():
    values, variance = np.array([1.0, 0.9, 0.0]), np.full((3, 3), 2.0)
    alpha = split_delta(0.1, cautious_gaps(values, variance, 1.0, 10**4), variance, 1.0)
    assert alpha[0, 1] > 0.08
    assert alpha[0, 2] == pytest.approx(0.2 * 0.1 / 2, rel=1e-6)


def test_equal_gaps_share_equally():
    values, variance = np.array([1.0, 0.0, 0.0]), np.full((3, 3), 2.0)
    alpha = split_delta(0.1, cautious_gaps(values, variance, 1.0, 1000), variance, 1.0)
    assert alpha[0, 1:] == pytest.approx([0.05, 0.05], rel=1e-6)


def test_the_scale_covers_the_first_plan():
    p = np.array([0.7, 0.2, 0.1])
    geometry = PairGeometry.of(ArmSet.one_hot(3).positions, p)
    reach = geometry.reach(p)
    alpha, gaps = np.full((3, 3), 0.05), np.ones((3, 3))
    tuning = tuned(alpha, gaps, geometry.variance, reach, AnytimeElimination(rewards=(0.0, 2.0)), (1.0, 100))
    off = ~np.eye(3, dtype=bool)
    assert tuning.scale[off] == pytest.approx((2.0 * reach / geometry.variance)[off])
    assert np.all(tuning.rho > 0)


def test_a_gap_that_is_expected_sets_the_bet_and_clearly_larger_ones_replace_it():
    values, variance = np.array([1.0, 0.99, 0.0]), np.full((3, 3), 2.0)
    # The standard error of a gap is √(2·0.5/100) = 0.1.
    gaps = cautious_gaps(values, variance, 0.5, 100, 0.05)
    assert gaps[0].tolist() == pytest.approx([0.05, 0.05, 0.7])
    alpha, reach = np.full((3, 3), 0.05), np.ones((3, 3))
    tuning = tuned(alpha, gaps, variance, reach, AnytimeElimination(expect=0.05), (0.5, 100))
    assert tuning.rho[0].tolist() == pytest.approx([100.0, 100.0, (0.5 / 0.7) ** 2])
    assert tuning.grid is EXPECTED
    assert tuned(alpha, gaps, variance, reach, AnytimeElimination(), (0.5, 100)).grid is WIDE
