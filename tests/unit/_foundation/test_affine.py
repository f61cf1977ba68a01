"""The affine hull: its dimension without units, and coordinates that keep their digits."""

from fractions import Fraction

import numpy as np
import pytest

from orthobandit._foundation.affine import affine_frame, block_rows

SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def conditioned(count, width, condition, seed=0):
    """Points whose singular values fall from 1 to 1/condition."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((count, width)))[0]
    right = np.linalg.qr(rng.standard_normal((width, width)))[0]
    return (left * np.geomspace(1, 1 / condition, width)) @ right


def check_frame(points, dimension):
    frame = affine_frame(points)
    assert frame.dimension == dimension
    assert np.allclose(frame.directions @ frame.directions.T, np.eye(dimension), atol=1e-12)
    differences = points - frame.origin
    size = np.linalg.norm(differences, axis=1).max(initial=0.0)
    inside = differences @ frame.directions.T @ frame.directions
    assert np.abs(differences - inside).max() <= 1e-9 * size
    return frame


@pytest.mark.parametrize(
    ("points", "dimension"),
    [
        (SQUARE, 2),
        (SQUARE[:1], 0),
        (np.array([[3.0], [3.0], [3.0]]), 0),
        (np.array([[1.0, 2.0], [1.0, 2.0], [2.0, 1.0]]), 1),
        (np.array([[0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [5.0, 5.0, 1.0]]), 1),
        (np.eye(5), 4),
        (np.hstack([np.eye(3), 2 * np.eye(3)]), 2),
        (np.zeros((4, 3)), 0),
        (np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [10.0, 11.0, 12.0]]), 1),
        (np.array([[0.1, 0.2], [0.2, 0.4], [0.3, 0.6], [0.7, 1.4]]), 1),
    ],
    ids=[
        "square",
        "one point",
        "one point thrice",
        "duplicates",
        "collinear",
        "simplex",
        "more columns than points",
        "origin only",
        "arithmetic rows",
        "collinear but for rounding",
    ],
)
def test_dimension_by_hand(points, dimension):
    check_frame(points, dimension)


@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e-6, 1.0, 1e6, 1e12, 1e149])
def test_units_of_everything_do_not_matter(scale):
    check_frame(np.eye(4) * scale * 3, 3)
    check_frame(SQUARE * scale * 3, 2)


@pytest.mark.parametrize("seed", range(20))
def test_units_of_columns_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((9, 4))
    columns = 10.0 ** rng.uniform(-12, 12, 4)
    assert affine_frame(points * columns).dimension == 4
    flat = points[:, :2] @ rng.standard_normal((2, 4))
    assert affine_frame(flat * columns).dimension == 2


@pytest.mark.parametrize("seed", range(20))
def test_points_of_very_different_length_all_count(seed):
    rng = np.random.default_rng(seed)
    rows = 10.0 ** rng.uniform(-12, 12, (8, 1))
    assert affine_frame(rng.standard_normal((8, 5)) * rows).dimension == 5
    flat = np.zeros((8, 5))
    flat[:, [0, 3]] = rng.standard_normal((8, 2))
    assert affine_frame(flat * rows).dimension == 2


@pytest.mark.parametrize("condition", [1e2, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("seed", range(10))
def test_ill_conditioned_points_keep_their_dimension(condition, seed):
    points = conditioned(12, 6, condition, seed)
    assert affine_frame(points).dimension == 6
    assert affine_frame(points * 1e12).dimension == 6
    assert affine_frame(np.hstack([points, points[:, :2] + points[:, 2:4]])).dimension == 6


@pytest.mark.parametrize(("count", "width"), [(100, 50), (202, 200), (300, 150)])
def test_many_ill_conditioned_features_keep_their_dimension(count, width):
    points = conditioned(count, width, 1e12)
    assert affine_frame(points).dimension == width
    coordinates = affine_frame(points).coordinates(points)
    assert 0.9 < np.abs(coordinates).max() < 1e3


@pytest.mark.parametrize(
    ("rows", "columns"),
    [(1.0, 1.0), (1.0, np.geomspace(1, 1e-8, 150)), (np.geomspace(1, 1e-8, 300)[:, np.newaxis], 1.0)],
    ids=["even", "weak directions", "short arms"],
)
def test_many_dependent_features_do_not_add_rounding_up_to_a_dimension(rows, columns):
    rng = np.random.default_rng(0)
    points = (rng.standard_normal((300, 150)) * rows * columns) @ rng.standard_normal((150, 200))
    assert affine_frame(points).dimension == 150


@pytest.mark.parametrize("offset", [1.0, 1e3, 1e6, -1e9])
def test_a_common_offset_does_not_matter(offset):
    check_frame(SQUARE + offset, 2)
    check_frame(np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0], [4.0, 8.0]]) + offset, 1)
    check_frame(np.eye(4) * 7 + offset, 3)


def test_differences_below_the_digits_of_the_points_are_rounding():
    assert affine_frame(np.array([[1e16, 0.0], [1e16 + 2, 1.0], [1e16, 2.0]])).dimension == 1
    assert affine_frame(np.array([[1e6, 0.0], [1e6 + 2e-6, 1.0], [1e6, 2.0]])).dimension == 2


def test_a_column_of_rounding_noise_hides_no_other():
    noisy = [0.3, 0.1 + 0.2, 0.3, 0.1 + 0.2]
    assert affine_frame(np.column_stack([noisy, [0.0, 1.0, 2.0, 5.0]])).dimension == 1
    assert affine_frame(np.column_stack([noisy, SQUARE])).dimension == 2


def test_a_column_with_few_digits_left_hides_no_fine_direction():
    rng = np.random.default_rng(0)
    seconds, price = 1.7e9 + rng.random(30), 10 * rng.random(30)
    assert affine_frame(np.column_stack([seconds, price, price + 1e-8 * rng.random(30)])).dimension == 3


def softmax(rng):
    weights = np.exp(rng.standard_normal((300, 100)))
    return weights / weights.sum(axis=1, keepdims=True)


def categories(rng):
    dummies = np.eye(4)[np.arange(30) % 4]
    return np.column_stack([dummies, np.ones(30), rng.random(30)])


def temperatures(rng):
    celsius = 30 * rng.random(30)
    return np.column_stack([celsius, celsius * 9 / 5 + 32, celsius + 273.15])


def products(rng):
    return rng.random((60, 10)) @ rng.random((10, 20))


def fine_products(rng):
    fine = rng.standard_normal((40, 6)) * np.geomspace(1, 1e-11, 6)
    return fine @ np.linalg.qr(rng.standard_normal((12, 12)))[0][:6] + rng.standard_normal(12)


@pytest.mark.parametrize(
    ("table", "dimension"),
    [(softmax, 99), (categories, 4), (temperatures, 1), (products, 10), (fine_products, 6)],
)
@pytest.mark.parametrize("seed", range(5))
def test_features_that_depend_on_each_other_but_for_rounding(table, dimension, seed):
    assert affine_frame(table(np.random.default_rng(seed))).dimension == dimension


def test_columns_that_hardly_vary_count_as_constant():
    assert affine_frame(np.array([[0.0, 1.0], [5e-324, 2.0], [0.0, 3.0]])).dimension == 1
    assert affine_frame(np.array([[0.0], [5e-324]])).dimension == 0
    assert affine_frame(np.array([[0.0], [1e-149]])).dimension == 1


def test_coordinates_are_one_to_one_and_of_moderate_size():
    for points in (SQUARE * [1e-9, 1e9], np.eye(4) * 1e8 + 1, conditioned(9, 5, 1e12)):
        frame = affine_frame(points)
        coordinates = frame.coordinates(points)
        assert coordinates.shape == (len(points), frame.dimension)
        assert 0.1 < np.abs(coordinates).max() < 1e3
        lifted = np.linalg.matrix_rank(np.hstack([np.ones((len(points), 1)), coordinates]))
        assert lifted == frame.dimension + 1


def test_delicate_coordinates_keep_their_digits():
    # Seven points in six dimensions are the origin and six pivots, whose coordinates are unit vectors.
    points = conditioned(7, 6, 1e12)
    frame = affine_frame(points)
    assert frame.is_delicate
    coordinates = frame.coordinates(points)
    units = coordinates[np.argsort(-coordinates @ np.arange(6, 0, -1))]
    assert np.allclose(units, np.eye(7, 6), atol=1e-3)


@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_delicate_coordinates_are_the_exact_product_but_for_the_last_digits(offset):
    points = conditioned(7, 6, 1e10) + offset
    frame = affine_frame(points)
    columns = [[Fraction(x) for x in column] for column in frame.transform.T.tolist()]
    for point, coordinates in zip(points, frame.coordinates(points), strict=True):
        step = [Fraction(x) - Fraction(o) for x, o in zip(point.tolist(), frame.origin.tolist(), strict=True)]
        exact = [float(sum(a * b for a, b in zip(step, column, strict=True))) for column in columns]
        assert coordinates == pytest.approx(exact, rel=1e-15, abs=1e-15)


def test_a_frame_cannot_be_changed():
    for points in (SQUARE, np.eye(3)):
        frame = affine_frame(points)
        for array in (frame.origin, frame.directions, frame.transform):
            assert not array.flags.writeable


@pytest.mark.parametrize("width", [1, 8, 50])
def test_blocks_of_many_points_agree_with_one_pass(width):
    # More points than one block holds, so that the Gram matrix is summed from several.
    points = np.random.default_rng(0).standard_normal((2 * block_rows(width) + 3, width))
    assert affine_frame(points).dimension == width
    points[:, -1] = points[:, 0]
    assert affine_frame(points).dimension == max(width - 1, 1)


def test_constant_column_counts_when_the_hull_goes_through_zero():
    points = np.vander(np.linspace(0, 1, 40), 6)
    assert affine_frame(points).dimension == 5
    assert affine_frame(points, through_zero=True).dimension == 6


def test_a_constant_column_counts_from_zero_but_not_between_points():
    points = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert affine_frame(points).dimension == 2
    assert affine_frame(points, through_zero=True).dimension == 3
    assert affine_frame(points[:1] * 0.1, through_zero=True).dimension == 1
    assert affine_frame(points * 0.0, through_zero=True).dimension == 0


@pytest.mark.parametrize("length", [1e3, 1e8, 1e12])
@pytest.mark.parametrize("count", [30, 20_001])
def test_a_far_point_is_a_unit_of_the_coordinates(length, count):
    # An odd position far from the start: not in the sample of the 20 001 points.
    points = np.random.default_rng(0).standard_normal((count, 3))
    points[-2] *= length
    frame = affine_frame(points)
    assert frame.dimension == 3
    assert np.abs(frame.coordinates(points)).max() < (1e3 if length > 1e4 else length)
