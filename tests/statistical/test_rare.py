"""Rare large rewards in the asymptotic mode: cases in which one arm's events have yet to be seen.

The worlds are those of ``benchmarks/bench_rare.py``. If runs fail with probability δ or less, each test
fails with probability at most 10⁻⁶ (exact binomial test). Before claims waited for draws of the pair itself,
a fifth of the runs that earn failed in the worlds with q = 0.01 and 0.02, at every δ.
"""

import pytest
from benchmarks.bench_rare import crash, failures, jackpot, one_win, opposite_skew
from scipy.stats import binom

from orthobandit import AnytimeElimination
from orthobandit.estimate import RunningMean

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-6
WORLDS = {
    "opposite skew, q = 0.01": opposite_skew(0.01),
    "opposite skew with some noise, q = 0.01": opposite_skew(0.01, 0.3),
    "1/q once in 1/q draws, q = 0.02": jackpot(0.02),
    "19 once in 20 draws": one_win(0.05),
    "crashes once in 20 draws, beside quiet arms": crash(0.05),
}


def check(name, goal, delta, runs, horizon):
    policy = AnytimeElimination(delta, goal=goal, baseline=RunningMean())
    failed = failures(policy, WORLDS[name], runs, horizon=horizon)
    assert failed <= binom.isf(FALSE_ALARM, runs, delta), f"{failed} of {runs} runs failed"


@pytest.mark.parametrize("goal", ["identify", "earn"])
def test_an_arm_that_has_not_varied_yet_is_not_dropped_for_it(goal):
    check("opposite skew with some noise, q = 0.01", goal, 0.01, 100, 600)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.05, 0.01])
@pytest.mark.parametrize("goal", ["identify", "earn"])
@pytest.mark.parametrize("name", WORLDS)
def test_events_that_are_still_to_come_mislead_no_more_often_than_promised(name, goal, delta):
    check(name, goal, delta, 500, 3000)
