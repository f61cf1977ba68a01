"""Attacks on logs that broke them; each fails until the defect that it names is mended."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom

from inside.estimate import Follower, Measure
from inside.logs import (
    Asked,
    aim_of,
    by_segment,
    follow_metric,
    gaps_of,
    metric_result,
    ratio_result,
    value_of,
)
from log_worlds import cells_from, paid_late, plain
from orthobandit import Asymptotic, Bounded, analyse

pytestmark = pytest.mark.statistical
FALSE_ALARM = 1e-6


def measure(**settings):
    given = {"covariates": (), "confidence": Asymptotic(), "delta": 0.05, "baseline": "auto", "reference": 0}
    return Measure(**({"column": 0, "denominator": None} | given | settings))


def errs(follower, gaps):
    """Tell whether an interval is ever wrong."""
    found = [gaps_of(one.sequence) for one in follower.snapshots]
    return any(np.any((one.low[: len(gaps)] > gaps) | (one.high[: len(gaps)] < gaps)) for one in found)


def rarely_drawn(rng):
    """Nine arms of half a per cent each return 4.2 or 0, as much on average as the tenth; a quiet pilot."""
    p = np.full(10, 0.005)
    p[0] = 1.0 - 9 * 0.005
    hour = np.concatenate([np.zeros(210, dtype=int), 1 + np.arange(8160) // 1020])
    arm = rng.choice(10, len(hour), p=p)
    often = 4.2 * (rng.random(len(hour)) < 0.25)
    reward = np.where(arm > 0, often, 1.05 + rng.standard_normal(len(hour)))
    return plain(hour, arm, np.where(hour == 0, 0.45, 1.0) * reward, p)


def test_arms_that_are_rarely_drawn_are_not_called_worse():
    runs = 120
    wrong = sum(
        errs(Follower(rarely_drawn(np.random.default_rng([23, run])), measure()).run(), np.zeros(9))
        for run in range(runs)
    )
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.05)


def test_a_ratio_that_is_the_same_for_both_arms_is_not_called_better():
    runs, wrong = 12, 0
    for run in range(runs):
        rng = np.random.default_rng([1, run])
        hour, arm = np.arange(8000) // 200, rng.integers(0, 2, 8000)
        clicks = rng.poisson(np.where(arm == 1, 6.0, 5.0)).astype(float)
        revenue = clicks * (1.0 + hour / 20.0) + np.sqrt(clicks) * rng.standard_normal(8000)
        cells = cells_from(hour, 0 * hour, arm, np.column_stack([revenue, clicks]), np.array([[0.5, 0.5]]))
        asked = Asked("revenue/clicks", "ratio", 0, 1)
        wrong += (
            ratio_result(cells, asked, measure(denominator=1), once=False).effects[1].verdict != "undecided"
        )
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.05)


@pytest.mark.parametrize(("arms", "rows"), [(2, 4), (10, 50), (40, 200)])
def test_one_look_at_few_rows_is_as_sure_as_it_says(arms, rows):
    runs, wrong = 200, 0
    for run in range(runs):
        rng = np.random.default_rng([3, run])
        arm, none = rng.integers(0, arms, rows), np.zeros(rows, dtype=int)
        cells = cells_from(none, none, arm, rng.standard_normal((rows, 1)), np.full((1, arms), 1.0 / arms))
        found = gaps_of(follow_metric(cells, measure()).sequence)
        wrong += bool(np.any((found.fixed_low[: arms - 1] > 0) | (found.fixed_high[: arms - 1] < 0)))
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.05)


def at_once(arm, reward, p, **settings):
    """Return the cells of a log without time, and what is said of its reward at one look."""
    none = np.zeros(len(arm), dtype=int)
    cells = cells_from(none, none, arm, np.asarray(reward, dtype=float)[:, np.newaxis], np.array([p]))
    follower = follow_metric(cells, measure(**settings), [aim_of(cells, {str(len(p) - 1): 1.0})])
    return follower, metric_result(Asked("reward", "reward", 0), follower, once=True, history=False)


def rewards_of(kind, rng, count):
    """Return rewards that do not depend on the arm."""
    if isinstance(kind, float):
        return rng.random(count) < kind
    if kind == "rare revenue":
        return np.where(rng.random(count) < 0.05, rng.lognormal(size=count), 0.0)
    return rng.exponential(size=count)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "rows", "share"),
    [
        (0.03, 3000, 0.01),  # wrong in 179 of 400 with z standard errors
        (0.02, 1000, 0.1),  # 58 of 400
        (0.97, 1000, 0.1),  # 41 of 400
        ("rare revenue", 4000, 0.1),
        ("exponential", 1000, 0.05),  # 27 of 400
    ],
)
@pytest.mark.parametrize("mode", [Asymptotic(), Bounded(0.0, 1.0)])
def test_equal_arms_are_told_apart_at_one_look_as_rarely_as_stated(kind, rows, share, mode):
    is_two_valued = isinstance(kind, float)
    if mode.is_exact and not is_two_valued:
        pytest.skip("no range holds them")
    runs, gaps_wrong, values_wrong = 200, 0, 0
    for run in range(runs):
        rng = np.random.default_rng([31, run])
        arm = (rng.random(rows) < share).astype(int)
        reward = rewards_of(kind, rng, rows)
        settings = {"is_two_valued": is_two_valued, "confidence": mode}
        follower, result = at_once(arm, reward, [1.0 - share, share], **settings)
        gaps_wrong += result.effects[1].verdict != "undecided"
        low, high = value_of(follower.scores[1], 0.05, "", once=True).interval
        values_wrong += (low is not None and low > 0) or (high is not None and high < 0)
    assert gaps_wrong <= binom.isf(FALSE_ALARM, runs, 0.05)
    assert values_wrong <= binom.isf(FALSE_ALARM, runs, 0.05)


def test_a_healthy_gap_is_found_at_one_look_as_often_as_by_a_z_test():
    runs, rows, ours, usual = 150, 20_000, 0, 0
    for run in range(runs):
        rng = np.random.default_rng([32, run])
        arm = rng.integers(0, 2, rows)
        reward = rng.random(rows) < np.array([0.05, 0.06])[arm]
        _, result = at_once(arm, reward, [0.5, 0.5], is_two_valued=True)
        ours += result.effects[1].verdict == "better"
        counts, means = np.bincount(arm), np.bincount(arm, reward) / np.bincount(arm)
        usual += np.diff(means)[0] > 1.96 * np.sqrt((means * (1 - means) / counts).sum())
    # The same logs: the two verdicts differ only where a gap is within 2 % of the edge.
    assert ours >= usual - 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "rows", "mode"),
    [(0.1, 60, Bounded(0.0, 1.0)), (0.3, 200, Asymptotic()), ("exponential", 200, Asymptotic())],
)
def test_small_segments_that_are_alike_differ_as_rarely_as_stated(kind, rows, mode):
    runs, count, wrong = 150, 6, 0
    for run in range(runs):
        rng = np.random.default_rng([33, run])
        arm, segment = rng.integers(0, 2, count * rows), np.repeat(np.arange(count), rows)
        reward = np.asarray(rewards_of(kind, rng, count * rows), dtype=float)[:, np.newaxis]
        cells = cells_from(segment, 0 * arm, arm, reward, np.array([[0.5, 0.5]]))
        names = tuple(map(str, range(count)))
        cells = replace(
            cells, segment=cells.bucket, bucket=0 * cells.bucket, times=cells.times[:1], segments=names
        )
        asked = measure(is_two_valued=isinstance(kind, float), confidence=mode)
        (found,) = by_segment(cells, Asked("reward", "reward", 0), asked, once=True)[1]
        wrong += found.p_value is not None and found.p_value <= 0.05
    assert wrong <= binom.isf(FALSE_ALARM, runs, 0.05)


def test_buckets_of_one_row_speak():
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, 2000)
    follower = Follower(plain(np.arange(2000), arm, arm + rng.standard_normal(2000), [0.5, 0.5]), measure())
    assert gaps_of(follower.run().sequence).low[0] > 0


def test_the_value_of_what_the_pilot_drew_from_has_an_interval_of_use():
    rng, plans = np.random.default_rng(0), np.array([[0.5, 0.5], [0.1, 0.9]])
    hour = np.arange(20_000) // 400
    plan = (hour >= 5).astype(int)
    arm = (rng.random(20_000) < plans[plan, 1]).astype(int)
    cells = cells_from(hour, plan, arm, rng.standard_normal((20_000, 1)), plans)
    score = Follower(cells, measure(), [aim_of(cells, [0.5, 0.5])]).run().scores[1]
    assert score.interval()[1] - score.estimate < 8.0 * score.error


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_units_of_rewards_do_not_matter_after_a_pilot_of_zeros(scale):
    rng = np.random.default_rng(0)
    hour, arm = np.arange(40_000) // 1000, rng.integers(0, 2, 40_000)
    reward = (rng.random(40_000) < np.array([0.01, 0.02])[arm]) * (hour > 0)
    ends = []
    for unit in (1.0, scale):
        found = gaps_of(Follower(plain(hour, arm, unit * reward, [0.5, 0.5]), measure()).run().sequence)
        ends.append(found.low[0] / unit)
    assert ends[1] == pytest.approx(ends[0], rel=1e-6)


@pytest.mark.slow
def test_arms_that_pay_alike_but_late_are_not_called_different():
    # With awaited draws counted as silent, all 30 were.
    runs = 30
    different = 0
    for seed in range(runs):
        pages = paid_late(np.random.default_rng([33, seed]), 900, key=f"{seed:032x}")
        (effect,) = analyse(pages).metrics[0].effects[1:]
        different += effect.verdict != "undecided"
    assert different <= binom.isf(FALSE_ALARM, runs, 0.05)


def test_arms_that_are_skewed_to_opposite_sides_are_not_told_apart_at_one_look():
    runs, rows, q, wrong = 150, 2_000, 0.02, 0
    for run in range(runs):
        rng = np.random.default_rng([5, run])
        arm = rng.choice(2, rows, p=[0.95, 0.05])
        # Both have the mean 0. Together they look symmetric; with one skewness for both, 23 runs fail.
        rare = (rng.random(rows) < q) / q - 1.0
        _, result = at_once(arm, np.where(arm == 1, rare, -rare), [0.95, 0.05])
        wrong += result.effects[1].verdict != "undecided"
    assert wrong <= binom.isf(1e-5, runs, 0.05)
