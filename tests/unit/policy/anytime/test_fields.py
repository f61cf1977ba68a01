"""The memory of anytime elimination follows from the descriptions of its fields."""

from dataclasses import fields

import numpy as np
import pytest

from inside.policy import AllPairs
from orthobandit import AnytimeElimination, ArmSet, Environment, Tally, simulate
from orthobandit.errors import ParameterError
from orthobandit.policy.anytime.fields import ALL
from orthobandit.policy.anytime.leaders import Leaders

ARMS = ArmSet.one_hot(3)
LAYOUTS = {"all": AllPairs, "leader": Leaders}


def started(pairs, batch):
    return AnytimeElimination(pairs=pairs).start(ARMS, batch)


@pytest.mark.parametrize("pairs", LAYOUTS)
@pytest.mark.parametrize("batch", [(), (4,), (2, 3)])
def test_every_field_has_the_type_and_shape_that_its_description_says(pairs, batch):
    state = started(pairs, batch)
    assert type(state) is LAYOUTS[pairs]
    described = state.descriptions()
    assert {part.name for part in fields(state)} == {"arms", "tally", *described}
    for name, one in described.items():
        array = getattr(state, name)
        assert array.dtype == one.dtype, name
        assert array.shape == (*batch, *one.shape(ARMS)), name
        assert not array.flags.writeable, name


@pytest.mark.parametrize("pairs", LAYOUTS)
def test_runs_are_taken_out_and_put_back_where_they_were(pairs):
    policy = AnytimeElimination(pairs=pairs)
    state = policy.start(ARMS, (2, 2))
    tally = Tally([[[1, 0, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0]]], *[np.zeros((2, 2, 3))] * 2)
    after = policy.observe(state, policy.plan(state), tally)
    assert after.plans.tolist() == [[2, 1], [2, 1]]
    assert after.drawn[:, 0].tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    # One run goes to another place, and all else stays.
    moved = after.with_runs([((0, 1), after[0, 1], after[1, 0])], after.tally)
    for name in state.descriptions():
        now, before = getattr(moved, name), getattr(after, name)
        assert np.array_equal(now[0, 1], before[1, 0]), name
        assert np.array_equal(now[1], before[1]), name
        assert np.array_equal(now[0, 0], before[0, 0]), name
    assert after.plans.tolist() == [[2, 1], [2, 1]]


def test_all_runs_together_take_the_place_of_the_state():
    state = started("all", (3,))
    runs = state[ALL]
    assert runs.batch == (3,)
    moved = state.with_runs([(ALL, runs, runs.changed(rounds=runs.rounds + 4))], state.tally)
    assert moved.rounds.tolist() == (state.rounds + 4).tolist()
    assert not moved.alpha.flags.writeable
    assert state.with_runs([], state.tally).rounds.tolist() == state.rounds.tolist()


def test_fields_that_no_run_changes_are_not_copied():
    state = started("all", (3,))
    run = state[1,]
    moved = state.with_runs([((1,), run, run.changed(rounds=run.rounds + 4))], state.tally)
    assert moved.rounds.tolist() == [0, 4, 0]
    assert state.rounds.tolist() == [0, 0, 0]
    assert moved.alpha is state.alpha


def test_runs_give_the_same_whether_all_end_a_batch_or_some():
    policy = AnytimeElimination(goal="earn")
    environment = Environment(ARMS, [0.0, 0.3, 1.0])
    settings = {"horizon": 3000, "seed": 5, "replications": 4}
    together = simulate(policy, environment, **settings, batch=4)
    alone = simulate(policy, environment, **settings, batch=1)
    assert np.array_equal(together.regret, alone.regret)
    assert np.array_equal(together.decision.epsilon, alone.decision.epsilon)


def test_entries_of_new_arms_are_as_at_the_start_unless_said():
    run = started("all", ())
    longer = run.grow(ArmSet.one_hot(5), left=0.25, first_plan=7)
    assert longer.alpha.shape == (5, 5)
    assert longer.alpha[4, 0] == longer.alpha[0, 4] == 0.5
    assert longer.active.tolist() == [True] * 5
    assert longer.left.tolist() == [*run.left.tolist(), 0.25, 0.25]
    assert longer.first_plan[:3, :3].tolist() == run.first_plan.tolist()
    assert set(longer.first_plan[3:].ravel()) == set(longer.first_plan[:, 3:].ravel()) == {7}


def test_a_field_that_is_missing_is_named():
    policy = AnytimeElimination()
    data = policy.dump(policy.start(ARMS))
    del data["met"]
    with pytest.raises(ParameterError, match="data has no entry 'met'"):
        policy.load(ARMS, data)


@pytest.mark.parametrize("name", sorted(name for name in Leaders.descriptions() if name != "sequences"))
def test_the_compact_form_is_exact(name):
    one = Leaders.descriptions()[name]
    rng = np.random.default_rng(1)
    shape = one.shape(ARMS)
    value = np.asarray(rng.standard_normal(shape) * 100).astype(one.dtype)
    again = one.unpack(name, one.pack(value), ARMS)
    assert again.dtype == one.dtype
    assert again.shape == shape
    assert np.array_equal(again, value)


def test_an_epsilon_that_is_not_known_survives_json_as_null():
    for pairs in LAYOUTS:
        policy = AnytimeElimination(pairs=pairs)
        data = policy.dump(policy.start(ARMS))
        found = data["epsilon"] if pairs == "all" else data["runs"][0]["epsilon"]
        assert found is None
        assert policy.load(ARMS, data).epsilon == np.inf
