"""What SBE must not depend on."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobandit import ArmSet, Tally
from orthobandit.policy import SBE


def survivors(policy, features, means):
    """Survivors after each of three phases with rewards without noise and proportional counts."""
    arms = ArmSet(features)
    state, history = policy.start(arms), []
    for _ in range(3):
        plan = policy.plan(state)
        if policy.decide(state).declared >= 0:
            break
        counts = np.round(plan.probabilities * int(plan.rounds)).astype(int)
        counts[np.argmax(counts)] += int(plan.rounds) - counts.sum()
        state = policy.observe(state, plan, Tally(counts, counts * means, counts * means**2))
        history.append(policy.decide(state).active)
    return np.array(history)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(2, 8), width=st.integers(1, 4))
def test_survivors_follow_the_arms_when_they_are_moved_or_relabelled(seed, count, width):
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((count, width))
    means = features @ rng.standard_normal(width)
    policy = SBE(design="centred", scale=20.0)
    plain = survivors(policy, features, means)
    moved = survivors(policy, features + rng.standard_normal(width), means)
    order = rng.permutation(count)
    relabelled = survivors(policy, features[order], means[order])
    turned = survivors(policy, features @ np.linalg.qr(rng.standard_normal((width, width)))[0], means)
    assert np.array_equal(moved, plain)
    assert np.array_equal(relabelled, plain[:, order])
    assert np.array_equal(turned, plain)
    # Rewards without noise: the best arm survives.
    assert plain[:, np.argmax(means)].all()
