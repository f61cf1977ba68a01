"""Rounds to plan with."""

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.simulation import rounds_to_plan

GOALS = ("identify", "earn")
ARMS = ArmSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])


@pytest.mark.slow
def test_twice_the_noise_takes_about_four_times_the_rounds():
    easy = np.median(rounds_to_plan(ARMS, epsilon=0.4, runs=12))
    assert 2.5 < np.median(rounds_to_plan(ARMS, epsilon=0.4, sigma=2.0, runs=12)) / easy < 6.5


def test_half_the_error_takes_as_many_rounds_as_twice_the_noise():
    half = rounds_to_plan(ARMS, epsilon=0.4, runs=4)
    twice = rounds_to_plan(ARMS, epsilon=0.8, sigma=2.0, runs=4)
    assert half.tolist() == twice.tolist()


@pytest.mark.slow
def test_more_arms_take_more_rounds():
    few, many = (np.median(rounds_to_plan(ArmSet.one_hot(k), epsilon=0.5, runs=8)) for k in (2, 8))
    assert many > 2 * few


def test_a_run_that_is_given_up_has_no_number():
    assert np.all(np.isinf(rounds_to_plan(ARMS, epsilon=0.01, runs=3, limit=200)))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0 must be a finite number above 0"),
        ({"epsilon": 0.1, "sigma": -1.0}, "sigma=-1.0 must be a finite number above 0"),
        ({"epsilon": 0.1, "sigma": 1e120}, r"sigma=1e\+120 must be at most 1e\+100"),
        ({"epsilon": 0.1, "delta": 2.0}, "delta=2.0 must lie strictly between 0 and 1"),
    ],
)
def test_wrong_settings_are_named(settings, said):
    with pytest.raises(ParameterError, match=said):
        rounds_to_plan(ARMS, **settings)


def test_the_goal_is_that_of_the_policy_that_is_played():
    found = {goal: rounds_to_plan(ARMS, epsilon=0.4, goal=goal, runs=4).tolist() for goal in GOALS}
    assert found["earn"] != found["identify"]
    with pytest.raises(ParameterError, match="goal='win'"):
        rounds_to_plan(ARMS, epsilon=0.4, goal="win")


def test_arms_that_are_no_set_of_arms_are_refused():
    with pytest.raises(ParameterError, match=r"arms is a list; give an ArmSet"):
        rounds_to_plan([[0.0], [1.0]], epsilon=0.4)
