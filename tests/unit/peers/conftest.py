"""What tests of policies that plan every round share."""

import numpy as np
import pytest

from orthobandit import Tally


@pytest.fixture
def tell():
    """Observe one round of a single run."""

    def observe(policy, state, arm, reward):
        tally = Tally.of([arm], [reward], len(state.arms))
        return policy.observe(state, policy.plan(state), tally)

    return observe


@pytest.fixture
def played(tell):
    """Play rounds of a single run; yield (probabilities, state after, arm, reward) of each."""

    def rounds(policy, arms, theta, count, shift=np.sin, seed=0):
        rng = np.random.default_rng(seed)
        state = policy.start(arms, seed=seed, replications=np.asarray(0))
        for t in range(count):
            probabilities = policy.plan(state).probabilities
            arm = int(rng.choice(len(arms), p=probabilities / probabilities.sum()))
            reward = float(arms.features[arm] @ theta + shift(t) + rng.standard_normal())
            state = tell(policy, state, arm, reward)
            yield probabilities, state, arm, reward

    return rounds
