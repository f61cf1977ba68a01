"""Lifts: over the same rounds, in every mode, with and without covariates."""

from dataclasses import replace
from math import exp, log, sqrt

import numpy as np
import pytest
from scipy.special import ndtri

from inside.logs import follow_metric, lifts_of
from log_worlds import cells_from, own_plans
from orthobandit import ArmSet, Bounded
from ratio_worlds import lifted, measure


def lift(cells, *, once=False, **settings):
    (found,) = lifts_of(follow_metric(cells, measure(denominator=None, **settings)), once=once)
    return found


def coins(sales, rows):
    """Return the cells of one look at two arms, with so many sales in so many rows of each."""
    arm = np.repeat([0, 1], rows)
    reward = np.concatenate([np.arange(n) < s for n, s in zip(rows, sales, strict=True)]).astype(float)
    none = np.zeros(len(arm), dtype=int)
    plans = np.array([[rows[0], rows[1]]]) / sum(rows)
    return cells_from(none, none, arm, reward[:, np.newaxis], plans)


@pytest.mark.parametrize("mode", [{}, {"confidence": Bounded(0.0, 1.0)}], ids=["asymptotic", "exact"])
@pytest.mark.parametrize(("sales", "rows"), [((122, 267), (21_306, 21_387)), ((60, 90), (3_000, 1_500))])
def test_one_look_at_sales_is_the_usual_interval_of_a_log_ratio(sales, rows, mode):
    low, high = lift(coins(sales, rows), once=True, **mode)
    ratio = sales[1] / rows[1] / (sales[0] / rows[0])
    error = sqrt(sum(1.0 / s - 1.0 / n for s, n in zip(sales, rows, strict=True)))
    usual = [ratio * exp(side * -ndtri(0.025) * error) - 1.0 for side in (-1, 1)]
    assert log1p_width((low, high)) == pytest.approx(log1p_width(usual), rel=0.04)
    assert (low, high) == pytest.approx(usual, abs=0.05 * (1.0 + usual[1]))


def log1p_width(ends):
    return log(1.0 + ends[1]) - log(1.0 + ends[0])


@pytest.mark.parametrize("sales", [(90, 0), (90, 5), (5, 90)])
def test_one_look_at_few_sales_says_nothing_of_a_lift(sales):
    assert lift(coins(sales, (3_000, 3_000)), once=True) == (None, None)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("mode", [{}, {"confidence": Bounded(0.0, 1.0)}], ids=["asymptotic", "exact"])
def test_an_arm_that_multiplies_has_its_factor_whatever_level_and_split_do(once, mode):
    low, high = lift(lifted(np.random.default_rng(0), rows=2_000, of_coins=True), once=once, **mode)
    assert low < 0.2 < high
    assert low > 0.0
    assert high - low < 0.2


def test_what_cannot_be_negative_cannot_fall_by_more_than_all_of_it():
    none = np.zeros(400, dtype=int)
    arm = np.tile([0, 1], 200)
    plans = np.array([[0.5, 0.5]])

    def lowest(first, confidence):
        reward = np.where(arm == 0, 0.3, 0.05) * (np.arange(400) // 2 % 3 > 0)
        cells = cells_from(np.arange(400) // 40, none, arm, (reward + first)[:, np.newaxis], plans)
        return lift(cells, confidence=confidence)[0]

    assert lowest(0.0, Bounded(0.0, 1.0)) == -1.0
    assert lowest(0.0, Bounded(-0.01, 1.0)) < -1.0  # a loss may be more than all of it


def test_covariates_narrow_a_lift():
    rng = np.random.default_rng(1)
    hour, arm = np.repeat(np.arange(40), 200), rng.integers(0, 2, 8_000)
    before = rng.standard_normal(8_000)
    reward = 10.0 + arm + 3.0 * before + rng.standard_normal(8_000)
    cells = cells_from(hour, 0 * hour, arm, np.column_stack([reward, before]), np.array([[0.5, 0.5]]))
    plain, adjusted = (lift(cells, covariates=chosen) for chosen in ((), (1,)))
    assert adjusted[0] < 0.1 < adjusted[1]
    assert adjusted[1] - adjusted[0] < 0.6 * (plain[1] - plain[0])


def test_a_level_that_may_be_0_has_no_lift():
    cells, _, mode, covariates = own_plans(np.random.default_rng(2))
    for once in (False, True):
        assert lift(cells, once=once, confidence=mode, covariates=covariates) == (None, None)


def test_features_still_tell_of_arms():
    rng = np.random.default_rng(3)
    plans, hour = np.full((1, 4), 0.25), np.repeat(np.arange(40), 200)
    arm = rng.integers(0, 4, len(hour))
    reward = 10.0 + 0.5 * arm + rng.standard_normal(len(hour))
    cells = cells_from(hour, 0 * hour, arm, reward[:, np.newaxis], plans)
    on_a_line = replace(cells, arms=ArmSet(np.arange(4.0)[:, np.newaxis]))
    for once in (False, True):
        one, other = (
            lifts_of(follow_metric(log_, measure(denominator=None)), once=once) for log_ in (cells, on_a_line)
        )
        for place, (low, high) in enumerate(other):
            assert low < 0.05 * (place + 1) < high
        assert np.ptp(np.array(other[0])) < np.ptp(np.array(one[0]))
