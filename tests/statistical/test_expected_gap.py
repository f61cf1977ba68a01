"""A gap that is expected changes when an experiment ends, and no error probability, however wrong it is.

A run fails if the truth is ever outside an interval in the row of the first best arm, its test included:
only then can that arm be dropped. Each test raises a false alarm with probability at most 10⁻⁸.
"""

import numpy as np
import pytest
from tests.failure_rates import assert_kept

from orthobandit import AnytimeElimination, ArmSet, Asymptotic, Bounded, Environment, SubGaussian
from orthobandit.simulation import Bernoulli, Constant, Gaussian, Sine, misses, simulate, within

pytestmark = pytest.mark.statistical

DELTA = 0.1
FALSE_ALARM = 1e-8
TWO = ArmSet.one_hot(2)
FOUR = ArmSet([[0.0, 0.0], [1.0, 0.2], [0.2, 1.0], [0.9, 0.9]])
SMALL = 0.02  # a gap that no run of 3,000 rounds can find

# Arms, θ, shift, noise, mode: equal arms and small gaps, of clicks and of normal rewards.
WORLDS = {
    "equal clicks, exact": (TWO, (0.2, 0.2), Constant(), Bernoulli(), Bounded(0.0, 1.0)),
    "nearly equal clicks": (TWO, (0.2, 0.2 - SMALL), Constant(), Bernoulli(), Asymptotic()),
    "rare sales, exact": (TWO, (0.01, 0.01), Constant(), Bernoulli(), Bounded(0.0, 1.0)),
    "four equal arms": (FOUR, (0.0, 0.0), within(Sine(), 1.0), Gaussian(1.0), Asymptotic()),
    "four equal arms, exact": (FOUR, (0.0, 0.0), within(Sine(), 1.0), Gaussian(1.0), SubGaussian(-1, 1.1)),
}


@pytest.mark.parametrize("expect", [0.001, 0.05, 2.0])
@pytest.mark.parametrize("world", WORLDS)
def test_the_truth_is_rarely_ever_outside_whatever_is_expected(world, expect):
    arms, theta, shift, noise, confidence = WORLDS[world]
    policy = AnytimeElimination(DELTA, confidence=confidence, expect=expect, growth=0.1)
    environment = Environment(arms, theta, shift, noise)

    def failures(first, runs):
        found = misses(policy, environment, horizon=3000, replications=runs, seed=71, first=first)
        return int(np.count_nonzero(found.first >= 0))

    assert_kept(DELTA, failures, 400, false_alarm=FALSE_ALARM)


@pytest.mark.parametrize("pairs", ["all", "leader"])
@pytest.mark.parametrize("confidence", [Asymptotic(), Bounded(0.0, 1.0)], ids=["asymptotic", "exact"])
def test_the_best_of_two_is_rarely_dropped_while_earning(confidence, pairs):
    # Plans that earn are skewed: the arm that seems worse is hardly played.
    policy = AnytimeElimination(DELTA, confidence=confidence, goal="earn", pairs=pairs, expect=0.1)
    environment = Environment(TWO, (0.21, 0.2), Constant(), Bernoulli())

    def failures(first, runs):
        settings = {"horizon": 5000, "replications": runs, "seed": 72, "first": first}
        found = simulate(policy, environment, stop_when_declared=True, **settings)
        return int(np.count_nonzero(~found.decision.active[:, 0]))

    assert_kept(DELTA, failures, 300, false_alarm=FALSE_ALARM)


def test_a_right_hint_saves_rounds():
    # Paired on the same noise; the ratio is 0.85 ± 0.02, and one above 1 would be no chance.
    environment = Environment(TWO, (0.2, 0.23), Constant(), Bernoulli())
    times = []
    for expect in (None, 0.03):
        policy = AnytimeElimination(0.05, rewards=(0, 1), expect=expect)
        settings = {"horizon": 200_000, "replications": 150, "seed": 73}
        found = simulate(policy, environment, stop_when_declared=True, **settings)
        times.append(found.stop_times.astype(float))
    assert np.all(times[1] > 0)
    assert times[1].mean() < times[0].mean()
