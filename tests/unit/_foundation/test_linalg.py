"""Quadratic forms on the range of a matrix, and ridge solutions: by hand and where they must fail."""

import re

import numpy as np
import pytest

from orthobandit._foundation.linalg import (
    RangeFactor,
    inverse_root,
    ridge_norms,
    solve_ridge,
    whiten_runs,
    whitened,
)
from orthobandit.errors import InputError

ONES = np.ones((2, 2))  # eigenvalue 2 along (1, 1), nothing along (1, −1)


def norm_squared(matrix, z):
    return float(RangeFactor.of(np.array(matrix)).norm_squared(np.array(z)))


@pytest.mark.parametrize(
    ("matrix", "z", "expected"),
    [
        ([[4.0]], [2.0], 1.0),
        ([[0.0]], [0.0], 0.0),
        ([[0.0]], [1e-9], np.inf),
        ([[2.0, 1.0], [1.0, 2.0]], [1.0, 1.0], 2 / 3),
        ([[2.0, 1.0], [1.0, 2.0]], [1.0, -1.0], 2.0),
        (ONES, [1.0, 1.0], 1.0),
        (ONES, [1.0, 0.0], np.inf),
        (ONES, [0.0, 0.0], 0.0),
        ([[4.0, 0.0], [0.0, 0.0]], [2.0, 0.0], 1.0),
        ([[4.0, 0.0], [0.0, 0.0]], [2.0, 1e-6], np.inf),
        (np.zeros((3, 3)), [0.0, 0.0, 1.0], np.inf),
        (np.diag([1e300, 1e-300]), [1e150, 1e-150], 2.0),
        (np.diag([1e24, 1e-24, 0.0]), [1e12, 1e-12, 0.0], 2.0),
        (np.diag([1e24, 1e-24, 0.0]), [0.0, 0.0, 1e-24], np.inf),
    ],
)
def test_norms_by_hand(matrix, z, expected):
    assert norm_squared(matrix, z) == pytest.approx(expected, rel=1e-12)


def test_rounding_in_a_vector_of_the_range_is_forgiven():
    assert norm_squared(ONES, [1.0, 1.0 + 1e-15]) == pytest.approx(1.0)
    assert norm_squared(ONES, [1.0, 1.0 + 1e-8]) == np.inf


def test_units_of_the_rows_do_not_decide_the_rank():
    basis = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    for units in ([1.0, 1.0, 1.0], [1e-12, 1.0, 1e12], [1e6, 1e-9, 1e3]):
        scaled = basis * units
        factor = RangeFactor.of(scaled.T @ scaled)
        assert int(factor.rank) == 2
        # In the range: a combination of the rows of the basis.
        assert float(factor.norm_squared(scaled.T @ [3.0, 4.0])) == pytest.approx(25.0, rel=1e-9)
        assert float(factor.norm_squared(np.array([1.0, 1.0, -1.0]) * units)) == np.inf


@pytest.mark.parametrize("smallest", [1e-4, 1e-8, 1e-11])
def test_weak_directions_are_part_of_the_range(smallest):
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    values = np.array([1.0, 0.1, smallest, 0.0])
    factor = RangeFactor.of((turn * values) @ turn.T)
    assert int(factor.rank) == 3
    assert float(factor.norm_squared(turn[:, 2])) == pytest.approx(1 / smallest, rel=1e-3)
    assert float(factor.norm_squared(turn[:, 3])) == np.inf


def test_whitened_vectors_have_the_norm():
    factor = RangeFactor.of(np.array([[2.0, 1.0], [1.0, 2.0]]))
    assert np.sum(factor.whiten(np.array([1.0, 1.0])) ** 2) == pytest.approx(2 / 3)
    assert np.all(np.isposinf(RangeFactor.of(ONES).whiten(np.array([1.0, 0.0]))))


def test_a_batch_is_its_matrices_one_by_one():
    matrices = np.stack([np.eye(2), ONES, np.zeros((2, 2))])
    factor = RangeFactor.of(matrices)
    assert factor.rank.tolist() == [2, 1, 0]
    assert factor.norm_squared(np.array([1.0, 1.0])) == pytest.approx([2.0, 1.0, np.inf])
    assert factor.norm_squared(np.array([[1.0, 0.0], [2.0, 2.0], [0.0, 0.0]])) == pytest.approx(
        [1.0, 4.0, 0.0]
    )


def test_many_vectors_against_one_matrix():
    norms = RangeFactor.of(ONES).norm_squared(np.array([[1.0, 1.0], [1.0, 0.0], [3.0, 3.0]]))
    assert norms == pytest.approx([1.0, np.inf, 9.0])


def test_the_empty_matrix():
    factor = RangeFactor.of(np.zeros((4, 0, 0)))
    assert factor.rank.tolist() == [0, 0, 0, 0]
    assert factor.norm_squared(np.zeros((4, 0))).tolist() == [0.0] * 4


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 3)), "matrix has shape (2, 3); a square matrix (..., n, n) is needed"),
        (np.zeros(2), "matrix has shape (2,); a square matrix (..., n, n) is needed"),
        ([[np.nan]], "matrix has a non-finite entry"),
        ([[-1.0]], "matrix has a negative diagonal entry, so it is not positive semidefinite"),
        ([[1.0, 2.0], [2.0, 1.0]], "matrix has a negative eigenvalue, so it is not positive semidefinite"),
        ([[0.0, 1.0], [1.0, 0.0]], "matrix has a negative eigenvalue, so it is not positive semidefinite"),
    ],
)
def test_what_is_not_positive_semidefinite_is_refused(matrix, message):
    with pytest.raises(InputError, match=re.escape(message)):
        RangeFactor.of(matrix)


