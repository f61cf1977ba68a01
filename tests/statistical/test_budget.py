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


def test_the_error_estimate_is_neither_twice_too_hopeful_nor_thrice_too_gloomy():
    policy, runs, budget = FixedBudget(1200), 300, 1200
    player = Player(ENVIRONMENT, np.array([budget]), 5, np.arange(runs), policy.baseline)
    state = policy.start(ENVIRONMENT.arms, (runs,))
    while np.any(state.declared < 0):
        plan = policy.plan(state)
        rounds = np.minimum(plan.rounds, budget)
        state = policy.observe(state, plan, player.play(plan.probabilities, rounds, plan.centre))
    claimed = float(policy.error(state).mean())
    mistakes = int(np.count_nonzero(state.declared != ENVIRONMENT.best))
    # A correct claim of at most twice the mean estimate fails here with probability below 10⁻⁶.
    assert binomtest(mistakes, runs, min(2 * claimed, 1.0), alternative="greater").pvalue > 1e-6
    assert binomtest(mistakes, runs, claimed / 3, alternative="less").pvalue > 1e-6
