"""The affine dimension equals the exact rank and depends on nothing but the arms' geometry."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from orthobandit import ArmSet

SMALL = st.integers(-4, 4).map(float)


@st.composite
def tables(draw):
    """Small whole numbers, often of low rank, with up to 7 arms and 5 features."""
    count, width = draw(st.integers(1, 7)), draw(st.integers(1, 5))
    rank = draw(st.integers(0, min(count, width)))
    left = draw(arrays(np.float64, (count, rank), elements=SMALL))
    right = draw(arrays(np.float64, (rank, width), elements=SMALL))
    return left @ right


def exact_dimension(features):
    """Rank of the differences to the first arm, by elimination in rational numbers."""
    first, *others = [[Fraction(x) for x in row] for row in features.tolist()]
    rows = [[a - b for a, b in zip(row, first, strict=True)] for row in others]
    rank = 0
    for column in range(len(first)):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


def mixing(draw, width):
    """Draw a whole-number matrix of determinant ±1."""
    matrix = np.eye(width)
    for _ in range(draw(st.integers(0, 2 * width))):
        i, j = draw(st.integers(0, width - 1)), draw(st.integers(0, width - 1))
        if i != j:
            matrix[:, i] += draw(st.sampled_from([-1.0, 1.0])) * matrix[:, j]
    return matrix


@given(tables())
def test_dimension_is_the_exact_rank_of_the_differences(features):
    assert ArmSet(features).dimension == exact_dimension(features)


@given(tables(), st.data())
def test_units_of_the_columns_and_of_all_features_do_not_matter(features, data):
    powers = data.draw(arrays(np.float64, features.shape[1], elements=st.integers(-12, 12).map(float)))
    assert ArmSet(features * 10.0**powers).dimension == exact_dimension(features)


@given(tables(), st.data())
def test_units_of_each_arm_count_as_its_own(features, data):
    powers = data.draw(arrays(np.float64, len(features), elements=st.integers(-40, 40).map(float)))
    scaled = features * 2.0 ** powers[:, np.newaxis]
    assert ArmSet(scaled).dimension == exact_dimension(scaled)


@given(tables(), st.data())
def test_translation_does_not_matter(features, data):
    offset = data.draw(
        arrays(np.float64, features.shape[1], elements=st.integers(-(10**6), 10**6).map(float))
    )
    assert ArmSet(features + offset).dimension == exact_dimension(features)


@given(tables(), st.data())
def test_invertible_mixtures_of_the_features_do_not_matter(features, data):
    mixed = features @ mixing(data.draw, features.shape[1])
    powers = data.draw(arrays(np.float64, features.shape[1], elements=st.integers(-12, 12).map(float)))
    assert ArmSet(mixed * 10.0**powers).dimension == exact_dimension(features)


@given(tables(), st.data())
def test_the_order_of_arms_and_features_does_not_matter(features, data):
    rows = data.draw(st.permutations(range(features.shape[0])))
    columns = data.draw(st.permutations(range(features.shape[1])))
    assert ArmSet(features[rows][:, columns]).dimension == exact_dimension(features)


@given(tables())
def test_positions_keep_every_distance(features):
    arms = ArmSet(features)
    true = np.linalg.norm(features[:, np.newaxis] - features, axis=-1)
    kept = np.linalg.norm(arms.positions[:, np.newaxis] - arms.positions, axis=-1)
    assert np.allclose(kept, true, atol=1e-9 * (1 + true.max()))


@given(tables())
def test_coordinates_tell_apart_exactly_the_arms_that_differ(features):
    coordinates = ArmSet(features).frame.coordinates(features)
    apart = np.abs(coordinates[:, np.newaxis] - coordinates).max(axis=-1, initial=0.0)
    differ = np.any(features[:, np.newaxis] != features, axis=-1)
    assert np.array_equal(apart > 1e-9, differ)