def test_ridge_solutions_by_hand():
    assert solve_ridge(np.array([[3.0]]), np.array([8.0]), 1.0) == pytest.approx([2.0])
    # (ONES + I) x = (3, 0): x = (2, −1).
    assert solve_ridge(ONES, np.array([3.0, 0.0]), 1.0) == pytest.approx([2.0, -1.0])
    assert solve_ridge(np.diag([2.0, 4.0]), np.array([2.0, 2.0]), 0.0) == pytest.approx([1.0, 0.5])
    assert solve_ridge(np.zeros((0, 0)), np.zeros(0), 1.0).shape == (0,)


def test_every_matrix_of_a_batch_may_have_its_own_ridge():
    grams = np.stack([np.eye(2), 2 * np.eye(2)])
    solutions = solve_ridge(grams, np.full((2, 2), 6.0), np.array([1.0, 4.0]))
    assert solutions == pytest.approx(np.array([[3.0, 3.0], [1.0, 1.0]]))


def test_rows_in_very_different_units_keep_their_digits():
    units = np.array([1e-9, 1e9])
    gram = np.array([[2.0, 1.0], [1.0, 2.0]]) * np.outer(units, units)
    # The unscaled system has the solution (1, −1) for the right-hand side (1, −1).
    assert solve_ridge(gram, np.array([1.0, -1.0]) * units, 0.0) * units == pytest.approx(
        [1.0, -1.0], rel=1e-12
    )


@pytest.mark.parametrize(
    ("gram", "ridge", "message"),
    [
        (np.zeros((1, 1)), 0.0, "gram has a direction without data and ridge is 0; use a positive ridge"),
        (np.diag([1.0, 0.0]), 0.0, "gram has a direction without data and ridge is 0"),
        (ONES, 0.0, "gram + ridge·I is not positive definite; use a larger ridge"),
        (np.array([[1.0, 3.0], [3.0, 1.0]]), 1.0, "gram + ridge·I is not positive definite; use a larger"),
    ],
)
def test_systems_without_one_solution_are_refused(gram, ridge, message):
    with pytest.raises(InputError, match=re.escape(message)):
        solve_ridge(gram, np.ones(len(gram)), ridge)


@pytest.mark.parametrize("units", [1.0, np.array([1e-8, 1.0, 1e8])])
def test_the_inverse_root_whitens(units):
    rows = np.random.default_rng(0).standard_normal((20, 3)) * units
    white = rows @ inverse_root(rows.T @ rows)
    assert np.allclose(white.T @ white, np.eye(3), atol=1e-12)


def test_the_root_of_nothing_is_nothing_and_says_nothing(capfd):
    assert inverse_root(np.zeros((0, 0))).shape == (0, 0)
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""


def test_norms_with_a_ridge_by_hand():
    gram = np.array([[3.0, 0.0], [0.0, 0.0]])
    rows = np.array([[2.0, 0.0], [0.0, 3.0], [2.0, 3.0]])
    np.testing.assert_allclose(ridge_norms(gram, rows, 1.0), [1.0, 3.0, 10.0**0.5])


def whitened_cases():
    """Yield points and distributions over them: all drawn, a few, nearly flat, with shared and lone units."""
    rng = np.random.default_rng(7)
    points = rng.standard_normal((9, 4))
    all_drawn = rng.dirichlet(np.ones(9), 3)
    yield points, all_drawn
    few = all_drawn * (np.arange(9) < 3)  # the plane of three points: others are out of range
    yield points, few / few.sum(axis=1, keepdims=True)
    yield points * np.array([1e-6, 1.0, 1e3, 1.0]), all_drawn
    yield points[:, :1] + np.array([0.0, 1.0]) * 1e-7 * points[:, 1:2], all_drawn  # rank not clear-cut
    two = np.zeros((1, 9))
    two[0, 2:4] = 0.5
    yield points, two


@pytest.mark.parametrize(("points", "weights"), list(whitened_cases()))
def test_whitening_by_factors_keeps_distances_and_what_is_out_of_range(points, weights):
    white, outside = whiten_runs(points, weights)
    exact, _ = whitened(points, weights)
    np.testing.assert_array_equal(outside, np.isinf(exact).any(axis=-1))
    exact = np.where(outside[..., np.newaxis], 0.0, exact)
    inner = exact @ np.swapaxes(exact, -1, -2)
    np.testing.assert_allclose(
        white @ np.swapaxes(white, -1, -2), inner, rtol=1e-7, atol=1e-9 * np.abs(inner).max()
    )
    assert not white[outside].any()
    # Leading axes are replications.
    again, _ = whiten_runs(points, weights[np.newaxis])
    np.testing.assert_array_equal(again[0], white)
    alone, _ = whiten_runs(points, weights[0])
    np.testing.assert_array_equal(alone, white[0])
