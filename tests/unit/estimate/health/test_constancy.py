"""The test of whether gaps drift: small cases by hand, and how its splits share α."""

import json

import numpy as np
import pytest

from orthobandit import ArmSet, Bounded, Plan, Tally
from orthobandit.errors import ParameterError
from orthobandit.estimate.health.constancy import Constancy, level_of


@pytest.mark.parametrize("gaps", [1, 3])
def test_both_sides_of_both_intervals_of_all_splits_share_alpha(gaps):
    # A false alarm needs one of two intervals of a gap at a split to be wrong, to one of two sides.
    used = sum(4.0 * level_of(0.01, number, gaps).sum() for number in range(1000))
    # Σ 1/((n+1)(n+2)) over n < N is 1 − 1/(N + 1).
    assert used == pytest.approx(0.01 * (1.0 - 1.0 / 1001.0), rel=1e-12)


def watched(gaps, rounds=100, feeds=40, confidence=None, seed=0, arms=2):
    """Return a test that saw feeds with the gap of the last arm given by feed."""
    rng, test = np.random.default_rng(seed), Constancy.start(ArmSet.one_hot(arms), 0, confidence, alpha=0.01)
    for n in range(feeds):
        centre = None if confidence is None else test.sequence.centre()
        plan = Plan(np.full(arms, 1 / arms), rounds, centre)
        drawn = rng.integers(0, arms, rounds)
        means = 0.5 + gaps(n) * (drawn == arms - 1) / 2
        rewards = (rng.random(rounds) < means).astype(float)
        test = test.and_of(
            plan, Tally.of(drawn, plan.residuals(drawn, rewards, 0.5 if centre else 0.0), arms)
        )
        yield test


@pytest.mark.parametrize("confidence", [None, Bounded(0.0, 1.0)])
@pytest.mark.parametrize("arms", [2, 4])
def test_a_gap_that_changes_sign_is_found_and_named(confidence, arms):
    *_, test = watched(lambda n: 0.8 if n < 20 else -0.8, confidence=confidence, arms=arms)
    assert test.alarm
    drift = test.found
    assert (drift.arm, drift.reference) == (arms - 1, 0)
    assert drift.split <= 2000 < drift.found <= 4000
    assert drift.before[1] < drift.after[0] or drift.after[1] < drift.before[0]
    assert drift.before[0] <= 0.4 <= drift.before[1]
    assert f"the gap of arm {arms - 1} over arm 0 was in [" in str(drift)
    assert f"in the first {drift.split:,} rounds" in str(drift)


def test_an_alarm_stays():
    tests = list(watched(lambda n: 0.8 if n < 20 else -0.8, feeds=60))
    first = next(test for test in tests if test.alarm)
    assert all(test.found == first.found for test in tests[tests.index(first) :])


def test_sums_after_a_split_are_those_of_a_sequence_that_began_there():
    tests = list(watched(lambda n: 0.2, confidence=Bounded(0.0, 1.0)))
    number = 2
    split = tests[-1].splits[number]
    begin = next(test for test in tests if test.rounds == split.rounds)
    total = tests[-1].sequence.evidence.totals - begin.sequence.evidence.totals
    weight = tests[-1].sequence.evidence.weights - begin.sequence.evidence.weights
    low, high = tests[-1].after(number)
    assert (low + high) / 2 == pytest.approx(total / weight)
    assert low[0] < 0.1 < high[0]


def test_memory_grows_with_the_logarithm_of_the_rounds():
    tests = list(watched(lambda n: 0.0, feeds=80))
    assert [split.rounds for split in tests[-1].splits] == [100, 200, 400, 800, 1600, 3200, 6400]


@pytest.mark.parametrize("confidence", [None, Bounded(0.0, 1.0)])
def test_a_test_goes_on_after_json_as_if_nothing_had_happened(confidence):
    tests = list(watched(lambda n: 0.8 if n < 20 else -0.8, confidence=confidence))
    for test in (tests[0], tests[5], tests[-1]):
        data = json.loads(json.dumps(test.to_json(), allow_nan=False))
        again = Constancy.from_json(ArmSet.one_hot(2), confidence, data)
        assert again.to_json() == test.to_json()
        centre = None if confidence is None else test.sequence.centre()
        plan, tally = Plan([0.5, 0.5], 4, centre), Tally.of([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.25], 2)
        assert again.and_of(plan, tally).to_json() == test.and_of(plan, tally).to_json()


def test_rounds_beyond_the_end_of_a_plan_count_and_no_rounds_do_not():
    test = Constancy.start(ArmSet.one_hot(2))
    tally = Tally.of([0, 1, 1], [0.0, 1.0, 2.0], 2)
    assert test.and_of(Plan([0.5, 0.5], 1), tally).rounds == 3
    assert test.and_of(Plan([0.5, 0.5], 1), Tally.zeros(2)) is test


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ParameterError, match="reference=2 is not one of at least two arms"):
        Constancy.start(ArmSet.one_hot(2), 2)
    with pytest.raises(ParameterError, match="reference=0 is not one of at least two arms"):
        Constancy.start(ArmSet.one_hot(1))
    with pytest.raises(ParameterError, match="alpha=2"):
        Constancy.start(ArmSet.one_hot(2), alpha=2)
