"""Ratios and lifts of logs are wrong no more often than stated, at any look."""

import numpy as np
import pytest
from scipy.stats import binom
from tests.failure_rates import assert_kept

from inside.logs import (
    Asked,
    Joint,
    RatioScores,
    constant_ratios,
    difference_of_ratios,
    follow_metric,
    gap_and_level,
    lift_at_all_times,
    lifts_of,
    ratio_result,
    series_of,
)
from log_worlds import cells_from
from orthobandit import Asymptotic, Bounded
from ratio_worlds import RATIO_WORLDS, even, lifted, measure, ramped

pytestmark = pytest.mark.statistical
FALSE_ALARM = 1e-6
LOOKS = 8  # at which the differences of a log are looked at


def is_outside(ends, truth):
    low, high = ends
    return (low is not None and truth < low) or (high is not None and truth > high)


@pytest.mark.slow
def test_equal_ratios_under_a_ramp_are_not_called_different():
    runs, wrong, asked = 40, 0, Asked("revenue/clicks", "ratio", 0, 1)
    for run in range(runs):
        cells, _ = ramped(np.random.default_rng([1, run]), rows=1000)
        found = ratio_result(cells, asked, measure(delta=0.025), once=False)
        wrong += found.effects[1].verdict != "undecided"
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.025)


@pytest.mark.parametrize("most", [12, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", RATIO_WORLDS)
def test_no_difference_of_ratios_is_ever_wrong_more_often_than_stated(name, most):
    def is_wrong(run):
        cells, truth = RATIO_WORLDS[name](np.random.default_rng([2, run]))
        scores = RatioScores.of(cells, measure())
        for arm in range(1, len(cells.arms)):
            path = scores.path(arm, 0)
            steps = len(path.weights)
            for step in np.unique(np.geomspace(1, steps, LOOKS).astype(int)) - 1:
                region = scores.region(path.at(step), 0.05 / (len(cells.arms) - 1), once=False)
                hour = len(truth) - steps + step
                if is_outside(difference_of_ratios(region), truth[hour, arm - 1]):
                    return True
        return False

    def failures(first, runs):
        return sum(map(is_wrong, range(first, first + runs)))

    assert_kept(0.05, failures, most, false_alarm=FALSE_ALARM)


@pytest.mark.slow
@pytest.mark.parametrize("name", RATIO_WORLDS)
def test_one_look_at_a_ratio_is_as_sure_as_it_says(name):
    runs, wrong, asked = 200, 0, Asked("revenue/clicks", "ratio", 0, 1)
    for run in range(runs):
        cells, truth = RATIO_WORLDS[name](np.random.default_rng([3, run]))
        found = ratio_result(cells, asked, measure(), once=True).effects[1:]
        wrong += any(is_outside(one.interval, gap) for one, gap in zip(found, truth[-1], strict=True))
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.05)


@pytest.mark.slow
def test_ratios_that_do_not_drift_raise_no_alarm():
    runs = 20
    alarms = sum(
        constant_ratios("n/d", RatioScores.of(world(np.random.default_rng([4, run]))[0], measure())).status
        == "alarm"
        for run in range(runs)
        for world in (ramped, even)
    )
    assert alarms <= binom.isf(FALSE_ALARM, 2 * runs, 1e-3)


@pytest.mark.parametrize("most", [20, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("of_coins", [False, True])
def test_no_lift_is_ever_wrong_more_often_than_stated(of_coins, most):
    def is_wrong(run):
        cells = lifted(np.random.default_rng([5, run]), of_coins=of_coins)
        follower = follow_metric(cells, measure(denominator=None))
        joint = Joint(cells, series_of(follower))
        path = joint.pair(1, 0).mapped(gap_and_level(joint))
        return any(
            is_outside(lift_at_all_times(path.at(step), 0.05), 0.2) for step in range(len(path.weights))
        )

    def failures(first, runs):
        return sum(map(is_wrong, range(first, first + runs)))

    assert_kept(0.05, failures, most, false_alarm=FALSE_ALARM)


@pytest.mark.parametrize(("mode", "of_coins"), [(Asymptotic(), False), (Bounded(0.0, 1.0), True)])
@pytest.mark.parametrize("once", [False, True])
def test_the_lift_of_an_arm_that_multiplies_is_covered_under_a_ramp(mode, of_coins, once):
    runs, wrong = 25, 0
    for run in range(runs):
        cells = lifted(np.random.default_rng([6, run]), rows=1000, of_coins=of_coins)
        (found,) = lifts_of(follow_metric(cells, measure(denominator=None, confidence=mode)), once=once)
        wrong += is_outside(found, 0.2)
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "share", "rates"),
    [
        (1_000, 0.5, (0.03, 0.03)),
        (1_000, 0.1, (0.05, 0.05)),
        (3_000, 0.01, (0.03, 0.03)),
        (3_000, 0.5, (0.01, 0.03)),
    ],
)
def test_one_look_at_few_sales_is_as_sure_of_lifts_as_it_says(rows, share, rates):
    runs, wrong, none = 300, 0, np.zeros(rows, dtype=int)
    for run in range(runs):
        rng = np.random.default_rng([7, run])
        arm = (rng.random(rows) < share).astype(int)
        reward = (rng.random(rows) < np.array(rates)[arm]).astype(float)
        cells = cells_from(none, none, arm, reward[:, np.newaxis], np.array([[1.0 - share, share]]))
        (found,) = lifts_of(follow_metric(cells, measure(denominator=None)), once=True)
        wrong += is_outside(found, rates[1] / rates[0] - 1.0)
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.05)


def hardly_failing(rng, rows, share, rate, items):
    """Return one look at visits whose items nearly all succeed, equally often with both arms."""
    none = np.zeros(rows, dtype=int)
    arm = (rng.random(rows) < share).astype(int)
    below = np.ones(rows, dtype=int) if items is None else rng.binomial(4, items, rows)
    above = rng.binomial(below, rate)
    values = np.column_stack([above, below]).astype(float)
    return cells_from(none, none, arm, values, np.array([[1.0 - share, share]]))


@pytest.mark.parametrize(
    ("rows", "share", "rate", "items"),
    [
        (500, 0.05, 0.99, None),  # without the pool both are wrong in 20 of 100
        (2_000, 0.05, 0.98, 0.12),
    ],
)
def test_an_arm_that_has_not_failed_yet_is_not_called_better_at_one_look(rows, share, rate, items):
    runs, ratios, lifts, asked = 150, 0, 0, Asked("passed/items", "ratio", 0, 1)
    for run in range(runs):
        cells = hardly_failing(np.random.default_rng([8, run]), rows, share, rate, items)
        found = ratio_result(cells, asked, measure(), once=True).effects[1]
        ratios += is_outside(found.interval, 0.0)
        (lift,) = lifts_of(follow_metric(cells, measure(denominator=None)), once=True)
        lifts += is_outside(lift, 0.0)
    assert ratios <= binom.isf(FALSE_ALARM, runs, 0.05)
    assert lifts <= binom.isf(FALSE_ALARM, runs, 0.05)
