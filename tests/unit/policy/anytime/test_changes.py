"""Arms that are retired or added while anytime elimination runs."""

import json

import numpy as np
import pytest

from orthobandit import AnytimeElimination, ArmSet, Asymptotic, SubGaussian, Tally
from orthobandit.errors import ParameterError, TallyError
from orthobandit.estimate import NoBaseline

MEANS = np.array([0.5, 0.2, 0.0, 1.2])
THREE, FOUR = ArmSet(np.eye(4)[:3]), ArmSet(np.eye(4))


def policy(confidence=None, **settings):
    return AnytimeElimination(
        0.1, confidence=confidence or Asymptotic(), baseline=NoBaseline(), growth=0.3, **settings
    )


def play(rule, state, rng, rounds):
    """Play up to so many rounds under a sine, ending in the middle of a batch; return the state."""
    while rounds and np.all(state.declared < 0):
        plan = rule.plan(state)
        size = int(min(plan.rounds, rounds))
        arms = rng.choice(plan.count, size, p=plan.probabilities / plan.probabilities.sum())
        rewards = MEANS[arms] + np.sin(np.arange(size)) + 0.5 * rng.standard_normal(size)
        tally = Tally.of(arms, plan.residuals(arms, rewards), plan.count)
        state, rounds = rule.observe(state, plan, tally), rounds - size
    return state


def stored(rule, state):
    """Return the state as it comes back from JSON."""
    return rule.load(state.arms, json.loads(json.dumps(rule.dump(state))))


@pytest.mark.parametrize("pairs", ["all", "leader"])
@pytest.mark.parametrize("goal", ["identify", "earn"])
@pytest.mark.parametrize("rounds", [0, 7, 50, 333, 20_000])
def test_a_retired_arm_is_never_played_again_and_the_best_of_the_rest_is_found(goal, rounds, pairs):
    rule, rng = policy(goal=goal, pairs=pairs), np.random.default_rng(rounds)
    state = stored(rule, rule.retire(play(rule, rule.start(THREE), rng, rounds), 0))
    while state.declared < 0:
        assert rule.plan(state).probabilities[0] == 0
        assert not rule.decide(state).active[0]
        state = play(rule, state, rng, int(rule.plan(state).rounds))
    assert state.declared == 1


def test_arms_that_only_the_retired_one_had_beaten_come_back():
    rule, rng = policy(), np.random.default_rng(1)
    state = play(rule, rule.start(THREE), rng, 20_000)
    assert state.declared == 0
    again = rule.retire(state, 0)
    assert again.active[1]
    assert not again.active[0]
    assert play(rule, again, rng, 20_000).declared == 1


def test_tests_that_a_retired_arm_took_part_in_start_again_and_the_others_go_on():
    rule, rng = policy(), np.random.default_rng(2)
    state = play(rule, rule.start(THREE), rng, 150)
    assert state.stage == 2
    arm = int(np.argmax(state.met.any(axis=0)))
    met, spent = state.met[:, arm], np.diag(state.alpha)
    assert met.any()
    assert not met.all()
    after = rule.retire(state, arm)
    assert np.all(np.diag(after.weights)[met] == 0)
    assert np.all(np.diag(after.weights)[~met] >= np.diag(state.weights)[~met])
    # Both the tests that ended and the new ones are paid for.
    again = np.diag(after.alpha)
    assert again[met] == pytest.approx(state.left[met] / 2)
    assert np.array_equal(again[~met], spent[~met])
    pairs = after.alpha.sum(axis=1) - again
    assert np.all(pairs + again + np.where(met, spent, 0.0) + after.left <= rule.delta * (1 + 1e-12))


@pytest.mark.parametrize("confidence", [Asymptotic(), SubGaussian(-1.0, 2.2, 0.5)])
@pytest.mark.parametrize("rounds", [0, 7, 50, 333, 20_000])
def test_a_better_arm_that_is_added_is_found(confidence, rounds):
    rule, rng = policy(confidence), np.random.default_rng(rounds)
    before = play(rule, rule.start(THREE), rng, rounds)
    state = rule.extend(before, FOUR)
    assert state.active[3]
    assert not state.weights[3].any()
    if state.stage == 2:
        assert np.all(state.alpha.sum(axis=1) + state.left <= rule.delta * (1 + 1e-12))
        assert np.array_equal(state.rho[:3, :3], before.rho)
        assert np.array_equal(state.alpha[:3, :3], before.alpha)
    assert play(rule, state, rng, 20_000).declared == 3


def test_reserves_never_run_out():
    rule, rng = policy(), np.random.default_rng(3)
    arms = np.eye(12)
    state = play(rule, rule.start(ArmSet(arms[:3])), rng, 200)
    for count in range(4, 13):
        state = rule.extend(state, ArmSet(arms[:count]))
        assert np.all(state.alpha.sum(axis=1) + state.left <= rule.delta * (1 + 1e-12))
        assert np.all(state.alpha > 0)
        assert np.all(state.left > 0)


def test_the_regression_is_the_same_in_the_new_basis():
    rng = np.random.default_rng(4)
    features = rng.standard_normal((6, 3))
    features[:4, 2] = 0.5  # the first four span a plane, so that the dimension grows
    rule, old, new = policy(), ArmSet(features[:4]), ArmSet(features)
    state = rule.start(old)
    state = rule.observe(state, rule.plan(state), Tally.of([0], [1.0], 4))
    arms, rewards = rng.integers(0, 4, 30), rng.standard_normal(30)
    plan = rule.plan(state)
    can = plan.probabilities[arms] > 0
    state = rule.observe(state, plan, Tally.of(arms[can], rewards[can], 4))
    longer = rule.extend(state, new)
    closed = rule.retire(state, 3)
    change = np.linalg.lstsq(
        old.positions - old.positions[0], (new.positions - new.positions[0])[:4], rcond=None
    )[0]
    assert longer.moment.shape == (3,)
    assert longer.moment == pytest.approx(change.T @ closed.moment, abs=1e-9)
    assert longer.gram == pytest.approx(change.T @ closed.gram @ change, abs=1e-9)


def test_rounds_of_an_ended_plan_are_refused():
    rule = policy()
    state = rule.start(THREE)
    plan = rule.plan(state)
    with pytest.raises(TallyError, match="these rounds are of plan number 1, and number 2 is in force"):
        rule.observe(rule.retire(state, 0), plan, Tally.of([1], [0.3], 3))


def test_states_survive_json_and_batches_change_together():
    rule = policy()
    state = rule.retire(rule.extend(rule.start(THREE, (2,)), FOUR), 1)
    assert state.active.tolist() == [[True, False, True, True]] * 2
    text = json.dumps(rule.dump(state), allow_nan=False)
    assert json.dumps(rule.dump(rule.load(FOUR, json.loads(text)))) == text


def test_wrong_changes_are_refused():
    rule = policy()
    state = rule.start(THREE)
    with pytest.raises(ParameterError, match="arm=3 is not an arm"):
        rule.retire(state, 3)
    with pytest.raises(ParameterError, match="last that is not retired"):
        rule.retire(rule.retire(rule.retire(state, 0), 1), 2)
    with pytest.raises(ParameterError, match="must begin with the 3 arms so far"):
        rule.extend(state, THREE)
    with pytest.raises(ParameterError, match="must begin with the 3 arms so far"):
        rule.extend(state, ArmSet(np.eye(4)[::-1]))
