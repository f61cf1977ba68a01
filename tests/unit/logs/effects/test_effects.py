"""Intervals, lifts, verdicts and rows to go."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from cells_by_hand import cells_of, drawn
from inside.estimate import Follower, Measure
from orthobandit import Asymptotic
from orthobandit.logs.effects.effects import (
    NOTHING,
    Gaps,
    close_gaps,
    effect,
    gaps_of,
    lift_of,
    more_rows,
    unknown_effect,
    verdict_of,
    with_lift,
)


def follower(gap, rows=4000, seed=1):
    rng = np.random.default_rng(seed)
    log = drawn(rng, [[0.5, 0.5]], np.zeros(rows, dtype=int), np.arange(rows) // 50, gaps=[0.0, gap])
    return Follower(cells_of(log), Measure(0, None, (), Asymptotic(), 0.05, "mean", 0)).run()


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [((0.1, 0.2), "better"), ((-0.2, -0.1), "worse"), ((-0.1, 0.1), "undecided"), (NOTHING, "undecided")],
)
def test_verdicts(interval, verdict):
    assert verdict_of(interval) == verdict


@pytest.mark.parametrize(
    ("gap", "level", "lift"),
    [
        ((0.1, 0.2), (1.0, 2.0), (0.05, 0.2)),
        ((-0.1, 0.2), (1.0, 2.0), (-0.1, 0.2)),
        ((-0.2, -0.1), (1.0, 2.0), (-0.2, -0.05)),
        ((0.1, 0.2), (-0.1, 2.0), NOTHING),
        ((-math.inf, 0.2), (1.0, 2.0), NOTHING),
    ],
)
def test_a_lift_is_the_box_of_gap_and_level(gap, level, lift):
    assert lift_of(gap, level) == lift


@pytest.mark.parametrize(
    ("interval", "lift", "shown"),
    [
        ((0.1, 0.2), (0.01, 0.2), (0.01, 0.2)),
        ((-0.1, 0.2), (0.01, 0.2), (0.0, 0.2)),
        ((-0.1, 0.2), (-0.2, -0.1), (-0.2, 0.0)),
        (NOTHING, (0.01, 0.2), NOTHING),
        ((0.1, 0.2), NOTHING, NOTHING),
    ],
)
def test_a_lift_never_says_more_than_its_gap(interval, lift, shown):
    one = replace(unknown_effect("new", "old"), interval=interval, verdict=verdict_of(interval))
    assert with_lift(one, lift).lift == shown


def test_a_large_gap_is_decided_and_a_small_one_has_rows_to_go():
    large, small = follower(0.5), follower(0.03)
    found = effect(large, gaps_of(large.sequence), 0, 1.0, fixed=False)
    assert (found.verdict, found.more_rows, found.arm, found.over) == ("better", None, "1", "0")
    found = effect(small, gaps_of(small.sequence), 0, 1.0, fixed=False)
    assert found.verdict == "undecided"
    assert found.more_rows[1] < found.more_rows[0] < found.more_rows[2]


def test_the_reverse_of_a_pair_is_its_mirror():
    one = follower(0.5)
    gaps = gaps_of(one.sequence)
    there, back = (effect(one, gaps, 0, sign, fixed=False) for sign in (1.0, -1.0))
    assert back.interval == (-there.interval[1], -there.interval[0])
    assert back.verdict == "worse"
    assert (back.arm, back.over) == (there.over, there.arm)


def standard_error(one):
    evidence = one.sequence.evidence
    return float(np.sqrt(evidence.variances[0]) / evidence.weights[0])


def test_rows_to_go_are_about_what_it_takes():
    # Logs of the same kind are decided within the range, give or take, as half of them are before its middle.
    one = follower(0.1, rows=2000, seed=5)
    middle, soonest, latest = more_rows(one, gaps_of(one.sequence), 0, fixed=False)
    assert soonest < middle < latest
    size = abs(float(gaps_of(one.sequence).estimates[0]))
    longer = follower(size, rows=int((2000 + middle) * 1.5), seed=6)
    assert gaps_of(longer.sequence).low[0] > 0
    shorter = follower(size, rows=int((2000 + middle) * 0.4), seed=6)
    assert gaps_of(shorter.sequence).low[0] < 0


def test_the_range_of_rows_to_go_at_one_look_is_as_by_hand():
    one = follower(0.05, rows=2000, seed=5)
    gaps = gaps_of(one.sequence)
    size = abs(gaps.estimates[0])
    error = standard_error(one)
    z = (size - gaps.fixed_low[0]) / error
    middle, soonest, latest = more_rows(one, gaps_of(one.sequence), 0, fixed=True)
    assert middle == pytest.approx(((z * error / size) ** 2 - 1.0) * one.rows)
    for rows, share in ((soonest, 0.05), (latest, 0.8)):
        if np.isfinite(rows):
            times = 1.0 + rows / one.rows
            reached = size - ndtri(share) * error * np.sqrt(1.0 - 1.0 / times)
            assert reached == pytest.approx(z * error / np.sqrt(times))
    assert soonest < middle < latest


def test_a_gap_that_is_undecided_by_a_hair_has_few_rows_to_go():
    # Margins for one look are wider than normal ones, by which this gap would be decided.
    one = follower(0.05, rows=2000, seed=5)
    gaps = gaps_of(one.sequence)
    error = standard_error(one)
    z = -ndtri(one.sequence.tuning.alpha[0])
    gaps = replace(gaps, estimates=np.array([1.01 * z * error]), fixed_low=np.array([-0.01 * z * error]))
    middle, soonest, latest = more_rows(one, gaps, 0, fixed=True)
    assert 0.0 <= soonest < middle < latest
    assert middle < 0.05 * one.rows


def test_a_gap_that_may_be_nothing_may_take_for_ever():
    one = follower(0.0, rows=2000, seed=8)
    _, soonest, latest = more_rows(one, gaps_of(one.sequence), 0, fixed=False)
    assert soonest < 20 * one.rows < 50 * one.rows < latest


def test_ordinary_intervals_are_narrower_and_a_share_of_delta_widens():
    one = follower(0.1)
    gaps, halved = gaps_of(one.sequence), gaps_of(one.sequence, 0.5)
    assert gaps.low < gaps.fixed_low
    assert gaps.high > gaps.fixed_high
    assert halved.low < gaps.low
    assert halved.fixed_low < gaps.fixed_low


ALL_PAIRS = np.array([[0, 1], [0, 2], [1, 2]])


def three_gaps(low, high, estimates=(0.0, 0.0, 0.0), fixed=((-9.0, -9.0, -9.0), (9.0, 9.0, 9.0))):
    """Return gaps 0 − 1, 0 − 2 and 1 − 2 with these intervals; those for one look are `fixed`."""
    fixed_low, fixed_high = fixed
    parts = (estimates, low, high, fixed_low, fixed_high)
    return Gaps(*(np.array(part, dtype=float) for part in parts), share=1.0)


def test_two_gaps_narrow_the_third():
    # 0 − 1 in [1, 2] and 1 − 2 in [1, 3] put 0 − 2 between 2 and 5, whatever was known of it alone.
    found = close_gaps(three_gaps([1, -9, 1], [2, 9, 3]), ALL_PAIRS, 3, once=False)
    assert found.low == pytest.approx([1, 2, 1])
    assert found.high == pytest.approx([2, 5, 3])
    # Its estimate is moved to the nearest number that is still possible, as are all others.
    assert found.estimates == pytest.approx([1, 2, 1])
    # Intervals for one look are left alone: they rest on another event.
    assert found.fixed_low.tolist() == [-9, -9, -9]


def test_intervals_at_one_look_are_closed_by_themselves():
    given = three_gaps([-7, -7, -7], [7, 7, 7], fixed=([1, -9, 1], [2, 9, 3]))
    found = close_gaps(given, ALL_PAIRS, 3, once=True)
    assert found.fixed_low == pytest.approx([1, 2, 1])
    assert found.fixed_high == pytest.approx([2, 5, 3])
    assert (found.low.tolist(), found.high.tolist()) == ([-7, -7, -7], [7, 7, 7])


def test_pairs_of_which_nothing_is_known_follow_from_the_others_or_stay_open():
    nan = np.nan
    found = close_gaps(
        three_gaps([1, nan, 1], [2, nan, 3], estimates=(1.5, nan, 2.0)), ALL_PAIRS, 3, once=False
    )
    assert (found.low[1], found.high[1]) == pytest.approx((2, 5))
    assert np.isnan(found.estimates[1])  # an interval that follows is no estimate
    found = close_gaps(three_gaps([1, nan, nan], [2, nan, nan]), ALL_PAIRS, 3, once=False)
    assert (found.low[1], found.high[1]) == (-np.inf, np.inf)


def test_gaps_that_contradict_each_other_are_not_shown():
    # 0 beats 1, 1 beats 2 and 2 beats 0.
    assert close_gaps(three_gaps([1, -3, 1], [2, -1, 2]), ALL_PAIRS, 3, once=False) is None
    # The same at one look, where the intervals for any time still fit.
    given = three_gaps([-9, -9, -9], [9, 9, 9], fixed=([1, -3, 1], [2, -1, 2]))
    assert close_gaps(given, ALL_PAIRS, 3, once=True) is None
    assert close_gaps(given, ALL_PAIRS, 3, once=False) is not None
    # Point intervals that fit but for rounding are none.
    exact = three_gaps([0.1, 0.3, 0.2], [0.1, 0.3, 0.2])
    assert close_gaps(exact, ALL_PAIRS, 3, once=False).low == pytest.approx([0.1, 0.3, 0.2])


def test_closing_cuts_off_no_truth_that_is_in_all_intervals():
    rng = np.random.default_rng(0)
    for _ in range(200):
        means = rng.normal(size=3)
        truth = means[ALL_PAIRS[:, 0]] - means[ALL_PAIRS[:, 1]]
        given = three_gaps(truth - rng.exponential(size=3), truth + rng.exponential(size=3))
        found = close_gaps(given, ALL_PAIRS, 3, once=False)
        assert np.all(found.low <= truth + 1e-12)
        assert np.all(truth <= found.high + 1e-12)
        assert np.all((found.low >= given.low - 1e-12) & (found.high <= given.high + 1e-12))
