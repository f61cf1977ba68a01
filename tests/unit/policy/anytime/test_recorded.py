"""Anytime elimination by the contract of recorded plans."""

import numpy as np
import pytest

from orthobandit import AnytimeElimination, ArmSet, Bounded, SubGaussian, Tally
from orthobandit.errors import ParameterError, TallyError
from orthobandit.estimate import NoBaseline, SameShape
from orthobandit.policy.anytime.recorded import RecordedElimination
from orthobandit.policy.contract import Batch, OfferSpace
from orthobandit.testing.contract import check_contract

ARMS = ArmSet(np.array([[0.0, 0.0], [2.0, 0.5], [0.25, -1.0], [1.0, 0.5]]))
MODES = {
    "asymptotic": None,
    "bounded": Bounded(-20.0, 20.0),
    "sub-gaussian": SubGaussian(-10.0, 10.0),
    "same shape": SameShape(clip=4.0),
}
POLICY = RecordedElimination(AnytimeElimination(rewards=(0.0, 1.0), baseline=NoBaseline(), growth=0.3))


@pytest.mark.parametrize("pairs", ["all", "leader"])
@pytest.mark.parametrize("mode", MODES)
def test_plans_are_made_once(pairs, mode):
    policy = AnytimeElimination(0.3, pairs=pairs, confidence=MODES[mode], growth=0.3)
    arms = ArmSet.one_hot(4) if mode == "same shape" else ARMS
    # Dropped arms may inform about the others, with which they share features.
    check_contract(RecordedElimination(policy), arms, may_play_dropped=True)


def test_so_are_plans_that_earn():
    policy = AnytimeElimination(0.3, goal="earn", pairs="all", growth=0.3)
    check_contract(RecordedElimination(policy), ARMS, may_play_dropped=True)


def test_arms_that_are_all_the_same_settle_the_matter_at_once():
    plan, record = POLICY.plan(POLICY.start(ArmSet([[1.0], [1.0]])))
    assert (int(record.declared), float(record.epsilon)) == (0, 0.0)
    assert plan.probabilities.tolist() == [1.0, 0.0]


def test_a_plan_stays_until_its_rounds_are_in():
    start = POLICY.start(ArmSet.one_hot(2))
    first = POLICY.observe(start, [Batch(POLICY.plan(start)[0], Tally.of([0], [0.5], 2))])
    observed = POLICY.adopt(first, *POLICY.plan(first))
    plan, record = POLICY.plan(observed)
    some = POLICY.observe(observed, [Batch(plan, Tally.of([0, 1, 1], [0.5, 0.0, 0.25], 2))])
    rest, same = POLICY.plan(some)
    assert (rest.number, rest.rounds) == (plan.number, plan.rounds - 3)
    assert same.same_as(record)
    assert POLICY.adopt(some, rest, same) is some


def test_a_recorded_plan_may_have_another_number_than_the_policy_gives_it():
    start = POLICY.start(ArmSet.one_hot(2))
    first = POLICY.observe(start, [Batch(POLICY.plan(start)[0], Tally.of([0], [0.5], 2))])
    plan, record = POLICY.plan(first)
    renumbered = type(plan)(plan.probabilities, plan.rounds, plan.centre, 7, plan.rivals)
    observed = POLICY.adopt(first, renumbered, record)
    assert POLICY.plan(observed)[0].number == 7
    assert not observed.batches


def test_rounds_that_cannot_be_are_refused():
    start = POLICY.start(ArmSet([[1.0], [1.0]]))
    plan, _ = POLICY.plan(start)
    with pytest.raises(TallyError, match="arm 1 was played 1 times but has probability 0"):
        POLICY.observe(start, [Batch(plan, Tally.of([1], [0.5], 2))])
    with pytest.raises(TallyError, match=r"shapes \(2,\) and \(3,\); the state needs \(2,\)"):
        POLICY.observe(start, [Batch(plan, Tally.of([0], [0.5], 3))])


def test_rounds_with_features_of_their_own_are_refused():
    with pytest.raises(ParameterError, match="AnytimeElimination plays arms that stay"):
        POLICY.start(OfferSpace(2))
