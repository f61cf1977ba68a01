"""Intervals of a guardrail's metric are there with very many arms, and are those of few."""

import numpy as np
import pytest

from inside.estimate import MOST_ARMS, GapIntervals
from orthobandit import AnytimeElimination, ArmSet, Bounded, Experiment, Guardrail, Metric, Plan
from orthobandit.errors import ParameterError
from orthobandit.experiment.ledger.guarded import GuardedIntervals

POINTS = np.random.default_rng(3).standard_normal((MOST_ARMS + 8, 2))
MODE = Bounded(0.0, 1.0)


def told(intervals, number, seed):
    """Add fifty rounds of a distribution."""
    rng = np.random.default_rng(seed)
    arms = rng.integers(len(intervals.arms), size=50)
    values = (rng.random(50) < 0.3).astype(float)
    forecasts = np.full(50, 0.3)
    intervals.add(number, arms, intervals.centre.residuals(arms, values, forecasts), forecasts)


def uniform(count, number):
    return Plan(np.full(count, 1.0 / count), 1000, number=number)


def played(intervals):
    """Return what is known after rounds, after a flush, and after arms were added in between."""
    plans = {1: uniform(len(intervals.arms), 1)}
    seen = []
    for seed in range(3):
        told(intervals, 1, seed)
        seen += [intervals.intervals(plans), intervals.intervals(plans)]
    intervals.flush(plans)
    seen.append(intervals.intervals(plans))
    intervals.extend(ArmSet(POINTS), first_plan=2)
    plans = {2: uniform(len(POINTS), 2)}
    for seed in range(3):
        told(intervals, 2, seed)
        seen.append(intervals.intervals(plans))
    return seen


@pytest.mark.parametrize("before", [MOST_ARMS - 2, MOST_ARMS + 5])
def test_they_are_those_of_few_arms(monkeypatch, before):
    mine = played(GuardedIntervals(MODE, ArmSet(POINTS[:before]), 0, 0.05))
    monkeypatch.setattr("inside.estimate.MOST_ARMS", 10_000)
    theirs = played(GapIntervals(MODE, ArmSet(POINTS[:before]), 0, 0.05))
    # Estimates are those of a regression where arms are few, and of each gap alone where they are many.
    for (_, *ends), (_, *same_ends) in zip(mine, theirs, strict=True):
        np.testing.assert_array_equal(ends, same_ends)
    assert np.ptp(mine[-1][2] - mine[-1][1]) > 0


def test_every_round_that_was_told_is_in_the_next_look():
    intervals = GuardedIntervals(MODE, ArmSet(POINTS), 0, 0.05)
    plans = {1: uniform(len(POINTS), 1)}
    looks = []
    for seed in range(4):
        told(intervals, 1, seed)
        looks.append(intervals.intervals(plans)[0])
    assert len({look.tobytes() for look in looks}) == 4


def test_nothing_is_followed_where_nothing_is_asked():
    intervals = GuardedIntervals(MODE, ArmSet(POINTS), 0, 0.05, follows=False)
    plans = {1: uniform(len(POINTS), 1)}
    told(intervals, 1, 0)
    assert intervals.intervals(plans)[2][1:].tolist() == [1.0] * (len(POINTS) - 1)


def test_more_arms_than_memory_has_room_for_are_refused_whole(monkeypatch):
    policy = AnytimeElimination(pairs="leader", rewards=(0, 1))
    guarded = {"metrics": [Metric("crash")], "guardrails": [Guardrail("crash")]}
    experiment = Experiment.memory(ArmSet(POINTS[:-1]), policy, **guarded)
    monkeypatch.setattr("inside._foundation.memory", lambda: 80.0 * (len(POINTS) - 1) ** 2)
    with pytest.raises(ParameterError, match="a guardrail on 208 arms would need"):
        experiment.extend(ArmSet(POINTS))
    assert len(experiment.arms) == len(POINTS) - 1
    assert experiment.ask() is not None
    with pytest.raises(ParameterError, match="take fewer arms or no guardrail"):
        Experiment.memory(ArmSet(POINTS), policy, **guarded)
