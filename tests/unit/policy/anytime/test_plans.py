"""Where anytime elimination plays next: importance of pairs, and what follows for the rounds."""

import numpy as np

from orthobandit import simulate
from orthobandit.policy import AnytimeElimination
from orthobandit.policy.anytime.plans import Wanted
from orthobandit.simulation import LogAlternating
from orthobandit.simulation.instances import exact_gap

OTHERS = np.array([1, 2])


def test_a_pair_weighs_as_the_rounds_it_takes():
    wanted = Wanted.of(0, OTHERS, np.array([0.1, 0.4]), np.array([-0.05, -0.3]))
    np.testing.assert_allclose(wanted.weights, [1.0, 1.0 / 16.0])
    assert wanted.pairs.tolist() == [[0, 1], [0, 2]]


def test_near_ties_wait_until_no_arm_may_be_far_better():
    # Arm 1 is tied with the leader and well known; arm 2 seems worse but may be better by 3.
    wanted = Wanted.of(0, OTHERS, np.array([0.0, 0.4]), np.array([0.02, 3.0]))
    assert wanted.weights.min() > 0.5


def test_pairs_without_evidence_weigh_by_their_gaps():
    wanted = Wanted.of(0, OTHERS, np.array([0.1, 0.2]), np.full(2, np.inf))
    np.testing.assert_allclose(wanted.weights, [1.0, 0.25])


def test_a_wrong_leader_with_a_rival_does_not_hide_the_best_arm():
    # In these runs the pilot favours two arms that are nearly tied and a long way from the best.
    for seed, first in ((64, 3), (54, 1)):
        environment = exact_gap(20, 30, 0.5, seed=seed, shift=LogAlternating())
        policy = AnytimeElimination(0.05, goal="earn", pilot=420)
        result = simulate(policy, environment, horizon=20_000, replications=1, seed=900 + seed, first=first)
        assert result.decision.declared[0] == environment.best
        assert result.regret[0, -1] < 2500
