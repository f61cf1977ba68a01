"""Point estimates of gaps: least squares over plans, each with a level of its own."""

import json

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.estimate import Tally
from orthobandit.estimate.follow.regression import CentredRegression


def tally(counts, means):
    counts = np.array(counts)
    sums = counts * np.array(means, dtype=np.float64)
    return Tally(counts, sums, counts * np.square(means), np.abs(means))


def test_under_one_plan_gaps_are_differences_of_means():
    regression = CentredRegression(3)
    regression.add(1, tally([10, 20, 5], [0.1, 0.4, 0.2]))
    gaps, is_told = regression.gaps(ArmSet.one_hot(3), 0)
    assert gaps == pytest.approx([0.0, 0.3, 0.1])
    assert is_told.all()


def test_a_level_that_moves_between_plans_moves_no_gap():
    regression = CentredRegression(3)
    for plan, (level, counts) in enumerate(((0.0, [10, 20, 5]), (5.0, [1, 30, 9]), (-3.0, [0, 7, 7]))):
        regression.add(plan, tally(counts, level + np.array([0.1, 0.4, 0.2])))
    gaps, _ = regression.gaps(ArmSet.one_hot(3), 2)
    assert gaps == pytest.approx([-0.1, 0.2, 0.0])


def test_it_is_least_squares_with_a_level_for_each_plan():
    rng = np.random.default_rng(3)
    parts = [tally(rng.integers(1, 9, size=4), rng.normal(size=4)) for _ in range(5)]
    regression = CentredRegression(4)
    for plan, part in enumerate(parts):
        regression.add(plan, part)
    rows, values = [], []
    for plan, part in enumerate(parts):
        for arm, count in enumerate(part.counts):
            row = np.zeros(9)
            row[arm] = row[4 + plan] = 1.0
            rows += [row] * int(count)
            values += [part.sums[arm] / count] * int(count)
    solved = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0][:4]
    gaps, _ = regression.gaps(ArmSet.one_hot(4), 1)
    assert gaps == pytest.approx(solved - solved[1])


def test_gaps_of_arms_that_share_features_are_linear_in_them():
    regression = CentredRegression(3)
    regression.add(1, tally([40, 0, 40], [0.0, 0.0, 2.0]))
    gaps, is_told = regression.gaps(ArmSet([[0.0], [1.0], [2.0]]), 0)
    assert gaps == pytest.approx([0.0, 1.0, 2.0])
    assert is_told.all()


def test_what_no_plan_played_beside_others_is_not_told():
    regression = CentredRegression(3)
    regression.add(1, tally([10, 10, 0], [0.1, 0.4, 0.0]))
    regression.add(2, tally([0, 0, 10], [0.0, 0.0, 0.7]))
    gaps, is_told = regression.gaps(ArmSet.one_hot(3), 0)
    assert is_told.tolist() == [True, True, False]
    assert gaps[1] == pytest.approx(0.3)


def test_arms_that_are_the_same_have_no_gaps():
    gaps, is_told = CentredRegression(2).gaps(ArmSet([[1.0], [1.0]]), 0)
    assert gaps.tolist() == [0.0, 0.0]
    assert is_told.all()


def test_sums_survive_json_and_grow_with_new_arms():
    regression = CentredRegression(2)
    regression.add(1, tally([3, 5], [0.1, 0.9]))
    again = CentredRegression.from_json(json.loads(json.dumps(regression.to_json()))).extended(1)
    again.add(2, tally([2, 2, 2], [0.0, 0.8, 0.5]))
    gaps, _ = again.gaps(ArmSet.one_hot(3), 0)
    assert gaps == pytest.approx([0.0, 0.8, 0.5])


def test_a_plan_may_come_in_parts_until_it_is_closed():
    parts = [tally([10, 2, 5], [0.1, 0.4, 0.2]), tally([1, 9, 3], [0.8, 0.5, 0.0])]
    whole, apart = CentredRegression(3), CentredRegression(3)
    whole.add(1, parts[0] + parts[1])
    whole.close(())
    for part in parts:
        apart.add(1, part)
        apart.close((1, 2))
    arms = ArmSet.one_hot(3)
    assert apart.gaps(arms, 0)[0] == pytest.approx(whole.gaps(arms, 0)[0])
