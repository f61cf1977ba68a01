"""Evidence against leaders in place of all pairs: the claims hold as often, and no more rounds are needed.

A run fails if the best arm is ever dropped or what it is better by than an arm that has led is ever above
its bound. A failure probability of δ exceeds the most failures that are allowed with probability at most
10⁻⁷; all tests of this file together raise a false alarm less than once in 10⁶.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from inside.policy import playable
from orthobandit import AnytimeElimination, ArmSet, Bounded, Environment, SubGaussian, Tally, simulate
from orthobandit.estimate import NoBaseline
from orthobandit.simulation import CancelBest, Gaussian, Sine, Uniform, misses

pytestmark = pytest.mark.statistical

FALSE_ALARM, DELTA, RUNS = 1e-7, 0.2, 40


def world(gap, shift=None, noise=None, count=300, width=4):
    """Return normal features, of which one leads by the gap."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((count, width)) / 3
    features[5, 0] = np.delete(features[:, 0], 5).max() + gap
    return Environment(ArmSet(features), np.eye(width)[0], shift or Sine(offset=0.0), noise or Gaussian(1.0))


MODES = {
    "asymptotic": ({}, Gaussian(1.0)),
    "bounded": ({"confidence": Bounded(-4.0, 4.0)}, Uniform(1.0)),
    "sub-Gaussian": ({"confidence": SubGaussian(-3.0, 3.0)}, Gaussian(1.0)),
}


@pytest.mark.parametrize("pairs", ["leader", pytest.param("all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", MODES)
def test_claims_of_a_near_tie_hold_as_often_as_they_say(mode, pairs):
    settings, noise = MODES[mode]
    policy = AnytimeElimination(DELTA, pairs=pairs, baseline=NoBaseline(), growth=0.5, **settings)
    runs = RUNS if pairs == "leader" else RUNS // 4
    found = misses(policy, world(1e-3, noise=noise), horizon=2500, replications=runs, seed=5)
    assert np.count_nonzero(found.first >= 0) <= binom.isf(FALSE_ALARM, runs, DELTA)


@pytest.mark.parametrize("goal", ["identify", "earn"])
def test_claims_hold_under_an_adversary(goal):
    policy = AnytimeElimination(DELTA, pairs="leader", goal=goal, baseline=NoBaseline(), growth=0.5)
    found = misses(policy, world(0.02, CancelBest()), horizon=2500, replications=RUNS, seed=6)
    assert np.count_nonzero(found.first >= 0) <= binom.isf(FALSE_ALARM, RUNS, DELTA)


def dropped(kind, goal, rng, rounds=1200):
    """Tell whether one arm of many that are all alike is ever dropped, where few arms scatter and these much.

    The arms that scatter are among those that are played most and carry the variance of most contrasts.
    """
    arms = ArmSet(np.random.default_rng(2).standard_normal((200, 8)))
    policy = AnytimeElimination(DELTA, goal=goal, pairs="leader", baseline=NoBaseline())
    state = policy.start(arms)
    wild = np.zeros(200, dtype=np.bool_)
    wild[rng.choice(np.intersect1d(playable(arms), np.flatnonzero(policy.plan(state).probabilities)), 5)] = (
        True
    )
    one = int(rng.integers(200))
    while int(state.rounds) < rounds and int(state.declared) < 0:
        plan = policy.plan(state)
        count = int(min(plan.rounds, rounds - state.rounds))
        drawn = rng.choice(200, count, p=plan.probabilities)
        wildly = 3.0 * rng.standard_normal(count)
        if kind == "skewed":  # 3 in one draw of four, else −1
            wildly = np.where(rng.random(count) < 0.25, 3.0, -1.0)
        rewards = 0.1 * rng.standard_normal(count) + np.where(wild[drawn], wildly, 0.0)
        state = policy.observe(state, plan, Tally.of(drawn, plan.residuals(drawn, rewards), 200))
        if not state.active[one]:
            return True
    return False


@pytest.mark.parametrize("kind", ["wide", "skewed"])
@pytest.mark.parametrize("goal", ["identify", "earn"])
def test_few_arms_that_scatter_wildly_and_are_hardly_drawn_mislead_nobody(goal, kind):
    rng = np.random.default_rng(9)
    failed = sum(dropped(kind, goal, rng) for _ in range(RUNS // 2))
    assert failed <= binom.isf(FALSE_ALARM, RUNS // 2, DELTA)


@pytest.mark.parametrize("mode", ["asymptotic", pytest.param("sub-Gaussian", marks=pytest.mark.slow)])
def test_no_more_rounds_are_needed_than_with_all_pairs(mode, capsys):
    settings, noise = MODES[mode]
    leader = AnytimeElimination(0.1, pairs="leader", **settings)
    times = {}
    for policy in (leader, replace(leader, pairs="all")):
        result = simulate(
            policy, world(0.3, noise=noise), horizon=50_000, replications=8, seed=3, stop_when_declared=True
        )
        assert np.all(result.correct)
        times[policy.pairs] = result.stop_times
    ratio = float(np.exp(np.mean(np.log(times["leader"] / times["all"]))))
    with capsys.disabled():
        print(f" rounds against leaders over all pairs, K = 300, {mode}: {ratio:.2f}")
    # The mean of eight log-ratios, 0.87 and 1.05 as measured, scatters by less than 0.1.
    assert ratio < 1.5
