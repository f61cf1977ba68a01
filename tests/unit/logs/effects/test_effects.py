"""Intervals, lifts, verdicts and rows to go."""

import math

import numpy as np
import pytest
from scipy.special import ndtri

from cells_by_hand import cells_of, drawn
from orthobandit import Asymptotic
from orthobandit.logs.effects.effects import (
    LATER,
    NOTHING,
    SOONER,
    effect,
    gaps_of,
    lift_of,
    more_rows,
    verdict_of,
)
from orthobandit.logs.follow import Follower
from orthobandit.logs.measure import Measure


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


def test_rows_to_go_are_about_what_it_takes():
    # Of what a log of this size says is still to come, a longer log of the same kind needs about that.
    one = follower(0.1, rows=2000, seed=5)
    as_is, _, _ = more_rows(one, 0, fixed=False)
    size = abs(float(gaps_of(one.sequence).estimates[0]))
    longer = follower(size, rows=int((2000 + as_is) * 1.3), seed=6)
    assert gaps_of(longer.sequence).low[0] > 0
    shorter = follower(size, rows=int((2000 + as_is) * 0.4), seed=6)
    assert gaps_of(shorter.sequence).low[0] < 0


def test_the_range_of_rows_to_go_at_one_look_is_as_by_hand():
    one = follower(0.05, rows=2000, seed=5)
    gaps = gaps_of(one.sequence)
    size = abs(gaps.estimates[0])
    error = gaps.errors[0]
    z = -ndtri(one.sequence.tuning.alpha[0])
    as_is, least, most = more_rows(one, 0, fixed=True)
    assert as_is == pytest.approx(((z * error / size) ** 2 - 1.0) * one.rows)
    for rows, moved in ((least, SOONER), (most, -LATER)):
        if np.isfinite(rows):
            times = 1.0 + rows / one.rows
            reached = size + moved * error * np.sqrt(1.0 - 1.0 / times)
            assert reached == pytest.approx(z * error / np.sqrt(times))
    assert least < as_is < most


def test_a_gap_that_may_be_nothing_may_take_for_ever():
    one = follower(0.0, rows=2000, seed=8)
    gaps = gaps_of(one.sequence)
    assert abs(gaps.estimates[0]) < LATER * gaps.errors[0]
    _, least, most = more_rows(one, 0, fixed=False)
    assert least < most == np.inf


def test_ordinary_intervals_are_narrower_and_a_share_of_delta_widens():
    one = follower(0.1)
    gaps, halved = gaps_of(one.sequence), gaps_of(one.sequence, 0.5)
    assert gaps.low < gaps.fixed_low
    assert gaps.high > gaps.fixed_high
    assert halved.low < gaps.low
    assert halved.fixed_low < gaps.fixed_low
