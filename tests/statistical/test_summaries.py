"""Aggregated data whose split nobody declared: intervals hold at all looks, re-read at each of them."""

import numpy as np
import pyarrow
import pytest
from scipy.stats import binomtest

from orthobandit import analyse

pytestmark = pytest.mark.statistical

LOGS = 120
DAYS = 15
GAP = 0.2
DELTA = 0.1


def is_ever_wrong(seed):
    """Look at the figures after every day, each time with the shares counted so far as the split."""
    rng = np.random.default_rng([2030, seed])
    days = np.repeat(np.arange(DAYS), 200)
    arm = (rng.random(len(days)) < 0.7).astype(int)
    # The level moves by far more than the gap, so that shares that are off would show.
    values = 3.0 * np.sin(days / 2.0) + GAP * arm + rng.normal(size=len(days))
    index = 2 * days + arm
    n = np.bincount(index, minlength=2 * DAYS)
    mean = np.bincount(index, values, minlength=2 * DAYS) / n
    variance = np.bincount(index, (values - mean[index]) ** 2, minlength=2 * DAYS) / (n - 1)
    table = {
        "day": np.repeat(np.arange(DAYS), 2),
        "arm": ["old", "new"] * DAYS,
        "n": n,
        "mean": mean,
        "variance": variance,
    }
    whole = pyarrow.table(table)
    columns = {"arm": "arm", "time": "day", "n": "n", "mean": "mean", "variance": "variance"}
    for day in range(2, DAYS + 1):
        some = whole.slice(0, 2 * day)
        found = analyse(some, **columns, reference="old", delta=DELTA, cumulative=False)
        effect = next(one for one in found.metrics[0].effects if one.arm == "new")
        low, high = effect.interval
        if low is not None and high is not None and not low <= GAP <= high:
            return True
    return False


def test_counted_shares_serve_for_a_split_that_nobody_declared():
    wrong = sum(is_ever_wrong(seed) for seed in range(LOGS))
    # False alarm at most 1e-6 where the rate is δ.
    assert binomtest(wrong, LOGS, DELTA, alternative="greater").pvalue > 1e-6
