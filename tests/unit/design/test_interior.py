"""D-optimal weights where exchanges are slow."""

import numpy as np
import pytest

from orthobandit.design._interior import interior_weights


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
