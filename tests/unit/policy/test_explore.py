"""Pure exploration: how long, what it reports, and what it claims."""

from math import log, sqrt

import numpy as np
import pytest
from tests.unit.policy.tallies import noiseless_tally

from orthobandit import ArmSet, OrthogonalRegression
from orthobandit.design import anchor_design, contrast_design
from orthobandit.errors import ParameterError, TallyError
from orthobandit.policy import FOREVER, PureExploration
from orthobandit.theory import explicit_error_bound, pac_rounds


def test_explores_as_long_as_asked_or_as_the_pac_bound_says():
    arms = ArmSet.one_hot(5)
    assert PureExploration(rounds=77).planned_rounds(arms) == 77
    with_arms, free = pac_rounds(0.1, 0.2, 4, 5), pac_rounds(0.1, 0.2, 4)
    assert PureExploration(epsilon=0.1, delta=0.2).planned_rounds(arms) == min(with_arms, free)
    assert PureExploration(epsilon=0.1, delta=0.2, C2=1e6).planned_rounds(arms) == free
    assert PureExploration(epsilon=0.1, delta=0.2, C3=1e6).planned_rounds(arms) == with_arms
    assert PureExploration(epsilon=1e-100).planned_rounds(arms) == FOREVER


@pytest.mark.parametrize(("name", "rule"), [("anchor", anchor_design), ("contrast", contrast_design)])
def test_draws_from_the_design(name, rule):
    arms = ArmSet(np.random.default_rng(1).standard_normal((6, 2)))
    for design in (name, rule):
        policy = PureExploration(rounds=10, design=design)
        assert np.array_equal(policy.plan(policy.start(arms)).probabilities, rule(arms).probabilities)


def test_reports_the_best_looking_arm_and_plays_it():
    arms, policy = ArmSet([[0.0, 1.0], [1.0, 0.0], [0.4, 0.4]]), PureExploration(rounds=10, delta=0.1)
    state = policy.start(arms)
    before = policy.decide(state)
    assert (before.leader, before.declared, before.epsilon) == (0, -1, np.inf)
    plan = policy.plan(state)
    part, rest = noiseless_tally([2, 1, 1], [0.0, 2.0, 1.0]), noiseless_tally([2, 2, 2], [0.0, 3.0, 1.0])
    state = policy.observe(state, plan, part)
    assert policy.plan(state).rounds == 6
    assert policy.decide(state).declared == -1
    state = policy.observe(state, policy.plan(state), rest)
    after = policy.decide(state)
    expected = OrthogonalRegression(delta=0.1).fit(arms, [(plan, part + rest)])
    assert after.leader == after.declared == expected.best == 1
    assert (after.certainty, after.epsilon) == (0.0, np.inf)
    assert after.mode == "none (bounds of θ and the shift are not declared)"
    assert policy.plan(state).probabilities.tolist() == [0.0, 1.0, 0.0]
    assert policy.plan(state).rounds == FOREVER
    later = policy.observe(state, policy.plan(state), noiseless_tally([0, 50, 0], [0.0, -9.0, 0.0]))
    assert policy.dump(later) == policy.dump(state)


def claim(policy, arms):
    """Return the decision after all planned rounds."""
    state = policy.start(arms)
    rounds = int(policy.plan(state).rounds)
    return policy.decide(
        policy.observe(state, policy.plan(state), noiseless_tally([rounds - 2, 1, 1], [0.0, 0.0, 1.0]))
    )


def test_the_claim_is_what_is_proven_with_the_declared_bounds():
    arms, rounds = ArmSet.one_hot(3), 100_000
    decision = claim(PureExploration(rounds=rounds, theta_bound=1.0, shift_bound=1.0), arms)
    error = explicit_error_bound(
        8.0 * 1.001,
        (2 * sqrt(2) + 1) ** 2 * 1.001,
        rounds,
        0.05,
        2,
        ridge=log(rounds / 0.05),
        contrasts=2,
    )
    assert decision.epsilon == pytest.approx(2 * error, rel=1e-12)
    assert decision.certainty == 0.95
    assert decision.mode == ("proven at a fixed time, if ‖x‖ ≤ 1, ‖θ‖ ≤ 1, |ν| ≤ 1, noise 1-sub-Gaussian")


def test_the_claim_meets_the_epsilon_that_was_asked_for_if_constants_are_large():
    arms, bounds = ArmSet.one_hot(3), {"theta_bound": 1.0, "shift_bound": 1.0}
    assert claim(PureExploration(epsilon=0.3, **bounds), arms).epsilon > 0.3
    # SBE's phases have 4·C₂ for the same accuracy of estimates, with C₂ = 96.
    assert claim(PureExploration(epsilon=0.3, C2=4 * 96, C3=1e9, **bounds), arms).epsilon <= 0.3


def test_a_design_of_ones_own_claims_nothing():
    policy = PureExploration(rounds=10**6, design=anchor_design, theta_bound=1.0, shift_bound=1.0)
    decision = claim(policy, ArmSet.one_hot(3))
    assert (decision.certainty, decision.epsilon) == (0.0, np.inf)


def test_replications_may_be_at_different_rounds():
    arms = ArmSet.one_hot(3)
    policy = PureExploration(rounds=6)
    state = policy.start(arms, (3,))
    counts, means = [[0, 0, 0], [1, 1, 1], [2, 2, 2]], np.tile([0.0, 0.0, 5.0], (3, 1))
    state = policy.observe(state, policy.plan(state), noiseless_tally(counts, means))
    decision = policy.decide(state)
    assert decision.leader.tolist() == [0, 2, 2]
    assert decision.declared.tolist() == [-1, -1, 2]
    assert policy.plan(state).rounds.tolist() == [6, 3, FOREVER]
    counts = [[3, 2, 1], [1, 1, 1], [0, 0, 9]]
    state = policy.observe(state, policy.plan(state), noiseless_tally(counts, means))
    assert policy.decide(state).declared.tolist() == [2, 2, 2]
    assert state.tally.rounds.tolist() == [6, 6, 6]


@pytest.mark.parametrize("features", [[[3.0, 1.0]], [[2.0], [2.0], [2.0]]])
def test_arms_without_a_difference_are_settled_at_once(features):
    policy = PureExploration(rounds=5)
    state = policy.start(ArmSet(features), (2,))
    decision = policy.decide(state)
    assert decision.declared.tolist() == [0, 0]
    assert decision.epsilon.tolist() == [0.0, 0.0]
    assert policy.plan(state).rounds.tolist() == [FOREVER, FOREVER]


def test_more_rounds_than_planned_are_refused():
    policy = PureExploration(rounds=5)
    state = policy.start(ArmSet.one_hot(2))
    with pytest.raises(TallyError, match="6 rounds but its plan is in force for 5"):
        policy.observe(state, policy.plan(state), noiseless_tally([3, 3], [0.0, 0.0]))


def test_a_state_of_other_arms_is_refused():
    policy = PureExploration(rounds=5)
    data = policy.dump(policy.start(ArmSet.one_hot(3)))
    with pytest.raises(ParameterError, match="other arms"):
        policy.load(ArmSet.one_hot(2), data)
