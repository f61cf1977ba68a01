"""Quantiles of the average distribution are in their intervals at all looks, while level and split move."""

import numpy as np
import pyarrow
import pytest
from scipy.optimize import brentq
from scipy.stats import binomtest, norm

from orthobandit.logs import Quantile, analyse

pytestmark = pytest.mark.statistical

LOGS = 100
BUCKETS = 12
ROWS = 80  # of a bucket
DELTA = 0.2
LEVEL = 0.8
GRID = tuple(np.linspace(-3.0, 5.0, 17))
LEVELS = 1.5 * np.sin(np.arange(BUCKETS) / 2.0)
GAPS = np.array([0.0, 0.4])


def true_quantile(arm, look):
    """Return the quantile of the average distribution of an arm, over the rounds that count until a look."""
    # The first bucket is the pilot.
    centres = LEVELS[1 : look + 1] + GAPS[arm]
    return brentq(lambda x: float(norm.cdf(x - centres).mean()) - LEVEL, -20.0, 20.0)


def is_ever_wrong(seed):
    rng = np.random.default_rng([3010, seed])
    bucket = np.repeat(np.arange(BUCKETS), ROWS)
    share = np.linspace(0.3, 0.7, BUCKETS)
    arm = (rng.random(len(bucket)) < share[bucket]).astype(int)
    log = pyarrow.table(
        {
            "at": bucket,
            "arm": np.array(["old", "new"])[arm],
            "p:old": 1.0 - share[bucket],
            "p:new": share[bucket],
            "y": LEVELS[bucket] + GAPS[arm] + rng.normal(size=len(bucket)),
            "r": np.zeros(len(bucket), dtype=bool),
        }
    )
    asked = {"arm": "arm", "reward": "r", "time": "at", "probabilities": ["p:old", "p:new"]}
    for look in range(3, BUCKETS, 2):
        part = log.slice(0, (look + 1) * ROWS)
        # Half of δ is the reward's: the quantile has the other half.
        found = analyse(part, **asked, metrics={"y": Quantile(LEVEL, GRID)}, delta=2.0 * DELTA)
        quantile = next(one for one in found.metrics if one.kind == "quantile")
        for place, (low, high) in enumerate(quantile.arm_intervals):
            truth = true_quantile(place, look)
            if (low is not None and truth <= low) or (high is not None and truth > high):
                return True
    return False


def test_quantiles_hold_at_all_looks():
    wrong = sum(is_ever_wrong(seed) for seed in range(LOGS))
    # False alarm at most 1e-6 where the rate is δ.
    assert binomtest(wrong, LOGS, DELTA, alternative="greater").pvalue > 1e-6
