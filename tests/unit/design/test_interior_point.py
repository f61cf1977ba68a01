"""The interior-point method against its dual and against a grid."""

import numpy as np
import pytest

from orthobandit.design._interior_point import LAPACK_SIZE, solve_minmax


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


def solved(points, contrasts, tolerance):
    even = np.full(len(points), 1 / len(points))
    return solve_minmax(points, contrasts, len(contrasts), even, tolerance)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("m", "q", "n"), [(6, 1, 2), (10, 5, 3), (40, 30, 6), (150, 60, LAPACK_SIZE + 3)])
def test_primal_and_dual_meet(m, q, n, seed):
    rng = np.random.default_rng(seed)
    points, contrasts = rng.standard_normal((m, n)), rng.standard_normal((q, n))
    p, multipliers, certified = solved(points, contrasts, 1e-9)
    for distribution in (p, multipliers):
        assert distribution.sum() == pytest.approx(1)
        assert distribution.min() >= 0
    worst = values(points, contrasts, p).max()
    bound = dual_bound(points, contrasts, p, multipliers)
    assert bound <= worst * (1 + 1e-9)
    assert worst <= bound * (1 + 1e-6)
    assert certified == pytest.approx(bound, rel=1e-6)
    assert worst <= certified * (1 + 1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_no_distribution_beats_the_bound(seed):
    rng = np.random.default_rng(seed)
    points, contrasts = rng.standard_normal((5, 2)), rng.standard_normal((3, 2))
    best = values(points, contrasts, solved(points, contrasts, 1e-9)[0]).max()
    for p in rng.dirichlet(np.full(5, 0.5), size=2000) + 1e-12:
        assert values(points, contrasts, p / p.sum()).max() >= best * (1 - 1e-6)
        anywhere = dual_bound(points, contrasts, p / p.sum(), rng.dirichlet(np.ones(3)))
        assert anywhere <= best * (1 + 1e-6)


def test_the_certificate_is_about_the_contrasts_asked_for():
    points = np.random.default_rng(0).standard_normal((12, 3))
    guards = 1e-4 * np.eye(3)
    wanted = np.array([[0.0, 1.0, 0.0]])
    even = np.full(12, 1 / 12)
    p, _, certified = solve_minmax(points, np.concatenate([wanted, guards]), 1, even, 1e-3)
    assert values(points, wanted, p)[0] <= certified * (1 + 1e-3)
    assert certified <= values(points, wanted, p)[0]


def test_by_hand():
    # z = (1, x) on x = 0, 1, 2 and the slope: ends half and half, variance 1.
    points = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    p, multipliers, bound = solved(points, np.array([[0.0, 1.0]]), 1e-8)
    assert np.allclose(p, [0.5, 0.0, 0.5], atol=1e-4)
    assert multipliers.tolist() == [1.0]
    assert bound == pytest.approx(1.0)


def test_points_that_do_not_span_are_not_solved():
    points = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert solved(points, np.array([[0.0, 1.0]]), 1e-3)[2] == 0.0
