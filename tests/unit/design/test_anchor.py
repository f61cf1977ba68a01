"""The paper's DEO on arms whose design is known."""

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.design import anchor_design
from orthobandit.errors import ParameterError


def test_all_bounds_are_attained_on_a_line():
    design = anchor_design(ArmSet([[0.0], [1.0], [-1.0]]))
    assert sorted(design.probabilities) == [0.0, 0.5, 0.5]
    assert design.reference_norm == pytest.approx(2)
    assert design.centred_norm == pytest.approx(3)
    assert design.contrast_norm == pytest.approx(4)


@pytest.mark.parametrize("reference", [0, 2])
def test_one_hot_arms(reference):
    design = anchor_design(ArmSet.one_hot(5), reference)
    assert design.reference == reference
    assert design.method == "anchor"
    expected = np.full(5, 0.125)
    expected[reference] = 0.5
    assert np.allclose(design.probabilities, expected, atol=1e-6)
    assert design.reference_norm == pytest.approx(np.sqrt(2 + 8), rel=1e-5)


def test_two_arms_and_equal_arms():
    assert anchor_design(ArmSet([[1.0, 2.0], [4.0, 4.0]]), 1).probabilities.tolist() == [0.5, 0.5]
    assert anchor_design(ArmSet([[1.0, 2.0]] * 3), 2).probabilities.tolist() == [0.0, 0.0, 1.0]
    assert anchor_design(ArmSet([[1.0, 2.0]])).probabilities.tolist() == [1.0]


def test_a_duplicate_of_the_reference_is_not_played():
    design = anchor_design(ArmSet([[1.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 3.0]]), 1)
    assert np.allclose(design.probabilities, [0.0, 0.5, 0.25, 0.25], atol=1e-6)


def test_the_reference_keeps_half_after_a_warm_start():
    arms = ArmSet(np.random.default_rng(0).standard_normal((30, 4)))
    first = anchor_design(arms, 0)
    for start in (first, anchor_design(arms, 3)):
        again = anchor_design(arms, 3, start=start)
        assert again.probabilities[3] == 0.5
        assert again.optimality_gap <= 1e-6


@pytest.mark.parametrize("reference", [-1, 3, 0.5, "blue"])
def test_the_reference_must_be_an_arm(reference):
    with pytest.raises(ParameterError, match=r"reference=.* is not an arm; arms are numbered 0 to 2"):
        anchor_design(ArmSet.one_hot(3), reference)
