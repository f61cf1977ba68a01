"""The exact optimum of the paper's design problem on arms whose optimum is known."""

import itertools

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.design import centred_design

SQUARE = np.array(list(itertools.product([-1.0, 1.0], repeat=2)))
CUBE = np.array(list(itertools.product([-1.0, 1.0], repeat=3)))
GRID = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=2)))
CORNERS = np.where(np.abs(GRID).sum(axis=1) == 2, 0.25, 0.0)
TURN = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ([[3.0, 1.0]], [1.0]),
        ([[3.0, 1.0]] * 3, [1.0, 0.0, 0.0]),
        ([[3.0, 1.0], [3.0, 2.0]], [0.5, 0.5]),
        ([[0.0], [0.3], [1.0]], [0.5, 0.0, 0.5]),
        ([[0.0, 0.0], [0.3, 0.6], [1.0, 2.0]], [0.5, 0.0, 0.5]),
        (np.eye(6), [1 / 6] * 6),
        (SQUARE, [0.25] * 4),
        (GRID, CORNERS),
        (GRID * [1e-8, 1e8] + [1e-6, 1e9], CORNERS),
        (GRID @ TURN[:2] + 5.0, CORNERS),
        ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.3, 0.3]], [1 / 3, 1 / 3, 1 / 3, 0.0]),
    ],
    ids=[
        "one arm",
        "equal arms",
        "two arms",
        "a line",
        "a line in the plane",
        "one-hot",
        "square",
        "grid",
        "grid in odd units far from zero",
        "grid on a plane in four dimensions",
        "triangle",
    ],
)
def test_by_hand(features, expected):
    design = centred_design(ArmSet(features))
    assert np.allclose(design.probabilities, expected, atol=1e-6)
    assert 0 <= design.optimality_gap <= 1e-6
    assert design.centred_norm == pytest.approx(np.sqrt(design.arms.dimension), abs=1e-5)
    assert design.method == "centred"


def test_the_cube_has_many_optima_of_one_covariance():
    design = centred_design(ArmSet(CUBE))
    assert np.allclose(design.mean, 0, atol=1e-6)
    assert np.allclose(design.covariance, np.eye(3), atol=1e-6)


def test_duplicates_share_the_probability_of_their_arm():
    design = centred_design(ArmSet(np.repeat(SQUARE, 5, axis=0)))
    assert np.allclose(design.probabilities.reshape(4, 5).sum(axis=1), 0.25, atol=1e-6)


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e12])
def test_conditioning_does_not_matter(condition):
    plain = np.random.default_rng(1).standard_normal((30, 4))
    squeezed = (plain * np.geomspace(1, 1 / condition, 4)) @ TURN
    once, again = centred_design(ArmSet(plain)), centred_design(ArmSet(squeezed))
    # The features themselves are rounded: their fourth direction keeps only 16 − 12 digits.
    assert np.allclose(again.probabilities, once.probabilities, atol=1e-3 if condition > 1e9 else 1e-5)
    assert again.centred_norm == pytest.approx(2, abs=1e-5)


@pytest.mark.parametrize("length", [1e4, 1e8, 1e12])
def test_one_arm_far_away_gets_its_share(length):
    # Seen from afar the other arms are one: the far arm has probability 1/(r+1), as in a simplex.
    features = np.random.default_rng(2).standard_normal((50, 3))
    features[17] *= length
    design = centred_design(ArmSet(features))
    assert design.probabilities[17] == pytest.approx(0.25, abs=10 / length)
    assert design.centred_norm == pytest.approx(np.sqrt(3), abs=1e-5)


def test_a_coarser_gap_is_enough_when_asked_for():
    arms = ArmSet(np.random.default_rng(3).standard_normal((200, 5)))
    coarse, fine = centred_design(arms, gap=0.1), centred_design(arms, gap=1e-9)
    assert coarse.centred_norm**2 <= 5 * 1.1
    assert fine.optimality_gap <= 1e-9
    assert fine.centred_norm == pytest.approx(np.sqrt(5), rel=1e-9)


@pytest.mark.parametrize("width", [100, 200])
def test_many_features(width):
    arms = ArmSet(np.random.default_rng(4).standard_normal((3 * width, width)))
    design = centred_design(arms)
    assert design.centred_norm == pytest.approx(np.sqrt(width), rel=1e-6)
