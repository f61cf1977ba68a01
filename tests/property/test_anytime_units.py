"""What anytime elimination plans and claims has no unit: rare rewards of 1 or of 512 make the same runs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orthobandit import AnytimeElimination, ArmSet, Asymptotic, Bounded, SubGaussian, Tally

MEANS = np.array([0.04, 0.01, 0.01, 0.02])
MODES = {
    "bounded": lambda unit: Bounded(0.0, unit),
    "declared noise": lambda unit: SubGaussian(0.0, unit, 0.5 * unit),
    "asymptotic": lambda unit: Asymptotic(),
}
# Powers of two, so that runs in both units round alike and draw the same arms.
scales = st.integers(-9, 12).filter(bool).map(lambda exponent: 2.0**exponent)


def played(policy, unit, seed, batches=25):
    """Return plans and decisions of a run with rare rewards of `unit`, told of a whole plan at a time."""
    rng = np.random.default_rng(seed)
    arms = ArmSet.one_hot(len(MEANS))
    state = policy.start(arms)
    seen = []
    for _ in range(batches):
        plan = policy.plan(state)
        rounds = int(plan.rounds)
        drawn = rng.choice(len(arms), size=rounds, p=plan.probabilities)
        rewards = unit * (rng.random(rounds) < MEANS[drawn])
        residuals = plan.residuals(drawn, rewards, np.full(rounds, 0.0))
        state = policy.observe(state, plan, Tally.of(drawn, residuals, len(arms)))
        seen.append((plan, policy.decide(state)))
        if seen[-1][1].declared >= 0:
            break
    return seen


@pytest.mark.parametrize("pairs", ["all", "leader"])
@pytest.mark.parametrize("mode", MODES)
@given(unit=scales, seed=st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_rare_rewards_may_have_any_unit(mode, pairs, unit, seed):
    ones = played(AnytimeElimination(confidence=MODES[mode](1.0), pairs=pairs), 1.0, seed)
    others = played(AnytimeElimination(confidence=MODES[mode](unit), pairs=pairs), unit, seed)
    assert len(ones) == len(others)
    for (plan, decision), (other_plan, other) in zip(ones, others, strict=True):
        assert plan.rounds == other_plan.rounds
        assert other_plan.probabilities == pytest.approx(plan.probabilities, rel=1e-6)
        assert other.active.tolist() == decision.active.tolist()
        assert (other.leader, other.declared) == (decision.leader, decision.declared)
        assert other.epsilon == pytest.approx(decision.epsilon * unit, rel=1e-6)


def test_runs_begin_without_a_reward():
    # Else the test above would not be about rare rewards.
    policy = AnytimeElimination(confidence=Bounded(0.0, 1.0))
    plans = [plan for plan, _ in played(policy, 1.0, seed=1)]
    assert any(
        not np.ptp(later.centre.values) and later.number > plan.number for plan, later in pairwise(plans)
    )
