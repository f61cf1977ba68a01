"""Scores of rules, from groups of rows."""

from dataclasses import replace

import numpy as np
import pytest

from orthobandit.estimate import Asymptotic, Bounded, SubGaussian
from orthobandit.estimate.follow.rules import RuleMeasure, follow_rules, fourfold_places, rows_changed
from rule_worlds import LINES, cells_by_hand, choices, gained, make

MEASURE = RuleMeasure(
    reference=0,
    control=0,
    confidence=Asymptotic(),
    delta=0.05,
    effects_delta=0.05,
    baseline="auto",
    is_once=False,
)


def test_sums_of_groups_are_those_of_single_rows():
    world = make(1, "who comes", "own", noise=0.3)
    cells = cells_by_hand(world)
    scores = follow_rules(cells, MEASURE)
    # Row by row, with the residual and the values that the group of each row has.
    choice = choices(world)
    keys = np.column_stack([cells.bucket, cells.arm, cells.choice])
    place = {tuple(key): number for number, key in enumerate(keys.tolist())}
    late = {tuple(key): number for number, key in enumerate(keys[cells.bucket >= scores.buckets[0]].tolist())}
    total = np.zeros(choice.shape[1])
    squares = np.zeros(choice.shape[1])
    for row in np.flatnonzero(world.bucket >= scores.buckets[0]):
        key = (world.bucket[row], world.arm[row], *choice[row])
        assert key in place
        number = late[key]
        u = np.array([1.0, world.reward[row], *world.context[row]])
        residual = float(u @ scores._coefficients[number])
        values = scores._values[number]
        side = (choice[row] == world.arm[row]).astype(float) - float(choice[row, 0] == world.arm[row])
        pulled = side / world.p[row, world.arm[row]] * residual
        total += values[choice[row]] - values[choice[row, 0]] + pulled
        squares += pulled**2
    found = scores.evidence.at(-1)
    assert found.totals == pytest.approx(total, abs=1e-8)
    assert found.variances == pytest.approx(squares, abs=1e-8)
    assert found.weights.tolist() == [float(np.sum(world.bucket >= scores.buckets[0]))] * 5


def test_without_noise_and_with_a_known_level_gains_are_exact():
    world = make(2, "drift", "own", noise=0.0)
    world.reward = gained(world)[np.arange(len(world.arm)), 0] + 2.0  # the same for all: no effect at all
    scores = follow_rules(cells_by_hand(world), replace(MEASURE, is_once=True))
    assert scores.estimates() == pytest.approx(np.zeros(5), abs=1e-9)


def test_clipping_may_have_moved_gains_by_as_much_as_their_pulls_say():
    world = make(1, "who comes", "own", noise=0.3)
    mode = SubGaussian(-5.0, 5.0, 0.3)
    scores = follow_rules(cells_by_hand(world), replace(MEASURE, confidence=mode))
    late = world.bucket >= scores.buckets[0]
    choice, p = choices(world)[late], world.p[late]
    rows = np.arange(len(choice))
    own, over = (1.0 / p[rows, chosen] for chosen in (choice[:, 1], choice[:, 0]))
    factor = np.where(choice[:, 1] != choice[:, 0], own + over, 0.0)
    slack = scores.evidence.at(-1).slack[1]
    assert slack >= mode.bias * np.sqrt(factor).sum() * (1.0 - 1e-9)
    assert slack <= mode.bias * np.sqrt(len(factor) * factor.sum()) * (1.0 + 1e-9)


@pytest.mark.parametrize("confidence", [Asymptotic(), Bounded(0.0, 1.0)], ids=["asymptotic", "exact"])
def test_intervals_hold_the_truth_and_effects_the_lines(confidence):
    world = make(3, "who comes", "own", rows=400)
    scores = follow_rules(cells_by_hand(world), replace(MEASURE, confidence=confidence))
    truth = gained(world)[world.bucket >= scores.buckets[0]].mean(axis=0)
    low, high = scores.intervals()
    assert np.all((low <= truth + 1e-12) & (truth <= high + 1e-12))
    assert np.all(np.isfinite(high))
    for arm in (1, 2):
        found = scores.effects(arm)
        assert np.all((found.lows < LINES[arm]) & (LINES[arm] < found.highs))


def test_a_forecast_of_groups_narrows_intervals_where_the_level_depends_on_who_comes():
    world = make(4, "who comes", "even", rows=200, noise=0.1)
    told = follow_rules(cells_by_hand(world), MEASURE)
    # The same rows, but nothing tells visitors apart: no context, and rules that are the same for all.
    cells = cells_by_hand(world)
    places = fourfold_places(4)
    blind = replace(
        cells,
        columns=cells.columns[:1],
        choice=cells.choice[:, :3],
        products=cells.products[:, :2, :2],
        inverse=cells.inverse[..., :2, :2],
        fourfold=cells.fourfold[:, [places[four] for four in fourfold_places(2)]],
        low=cells.low[:, :2],
        high=cells.high[:, :2],
    )
    without = follow_rules(blind, replace(MEASURE, delta=0.025))  # two rules instead of four: the same α
    widths = [np.subtract(*one.intervals()[::-1])[1] for one in (told, without)]
    assert widths[0] < 0.8 * widths[1]


def test_a_rule_that_never_differs_earns_exactly_the_same():
    cells = cells_by_hand(make(5, "drift", "even"))
    cells = replace(cells, choice=np.column_stack([cells.choice, cells.choice[:, 0]]))
    scores = follow_rules(cells, MEASURE)
    low, high = scores.intervals()
    assert (low[-1], scores.estimates()[-1], high[-1]) == (0.0, 0.0, 0.0)
    assert rows_changed(cells, 0)[-1] == 0


def test_a_log_of_the_first_bucket_alone_counts_nothing():
    cells = cells_by_hand(make(6, "drift", "even"))
    assert follow_rules(cells.only(cells.bucket == 0), MEASURE) is None


def test_intervals_do_not_depend_on_the_units_of_reward_and_context():
    world = make(7, "who comes", "own", noise=0.3)
    scores = follow_rules(cells_by_hand(world), MEASURE)
    world.reward = 1000.0 * world.reward
    again = cells_by_hand(world)
    # Hours in seconds; rules choose as before.
    again = replace(
        again,
        products=_scaled(again.products),
        inverse=_scaled(again.inverse),
        fourfold=again.fourfold * [3600.0 ** four.count(3) for four in fourfold_places(4)],
        low=again.low * np.array([1.0, 1.0, 1.0, 3600.0]),
        high=again.high * np.array([1.0, 1.0, 1.0, 3600.0]),
    )
    other = follow_rules(again, MEASURE)
    assert np.array(other.intervals()) == pytest.approx(1000.0 * np.array(scores.intervals()), rel=1e-9)
    one = scores.effects(1)
    two = other.effects(1)
    units = np.array([1000.0, 1000.0, 1000.0 / 3600.0])
    assert two.estimates == pytest.approx(units * one.estimates, rel=1e-6)
    assert two.highs - two.lows == pytest.approx(units * (one.highs - one.lows), rel=1e-6)


def _scaled(products):
    unit = np.array([1.0, 1.0, 1.0, 3600.0])
    return products * np.outer(unit, unit)


def test_a_column_that_never_varies_has_no_effect_to_tell():
    world = make(8, "drift", "even", noise=0.3)
    world.context[:, 1] = 12.0
    scores = follow_rules(cells_by_hand(world), MEASURE)
    assert np.all(np.isinf(scores.effects(1).highs))
