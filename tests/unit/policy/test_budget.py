"""Fixed budget: phases, halving and the error estimate on small cases."""

import numpy as np
import pytest
from scipy.stats import norm

from orthobandit import ArmSet, FixedBudget, Tally, simulate
from orthobandit.design import contrast_design
from orthobandit.errors import ParameterError
from orthobandit.simulation import Gaussian, Sine
from orthobandit.simulation.instances import one_hot


@pytest.mark.parametrize(
    ("dimension", "budget", "ends"),
    [(1, 10, [10]), (2, 10, [10]), (3, 11, [5, 11]), (8, 100, [33, 66, 100]), (9, 103, [25, 51, 77, 103])],
)
def test_phases_are_equal_and_use_the_budget_exactly(dimension, budget, ends):
    arms = ArmSet(np.vstack([np.zeros(dimension), np.eye(dimension)]))
    assert FixedBudget(budget).phase_ends(arms).tolist() == ends


def test_there_are_no_more_phases_than_rounds():
    assert FixedBudget(2).phase_ends(ArmSet.one_hot(20)).tolist() == [1, 2]


def test_survivors_are_halved_by_dimension():
    policy, arms = FixedBudget(300), ArmSet.one_hot(9)  # r = 8: keep 4, 2, 1
    state, left = policy.start(arms), []
    rng = np.random.default_rng(0)
    while state.declared < 0:
        plan = policy.plan(state)
        drawn = rng.choice(9, int(plan.rounds), p=plan.probabilities / plan.probabilities.sum())
        rewards = drawn + rng.standard_normal(drawn.size)
        state = policy.observe(state, plan, Tally.of(drawn, rewards, 9))
        left.append(int(state.active.sum()))
    assert left == [4, 2, 1]
    assert state.declared == 8


def test_the_first_design_is_that_of_all_pairs():
    arms = ArmSet([[0.0, 0.0], [1.0, 0.2], [0.2, 1.0], [0.9, 0.9]])
    plan = FixedBudget(50).plan(FixedBudget(50).start(arms))
    assert np.array_equal(plan.probabilities, contrast_design(arms).probabilities)


def test_a_verdict_and_its_error_by_hand():
    # Two arms, p = ½: the difference is estimated by 2·(Σ₀ − Σ₁)/n, its variance by 4·(mean square)/n.
    policy, arms = FixedBudget(4), ArmSet.one_hot(2)
    state = policy.start(arms)
    state = policy.observe(state, policy.plan(state), Tally.of([0, 0, 1, 1], [2.0, 2.0, -2.0, -1.0], 2))
    assert state.declared == 0
    difference, variance = 3.5, 3.25
    # Beyond noise, differences have the variance 3.5² − 3.25; given both, they are shrunk by their ratio.
    kept = 1.0 - variance / difference**2
    believed = norm.sf(difference * np.sqrt(kept / variance))
    two_sided = 2 * norm.sf(difference / np.sqrt(variance))
    assert abs(believed - two_sided) < 0.005  # by chance; the larger of the two counts
    assert policy.error(state) == pytest.approx(two_sided, abs=0.015)  # 4096 draws
    assert policy.error(policy.start(arms)) == 0.5


def test_where_all_is_noise_any_arm_may_be_best():
    policy, arms, rng = FixedBudget(400), ArmSet.one_hot(5), np.random.default_rng(0)
    errors = []
    for _ in range(20):
        state = policy.start(arms)
        while state.declared < 0:
            plan = policy.plan(state)
            drawn = rng.choice(5, int(plan.rounds), p=plan.probabilities / plan.probabilities.sum())
            rewards = 1000.0 * rng.standard_normal(drawn.size)
            state = policy.observe(state, plan, Tally.of(drawn, plan.residuals(drawn, rewards), 5))
        errors.append(float(policy.error(state)))
    assert np.mean(errors) > 0.6  # 0.8 would be right


def test_the_error_sees_how_estimates_vary_together():
    # A third arm near the first: its own estimate is poor, the difference between the two is not.
    arms = ArmSet([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    policy, rng = FixedBudget(400), np.random.default_rng(5)
    state = policy.start(arms)
    while state.declared < 0:
        plan = policy.plan(state)
        drawn = rng.choice(3, int(plan.rounds), p=plan.probabilities / plan.probabilities.sum())
        rewards = np.array([0.0, 1.0, 1.3])[drawn] + rng.standard_normal(drawn.size)
        state = policy.observe(state, plan, Tally.of(drawn, rewards, 3))
    gram, moment = state.carried[2:, :2], state.carried[1, :2]
    estimate = arms.positions @ np.linalg.solve(gram, moment)
    cross = arms.positions[1] - arms.positions[2]
    z = abs(estimate[1] - estimate[2]) / np.sqrt(cross @ np.linalg.solve(gram, cross))
    assert policy.error(state) == pytest.approx(2 * norm.sf(z), abs=1e-6)


def test_far_losers_do_not_hide_a_near_tie():
    # Eight arms 5 behind made the prior so wide that z = 1.2 between the two leaders passed for certainty.
    arms, rng = ArmSet.one_hot(10), np.random.default_rng(2)
    policy = FixedBudget(1000)
    means, errors = np.array([5.0, 5.0] + [0.0] * 8), []
    for _ in range(40):
        state = policy.start(arms)
        while state.declared < 0:
            plan = policy.plan(state)
            drawn = rng.choice(10, int(plan.rounds), p=plan.probabilities / plan.probabilities.sum())
            rewards = means[drawn] + rng.standard_normal(drawn.size)
            state = policy.observe(state, plan, Tally.of(drawn, plan.residuals(drawn, rewards), 10))
        assert state.declared < 2
        errors.append(float(policy.error(state)))
    # min(½, U) of a uniform U: 3/8 on average with a standard deviation of .16; the old estimate had 1/4.
    assert np.mean(errors) == pytest.approx(0.375, abs=4 * 0.16 / np.sqrt(40))


def test_a_level_of_the_estimates_adds_no_noise():
    # Residuals are taken from estimates whose level is arbitrary; adding it back must not scatter gaps.
    arms, policy = ArmSet.one_hot(4), FixedBudget(40)  # r = 3: two phases, two arms in the second
    state, means = policy.start(arms), np.array([50.0, 51.0, 40.0, 30.0])
    counts = np.array([6, 6, 4, 4])
    state = policy.observe(state, policy.plan(state), Tally(counts, counts * means, counts * means**2))
    assert state.phase == 2
    gaps = state.carried[0] - state.carried[0].max()
    # Residuals of 0 confirm the estimates, however unevenly arms are drawn.
    counts = np.where(state.probabilities > 0, 1, 0)
    counts[np.argmax(counts)] += 20 - counts.sum()
    after = policy.observe(state, policy.plan(state), Tally(counts, np.zeros(4), np.ones(4)))
    assert after.carried[0] - after.carried[0].max() == pytest.approx(gaps, abs=1e-6)


def test_nothing_is_claimed_and_the_mode_says_so():
    given = one_hot([0.5, 0.0, 0.1], shift=Sine(), noise=Gaussian(0.3))
    result = simulate(FixedBudget(200), given, horizon=200, replications=5, seed=0)
    assert result.stop_times.tolist() == [200] * 5
    assert result.decision.certainty == 0
    assert np.all(np.isinf(result.decision.epsilon))
    assert "estimates" in result.decision.mode


def test_a_budget_is_a_whole_number():
    with pytest.raises(ParameterError, match="budget=0"):
        FixedBudget(0)
