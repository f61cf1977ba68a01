"""Intervals from logs of a pooled Thompson sampler under a season: which of them hold the true gap."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from tests.failure_rates import assert_kept

from cells_by_hand import follow
from inside.estimate import Follower, Measure
from inside.logs import APART, MIXTURE, NAIVE, aim_of, diagnose, gaps_of, value_of
from log_worlds import WORLDS
from orthobandit import Asymptotic, Bounded
from orthobandit.logs import Question

pytestmark = pytest.mark.statistical

SCRIPT = Path(__file__).parents[2] / "examples" / "log_coverage.py"
FALSE_ALARM, RUNS = 1e-6, 40


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


@pytest.fixture(scope="module")
def scores(script):
    found = script["measure"](script["World"](), RUNS, seed=7)
    return found | {"ours": found[script["OURS"]]}


def test_intervals_that_mix_times_do_not_hold(scores):
    fewest = binom.ppf(FALSE_ALARM, RUNS, 0.95)
    assert scores[NAIVE].last < fewest
    assert scores[APART].last < fewest


def test_ours_hold_at_all_looks_and_are_less_than_half_as_wide_as_those_of_mad(scores):
    fewest = binom.ppf(FALSE_ALARM, RUNS, 0.95)
    assert scores["ours"].always >= fewest
    assert scores[MIXTURE].always >= fewest
    assert scores["ours"].width < 0.5 * scores[MIXTURE].width


def test_logs_as_planned_raise_alarms_as_rarely_as_stated(script):
    runs, question = 40, Question("arm", "reward")
    logs = script["logs"](script["World"](), runs, seed=8)
    found = [diagnose(cells, question, follow(cells)) for cells in logs]
    assert sum(one.p_value <= 0.01 for one, *_ in found) <= binom.isf(FALSE_ALARM, runs, 0.01)
    drifts = sum(one.status == "alarm" for log in found for one in log if one.name == "constant gaps")
    assert drifts <= binom.isf(FALSE_ALARM, runs, 1e-3)


def coins(rng, hours=60, rows=50):
    """Return tables of an experiment whose probabilities follow its rewards, 0 or 1, under a season."""
    counts, ones, shares, means = (np.zeros((hours, 2)) for _ in range(4))
    for hour in range(hours):
        seen = np.maximum(counts.sum(axis=0), 1.0)
        share = np.clip(0.5 + 5.0 * np.diff(ones.sum(axis=0) / seen)[0], 0.05, 0.95)
        shares[hour] = 1.0 - share, share
        means[hour] = 0.4 + 0.3 * np.sin(hour / 8.0) + np.array([0.0, 0.1])
        counts[hour] = np.bincount(rng.random(rows) < share, minlength=2)
        ones[hour] = rng.binomial(counts[hour].astype(int), means[hour])
    low = (ones == counts).astype(float)  # the smallest value is 1 where all are
    return shares, means, [counts, ones, ones, low, (ones > 0).astype(float)]


@pytest.mark.parametrize("bounds", [None, (0.0, 1.0)])
def test_the_value_of_other_probabilities_is_covered(script, bounds):
    rng, runs, wanted, covered, widths = np.random.default_rng(9), 60, np.array([0.2, 0.8]), 0, []
    for _ in range(runs):
        shares, means, tables = coins(rng)
        truth = np.mean(((wanted - shares) * means).sum(axis=1)[1:])  # the first hour does not count
        cells = script["table_cells"](shares[:, 1], tables)
        mode = Asymptotic() if bounds is None else Bounded(*bounds)
        score = follow(cells, [aim_of(cells, wanted)], confidence=mode, delta=0.1).scores[1]
        low, high = value_of(score, 0.1, "", once=False).interval
        if low is None:  # too few draws of an arm carry the value
            continue
        covered += low <= truth <= high
        widths.append((high - low) / 2.0)
    assert len(widths) >= (runs if bounds else 0.8 * runs)
    assert covered >= binom.ppf(FALSE_ALARM, len(widths), 0.9)
    assert np.mean(widths) < 0.1


@pytest.mark.parametrize("most", [12, pytest.param(500, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WORLDS)
def test_no_interval_is_ever_wrong_more_often_than_stated(name, most):
    def is_wrong(run):
        cells, gaps, mode, covariates = WORLDS[name](np.random.default_rng([11, run]))
        measure = Measure(0, None, covariates, mode, delta=0.05, baseline="auto", reference=0)
        found = [gaps_of(one.sequence) for one in Follower(cells, measure).run().snapshots]
        ends = [(one.low[: len(gaps)], one.high[: len(gaps)]) for one in found]
        return any(np.any((low > gaps) | (high < gaps)) for low, high in ends)

    def failures(first, runs):
        return sum(map(is_wrong, range(first, first + runs)))

    assert_kept(0.05, failures, most, false_alarm=FALSE_ALARM)
