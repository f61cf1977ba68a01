"""Intervals for what rules would have earned on a log, and for effects by context, hold at all looks."""

import numpy as np
import pytest
from scipy.stats import binom

from inside.estimate import RuleMeasure, follow_rules
from orthobandit.estimate import Asymptotic, Bounded
from rule_worlds import LEVELS, LINES, PLANS, cells_by_hand, gained, make

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

RUNS, DELTA = 100, 0.1
FALSE_ALARM = 1e-6  # of each case
MODES = {"exact": Bounded(0.0, 1.0), "asymptotic": Asymptotic()}


def measure(confidence, *, is_once=False):
    return RuleMeasure(
        reference=0,
        control=0,
        confidence=confidence,
        delta=DELTA,
        effects_delta=DELTA,
        baseline="auto",
        is_once=is_once,
    )


def looks(world, confidence, *, is_once=False):
    """Return whether a gain misses its interval after some bucket, and an effect by context at the end."""
    scores = follow_rules(cells_by_hand(world), measure(confidence, is_once=is_once))
    truth = gained(world)
    missed = False
    if is_once:
        low, high = scores.intervals_once()
        missed = np.any((truth.mean(axis=0) < low) | (truth.mean(axis=0) > high))
    else:
        counted = world.bucket >= scores.buckets[0]
        ends = np.searchsorted(world.bucket[counted], scores.buckets, side="right")
        averages = np.cumsum(truth[counted], axis=0)[ends - 1] / ends[:, np.newaxis]
        for step, average in enumerate(averages):
            low, high = scores.intervals(step)
            missed |= bool(np.any((average < low - 1e-12) | (average > high + 1e-12)))
    found = [scores.effects(arm) for arm in (1, 2)]
    off = [np.any((LINES[arm] < one.lows) | (LINES[arm] > one.highs)) for arm, one in enumerate(found, 1)]
    return missed, any(off)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("level", LEVELS)
def test_gains_and_effects_hold_at_all_looks(level, plan, mode):
    noise = None if mode == "exact" else 0.3
    found = np.array([looks(make(seed, level, plan, noise=noise), MODES[mode]) for seed in range(RUNS)])
    most = binom.isf(FALSE_ALARM, RUNS, DELTA)
    assert found[:, 0].sum() <= most, f"gains missed in {found[:, 0].sum()} of {RUNS} runs"
    assert found[:, 1].sum() <= most, f"effects missed in {found[:, 1].sum()} of {RUNS} runs"


@pytest.mark.parametrize("plan", ["even", "own"])
def test_one_look_holds(plan):
    found = np.array(
        [looks(make(seed, "who comes", plan), MODES["asymptotic"], is_once=True) for seed in range(RUNS)]
    )
    most = binom.isf(FALSE_ALARM, RUNS, DELTA)
    assert found[:, 0].sum() <= most
    assert found[:, 1].sum() <= most


def test_draws_that_know_the_reward_are_found_out():
    # The same test with arms that were not drawn: lucky visitors of A are said to have seen B.
    missed = 0
    for seed in range(40):
        world = make(seed, "who comes", "even", noise=0.3)
        lucky = (world.arm == 0) & (world.reward > 0.9)
        world.arm[lucky] = 1
        missed += looks(world, MODES["asymptotic"])[0]
    assert missed > binom.isf(FALSE_ALARM, 40, DELTA)
