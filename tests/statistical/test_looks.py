"""Looks at what grows: daily analyses of a log, reports of a live experiment, each until it is decided."""

import numpy as np
import pytest
from tests.failure_rates import assert_kept

from inside.estimate import Follower, Measure
from inside.logs import Gathered, close_gaps, follow_metric, gaps_of, rows_to_go
from log_looks import (
    BEST,
    GAPS,
    PLANS,
    SIX_GAPS,
    SIX_PLANS,
    first_rows,
    growing_log,
    looks,
    reports,
    reports_of_six,
)
from log_worlds import fixed, plain
from orthobandit import Asymptotic, Bounded
from orthobandit.logs import Question, analysis_of

pytestmark = pytest.mark.statistical
FALSE_ALARM = 1e-6


@pytest.mark.parametrize(
    ("gaps", "plans", "most"),
    [
        pytest.param(GAPS, PLANS, 12, id="three-few"),
        pytest.param(GAPS, PLANS, 300, id="three", marks=pytest.mark.slow),
        pytest.param(SIX_GAPS, SIX_PLANS, 300, id="six", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("mode", [Asymptotic(), Bounded(0.0, 1.0)])
def test_who_analyses_daily_and_stops_when_decided_is_wrong_as_rarely_as_stated(mode, gaps, plans, most):
    measure = Measure(0, None, (), mode, delta=0.05, baseline="auto", reference=0, is_sequential=True)

    def errs(run):
        rng = np.random.default_rng([30, run])
        log = growing_log(rng, mode.is_exact, gaps, plans)
        for count in looks(rng):
            follower = follow_metric(first_rows(log, count, plans), measure)
            truth = gaps[follower.pairs[:, 0]] - gaps[follower.pairs[:, 1]]
            found = close_gaps(gaps_of(follower.sequence), follower.pairs, len(gaps), once=False)
            # Intervals that no gaps fit are not shown, but one of them is wrong.
            if found is None or np.any((found.low > truth + 1e-12) | (found.high < truth - 1e-12)):
                return True
            is_first, is_second = (follower.pairs == BEST).T
            if np.all(found.low[is_first] > 0) and np.all(found.high[is_second] < 0):
                return False  # arm 2 is declared the best
        return False

    assert_kept(
        0.05,
        lambda first, runs: sum(errs(run) for run in range(first, first + runs)),
        most,
        false_alarm=FALSE_ALARM,
    )


def is_wrong(report, gaps):
    """Tell whether anything that a report says of the objective is false, given the true gaps (K,)."""
    best = gaps.max()
    by_label = dict(zip((arm.label for arm in report.arms), gaps, strict=True))
    for arm in report.arms:
        gap = by_label[arm.label]
        # An end may be known without the other.
        if arm.low is not None and gap < arm.low - 1e-12:
            return True
        if arm.high is not None and gap > arm.high + 1e-12:
            return True
    if report.declared is not None and by_label[report.declared] < best:
        return True
    if not any(by_label[arm.label] == best for arm in report.arms if arm.is_active):
        return True
    # Claims that contradict each other are not shown, but one of them is wrong.
    if "contradiction" in report.alarms:
        return True
    return report.epsilon is not None and by_label[report.leader] < best - report.epsilon - 1e-12


@pytest.mark.parametrize(
    ("played", "most"),
    [
        pytest.param(reports, 12, id="few"),
        pytest.param(reports, 300, id="two or three", marks=pytest.mark.slow),
        pytest.param(reports_of_six, 300, id="six", marks=pytest.mark.slow),
    ],
)
def test_all_that_a_live_report_says_of_the_objective_holds_together(played, most):
    def errs(run):
        for report, gaps in played(run):
            assert report.joint in (0.0, pytest.approx(0.9))
            if is_wrong(report, gaps):
                return True
        return False

    assert_kept(
        0.1,
        lambda first, runs: sum(errs(run) for run in range(first, first + runs)),
        most,
        false_alarm=FALSE_ALARM,
    )


def test_rows_that_were_0_and_1_so_far_are_never_called_exact():
    # These logs may come from an arm 1 that pays 100 once in 200 rows, has not yet, and is the better one
    # by 0.2. No method can know that; none may call its intervals exact for values from 0 to 1.
    called_exact = noted = 0
    for run in range(40):
        rng = np.random.default_rng([31, run])
        hour, arm = fixed(rng, [0.5, 0.5], 400, 40)
        reward = (rng.random(400) < np.where(arm == 1, 0.3, 0.6)).astype(float)
        gathered = Gathered(plain(hour, arm, reward, [0.5, 0.5]), None, (), np.array([True]), is_boolean=None)
        found = analysis_of(gathered, Question("arm", "reward", time="at"))
        called_exact += found.metrics[0].mode.startswith("exact")
        noted += any("held only 0 and 1 so far" in note and "bounds=(0, 1)" in note for note in found.notes)
    assert (called_exact, noted) == (0, 40)


@pytest.mark.slow
@pytest.mark.parametrize(("gap", "kind"), [(0.1, "normal"), (0.0, "normal"), (0.1, "skewed"), (0.3, "sales")])
def test_rows_to_go_are_in_their_range_in_eight_of_ten_logs(gap, kind):
    mode = Bounded(0.0, 1.0) if kind == "sales" else Asymptotic()
    measure = Measure(0, None, (), mode, delta=0.05, baseline="auto", reference=0)

    def errs(run):
        rng = np.random.default_rng([32, run])
        share = 0.2 if kind == "skewed" else 0.5
        hour, arm = fixed(rng, [1.0 - share, share], 40_000, 200)
        if kind == "normal":
            reward = np.sin(hour / 20.0) + gap * arm + rng.standard_normal(len(arm))
        elif kind == "skewed":
            reward = rng.exponential(size=len(arm)) * (1.0 + gap * arm)
        else:
            reward = rng.random(len(arm)) < 0.1 * (1.0 + gap * arm)
        moments = Follower(plain(hour, arm, reward, [1.0 - share, share]), measure).run().snapshots
        ends = [gaps_of(one.sequence) for one in moments]
        is_decided = [one.low[0] > 0 or one.high[0] < 0 for one in ends]
        look = 10
        if is_decided[look] or not np.isfinite(ends[look].estimates[0]):
            return False
        _, least, most = rows_to_go(moments[look].sequence, moments[look].rows, 0)
        step = moments[look + 1].rows - moments[look].rows
        if True in is_decided:
            took = moments[is_decided.index(True)].rows - moments[look].rows
            return not least <= took <= most + step
        return most < moments[-1].rows - moments[look].rows

    assert_kept(
        0.2,
        lambda first, runs: sum(errs(run) for run in range(first, first + runs)),
        200,
        false_alarm=FALSE_ALARM,
    )
