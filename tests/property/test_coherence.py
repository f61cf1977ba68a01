"""Nothing that is said of an experiment contradicts anything else that is said of it, wherever it is said."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contradictions import contradictions, contradictions_of_surfaces
from inside.estimate import pool_above, project_intervals
from inside.service import DECLARED, Look, find_news
from live_worlds import LiveWorld
from orthobandit import AnytimeElimination, ArmSet, Experiment, Guardrail, Metric

RUNS, FEW = 500, 10
ROUNDS, STEP = 1600, 80
WORLDS_OF_EVERY_KIND = (0, 1, 2, 3)  # seeds


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_the_projection_is_the_smallest_box_that_keeps_every_truth(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    low = np.round(rng.normal(size=count), 1)
    high = low + np.round(2 * rng.random(count), 1)
    low[0] = high[0] = 0.0
    active, retired = rng.random(count) < 0.6, rng.random(count) < 0.2
    retired[0] = False
    active &= ~retired
    if not active.any():
        active[0] = True
    leader, epsilon = int(rng.choice(np.flatnonzero(active))), float(rng.choice([0.0, 0.3, np.inf]))
    found = project_intervals(low, high, active=active, retired=retired, leader=leader, epsilon=epsilon)
    # All truths on a grid that holds every end, which is a multiple of a tenth.
    lines = [np.arange(round(10 * a), round(10 * b) + 1) for a, b in zip(low, high, strict=True)]
    gaps = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, count)
    best = gaps[:, ~retired].max(axis=1)
    fits = (gaps[:, active].max(axis=1) == best) & (best - gaps[:, leader] <= 10 * epsilon + 1e-9)
    assert found.is_empty == (not fits.any())
    if not found.is_empty:
        assert found.low == pytest.approx(gaps[fits].min(axis=0) / 10)
        assert found.high == pytest.approx(gaps[fits].max(axis=0) / 10)
        assert found.epsilon >= (best - gaps[:, leader])[fits].max() / 10 - 1e-9
        again = project_intervals(
            found.low, found.high, active=active, retired=retired, leader=leader, epsilon=found.epsilon
        )
        assert again.low == pytest.approx(found.low)
        assert again.high == pytest.approx(found.high)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_the_arm_on_top_has_the_largest_estimate_and_every_estimate_lies_in_its_interval(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 6))
    low = np.round(rng.normal(size=count), 1)
    high = low + np.round(2 * rng.random(count), 1)
    low[0] = high[0] = 0.0
    racing = rng.random(count) < 0.8
    racing[0] = True
    found = project_intervals(low, high, active=racing, retired=~racing)
    for top in np.flatnonzero(found.possible):
        estimates = found.clip_below(rng.normal(size=count), int(top), racing)
        assert np.all((estimates >= found.low) & (estimates <= found.high))
        assert estimates[racing].max() == estimates[top]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_pooled_estimates_are_the_nearest_with_this_arm_on_top(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 6))
    estimates, rounds = rng.normal(size=count), rng.integers(1, 50, size=count)
    racing = rng.random(count) < 0.8
    racing[0] = True
    pooled = pool_above(estimates, rounds, 0, racing)
    assert pooled[racing].max() <= pooled[0] + 1e-12

    def distance(other):
        return float(np.sum(rounds * (other - estimates) ** 2))

    # The nearest is found on a line: given the top, every other arm is cut off there.
    for top in np.linspace(estimates.min(), estimates.max(), 50):
        cut = np.where(racing, np.minimum(estimates, top), estimates)
        cut[0] = top
        assert distance(pooled) <= distance(cut) + 1e-9


def play(seed):
    """Play a random experiment; return the contradictions of all its looks, and its last report."""
    rng = np.random.default_rng([27, seed])
    count = int(rng.integers(2, 6))
    bounds = (0.0, 1.0) if rng.random() < 0.5 else None
    epsilon = float(rng.choice([0.0, 0.0, 0.15]))
    policy = AnytimeElimination(
        delta=float(rng.choice([0.05, 0.3])),
        epsilon=epsilon,
        goal=str(rng.choice(["identify", "earn"])),
        rewards=bounds,
    )
    guarded = rng.random() < 0.4
    experiment = Experiment.memory(
        ArmSet.one_hot(count),
        policy,
        rewards="unknown" if bounds is None else bounds,
        reference=int(rng.integers(count)),
        metrics=[Metric("crash", rewards=bounds)] if guarded else [],
        guardrails=[Guardrail("crash", 0.02)] if guarded else [],
        key=f"{seed:032x}",
    )
    means = 0.5 * rng.random(count + 1) + 0.1
    harm = np.where(rng.random(count + 1) < 0.3, 0.3, 0.05)
    retires = int(rng.integers(ROUNDS)) if rng.random() < 0.3 else -1
    extends = int(rng.integers(ROUNDS)) if rng.random() < 0.2 else -1
    found = []
    for first in range(0, ROUNDS, STEP):
        if first <= retires < first + STEP:
            experiment.retire(int(rng.integers(count)))
        if first <= extends < first + STEP:
            experiment.extend(ArmSet.one_hot(count + 1))
        proposals = experiment.ask_many(STEP)
        arms = np.array([one.arm for one in proposals])
        level = 0.25 * np.sin((first + np.arange(STEP)) / 150.0) + 0.1
        values = {"reward": (rng.random(STEP) < means[arms] + level).astype(float)}
        if guarded:
            values["crash"] = (rng.random(STEP) < harm[arms]).astype(float)
        experiment.tell_many([one.id for one in proposals], values)
        report = experiment.report()
        found += [f"seed {seed}, {first + STEP} draws: {one}" for one in contradictions(report, epsilon)]
        news = [
            json.loads(one.body)["data"]
            for one in find_news("x", Look(1, 0.0, report), 0.0)
            if one.kind == DECLARED
        ]
        if [one["arm"] for one in news] != [report.declared] * (report.declared is not None):
            found.append(f"seed {seed}: a webhook says {news}, the report {report.declared!r}")
    return found, report


def check(seeds):
    """Play experiments; none contradicts itself, and most get as far as to claim something."""
    played = [play(seed) for seed in seeds]
    assert not [one for found, _ in played for one in found]
    reports = [report for _, report in played]
    claims = [not all(arm.is_active for arm in report.arms) for report in reports]
    assert np.mean(claims) > 0.5
    # At 30 %, half of the runs' δ, no event of that probability may be seen more often than so.
    assert np.mean(["contradiction" in report.alarms for report in reports]) < 0.1


def test_no_report_of_some_random_experiments_contradicts_itself():
    check(range(FEW))


@pytest.mark.slow
def test_no_report_of_five_hundred_random_experiments_contradicts_itself():
    check(range(FEW, RUNS))


def play_worlds(seeds):
    """Return what surfaces say against each other in the looks at some worlds, and all last reports."""
    found, last = [], []
    for seed in seeds:
        world = LiveWorld(seed)
        for look, report in enumerate(world.looks()):
            words = contradictions_of_surfaces(world.experiment, report)
            found += [f"world {seed}, look {look}: {one}" for one in words]
        last.append(report)
    return found, last


def test_all_surfaces_of_a_few_live_experiments_say_the_same():
    found, last = play_worlds(WORLDS_OF_EVERY_KIND)
    assert found == []
    # Some are personalised, some have an alarm, some a winner, and some an arm that was retired.
    assert {report.personal is None for report in last} == {True, False}
    assert {bool(report.alarms) for report in last} == {True, False}
    assert {report.conclusion.has_won for report in last} == {True, False}
    assert any(arm.is_retired for report in last for arm in report.arms)


@pytest.mark.slow
def test_all_surfaces_of_a_hundred_live_experiments_say_the_same():
    found, last = play_worlds(range(1000, 1100))
    assert found == []
    assert sum(bool(report.alarms) for report in last) > 10
    assert sum(report.conclusion.has_won for report in last) > 10
