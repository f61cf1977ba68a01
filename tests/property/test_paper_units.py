"""What SBE and pure exploration claim has no unit: other units of features, θ and rewards change nothing."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobandit import ArmSet, Tally
from orthobandit.policy import SBE, PureExploration

S, N, SIGMA = 1.5, 0.7, 0.4
POLICIES = {
    "proven": SBE(schedule="theory", C2=96, theta_bound=S, shift_bound=N, noise=SIGMA),
    "experiments": SBE(theta_bound=S, shift_bound=N, noise=SIGMA),
    "explore": PureExploration(epsilon=0.5, theta_bound=S, shift_bound=N, noise=SIGMA),
    "explore for long": PureExploration(rounds=10**6, theta_bound=S, shift_bound=N, noise=SIGMA),
}
# Powers of two, so that both runs round alike and draw the same arms.
scales = st.integers(-12, 12).map(lambda exponent: 2.0**exponent)


def played(policy, arms, rewards, seed, plans=4):
    """Return decisions and lengths of a few plans; mean rewards (K,) come with noise of the same size."""
    rng = np.random.default_rng(seed)
    state, seen = policy.start(arms), []
    for _ in range(plans):
        decision = policy.decide(state)
        if decision.declared >= 0:
            break
        plan = policy.plan(state)
        counts = rng.multinomial(int(plan.rounds), plan.probabilities / plan.probabilities.sum())
        noisy = rewards * (1.0 + rng.uniform(-0.1, 0.1, len(rewards)))
        state = policy.observe(state, plan, Tally(counts, counts * noisy, counts * noisy**2))
        seen.append((int(plan.rounds), policy.decide(state)))
    return seen


@pytest.mark.parametrize("name", POLICIES)
@given(feature=scales, reward=scales, seed=st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_claims_do_not_depend_on_units(name, feature, reward, seed):
    policy, rng = POLICIES[name], np.random.default_rng(seed)
    features = rng.standard_normal((5, 2))
    means = features @ rng.standard_normal(2)
    moved = replace(policy, theta_bound=S * reward / feature, shift_bound=N * reward, noise=SIGMA * reward)
    if isinstance(policy, PureExploration) and policy.epsilon is not None:
        moved = replace(moved, epsilon=policy.epsilon * reward)
    one = played(policy, ArmSet(features), means, seed)
    other = played(moved, ArmSet(features * feature), means * reward, seed)
    assert len(one) == len(other) > 0
    for (rounds, first), (moved_rounds, second) in zip(one, other, strict=True):
        assert rounds == moved_rounds
        assert (first.leader, first.declared) == (second.leader, second.declared)
        assert first.active.tolist() == second.active.tolist()
        assert second.epsilon == pytest.approx(first.epsilon * reward, rel=1e-6)
        assert first.certainty == second.certainty


def test_features_a_thirtieth_as_large_change_no_claim():
    # The case that broke: ‖θ‖ is 33, the ridge outweighs all that was seen, and no arm looks worse.
    features, theta = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]), np.array([0.9, 0.3])
    bounds = {"schedule": "theory", "C2": 96, "shift_bound": 1.0}
    small = played(SBE(theta_bound=1.0 / 0.03, **bounds), ArmSet(0.03 * features), features @ theta, seed=1)
    usual = played(SBE(theta_bound=1.0, **bounds), ArmSet(features), features @ theta, seed=1)
    assert [rounds for rounds, _ in small] == [rounds for rounds, _ in usual]
    for (_, first), (_, second) in zip(small, usual, strict=True):
        assert first.active.tolist() == second.active.tolist()
        assert first.epsilon == pytest.approx(second.epsilon, rel=1e-9)
    # Without bounds nothing is claimed, whatever the units.
    for _, decision in played(SBE(), ArmSet(0.03 * features), features @ theta, seed=1):
        assert (decision.certainty, decision.epsilon) == (0.0, np.inf)
