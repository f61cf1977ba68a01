"""Intervals that follow from each other, and from what is claimed beside them."""

import numpy as np
import pytest

from orthobandit.estimate.confidence.coherence import close_differences, project_intervals


def test_bounds_of_a_pair_follow_from_those_of_others():
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = rng.normal(size=4)
        upper = x[:, np.newaxis] - x + rng.exponential(size=(4, 4))
        np.fill_diagonal(upper, 0.0)
        closed, is_empty = close_differences(upper)
        assert not is_empty
        assert np.all(closed <= upper)
        assert np.all(closed >= x[:, np.newaxis] - x - 1e-12)
        assert close_differences(closed)[0] == pytest.approx(closed)


def test_bounds_that_contradict_each_other_are_found():
    # 0 is below 1, 1 below 2, and 2 below 0.
    assert close_differences([[0, -1, 5], [5, 0, -1], [-1, 5, 0]])[1]
    # Equal numbers up to rounding contradict nothing.
    assert not close_differences([[0, 0.3, 0.1], [-0.3, 0, -0.2], [-0.1, 0.2, 0]])[1]


def test_an_arm_that_is_declared_against_its_interval_leaves_nothing():
    found = project_intervals([0, -0.5], [0, -0.1], active=[False, True])
    assert found.is_empty
