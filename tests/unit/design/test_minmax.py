"""The restricted contrast problem against its dual and against a grid."""

import numpy as np
import pytest

from orthobandit.design._contrast_optimal import solve_minmax


def values(points, contrasts, p):
    moment = (points.T * p) @ points
    return np.einsum("ij,ji->i", contrasts, np.linalg.solve(moment, contrasts.T))


def dual_bound(points, contrasts, p, multipliers):
    """φ²/max_i z_iᵀM⁻¹SM⁻¹z_i with S = Σ λ_y y yᵀ and φ = tr(M⁻¹S): no distribution does better."""
    inverse = np.linalg.inv((points.T * p) @ points)
    middle = inverse @ (contrasts.T * multipliers) @ contrasts @ inverse
    return (multipliers @ values(points, contrasts, p)) ** 2 / np.einsum(
        "ij,jk,ik->i", points, middle, points
    ).max()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("m", "q", "n"), [(6, 1, 2), (10, 5, 3), (40, 30, 6)])
def test_primal_and_dual_meet(m, q, n, seed):
    rng = np.random.default_rng(seed)
    points, contrasts = rng.standard_normal((m, n)), rng.standard_normal((q, n))
    saddle = solve_minmax(points, contrasts, np.full(m, 1 / m), 1e-9)
    for distribution in (saddle.weights, saddle.multipliers):
        assert distribution.sum() == pytest.approx(1)
        assert distribution.min() >= 0
    worst = values(points, contrasts, saddle.weights).max()
    bound = dual_bound(points, contrasts, saddle.weights, saddle.multipliers)
    assert bound <= worst * (1 + 1e-9)
    assert worst <= bound * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_no_distribution_beats_the_bound(seed):
    rng = np.random.default_rng(seed)
    points, contrasts = rng.standard_normal((5, 2)), rng.standard_normal((3, 2))
    saddle = solve_minmax(points, contrasts, np.full(5, 0.2), 1e-9)
    best = values(points, contrasts, saddle.weights).max()
    for p in rng.dirichlet(np.full(5, 0.5), size=2000) + 1e-12:
        assert values(points, contrasts, p / p.sum()).max() >= best * (1 - 1e-6)
        anywhere = dual_bound(points, contrasts, p / p.sum(), rng.dirichlet(np.ones(3)))
        assert anywhere <= best * (1 + 1e-6)


def test_by_hand():
    # z = (1, x) on x = 0, 1, 2 and the slope: ends half and half, variance 1.
    points = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    saddle = solve_minmax(points, np.array([[0.0, 1.0]]), np.full(3, 1 / 3), 1e-8)
    assert np.allclose(saddle.weights, [0.5, 0.0, 0.5], atol=1e-4)
    assert saddle.multipliers.tolist() == [1.0]
