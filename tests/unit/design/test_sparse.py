"""Fewer points with the same moments."""

import numpy as np
import pytest

from orthobandit.design._sparse import sparsest_support


def moments(points, weights):
    return (points.T * weights) @ points


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("count", "n"), [(4, 1), (30, 2), (30, 4), (200, 6), (400, 12)])
def test_moments_stay_and_the_bound_is_reached(count, n, seed):
    rng = np.random.default_rng(seed)
    points, weights = rng.standard_normal((count, n)), rng.dirichlet(np.ones(count))
    fewer = sparsest_support(points, weights)
    assert np.all(fewer >= 0)
    assert np.count_nonzero(fewer) <= n * (n + 1) // 2
    assert np.allclose(moments(points, fewer), moments(points, weights), atol=1e-10)
    assert fewer.sum() <= weights.sum() * (1 + 1e-12)


def test_few_points_are_left_alone():
    points, weights = np.eye(3), np.array([0.2, 0.3, 0.5])
    assert sparsest_support(points, weights) is weights


def test_an_intercept_keeps_the_total_and_the_mean():
    rng = np.random.default_rng(0)
    points = np.hstack([np.ones((50, 1)), rng.standard_normal((50, 2))])
    fewer = sparsest_support(points, np.full(50, 0.02))
    assert fewer.sum() == pytest.approx(1, abs=1e-12)
    assert np.allclose(fewer @ points, points.mean(axis=0), atol=1e-12)
    assert np.count_nonzero(fewer) <= 6


def test_points_on_few_lines_need_few_points():
    # Duplicates and opposite points have the same z zᵀ: rank three, whatever their number.
    points = np.tile([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [1.0, 1.0]], (10, 1))
    fewer = sparsest_support(points, np.full(40, 1 / 40))
    assert np.count_nonzero(fewer) <= 3
    assert np.allclose(moments(points, fewer), moments(points, np.full(40, 1 / 40)))


def test_weight_moves_to_the_longer_of_two_parallel_points():
    # Keeping the shorter one would keep the moments too, but with more weight than there was.
    for order in ([1.0, 1.1], [1.1, 1.0]):
        points = np.array(order)[:, np.newaxis]
        fewer = sparsest_support(points, np.array([0.5, 0.5]))
        assert fewer.sum() == pytest.approx(0.5 * (1 + 1.1**2) / 1.1**2)
