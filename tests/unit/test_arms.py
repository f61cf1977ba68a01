"""Arm sets: what they hold, what they refuse, and their dimension."""

import re

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.errors import FeatureError, LabelError, ParameterError


def test_features_and_labels_are_kept():
    arms = ArmSet([[0, 1], [2, 3], [4, 6]], labels=["red", "green", "blue"])
    assert len(arms) == 3
    assert arms.features.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 6.0]]
    assert arms.features.dtype == np.float64
    assert arms.labels == ("red", "green", "blue")
    assert arms.index("blue") == 2
    assert repr(arms) == "ArmSet(3 arms, 2 features, dimension 2)"


def test_labels_default_to_numbers():
    assert ArmSet([[1.0], [2.0]]).labels == ("0", "1")


def test_labels_become_strings():
    assert ArmSet([[1.0], [2.0]], labels=[10, 20]).labels == ("10", "20")


@pytest.mark.parametrize(
    ("features", "dimension"),
    [
        ([[5.0]], 0),
        ([[5.0, 1.0, 2.0]], 0),
        ([[1.0], [1.0]], 0),
        ([[1.0, 2.0], [1.0, 2.0], [0.0, 0.0]], 1),
        ([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], 1),
        ([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]], 1),
        ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 2),
    ],
    ids=["one arm", "one long arm", "twins", "duplicates", "collinear", "more features than arms", "plane"],
)
def test_dimension_and_positions(features, dimension):
    arms = ArmSet(features)
    assert arms.dimension == dimension
    assert arms.basis.shape == (dimension, arms.features.shape[1])
    assert arms.positions.shape == (len(arms), dimension)
    # Distances between arms survive the change of coordinates.
    for i in range(len(arms)):
        true = np.linalg.norm(arms.features - arms.features[i], axis=1)
        assert np.linalg.norm(arms.positions - arms.positions[i], axis=1) == pytest.approx(true, abs=1e-12)


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_one_hot_arms(count):
    arms = ArmSet.one_hot(count)
    assert np.array_equal(arms.features, np.eye(count))
    assert arms.dimension == count - 1
    assert np.allclose(arms.basis @ arms.basis.T, np.eye(count - 1))
    assert np.allclose(arms.basis.sum(axis=1), 0)
    # The shortcut agrees with the general way.
    general = ArmSet(np.eye(count))
    assert general.dimension == count - 1
    assert np.allclose(general.basis.T @ general.basis, arms.basis.T @ arms.basis)
    coordinates = arms.frame.coordinates(arms.features)
    assert np.array_equal(coordinates, np.eye(count)[:, 1:])


def test_one_hot_arms_may_be_labelled():
    assert ArmSet.one_hot(2, labels=["old", "new"]).index("new") == 1


@pytest.mark.parametrize("count", [0, -3])
def test_no_one_hot_arms(count):
    with pytest.raises(ParameterError, match=f"count={count} must be a whole number of at least 1"):
        ArmSet.one_hot(count)


def test_one_hot_arms_that_would_fill_the_memory_are_refused():
    with pytest.raises(ParameterError, match=r"count=1000000 is too many: .* 7,451 GiB; describe the arms"):
        ArmSet.one_hot(10**6)


def test_given_arrays_are_copied():
    given = np.array([[0.0, 1.0], [1.0, 0.0]])
    arms = ArmSet(given)
    given[0, 0] = 99.0
    assert arms.features.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert given.flags.writeable


def test_a_read_only_array_is_shared():
    given = np.zeros((3, 2))
    given.flags.writeable = False
    assert np.shares_memory(ArmSet(given).features, given)


@pytest.mark.parametrize("arms", [ArmSet([[0.0, 0.0], [1.0, 1.0]]), ArmSet.one_hot(3), ArmSet(np.eye(3))])
def test_arms_cannot_be_changed(arms):
    for array in (arms.features, arms.positions, arms.basis):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1.0


