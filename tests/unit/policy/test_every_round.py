"""The compiled steps make the plans that the protocol makes, whatever drives them."""

from dataclasses import replace

import numpy as np
import pytest

from orthobandit import ArmSet, Tally
from orthobandit.policy import (
    BOSE,
    FOREVER,
    UCB1,
    ActionCentredTS,
    FarthestPair,
    LinTS,
    LinUCB,
    MABThompson,
    SemiparametricTS,
)

ARMS = ArmSet(np.random.default_rng(10).standard_normal((7, 4)) / 2)
ROUNDS, REPLICATIONS = 300, 3

POLICIES = {
    "bose": BOSE(horizon=300, scale=0.5, ridge=2.0),
    "bose uniform": BOSE(horizon=300, scale=0.2, distribution="uniform"),
    "bose settles": BOSE(horizon=300, scale=0.1, ridge=0.1),
    "farthest pair": FarthestPair(horizon=300, scale=0.2),
    "semiparametric": SemiparametricTS(horizon=300, draws=100),
    "action centred": ActionCentredTS(),
    "linucb": LinUCB(),
    "lints": LinTS(),
    "ucb1": UCB1(),
    "gaussian": MABThompson(),
    "beta": MABThompson(posterior="beta", low=-40.0, high=40.0),
}


def drive(plan_into, observe, settings, packed, positions, noise, plans):
    """Play all rounds of all replications, one replication after another."""
    for i in range(packed.rounds.size):
        for t in range(positions.shape[1]):
            plans[i, t] = packed.probabilities[i]
            arm, reached = 0, packed.probabilities[i, 0]
            while reached <= positions[i, t] and arm < packed.probabilities.shape[1] - 1:
                arm += 1
                reached += packed.probabilities[i, arm]
            if packed.rounds[i] == 1:
                reward = 0.3 * arm + noise[i, t]
                observe(settings, packed.memory, i, packed.probabilities[i], arm, reward)
                packed.rounds[i] = plan_into(settings, packed.memory, i, packed.probabilities[i])


@pytest.mark.parametrize("name", POLICIES)
def test_a_compiled_run_equals_a_run_through_the_protocol(name):
    policy = POLICIES[name]
    rng = np.random.default_rng(2)
    positions, noise = rng.random((REPLICATIONS, ROUNDS)), rng.standard_normal((REPLICATIONS, ROUNDS))
    state = policy.start(ARMS, (REPLICATIONS,), seed=9)
    packed, steps = policy.pack(state), policy.compiled(ARMS)
    plans = np.zeros((REPLICATIONS, ROUNDS, len(ARMS)))
    drive(steps.plan_into, steps.observe, steps.settings, packed, positions, noise, plans)
    for t in range(ROUNDS):
        plan = policy.plan(state)
        assert np.array_equal(plan.probabilities, plans[:, t])
        below = np.cumsum(plan.probabilities, axis=1) <= positions[:, t, np.newaxis]
        drawn = np.minimum(below.sum(axis=1), len(ARMS) - 1)
        counts = np.eye(len(ARMS), dtype=np.int64)[drawn]
        sums = counts * (0.3 * drawn + noise[:, t])[:, np.newaxis]
        state = policy.observe(state, plan, Tally(counts, sums, sums**2))
    # Whoever drives the compiled steps counts the plans.
    after = replace(policy.unpack(ARMS, packed, (REPLICATIONS,)), number=state.number)
    assert policy.dump(after) == policy.dump(state)


def test_settled_replications_are_left_alone():
    policy = POLICIES["bose settles"]
    rng = np.random.default_rng(2)
    packed, steps = policy.pack(policy.start(ARMS, (4,))), policy.compiled(ARMS)
    noise = rng.standard_normal((4, 2000))
    plans = np.zeros((4, 2000, len(ARMS)))
    drive(steps.plan_into, steps.observe, steps.settings, packed, rng.random((4, 2000)), noise, plans)
    assert np.all(packed.rounds == FOREVER)
    assert np.all(packed.memory.step < 2000)


def test_packing_copies():
    policy = POLICIES["linucb"]
    state = policy.start(ARMS, (2, 3))
    packed = policy.pack(state)
    assert packed.probabilities.shape == (6, 7)
    assert packed.memory.inner.shape == (6, 7, 7)
    packed.memory.inner[:] = 0.0
    assert state.memory.inner.any()
    assert policy.unpack(ARMS, policy.pack(state), (2, 3)).memory.inner.shape == (2, 3, 7, 7)
