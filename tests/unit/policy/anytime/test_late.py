"""Rounds of plans that have ended count as they would have done in time."""

import numpy as np
import pytest

from orthobandit import AnytimeElimination, ArmSet, Bounded, Plan, Tally
from orthobandit.errors import TallyError
from orthobandit.estimate import NoBaseline

ARMS = ArmSet.one_hot(3)
MEANS = np.array([0.45, 0.5, 0.5])
EXACT = AnytimeElimination(rewards=(0.0, 1.0), baseline=NoBaseline(), growth=0.3)
DEFAULT = AnytimeElimination(baseline=NoBaseline(), growth=0.3)


def played(plan, rounds, rng, count=3):
    drawn = rng.choice(count, rounds, p=plan.probabilities)
    rewards = (rng.random(rounds) < MEANS[drawn % 3]).astype(float)
    return Tally.of(drawn, plan.residuals(drawn, rewards), count)


def begun(policy, seed, rounds=200):
    """Return a state after so many rounds, in the counted stage, and its generator."""
    rng, state = np.random.default_rng(seed), policy.start(ARMS)
    while state.rounds < rounds or state.stage < 2:
        plan = policy.plan(state)
        state = policy.observe(state, plan, played(plan, int(plan.rounds), rng))
    return state, rng


@pytest.mark.parametrize("policy", [EXACT, DEFAULT])
def test_late_rounds_add_what_they_would_have_added_in_time(policy):
    state, rng = begun(policy, 1)
    plan = policy.plan(state)
    first = played(plan, int(plan.rounds) // 2, rng)
    rest = played(plan, int(plan.rounds) - int(first.rounds), rng)
    in_time = policy.observe(policy.observe(state, plan, first), plan, rest)
    # The same rounds, but another plan has begun before the second half came in.
    changed = policy.retire(policy.observe(state, plan, first), 0)
    late = policy.late(changed, plan, rest)
    pair = (2, 1)
    for name in ("totals", "weights", "variances"):
        assert getattr(late, name)[pair] == pytest.approx(getattr(in_time, name)[pair], rel=1e-12)
    assert late.rounds == in_time.rounds


def test_late_rounds_do_not_change_the_plan_in_force_before_its_batch_is_complete():
    state, rng = begun(EXACT, 2)
    old = EXACT.plan(state)
    state = EXACT.observe(state, old, played(old, int(old.rounds), rng))
    now = EXACT.plan(state)
    after = EXACT.late(state, old, played(old, int(now.rounds) - 1, rng))
    later = EXACT.plan(after)
    assert later.number == now.number
    assert later.probabilities.tolist() == now.probabilities.tolist()
    assert later.values.tolist() == now.values.tolist()
    assert later.rounds == 1


def test_enough_late_rounds_complete_a_batch():
    state, rng = begun(EXACT, 3)
    old = EXACT.plan(state)
    state = EXACT.observe(state, old, played(old, int(old.rounds), rng))
    now = EXACT.plan(state)
    after = EXACT.late(state, old, played(old, int(now.rounds), rng))
    assert EXACT.plan(after).number == now.number + 1
    assert after.late == 0


def test_late_rounds_of_the_warm_up_are_evidence_in_exact_modes_alone():
    for policy, counts in ((EXACT, True), (DEFAULT, False)):
        rng = np.random.default_rng(4)
        first = policy.plan(policy.start(ARMS))
        state, _ = begun(policy, 4)
        after = policy.late(state, first, played(first, 20, rng))
        assert bool(np.all(after.weights == state.weights)) is not counts
        assert bool(np.all(after.gram == state.gram)) is False


def test_a_test_against_an_arm_that_was_retired_meanwhile_is_left_out():
    state, rng = begun(EXACT, 5, rounds=100)
    plan = EXACT.plan(state)
    leader = int(state.leader)
    changed = EXACT.retire(state, leader)
    after = EXACT.late(changed, plan, played(plan, 5, rng))
    others = [arm for arm in range(3) if arm != leader]
    assert all(plan.rivals[arm] == leader for arm in others)
    assert np.all(np.diagonal(after.weights)[others] == np.diagonal(changed.weights)[others])
    assert after.weights[others[0], others[1]] > changed.weights[others[0], others[1]]


def test_a_restricted_plan_teaches_only_about_arms_that_it_plays():
    state, rng = begun(EXACT, 6, rounds=100)
    plan = EXACT.plan(state)
    p = np.where(np.arange(3) == 2, 0.0, plan.probabilities)
    limited = Plan(p / p.sum(), plan.rounds, plan.centre, plan.number, plan.rivals)
    after = EXACT.late(state, limited, played(limited, 5, rng))
    assert after.weights[0, 1] > state.weights[0, 1]
    assert after.weights[0, 2] == state.weights[0, 2]


def test_rounds_of_a_plan_that_has_not_begun_are_refused():
    state, rng = begun(EXACT, 7, rounds=100)
    plan = EXACT.plan(state)
    ahead = Plan(plan.probabilities, 5, plan.centre, int(plan.number) + 1, plan.rivals)
    with pytest.raises(TallyError, match=r"the newest is number \d+; was the plan made by another run"):
        EXACT.late(state, ahead, played(plan, 2, rng))


def test_a_plan_survives_json():
    state, _ = begun(AnytimeElimination(confidence=Bounded(0.0, 1.0)), 8)
    plan = AnytimeElimination(confidence=Bounded(0.0, 1.0)).plan(state)
    again = Plan.from_json(plan.to_json())
    assert again.to_json() == plan.to_json()
    assert again.centre.limit == 1.0
    without = DEFAULT.plan(DEFAULT.start(ARMS))
    assert np.isinf(Plan.from_json(without.to_json()).centre.limit)


def test_a_test_that_starts_again_counts_no_round_drawn_before():
    state, rng = begun(EXACT, 5, rounds=100)
    plan = EXACT.plan(state)
    leader = int(state.leader)
    changed = EXACT.retire(state, leader)
    fresh = np.flatnonzero(np.diagonal(changed.weights) == 0)
    assert len(fresh)
    # Rivals that are still in the race: the retirement alone leaves nothing out.
    others = np.array([arm for arm in range(3) if arm != leader])
    rivals = np.where(np.arange(3) == others[0], others[1], others[0])
    before = Plan(plan.probabilities, plan.rounds, plan.centre, plan.number, rivals)
    after = EXACT.late(changed, before, played(plan, 5, rng))
    assert np.all(np.diagonal(after.weights)[fresh] == 0)
    assert not after.met[fresh].any()
    now = EXACT.plan(changed)
    later = EXACT.observe(changed, now, played(now, int(now.rounds), rng))
    assert np.all(np.diagonal(later.weights)[np.intersect1d(fresh, others)] > 0)
