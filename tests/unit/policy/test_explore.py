"""Pure exploration: how long, what it reports, and what it claims."""

import numpy as np
import pytest

from orthobandit import ArmSet, OrthogonalRegression, Tally
from orthobandit.design import anchor_design, contrast_design
from orthobandit.errors import ParameterError, TallyError
from orthobandit.policy import FOREVER, PureExploration
from orthobandit.theory import pac_epsilon, pac_rounds


def tally(counts, means):
    counts, means = np.asarray(counts), np.asarray(means, dtype=float)
    return Tally(counts, counts * means, counts * means**2)


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
    part, rest = tally([2, 1, 1], [0.0, 2.0, 1.0]), tally([2, 2, 2], [0.0, 3.0, 1.0])
    state = policy.observe(state, plan, part)
    assert policy.plan(state).rounds == 6
    assert policy.decide(state).declared == -1
    state = policy.observe(state, policy.plan(state), rest)
    after = policy.decide(state)
    expected = OrthogonalRegression(delta=0.1).fit(arms, [(plan, part + rest)])
    assert after.leader == after.declared == expected.best == 1
    assert after.epsilon == min(pac_epsilon(10, 0.1, 2, 3), pac_epsilon(10, 0.1, 2))
    assert after.certainty == 0.9
    assert policy.plan(state).probabilities.tolist() == [0.0, 1.0, 0.0]
    assert policy.plan(state).rounds == FOREVER
    later = policy.observe(state, policy.plan(state), tally([0, 50, 0], [0.0, -9.0, 0.0]))
    assert policy.dump(later) == policy.dump(state)


def test_the_claim_meets_the_epsilon_that_was_asked_for():
    arms, policy = ArmSet.one_hot(3), PureExploration(epsilon=0.3)
    state = policy.start(arms)
    rounds = int(policy.plan(state).rounds)
    state = policy.observe(state, policy.plan(state), tally([rounds - 2, 1, 1], [0.0, 0.0, 1.0]))
    assert 0.29 < policy.decide(state).epsilon <= 0.3


def test_replications_may_be_at_different_rounds():
    arms, policy = ArmSet.one_hot(3), PureExploration(rounds=6)
    state = policy.start(arms, (3,))
    counts, means = [[0, 0, 0], [1, 1, 1], [2, 2, 2]], np.tile([0.0, 0.0, 5.0], (3, 1))
    state = policy.observe(state, policy.plan(state), tally(counts, means))
    decision = policy.decide(state)
    assert decision.leader.tolist() == [0, 2, 2]
    assert decision.declared.tolist() == [-1, -1, 2]
    assert decision.epsilon[0] == np.inf
    assert decision.epsilon[1] > decision.epsilon[2] > 0
    assert policy.plan(state).rounds.tolist() == [6, 3, FOREVER]
    counts = [[3, 2, 1], [1, 1, 1], [0, 0, 9]]
    state = policy.observe(state, policy.plan(state), tally(counts, means))
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
        policy.observe(state, policy.plan(state), tally([3, 3], [0.0, 0.0]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "exactly one"),
        ({"rounds": 10, "epsilon": 0.1}, "exactly one"),
        ({"rounds": 0}, "rounds=0"),
        ({"rounds": 1.5}, "rounds=1.5"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"epsilon": float("nan")}, "epsilon=nan"),
        ({"rounds": 1, "delta": 1}, "delta=1"),
        ({"rounds": 1, "design": "anchr"}, "did you mean 'anchor'"),
        ({"epsilon": 0.1, "C2": -1}, "C2=-1"),
        ({"epsilon": 0.1, "C3": 0}, "C3=0"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ParameterError, match=message):
        PureExploration(**settings)


def test_a_state_of_other_arms_is_refused():
    policy = PureExploration(rounds=5)
    data = policy.dump(policy.start(ArmSet.one_hot(3)))
    with pytest.raises(ParameterError, match="other arms"):
        policy.load(ArmSet.one_hot(2), data)
