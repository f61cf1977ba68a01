"""A replication is the same run whatever is played beside it, wherever it is looked at."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.simulation.toys import DropWorst, FixedPolicy

from inside.simulation import CHUNK_ROUNDS
from orthobandit.simulation import (
    Bernoulli,
    Gaussian,
    Limited,
    PushLeader,
    RandomWalk,
    ReactToLast,
    Sine,
    StudentT,
    one_hot,
    simulate,
)

MEANS = [0.5, 0.1, 0.4, 0.45]
ENVIRONMENTS = st.sampled_from(
    [
        one_hot(MEANS, shift=Sine()),
        one_hot(MEANS, shift=Limited(RandomWalk(0.05))),
        one_hot(MEANS, shift=Sine(0.0), noise=Bernoulli()),
        one_hot(MEANS, shift=RandomWalk(0.05), noise=StudentT()),
        one_hot(MEANS, shift=PushLeader(), noise=Gaussian(0.5)),
        one_hot(MEANS, shift=ReactToLast()),
    ]
)
# Staggered phases end at different clocks in different replications.
POLICIES = st.sampled_from(
    [
        FixedPolicy(),
        FixedPolicy(rounds=37),
        DropWorst(first=20, stagger=7),
        DropWorst(first=3000, stagger=1999),
    ]
)
HORIZONS = st.sampled_from([1, 150, 1000, CHUNK_ROUNDS + 100])
SEEDS = st.integers(0, 2**40)

few = settings(max_examples=25, deadline=None)


@few
@given(POLICIES, ENVIRONMENTS, HORIZONS, SEEDS, st.integers(1, 7))
def test_batches_change_nothing(policy, environment, horizon, seed, batch):
    whole = simulate(policy, environment, horizon=horizon, replications=7, seed=seed)
    assert simulate(policy, environment, horizon=horizon, replications=7, seed=seed, batch=batch).equals(
        whole
    )


@few
@given(POLICIES, ENVIRONMENTS, HORIZONS, SEEDS, st.integers(1, 5))
def test_further_replications_change_nothing(policy, environment, horizon, seed, replications):
    more = simulate(policy, environment, horizon=horizon, replications=6, seed=seed)
    fewer = simulate(policy, environment, horizon=horizon, replications=replications, seed=seed)
    assert fewer.equals(more.only(np.arange(replications)))


@few
@given(POLICIES, ENVIRONMENTS, HORIZONS, SEEDS, st.data())
def test_checkpoints_change_nothing_but_where_regret_is_noted(policy, environment, horizon, seed, data):
    marks = sorted(data.draw(st.sets(st.integers(1, horizon), min_size=1, max_size=20)) | {horizon})
    run = {"horizon": horizon, "replications": 3, "seed": seed}
    often = simulate(policy, environment, checkpoints=marks, **run)
    once = simulate(policy, environment, checkpoints=[horizon], **run)
    assert np.array_equal(often.regret[:, -1:], once.regret)
    assert np.array_equal(often.elimination_times, once.elimination_times)
    assert np.array_equal(often.declared, once.declared)
    assert np.all(np.diff(often.regret, axis=1) >= -1e-9)


@few
@given(POLICIES, ENVIRONMENTS, SEEDS, st.integers(1, 2000))
def test_a_shorter_horizon_is_the_beginning_of_a_longer_one(policy, environment, seed, horizon):
    short = simulate(policy, environment, horizon=horizon, replications=3, seed=seed, checkpoints=[horizon])
    long = simulate(policy, environment, horizon=3000, replications=3, seed=seed, checkpoints=[horizon, 3000])
    assert np.array_equal(short.regret[:, 0], long.regret[:, 0])
    is_early = (long.elimination_times >= 0) & (long.elimination_times <= horizon)
    assert np.array_equal(short.elimination_times, np.where(is_early, long.elimination_times, -1))


@few
@given(st.integers(0, 3 * CHUNK_ROUNDS), st.integers(0, CHUNK_ROUNDS), SEEDS, st.data())
def test_paths_do_not_depend_on_how_they_are_cut(start, count, seed, data):
    shift = data.draw(st.sampled_from([Sine(), RandomWalk(0.1), Limited(RandomWalk(0.1, limit=3.0), 2.0)]))
    cut = data.draw(st.integers(0, count))
    whole = shift.values(start, count, seed=seed, replication=1)
    parts = [
        shift.values(start, cut, seed=seed, replication=1),
        shift.values(start + cut, count - cut, seed=seed, replication=1),
    ]
    assert np.array_equal(np.concatenate(parts), whole)
