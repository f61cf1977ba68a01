"""UCB1, multi-armed Thompson sampling and uniform allocation."""

import math

import numpy as np
import pytest
from scipy import stats

from orthobandit import ArmSet, Tally
from orthobandit.errors import ParameterError, RewardError
from orthobandit.policy import FOREVER, UCB1, MABThompson, UniformAllocation

ARMS = ArmSet.one_hot(4)
THETA = np.array([0.1, 0.5, 0.4, 0.0])


def test_ucb1_plays_every_arm_once_and_then_the_largest_bound(played):
    counts, sums = np.zeros(4), np.zeros(4)
    policy = UCB1(scale=0.5)
    for t, (p, state, arm, reward) in enumerate(played(policy, ARMS, THETA, 300)):
        if t < 4:
            assert arm == t
        else:
            bounds = sums / counts + 0.5 * np.sqrt(2 * math.log(t) / counts)
            assert p[np.argmax(bounds)] == 1.0
        counts[arm] += 1
        sums[arm] += reward
        if t >= 4:
            assert policy.decide(state).leader == np.argmax(sums / counts)


@pytest.mark.parametrize("posterior", ["gaussian", "beta"])
def test_thompson_draws_from_the_posterior(tell, posterior):
    policy = MABThompson(posterior=posterior, noise=0.6, low=-1.0, high=3.0)
    state = policy.start(ArmSet.one_hot(2))
    for _ in range(15):
        arm = int(np.argmax(policy.plan(state).probabilities))
        state = tell(policy, state, arm, [0.5, 1.5][arm])
    n, s = state.memory.counts, state.memory.sums
    if posterior == "gaussian":
        spread = 0.6 * math.sqrt(np.sum(1 / (n + 1)))
        wanted = stats.norm.cdf((s[0] / (n[0] + 1) - s[1] / (n[1] + 1)) / spread)
    else:
        good = (s + n) / 4
        drawn = np.random.default_rng(0).beta(1 + good, 1 + n - good, size=(400_000, 2))
        wanted = np.mean(drawn[:, 0] > drawn[:, 1])
    packed, steps = policy.pack(state), policy.compiled(state.arms)
    runs, wins = 8000, 0.0
    for key in range(runs):
        packed.memory.key[0] = key
        steps.plan_into(steps.settings, packed.memory, 0, packed.probabilities[0])
        wins += packed.probabilities[0, 0]
    assert abs(wins / runs - wanted) < 5 * math.sqrt(wanted * (1 - wanted) / runs) + 1e-3


@pytest.mark.parametrize(("posterior", "leader"), [("gaussian", 1), ("beta", 1)])
def test_thompson_leader_has_the_largest_posterior_mean(tell, posterior, leader):
    policy = MABThompson(posterior=posterior, low=0.0, high=2.0)
    state = policy.start(ArmSet.one_hot(2))
    for _ in range(30):
        arm = int(np.argmax(policy.plan(state).probabilities))
        state = tell(policy, state, arm, [0.2, 1.8][arm])
    assert policy.decide(state).leader == leader


def test_a_reward_outside_the_range_of_the_beta_posterior_is_refused(tell):
    policy = MABThompson(posterior="beta")
    state = policy.start(ArmSet.one_hot(2), seed=1)
    arm = int(np.argmax(policy.plan(state).probabilities))
    before = policy.dump(state)
    with pytest.raises(RewardError, match=r"reward 1\.5"):
        tell(policy, state, arm, 1.5)
    assert policy.dump(state) == before
    assert policy.dump(tell(policy, state, arm, 1.0)) != before


def test_uniform_allocates_for_ever_and_leads_with_the_largest_mean():
    policy = UniformAllocation()
    state = policy.start(ARMS, (2,))
    plan = policy.plan(state)
    assert np.all(plan.probabilities == 0.25)
    assert np.all(plan.rounds == FOREVER)
    tally = Tally([[1, 2, 0, 0], [0, 0, 0, 0]], [[5.0, 4.0, 0, 0], [0] * 4], [[25.0, 8.0, 0, 0], [0] * 4])
    state = policy.observe(policy.observe(state, plan, tally), plan, tally)
    decision = policy.decide(state)
    assert decision.leader.tolist() == [0, 0]
    assert decision.declared.tolist() == [-1, -1]
    assert state.tally.rounds.tolist() == [6, 0]


def test_a_uniform_state_of_other_arms_is_refused():
    data = UniformAllocation().dump(UniformAllocation().start(ARMS))
    with pytest.raises(ParameterError, match="other arms"):
        UniformAllocation().load(ArmSet.one_hot(2), data)
    with pytest.raises(ParameterError, match="no entry 'tally'"):
        UniformAllocation().load(ARMS, {"format": data["format"]})