@pytest.mark.parametrize(
    ("features", "labels", "message"),
    [
        ([], None, "features have shape (0,); a table (K, d) is needed, one row per arm"),
        (np.empty((0, 3)), None, "features have shape (0, 3); at least one arm and one feature are needed"),
        (np.empty((3, 0)), None, "features have shape (3, 0); at least one arm and one feature are needed"),
        ([1.0, 2.0], None, "features have shape (2,); a table (K, d) is needed, one row per arm"),
        (np.zeros((2, 2, 2)), None, "features have shape (2, 2, 2); a table (K, d) is needed"),
        ([[1.0, 2.0], [1.0]], None, "features row 1 has 1 entries but row 0 has 2; every arm needs the same"),
        ([[1.0], [1.0, 2.0]], ["a", "b"], 'features row 1 ("b") has 2 entries but row 0 has 1; every arm'),
        ([[1.0, 2.0], 3.0], None, "features row 1 is 3.0; every arm needs a row of finite numbers"),
        ([[1.0, 2.0], ["x", 3.0]], None, "features row 1 has x in column 0; every feature must be a finite"),
        ([[1.0, {}], [1.0, 2.0]], ["a", "b"], 'features row 0 ("a") has {} in column 1; every feature must'),
        ("abc", None, "features row 0 is 'a'; every arm needs a row of finite numbers"),
        (object(), None, "features are not a table of numbers; every arm needs a row of finite numbers"),
        ([[1j]], None, "features are complex; every feature must be a real number"),
        (
            [[1.0, 2.0], [3.0, np.nan]],
            ["red", "blue button"],
            'features row 1 ("blue button") has a non-finite value in column 1; every feature must be a',
        ),
        ([[np.inf, 2.0]], None, "features row 0 has a non-finite value in column 0; every feature must be a"),
        ([[1.0], [-np.inf]], None, "features row 1 has a non-finite value in column 0"),
        ([[1.0], [None]], None, "features row 1 has a non-finite value in column 0"),
        (
            [[1.0], [-1e151]],
            None,
            "features row 1 has the value -1e+151 in column 0; every feature must be a",
        ),
    ],
)
def test_features_that_are_no_table_of_finite_numbers(features, labels, message):
    with pytest.raises(FeatureError, match=re.escape(message)):
        ArmSet(features, labels)


def test_refused_features_are_left_as_they_were():
    given = np.array([[1.0], [np.nan]])
    with pytest.raises(FeatureError):
        ArmSet(given)
    assert np.array_equal(given, [[1.0], [np.nan]], equal_nan=True)
    assert given.flags.writeable


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"], "labels has 1 entries for 3 arms; give one label per arm"),
        (["a", "b", "c", "d"], "labels has 4 entries for 3 arms; give one label per arm"),
        ([], "labels has 0 entries for 3 arms; give one label per arm"),
        (["a", "b", "a"], 'labels rows 0 and 2 are both "a"; every arm needs its own label'),
        ([1, "1", 2], 'labels rows 0 and 1 are both "1"; every arm needs its own label'),
        ("abc", "labels='abc' is one string; give a list with one label per arm"),
        (["a", None], "labels row 1 is None"),
    ],
)
def test_labels_that_do_not_name_the_arms(labels, message):
    with pytest.raises(LabelError, match=re.escape(message)):
        ArmSet([[1.0], [2.0], [3.0]], labels)


def test_an_unknown_label_is_named_beside_the_known():
    with pytest.raises(LabelError, match=re.escape("label='x' is not an arm; the arms are 0, 1")):
        ArmSet.one_hot(2).index("x")
    with pytest.raises(LabelError, match=re.escape("the arms are 0, 1, 2, 3, 4, 5, 6, 7, … (20 in all)")):
        ArmSet.one_hot(20).index("x")


def test_subset_by_position_and_by_mask():
    arms = ArmSet([[0.0], [1.0], [2.0]], labels=["a", "b", "c"])
    for kept in ([2, 0], np.array([2, 0])):
        part = arms.subset(kept)
        assert part.labels == ("c", "a")
        assert part.features.tolist() == [[2.0], [0.0]]
    assert arms.subset([False, True, True]).labels == ("b", "c")
    assert arms.subset(1).labels == ("b",)


@pytest.mark.parametrize(
    "kept", [[], [3], [0.5], [True, False], [False, False, False], [[0, 1]]], ids=lambda kept: str(kept)
)
def test_a_subset_that_selects_no_arms(kept):
    message = f"kept={kept} selects no arms; give positions from 0 to 2 or a mask of 3"
    with pytest.raises(ParameterError, match=re.escape(message)):
        ArmSet.one_hot(3).subset(kept)


def test_an_arm_cannot_be_kept_twice():
    with pytest.raises(LabelError, match="every arm needs its own label"):
        ArmSet.one_hot(3).subset([1, 1])


def test_one_hot_features_have_the_same_frame_however_they_came():
    one, other = ArmSet.one_hot(4), ArmSet(np.eye(4).tolist())
    assert np.array_equal(one.positions, other.positions)
