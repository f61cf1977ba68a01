"""LinUCB and linear Thompson sampling against slow and obvious computations."""

import math

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.policy import LinTS, LinUCB

RNG = np.random.default_rng(4)
ARMS = ArmSet(RNG.standard_normal((7, 3)) / 2)
THETA = RNG.standard_normal(3)


def test_linucb_plays_the_largest_upper_bound(played):
    policy = LinUCB(delta=0.1, ridge=2.0, norm=1.5, noise=0.7, scale=0.5)
    X, V, b = ARMS.features, 2.0 * np.eye(3), np.zeros(3)
    arms_played = set()
    for p, state, arm, reward in played(policy, ARMS, THETA, 600, shift=np.zeros_like):
        theta = np.linalg.solve(V, b)
        growth = np.log(np.linalg.det(V) / 2.0**3)
        beta = 0.7 * math.sqrt(2 * math.log(10) + growth) + math.sqrt(2.0) * 1.5
        norms = np.sqrt(np.einsum("ij,jk,ik->i", X, np.linalg.inv(V), X))
        bounds = X @ theta + 0.5 * beta * norms
        assert p[np.argmax(bounds)] == 1.0
        V += np.outer(X[arm], X[arm])
        b += X[arm] * reward
        scores = X @ np.linalg.solve(V, b)
        assert state.memory.scores == pytest.approx(scores, abs=1e-9)
        assert policy.decide(state).leader == np.argmax(scores)
        arms_played.add(arm)
    assert len(arms_played) > 2


@pytest.mark.parametrize("spread", [None, 0.8])
def test_lints_draws_from_the_posterior(played, spread):
    policy = LinTS(spread=spread, delta=0.2, noise=0.5, ridge=1.5)
    *_, (_, state, _, _) = played(policy, ARMS, THETA, 12)
    runs = 4000
    X, V, b = ARMS.features, state.memory.gram + 1.5 * np.eye(3), state.memory.moment
    v = spread or 0.5 * math.sqrt(9 * 3 * math.log(13 / 0.2))
    drawn = np.random.default_rng(0).multivariate_normal(
        np.linalg.solve(V, b), v**2 * np.linalg.inv(V), size=100_000
    )
    wanted = np.bincount(np.argmax(drawn @ X.T, axis=1), minlength=7) / 100_000
    packed, steps = policy.pack(state), policy.compiled(ARMS)
    wins = np.zeros(7)
    for key in range(runs):
        packed.memory.key[0] = key
        assert steps.plan_into(steps.settings, packed.memory, 0, packed.probabilities[0]) == 1
        wins += packed.probabilities[0]
    assert np.all(np.abs(wins / runs - wanted) <= 5 * np.sqrt(wanted / runs) + 1e-3)


def test_lints_leader_is_the_largest_estimate(played):
    policy = LinTS(spread=1.0)
    V, b = np.eye(3), np.zeros(3)
    for _, state, arm, reward in played(policy, ARMS, THETA, 30):
        V += np.outer(ARMS.features[arm], ARMS.features[arm])
        b += ARMS.features[arm] * reward
        assert policy.decide(state).leader == np.argmax(ARMS.features @ np.linalg.solve(V, b))
