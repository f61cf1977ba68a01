"""Ratios of average levels: right under a changing split, free of units, silent where they cannot be told."""

import numpy as np
import pytest

from inside.logs import Asked
from log_worlds import cells_from
from orthobandit.logs.effects.ratios import ratio_result
from ratio_worlds import HOURS, cells_of_ratio, drawn, measure, noisy, ramp, ramped, three

ASKED = Asked("revenue/clicks", "ratio", 0, 1)


def result(cells, *, once=False, **settings):
    return ratio_result(cells, ASKED, measure(**settings), once=once)


@pytest.mark.parametrize("once", [False, True])
def test_a_ramp_does_not_make_equal_ratios_differ(once):
    cells, _ = ramped(np.random.default_rng(0), rows=1000)
    one = result(cells, once=once, delta=0.025).effects[1]
    assert one.verdict == "undecided"
    assert one.estimate == pytest.approx(0.0, abs=0.03)


@pytest.mark.parametrize("once", [False, True])
def test_a_ratio_that_differs_is_found_although_both_move(once):
    rng, plans = np.random.default_rng(1), ramp()
    hour, arm = drawn(rng, plans, 400)
    below = rng.poisson(np.where(arm == 1, 10.0, 5.0)).astype(float)
    above = noisy(rng, np.where(hour < HOURS // 2, 1.0, 2.0) + 0.2 * arm, below)
    found = result(cells_of_ratio(hour, arm, above, below, plans), once=once)
    low, high = found.effects[1].interval
    assert found.effects[1].verdict == "better"
    assert low < 0.2 < high
    assert found.droppable == ("0",)
    assert found.level[0] < 1.5 < found.level[1]


def test_the_units_of_both_parts_do_not_matter():
    rng, plans = np.random.default_rng(2), ramp()
    hour, arm = drawn(rng, plans, 300)
    below = rng.poisson(5.0, len(hour)).astype(float)
    above = noisy(rng, 1.0, below)
    ends = []
    for unit, other in ((1.0, 1.0), (1e6, 1e-3)):
        cells = cells_of_ratio(hour, arm, unit * above, other * below, plans)
        ends.append(np.array(result(cells).effects[1].interval) * other / unit)
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6)


def test_pairs_of_three_arms_share_delta():
    found = result(three(np.random.default_rng(3))[0])
    assert [one.verdict for one in found.effects] == ["reference", "undecided", "undecided"]
    best = found.against_best[0].over
    mine = next(one for one in found.effects if one.arm == best) if best != "0" else found.effects[1]
    again = next(one for one in found.against_best if "0" in (one.arm, one.over))
    widths = [np.ptp(np.array(one.interval)) for one in (mine, again)]
    assert widths[1] > widths[0]  # a third of δ is less than a half


def test_a_denominator_that_may_be_0_is_not_divided_by():
    rng, plans = np.random.default_rng(4), ramp()
    hour, arm = drawn(rng, plans, 400)
    below = rng.standard_normal(len(hour))
    for once in (False, True):
        found = result(cells_of_ratio(hour, arm, below, below, plans), once=once)
        assert found.effects[1].interval == (None, None)
        assert found.effects[1].verdict == "undecided"
        assert found.level == (None, None)
        assert found.against_best == ()


def test_arms_that_no_plan_draws_together_are_not_compared():
    rng = np.random.default_rng(5)
    plans = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    hour = np.repeat(np.arange(HOURS), 200)
    plan = hour % 2
    arm = (rng.random(len(hour)) < 0.5).astype(int) + plan
    below = rng.poisson(5.0, len(hour)).astype(float)
    cells = cells_from(hour, plan, arm, np.column_stack([noisy(rng, 1.0, below), below]), plans)
    found = result(cells)
    assert found.effects[1].interval != (None, None)
    assert found.effects[2].estimate is None


def test_too_few_rows_say_nothing():
    rng = np.random.default_rng(6)
    hour, arm = np.repeat(np.arange(3), 5), rng.integers(0, 2, 15)
    below = rng.poisson(5.0, 15).astype(float)
    cells = cells_from(hour, 0 * hour, arm, np.column_stack([below, below]), np.array([[0.5, 0.5]]))
    assert [one.estimate for one in result(cells).effects] == [0.0, None]
