"""The smallest enclosing ball on sets whose answer is known."""

import numpy as np
import pytest

from orthobandit.design.ball import ball_into, enclosing_ball, unsolved
from orthobandit.errors import FeatureError, ParameterError


def test_two_points_share_equally():
    ball = enclosing_ball([[1.0, 0.0], [5.0, 0.0]])
    assert ball.probabilities.tolist() == [0.5, 0.5]
    assert ball.centre.tolist() == [3.0, 0.0]
    assert ball.squared_radius == 4.0


def test_one_hot_points_share_equally():
    ball = enclosing_ball(np.eye(7))
    assert ball.probabilities == pytest.approx(np.full(7, 1 / 7))
    assert ball.squared_radius == pytest.approx(6 / 7)


def test_an_obtuse_triangle_rests_on_its_long_side():
    ball = enclosing_ball([[0.0, 0.0], [4.0, 0.0], [1.0, 1.0]])
    assert ball.probabilities.tolist() == [0.5, 0.5, 0.0]


def test_an_acute_triangle_rests_on_all_corners():
    ball = enclosing_ball([[-1.0, 0.0], [1.0, 0.0], [0.0, np.sqrt(3)]])
    assert ball.probabilities == pytest.approx([1 / 3, 1 / 3, 1 / 3])
    assert ball.squared_radius == pytest.approx(4 / 3)


def test_points_on_a_line_rest_on_the_ends():
    ball = enclosing_ball(np.outer([0.0, 1.0, 2.0, 7.0, 3.0], [1.0, 2.0, -1.0]))
    assert ball.probabilities == pytest.approx([0.5, 0.0, 0.0, 0.5, 0.0])


@pytest.mark.parametrize("points", [[[3.0, 1.0]], np.ones((4, 2)), np.zeros((3, 0))])
def test_points_without_a_difference_have_no_radius(points):
    ball = enclosing_ball(points)
    assert ball.probabilities.sum() == 1.0
    assert (ball.squared_radius, ball.residual) == (0.0, 0.0)


def test_an_earlier_solution_is_a_start():
    points = np.random.default_rng(1).standard_normal((20, 4))
    cold = enclosing_ball(points).probabilities
    for start in (cold, np.eye(20)[3], np.full(20, 0.05), np.zeros(20)):
        warm = start.copy()
        assert ball_into(points @ points.T, np.arange(20), warm) <= 1e-8
        assert warm == pytest.approx(cold, abs=1e-9)


def test_only_the_points_asked_for_are_enclosed():
    points = np.random.default_rng(2).standard_normal((12, 3))
    among = np.array([1, 4, 5, 9])
    p = np.full(12, 1 / 12)
    assert ball_into(points @ points.T, among, p) <= 1e-8
    assert p[among] == pytest.approx(enclosing_ball(points[among]).probabilities, abs=1e-9)
    assert p.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("points", [[], [1.0, 2.0], [[np.nan, 1.0]]])
def test_what_is_no_table_of_points_is_refused(points):
    with pytest.raises(FeatureError, match="points have shape"):
        enclosing_ball(points)


def test_bad_tolerance_is_named():
    with pytest.raises(ParameterError, match="tolerance=0"):
        enclosing_ball([[1.0]], tolerance=0)


def test_a_missed_tolerance_says_by_how_much():
    error = unsolved(1e-3)
    assert (error.gap, error.tolerance) == (1e-3, 1e-8)
