"""SBE finds the best arm as often as it says, under shifts that keep to the paper's bound |ν_t| ≤ 1."""

import numpy as np
import pytest
from scipy.stats import binomtest

from orthobandit import ArmSet, Tally
from orthobandit.policy import SBE, PureExploration

RUNS = 400
SHIFTS = {
    "none": lambda t: np.zeros_like(t),
    "sine": lambda t: np.sin(2 * t),
    "alternating": lambda t: np.where(t % 3 == 1, -1.0, 1.0),
    "trend": lambda t: np.minimum(t / 1000, 1.0),
}


def instance(seed, count=6, width=3, gap=0.5):
    """Arms in the unit ball of which the first leads by at least the gap."""
    rng = np.random.default_rng(seed)
    theta = np.eye(width)[0]
    features = rng.standard_normal((count, width))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    features[:, 0] = np.minimum(features[:, 0], 1 - gap)
    features[0] = theta
    return ArmSet(features), theta


def run(policy, arms, theta, shift, seed):
    """Play all replications until each has declared an arm."""
    rng = np.random.default_rng(seed)
    state, start = policy.start(arms, (RUNS,)), 0
    while np.any(policy.decide(state).declared < 0):
        plan = policy.plan(state)
        n = int(plan.rounds.min())  # replications are in the same phase, or done
        nu = shift(np.arange(start, start + n, dtype=float))
        tallies = []
        for row, declared in zip(plan.probabilities, policy.decide(state).declared, strict=True):
            size = 0 if declared >= 0 else n
            drawn = rng.choice(len(arms), size=size, p=row)
            rewards = arms.features[drawn] @ theta + nu[:size] + rng.standard_normal(size)
            tallies.append(Tally.of(drawn, rewards, len(arms)))
        merged = Tally([t.counts for t in tallies], [t.sums for t in tallies], [t.squares for t in tallies])
        state, start = policy.observe(state, plan, merged), start + n
    return policy.decide(state).declared


@pytest.mark.statistical
@pytest.mark.parametrize("name", SHIFTS)
@pytest.mark.parametrize(
    "policy", [SBE(delta=0.1), PureExploration(epsilon=0.49, delta=0.1)], ids=["sbe", "explore"]
)
def test_wrong_declarations_are_rarer_than_delta(policy, name):
    arms, theta = instance(seed=3)
    wrong = int(np.count_nonzero(run(policy, arms, theta, SHIFTS[name], seed=11)))
    # False-alarm rate of this test if the error were exactly δ: below 1e-6.
    assert binomtest(wrong, RUNS, 0.1, alternative="greater").pvalue > 1e-6, f"{wrong} of {RUNS} wrong"
