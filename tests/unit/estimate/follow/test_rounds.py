"""Intervals of a live metric: how δ is shared by arms that come later, and what a restart keeps."""

import json

import numpy as np
import pytest

from orthobandit import ArmSet, Asymptotic, Bounded, Guardrail, Plan
from orthobandit.estimate.follow.guardrails import judge
from orthobandit.estimate.follow.rounds import LEVEL_SHARE, MOST_ARMS, GapIntervals, Sums

MODE = Bounded(0.0, 1.0)
EVEN = {1: Plan([0.5, 0.5], 1000, number=1), 2: Plan([1 / 3] * 3, 1000, number=2)}


def fed(intervals, distribution, count=300, seed=0):
    rng = np.random.default_rng(seed)
    arms = rng.integers(0, len(intervals.arms), count)
    intervals.add(distribution, arms, (rng.random(count) < 0.3 + 0.4 * (arms == 1)) - 0.5)
    return intervals


def test_sums_one_by_one_are_sums_at_once():
    rng = np.random.default_rng(1)
    arms, values = rng.integers(0, 3, 50), rng.normal(size=50)
    one, other = Sums(3), Sums(3)
    other.add(arms, values)
    for place in range(50):
        one.add(arms[place : place + 1], values[place : place + 1])
    for part in ("counts", "sums", "squares", "largest"):
        assert getattr(one, part) == pytest.approx(getattr(other, part), rel=1e-12)


def test_arms_that_come_later_never_spend_more_than_delta():
    intervals = GapIntervals(MODE, ArmSet.one_hot(2), 0, 0.1)
    for count in range(3, 10):
        intervals.extend(ArmSet.one_hot(count))
    # Both sides of every gap: α is δ/2 of each.
    spent = sum(2.0 * sequence.tuning.alpha.sum() for sequence in intervals._sequences)
    spent += LEVEL_SHARE * intervals.delta  # of the average reward
    assert 0.099 < spent <= 0.1


def test_rounds_before_an_arm_was_added_are_no_evidence_on_it():
    intervals = fed(GapIntervals(MODE, ArmSet.one_hot(2), 0, 0.05), 1)
    intervals.flush(EVEN)
    before = intervals.intervals(EVEN)
    intervals.extend(ArmSet.one_hot(3), first_plan=2)
    estimate, low, high = intervals.intervals(EVEN)
    assert (estimate[2], low[2], high[2]) == (0.0, -1.0, 1.0)
    assert [part[1] for part in (estimate, low, high)] == [part[1] for part in before]
    estimate, low, high = fed(intervals, 2).intervals(EVEN)
    assert -1.0 < low[2] < estimate[2] < high[2] < 1.0


def test_a_restart_goes_on_as_if_nothing_had_happened():
    live = fed(GapIntervals(MODE, ArmSet.one_hot(2), 0, 0.05), 1)
    live.flush(EVEN)
    fed(live, 1, seed=1)
    again = GapIntervals(MODE, ArmSet.one_hot(2), 0, 0.05)
    again.load(json.loads(json.dumps(live.to_json())))
    for one, other in zip(again.intervals(EVEN), live.intervals(EVEN), strict=True):
        assert one.tolist() == other.tolist()


def test_with_very_many_arms_nothing_is_followed():
    intervals = GapIntervals(Asymptotic(), ArmSet.one_hot(MOST_ARMS + 1), 0, 0.05)
    estimate, low, high = intervals.intervals({})
    assert not estimate.any()
    assert np.isinf(low[1:]).all()
    assert np.isinf(high[1:]).all()
    assert np.isnan(intervals.deviation)


@pytest.mark.parametrize("worse", ["higher", "lower"])
def test_a_guardrail_harms_one_side_and_clears_the_other(worse):
    intervals = fed(GapIntervals(MODE, ArmSet.one_hot(2), 0, 0.05), 1, count=900)
    judged = judge(Guardrail("crash", 0.05, worse, harm=0.1), intervals, EVEN)
    assert judged.harmed.tolist() == [False, worse == "higher"]
    assert judged.cleared.tolist() == [True, worse == "lower"]
    assert judged.limit == pytest.approx(0.15)


def test_the_average_is_that_of_the_rewards_and_survives_a_restart():
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 2, 400)
    rewards = (rng.random(400) < 0.3).astype(float)
    forecasts = rng.uniform(-1.0, 2.0, 400)  # clipped to the range, as residuals take them
    live = GapIntervals(MODE, ArmSet.one_hot(2), 0, 0.05)
    for part in np.array_split(np.arange(400), [1, 2, 150]):
        residuals = live.centre.residuals(arms[part], rewards[part], forecasts[part])
        live.add(1, arms[part], residuals, forecasts[part])
        if len(part) > 100:
            live.flush(EVEN)
    found = live.average(EVEN)
    assert found.estimate == pytest.approx(rewards.mean(), rel=1e-12)
    assert found.shares.tolist() == [np.mean(arms == 0), np.mean(arms == 1)]
    assert found.low < 0.3 < found.high
    again = GapIntervals(MODE, ArmSet.one_hot(2), 0, 0.05)
    again.load(json.loads(json.dumps(live.to_json())))
    assert (again.average(EVEN).low, again.average(EVEN).high) == (found.low, found.high)
