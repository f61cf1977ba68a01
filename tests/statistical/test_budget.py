"""Halving finds the best arm more often than one design for all arms, and its error estimate is honest."""

import numpy as np
import pytest
from scipy.stats import binomtest, fisher_exact

from orthobandit import FixedBudget, PureExploration, simulate
from orthobandit.simulation import Sine
from orthobandit.simulation.instances import exact_gap, one_hot
from orthobandit.simulation.player import Player

pytestmark = pytest.mark.statistical

ENVIRONMENT = exact_gap(20, 30, 0.3, seed=0, shift=Sine())


def wrong(policy, environment, rounds, runs=400):
    result = simulate(policy, environment, horizon=rounds, replications=runs, seed=3)
    return int(np.count_nonzero(result.decision.leader != environment.best))


@pytest.mark.parametrize(
    ("environment", "rounds"), [(ENVIRONMENT, 2000), (one_hot([0.3, *[0.0] * 15], shift=Sine()), 2000)]
)
def test_halving_is_wrong_less_often_than_one_design_for_all_arms(environment, rounds):
    ours = wrong(FixedBudget(rounds), environment, rounds)
    theirs = wrong(PureExploration(rounds=rounds, design="centred"), environment, rounds)
    # By Fisher's exact test the difference is not chance; were there none, this would fail almost surely.
    assert fisher_exact([[ours, 400 - ours], [theirs, 400 - theirs]], alternative="less")[1] < 1e-3


def declared_and_claimed(environment, budget, runs):
    """Return which runs are wrong and what `error` says of each."""
    policy = FixedBudget(budget)
    player = Player(environment, np.array([budget]), 5, np.arange(runs), policy.baseline)
    state = policy.start(environment.arms, (runs,))
    while np.any(state.declared < 0):
        plan = policy.plan(state)
        rounds = np.minimum(plan.rounds, budget)
        state = policy.observe(state, plan, player.play(plan.probabilities, rounds, plan.centre))
    return state.declared != environment.best, policy.error(state)


def test_the_error_estimate_is_neither_twice_too_hopeful_nor_thrice_too_gloomy():
    is_wrong, errors = declared_and_claimed(ENVIRONMENT, 1200, runs=300)
    claimed, mistakes = float(errors.mean()), int(is_wrong.sum())
    # A correct claim of at most twice the mean estimate fails here with probability below 10⁻⁶.
    assert binomtest(mistakes, 300, min(2 * claimed, 1.0), alternative="greater").pvalue > 1e-6
    assert binomtest(mistakes, 300, claimed / 3, alternative="less").pvalue > 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("means", "budget"),
    [
        ([1.02, 1.0, *[0.0] * 8], 1000),
        ([5.03, 5.0, *[0.0] * 8], 1000),
        ([0.1, 0.0], 400),
        (np.linspace(0.0, 1.0, 10), 1000),
        ([0.001, *[0.0] * 9], 1000),
        ([0.5, *[0.0] * 9], 1500),
    ],
    ids=["near tie", "near tie, far losers", "two arms", "spaced", "all but equal", "one clear best"],
)
def test_small_estimates_are_rarely_wrong_and_means_are_not_far_below_the_share_of_mistakes(means, budget):
    runs = 500
    is_wrong, errors = declared_and_claimed(one_hot(means, shift=Sine()), budget, runs)
    # "Wrong, and said to be below α" in at most a share α of runs; false alarms below 10⁻⁶ at that share.
    for level in (0.05, 0.2):
        both = int(np.sum(is_wrong & (errors < level)))
        assert binomtest(both, runs, level, alternative="greater").pvalue > 1e-6, (level, both)
    # At a tie the mean estimate is ⅜ where ½ are wrong; nowhere less than ¾ of the share that is.
    mistakes, claimed = int(is_wrong.sum()), float(errors.mean()) / 0.75
    assert binomtest(mistakes, runs, min(claimed, 1.0), alternative="greater").pvalue > 1e-6, (
        mistakes,
        claimed,
    )
