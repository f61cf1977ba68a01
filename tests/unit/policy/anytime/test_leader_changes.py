"""Arms that come and go where evidence is against leaders alone."""

import numpy as np
import pytest
from tests.unit.policy.anytime.test_changes import FOUR, THREE, play, policy, stored

from inside.experiment import _shares_of_old, _widened
from orthobandit import ArmSet, Asymptotic, SubGaussian, Tally
from orthobandit.policy.anytime.delta import RESERVE, own_delta, shares

CLOUD = ArmSet(np.random.default_rng(8).standard_normal((40, 4)))


def rule_of(confidence=None, **settings):
    return policy(confidence, pairs="leader", **settings)


def state_with_tests(rule, rounds=400, seed=2):
    """Return a state of three arms with tests, none of which is over."""
    state = play(rule, rule.start(THREE), np.random.default_rng(seed), rounds)
    assert state.stage == 2
    assert state.declared < 0
    return state


@pytest.mark.parametrize("confidence", [Asymptotic(), SubGaussian(-1.0, 2.2, 0.5)])
@pytest.mark.parametrize("rounds", [0, 50, 333, 20_000])
def test_a_better_arm_that_is_added_is_found(confidence, rounds):
    rule, rng = rule_of(confidence), np.random.default_rng(rounds)
    before = play(rule, rule.start(THREE), rng, rounds)
    state = rule.extend(before, FOUR)
    assert state.active[3]
    if state.stage == 2:
        kept = len(before.kept)
        assert np.array_equal(state.tests.rho[:kept], before.tests.rho)
        assert state.tests.weights[-1] == 0
        assert np.broadcast_to(state.tests.alpha, len(state.kept))[-1] == shares(rule)[0]
    assert play(rule, stored(rule, state), rng, 20_000).declared == 3


def test_tests_that_rest_on_a_retired_arm_begin_again_with_a_share_of_their_own():
    rule = rule_of()
    state = state_with_tests(rule)
    leader = int(state.leader)
    once = rule.retire(state, leader)
    assert np.all(once.tests.weights == 0)
    assert once.tests.alpha == pytest.approx(RESERVE * rule.delta / 2)
    assert np.all(once.tests.since == once.plans)
    again = play(rule, rule.extend(once, FOUR), np.random.default_rng(4), 300)
    rival = int(again.leader)
    assert rival == 3
    twice = rule.retire(again, rival)
    assert twice.restarts.tolist() == [2 if arm != leader else 0 for arm in range(3)] + [0]
    assert twice.tests.alpha == pytest.approx(RESERVE * rule.delta / 4)
    spent = sum(shares(rule)) + RESERVE * rule.delta * (1 - 2.0**-twice.restarts)
    assert np.all(spent <= own_delta(rule) * (1 + 1e-12))


def test_tests_that_never_met_the_retired_arm_go_on():
    rule = rule_of()
    rng = np.random.default_rng(3)
    state = rule.start(CLOUD)
    means = CLOUD.features @ np.array([0.05, 0.02, 0.0, 0.0])
    while state.tests is None or not state.tests.weights.any():
        plan = rule.plan(state)
        arms = rng.choice(len(CLOUD), int(plan.rounds), p=plan.probabilities)
        rewards = means[arms] + 0.5 * rng.standard_normal(len(arms))
        state = rule.observe(state, plan, _tally(plan, arms, rewards))
    evidence = state.sequences.item()
    others = [arm for arm in state.kept if not evidence.resting_on(int(arm), len(CLOUD)).any()]
    assert others
    assert state.tests.weights.any()
    after = rule.retire(state, int(others[0]))
    stay = state.kept != others[0]
    assert np.array_equal(after.kept, state.kept[stay])
    assert np.all(after.tests.weights >= state.tests.weights[stay])
    assert not after.restarts.any()
    assert len(after.led) == len(state.led)
    # All but the leader have met it, so that without it none is known to be worse than another.
    gone = rule.retire(state, int(state.leader))
    assert np.count_nonzero(gone.tests.weights == 0) >= len(gone.kept) - 1
    assert all(one.arm != state.leader for one in gone.led)


def _tally(plan, arms, rewards):
    return Tally.of(arms, plan.residuals(arms, rewards), plan.count)


def test_arms_that_the_retired_one_had_dropped_come_back_and_bounds_begin_anew():
    rule, rng = rule_of(), np.random.default_rng(1)
    state = play(rule, rule.start(THREE), rng, 20_000)
    assert state.declared == 0
    spent = state.sequences.item().leaders
    back = rule.retire(state, 0)
    assert back.active.tolist() == [False, True, True]
    assert len(back.led) == 1
    assert back.led[0].alpha == shares(rule)[1] / ((spent + 1) * (spent + 2))
    assert not back.led[0].weights.any()
    assert play(rule, stored(rule, back), rng, 20_000).declared == 1


def test_rounds_drawn_before_a_test_began_again_are_no_evidence():
    rule = rule_of()
    state = state_with_tests(rule)
    plan = rule.plan(state)
    after = rule.retire(state, int(state.leader))
    arms = np.random.default_rng(0).choice(3, 5, p=plan.probabilities)
    late = rule.late(after, plan, _tally(plan, arms, np.ones(5)))
    assert not late.tests.weights.any()
    new = rule.extend(state, FOUR)
    wide = _widened(plan, FOUR, _shares_of_old(FOUR, 3))
    late = rule.late(new, wide, _tally(wide, arms, np.ones(5)))
    assert late.tests.weights[3] == 0
    assert np.all(late.tests.weights[:3] > new.tests.weights[:3])


def test_the_claim_of_another_release_stands_until_its_arm_is_retired():
    rule, rng = rule_of(), np.random.default_rng(5)
    state = state_with_tests(rule)
    said = rule.conclude(state, 2)
    assert said.declared == 2
    assert said.active.tolist() == [False, False, True]
    assert rule.upper_bounds(stored(rule, said), over=2)[2] == 0
    back = rule.retire(said, 2)
    assert back.active.tolist() == [True, True, False]
    assert play(rule, back, rng, 20_000).declared == 0
