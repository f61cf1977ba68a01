"""Intervals from logs of a pooled Thompson sampler under a season: which of them hold the true gap."""

import runpy
from pathlib import Path

import pytest
from scipy.stats import binom

from orthobandit.logs.compare import APART, MIXTURE, NAIVE

pytestmark = pytest.mark.statistical

SCRIPT = Path(__file__).parents[2] / "examples" / "log_coverage.py"
FALSE_ALARM, RUNS = 1e-6, 40


@pytest.fixture(scope="module")
def scores():
    script = runpy.run_path(str(SCRIPT))
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
