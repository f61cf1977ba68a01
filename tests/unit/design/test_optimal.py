"""The classical G-optimal design on arms whose optimum is known."""

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.design import g_optimal_design


def moments(design):
    x = design.arms.features
    return (x.T * design.probabilities) @ x


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ([[2.0, 1.0]], [1.0]),
        ([[0.0, 0.0], [0.0, 0.0]], [1.0, 0.0]),
        ([[1.0, 0.0], [0.0, 3.0]], [0.5, 0.5]),
        ([[1.0], [-2.0], [3.0]], [0.0, 0.0, 1.0]),
        ([[1.0, 1.0], [2.0, 2.0], [-4.0, -4.0]], [0.0, 0.0, 1.0]),
        (np.eye(5), [0.2] * 5),
        (1e-9 * np.eye(3), [1 / 3] * 3),
        ([[1.0, 0.0], [1.0, 0.3], [1.0, 1.0]], [0.5, 0.0, 0.5]),
        ([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]], [1 / 3] * 3),
    ],
    ids=[
        "one arm",
        "arms at zero",
        "two arms",
        "a line through zero",
        "a line through zero in the plane",
        "one-hot",
        "tiny units",
        "straight line with a constant column",
        "triangle with a constant column",
    ],
)
def test_by_hand(features, expected):
    design = g_optimal_design(ArmSet(features))
    assert np.allclose(design.probabilities, expected, atol=1e-6)
    assert 0 <= design.optimality_gap <= 1e-6
    assert design.method == "g-optimal"


def test_the_corners_of_a_square_are_two_pairs_of_opposite_arms():
    design = g_optimal_design(ArmSet([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0], [0.5, 0.5]]))
    assert np.allclose(moments(design), np.eye(2), atol=1e-6)
    assert len(design.support) <= 3
    assert design.probabilities[4] == 0


def test_duplicates_share_the_probability_of_their_arm():
    plain = np.array([[1.0, 0.2], [0.3, 1.0], [0.1, 0.1]])
    once, thrice = g_optimal_design(ArmSet(plain)), g_optimal_design(ArmSet(np.tile(plain, (3, 1))))
    assert np.allclose(thrice.probabilities.reshape(3, 3).sum(axis=0), once.probabilities, atol=1e-6)
    assert len(thrice.support) <= 3


def test_a_baseline_in_the_features_gives_the_centred_optimum():
    # With a column of ones xᵀM⁻¹x = 1 + ‖x − μ‖²_{Σ⁻¹}.
    plain = np.random.default_rng(0).standard_normal((40, 3))
    design = g_optimal_design(ArmSet(np.hstack([np.full((40, 1), 7.0), plain])))
    assert design.centred_norm == pytest.approx(np.sqrt(3), rel=1e-5)
