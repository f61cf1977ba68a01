"""Semiparametric Thompson sampling: frequencies, updates and randomness."""

import math

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.policy import SemiparametricTS

RNG = np.random.default_rng(8)
ARMS = ArmSet(RNG.standard_normal((6, 3)))
THETA = RNG.standard_normal(3)


def test_frequencies_follow_the_posterior_of_the_published_updates(played):
    policy = SemiparametricTS(horizon=200, scale=0.5, draws=100_000)
    X, B, y = ARMS.features, np.eye(3), np.zeros(3)
    rng = np.random.default_rng(1)
    for t, (p, _, arm, reward) in enumerate(played(policy, ARMS, THETA, 40)):
        if t % 10 == 0:
            v = 0.5 * math.sqrt(3 * math.log(200))
            drawn = rng.multivariate_normal(np.linalg.solve(B, y), v**2 * np.linalg.inv(B), size=100_000)
            wanted = np.bincount(np.argmax(drawn @ X.T, axis=1), minlength=6) / 100_000
            assert np.all(np.abs(p - wanted) <= 5 * np.sqrt(2 * wanted / 100_000) + 1e-4)
        mean = p @ X
        covariance = (X - mean).T @ ((X - mean) * p[:, None])
        centred = X[arm] - mean
        B += np.outer(centred, centred) + covariance
        y += 2 * centred * reward


def test_memory_holds_the_sums_of_the_paper_in_hull_coordinates(played):
    policy = SemiparametricTS(horizon=50)
    gram, moment = np.zeros((3, 3)), np.zeros(3)
    for p, state, arm, reward in played(policy, ARMS, THETA, 20):
        centred = ARMS.positions - p @ ARMS.positions
        gram += np.outer(centred[arm], centred[arm]) + centred.T @ (centred * p[:, None])
        moment += 2 * centred[arm] * reward
        assert state.memory.gram == pytest.approx(gram, abs=1e-12)
        assert state.memory.moment == pytest.approx(moment, abs=1e-12)


def test_the_released_rule_counts_twice_and_subtracts_the_level(played):
    policy = SemiparametricTS(horizon=50, rule="released")
    gram, moment = np.zeros((3, 3)), np.zeros(3)
    lifted, rewards = np.eye(4), np.zeros(4)
    for p, state, arm, reward in played(policy, ARMS, THETA, 20):
        level = np.linalg.solve(lifted, rewards)[0]
        z = np.concatenate([[1.0], ARMS.features[arm]])
        lifted += np.outer(z, z)
        rewards += z * reward
        centred = ARMS.positions - p @ ARMS.positions
        gram += 2 * np.outer(centred[arm], centred[arm]) + 2 * centred.T @ (centred * p[:, None])
        moment += 4 * centred[arm] * (reward - level)
        assert state.memory.gram == pytest.approx(gram, abs=1e-12)
        assert state.memory.moment == pytest.approx(moment, abs=1e-11)
    assert abs(level) > 0.01, "no level was ever subtracted"


def test_the_printed_rule_remembers_no_level():
    state = SemiparametricTS(horizon=50).start(ARMS, (2,))
    assert (state.memory.level_gram.size, state.memory.level_moment.size) == (0, 0)
    with pytest.raises(ParameterError, match="did you mean 'released'"):
        SemiparametricTS(horizon=50, rule="release")


@pytest.mark.parametrize("draws", [1, 7, 128, 1000])
def test_probabilities_are_frequencies_of_that_many_draws(draws):
    policy = SemiparametricTS(horizon=50, draws=draws)
    p = policy.plan(policy.start(ARMS)).probabilities
    assert p * draws == pytest.approx(np.round(p * draws), abs=1e-9)
    assert p.sum() == pytest.approx(1.0)


def test_draws_belong_to_seed_replication_and_round(tell):
    policy = SemiparametricTS(horizon=50)
    first = policy.start(ARMS, (3,), seed=1)
    assert len({tuple(row) for row in policy.plan(first).probabilities.tolist()}) == 3
    again = policy.start(ARMS, (), seed=1, replications=np.asarray(2))
    assert np.array_equal(policy.plan(again).probabilities, policy.plan(first).probabilities[2])
    other = policy.start(ARMS, (), seed=2, replications=np.asarray(2))
    assert not np.array_equal(policy.plan(other).probabilities, policy.plan(again).probabilities)
    # A reward of 0 leaves θ̂ = 0; the next plan differs by its draws all the same.
    arms = ArmSet([[-1.0], [1.0]])
    state = policy.start(arms)
    later = tell(policy, state, int(np.argmax(policy.plan(state).probabilities)), 0.0)
    assert not np.array_equal(policy.plan(later).probabilities, policy.plan(state).probabilities)


def test_the_most_played_arm_leads():
    policy = SemiparametricTS(horizon=50)
    state = policy.start(ARMS, (4,))
    decision = policy.decide(state)
    assert np.array_equal(decision.leader, np.argmax(state.probabilities, axis=-1))
    assert decision.certainty == 0.0
    assert decision.declared.tolist() == [-1] * 4
