"""Fixed budget: phases, halving and the p-value on small cases."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from orthobandit import ArmSet, FixedBudget, Tally, simulate
from orthobandit.design import contrast_design
from orthobandit.errors import ParameterError
from orthobandit.simulation import Gaussian, Sine, one_hot


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


def test_a_verdict_and_its_p_value_by_hand():
    # Two arms, p = ½: the difference is estimated by 2·(Σ₀ − Σ₁)/n, its variance by 4·(mean square)/n.
    policy, arms = FixedBudget(4), ArmSet.one_hot(2)
    state = policy.start(arms)
    assert policy.p_value(state) == 1.0
    state = policy.observe(state, policy.plan(state), Tally.of([0, 0, 1, 1], [2.0, 2.0, -2.0, -1.0], 2))
    assert state.declared == 0
    assert policy.p_value(state) == pytest.approx(2 * norm.sf(3.5 / np.sqrt(3.25)), rel=1e-6)


def test_arms_without_a_difference_cannot_be_wrong():
    policy = FixedBudget(10)
    assert policy.p_value(policy.start(ArmSet([[1.0], [1.0]]), (3,))).tolist() == [0.0, 0.0, 0.0]


def judged(means, gram_scale=1.0, leader=0):
    """Return the p-value of a one-hot state whose estimates are `means`, every lead of standard error 1."""
    means = np.asarray(means, dtype=float)
    arms = ArmSet.one_hot(len(means))
    r = arms.dimension
    # Estimates of variance ½ each, so that every difference has variance 1: V⁻¹ = ½·(positions' pinv)².
    inverse = np.linalg.pinv(arms.positions - arms.positions.mean(axis=0))
    gram = np.linalg.inv(inverse @ inverse.T / 2.0) * gram_scale
    theta = inverse @ (means - means.mean())
    state = FixedBudget(100).start(arms)
    carried = np.zeros_like(state.carried)
    carried[1, :r] = gram @ theta
    carried[2:, :r] = gram
    state = replace(state, carried=carried, leader=np.asarray(leader))
    return float(FixedBudget(100).p_value(state))


def test_every_rival_counts_by_how_near_it_is():
    # Up to four arms the factor is 2, since 1 + 1/2 + 1/3 is less; beyond, the harmonic number.
    assert judged([2.0, 0.0, -1.0]) == pytest.approx(2 * (norm.sf(2.0) + norm.sf(3.0)), rel=1e-5)
    assert judged([3.0, 0.0, 0.0, 0.0, 0.0]) == pytest.approx((25 / 12) * 4 * norm.sf(3.0), rel=1e-5)
    # Arms far behind take nothing from a near tie: but for the factor it is the p-value of the pair.
    far = judged([51.2, 50.0, *[0.0] * 8])
    assert far == pytest.approx(np.sum(1 / np.arange(1, 10)) * norm.sf(1.2), rel=1e-5)
    # More data of the same sort make it smaller, and an arm behind another cannot have a p-value below 1.
    assert judged([2.0, 0.0], gram_scale=4.0) == pytest.approx(2 * norm.sf(4.0), rel=1e-5)
    assert judged([2.0, 2.1, 0.0]) == 1.0


def test_wrong_leaders_have_small_p_values_no_more_often_than_promised():
    # Normal estimates of ten arms, drawn directly. "Wrong, and p ≤ α" has probability α at most; if it had
    # exactly that, each comparison would fail with probability 10⁻⁶.
    rng, runs = np.random.default_rng(3), 40_000
    factor = np.sum(1 / np.arange(1, 10))
    for means in (
        [0.001] + [0.0] * 9,
        [0.001, *[0.0] * 2, *[-9.0] * 7],
        [0.001, 0.0, *[-60.0] * 8],
        np.linspace(2.0, 0.0, 10),
        -np.log(np.arange(1, 11)),
    ):
        estimate = np.asarray(means) + rng.standard_normal((runs, 10)) / np.sqrt(2.0)
        leads = estimate.max(axis=1, keepdims=True) - estimate
        # The leader itself is in the sum with ½.
        p = np.minimum(factor * (norm.sf(leads).sum(axis=1) - 0.5), 1.0)
        is_wrong = estimate.argmax(axis=1) != 0
        assert p.mean() + 5 * p.std() / np.sqrt(runs) > is_wrong.mean()
        for level in (0.01, 0.05, 0.2, 0.5):
            assert np.sum(is_wrong & (p <= level)) <= binom.isf(1e-6, runs, level)


def test_the_p_value_sees_how_estimates_vary_together():
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
    best = int(state.declared)
    z = []
    for rival in {0, 1, 2} - {best}:
        cross = arms.positions[best] - arms.positions[rival]
        z.append((estimate[best] - estimate[rival]) / np.sqrt(cross @ np.linalg.solve(gram, cross)))
    assert policy.p_value(state) == pytest.approx(2 * norm.sf(z).sum(), rel=1e-5)


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
    assert "`p_value`" in result.decision.mode


def test_a_budget_is_a_whole_number():
    with pytest.raises(ParameterError, match="budget=0"):
        FixedBudget(0)
