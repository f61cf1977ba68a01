import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.policy.contextual import Interactions, Offer


def test_interactions_cross_every_arm_with_one_and_the_context():
    pages = Interactions(["A", "B", "C"], context=["age", "hour"])
    assert pages.names == ("B", "B × age", "B × hour", "C", "C × age", "C × hour")
    offer = pages.offer({"age": 2.0, "hour": 3.0, "country": 7.0})
    assert offer.features.tolist() == [[0, 0, 0, 0, 0, 0], [1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]]
    assert offer.context["country"] == 7.0  # forecasts may use what effects do not depend on


def test_arms_with_features_are_crossed_as_they_are():
    arms = ArmSet([[0.0, 1.0], [2.0, 0.0]], labels=["x", "y"])
    assert Interactions(arms, ["z"]).offer({"z": 5.0}).features.tolist() == [[0, 0, 1, 5], [2, 10, 0, 0]]


def test_a_table_of_contexts_gives_the_offers_of_its_rows():
    pages = Interactions(["A", "B"], context=["age"])
    rows = pages.features([[1.0], [4.0]])
    assert rows.shape == (2, 2, 2)
    assert np.array_equal(rows[1], pages.offer({"age": 4.0}).features)


def test_only_available_arms_are_offered():
    offer = Interactions(["A", "B", "C"], []).offer(available=["C", "A"])
    assert offer.labels == ("A", "C")
    assert offer.features.tolist() == [[0, 0], [0, 1]]
    assert offer.index("C") == 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Offer([[1.0, np.nan]]), "row 0 \\('0'\\).*column 1"),
        (lambda: Offer([1.0, 2.0]), "shape \\(2,\\)"),
        (lambda: Offer([[1.0], [2.0]], labels=["a"]), "1 labels for 2 arms"),
        (lambda: Offer([[1.0], [2.0]], labels=["a", "a"]), "different"),
        (lambda: Interactions(["A", "B"], ["age"]).offer({"hour": 1}), "no 'age'.*it has hour"),
        (lambda: Interactions(["A", "B"], ["age"]).offer({"age": np.inf}), "'age' is inf"),
        (lambda: Interactions(["A", "B"]).offer(available=["Z"]), "'Z' is unknown; arms are A, B"),
        (lambda: Interactions(["A", "B"]).offer(available=[]), "no arm is available"),
        (lambda: Offer([[1.0]], ["a"]).index("b"), "'b' is not offered"),
    ],
)
def test_what_cannot_be_offered_is_refused_by_name(make, words):
    with pytest.raises(ParameterError, match=words):
        make()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("yes", "context 'mobile' is 'yes'; it must be a number"),
        (1e60, r"context 'mobile' is 1e\+60; it must be a finite number of magnitude at most 1e\+50"),
    ],
)
def test_a_context_that_is_no_usable_number_is_named(value, words):
    with pytest.raises(ParameterError, match=words):
        Interactions(["A", "B"], context=["mobile"]).offer({"mobile": value})


def test_features_that_are_no_usable_numbers_are_named():
    with pytest.raises(ParameterError, match="features of an offer are not a table of numbers"):
        Offer([["near", "far"], [0.0, 1.0]])
    with pytest.raises(ParameterError, match=r"features row 1 \('1'\) of an offer has -1e\+60 in column 0"):
        Offer([[0.0, 1.0], [-1e60, 1.0]])
