"""Weights of few points: fewer points with the same moments, and D-optimal ones where exchanges are slow."""

import numpy as np
import pytest

from inside.design import interior_weights, sparsest_support


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


def gap(points, weights):
    inverse = np.linalg.inv((points.T * weights) @ points)
    return np.einsum("ij,jk,ik->i", points, inverse, points).max() / points.shape[1] - 1


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("m", "n"), [(3, 3), (20, 2), (60, 5), (150, 9)])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-7])
def test_the_tolerance_is_met(m, n, seed, tolerance):
    points = np.random.default_rng(seed).standard_normal((m, n))
    weights = interior_weights(points, np.full(m, 1 / m), tolerance)
    assert weights.sum() == pytest.approx(1)
    assert weights.min() >= 0
    assert gap(points, weights) <= tolerance


def test_degenerate_optima():
    # Points on a circle: every distribution with the moments of the circle is optimal.
    angles = np.linspace(0, np.pi, 100, endpoint=False)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    assert gap(circle, interior_weights(circle, np.full(100, 0.01), 1e-6)) <= 1e-6
    twice = np.repeat(np.eye(3), 5, axis=0)
    assert np.allclose(interior_weights(twice, np.full(15, 1 / 15), 1e-6).reshape(3, 5).sum(axis=1), 1 / 3)


def test_points_that_are_not_needed_lose_their_weight():
    points = np.vstack([np.eye(2), 0.5 * np.eye(2), np.zeros((1, 2))])
    weights = interior_weights(points, np.full(5, 0.2), 1e-6)
    assert np.allclose(weights[:2], 0.5, atol=1e-6)
    assert np.all(weights[2:] == 0)
