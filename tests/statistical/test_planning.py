"""How often an experiment takes longer than the range that it was planned with."""

from functools import cache

import numpy as np
import pytest
from tests.failure_rates import assert_kept

from orthobandit import AnytimeElimination, ArmSet, Environment, simulate
from orthobandit.simulation import Constant, Gaussian, Sine

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

EPSILON, RUNS, MOST = 0.4, 10, 150
ARMS = ArmSet.one_hot(3)
# Leads of the best arm in units of ε; runs alike exceed the longest of ten in 1/11.
WORLDS = {
    "no arm better": ([0.0, 0.0, 0.0], Constant()),
    "no arm better, the level swings": ([0.0, 0.0, 0.0], Sine()),
    "a lead of a quarter": ([0.0, 0.0, 0.25], Constant()),
    "a lead of a half": ([0.0, 0.0, 0.5], Constant()),
    "two leads": ([0.0, 0.75, 1.0], Constant()),
}


def play(leads, shift, goal, runs, seed):
    """Return the rounds (R,) to the declaration."""
    world = Environment(ARMS, EPSILON * np.array(leads), shift, Gaussian(1.0))
    policy = AnytimeElimination(epsilon=EPSILON, goal=goal)
    result = simulate(policy, world, horizon=100_000, replications=runs, seed=seed, stop_when_declared=True)
    assert np.all(result.stop_times > 0)
    return result.stop_times


@cache
def longest_planned(goal, count, seed):
    """Return the longest (count,) of ten runs, other ones each time: what `rounds_to_plan` plays, at once."""
    return play([0.0, 0.0, 0.0], Constant(), goal, RUNS * count, seed).reshape(count, RUNS).max(axis=1)


@pytest.mark.parametrize("goal", ["identify", "earn"])
@pytest.mark.parametrize("name", WORLDS)
def test_eight_of_ten_runs_end_within_the_longest_that_was_planned_with(name, goal):
    leads, shift = WORLDS[name]

    def count_longer(first, runs):
        took = play(leads, shift, goal, runs, 200 + first)
        return int(np.count_nonzero(took > longest_planned(goal, runs, 100 + first)))

    assert_kept(0.2, count_longer, MOST, false_alarm=1e-6)
