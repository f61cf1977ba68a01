"""Averages over rounds: how δ is shared out where pulls may grow."""

import numpy as np
import pytest

from cells_by_hand import cells_of, drawn, follow
from inside.logs import aim_of
from orthobandit import Bounded, SubGaussian
from orthobandit.estimate import Tuning
from orthobandit.estimate.follow.averages import STEP

DELTA = 0.05
# From the pilot on arm 1 has 0.4 for a while, and then a probability that lets its rewards weigh more.
LATER = [0.4, 0.2, 0.05, 0.01]


def score_of(later):
    """Return the score of playing arm 1 alone, after a bucket with 0.4 and many with a later probability."""
    plans = np.array([[0.6, 0.4], [1.0 - later, later]])
    bucket = np.repeat(np.arange(20), 100)
    rows = drawn(np.random.default_rng(3), plans, np.minimum(bucket // 5, 1), bucket, noise=0.0)
    rows.reward = (np.arange(len(bucket)) % 3 == 0).astype(float)
    cells = cells_of(rows)
    return follow(cells, [aim_of(cells, [0.0, 1.0])], confidence=Bounded(0.0, 1.0), delta=DELTA).scores[1]


@pytest.mark.parametrize("later", LATER)
def test_the_scale_that_pulls_have_reached_has_its_part_of_delta(later):
    # Pulls are 1/p − 1 for arm 1 and −1 for the other; the pilot's largest is 1.5. Scale number s, which is
    # 4^s times that, has α/((s + 1)(s + 2)), and 1/2 + 1/6 + 1/12 + … = 1.
    score = score_of(later)
    grown = (1.0 / later - 1.0) / 1.5
    step = max(int(np.ceil(np.log(grown) / np.log(STEP) - 1e-9)), 0)
    alpha = DELTA / 2.0 / ((step + 1) * (step + 2))
    scale = 1.5 * STEP**step * score._confidence.limit
    tuning = Tuning(np.array([alpha]), np.array([score._rho]), np.array([scale]))
    width = float(score._confidence.width(score.evidence, tuning)[0])
    low, high = score.interval()
    assert (high - low) / 2.0 == pytest.approx(width, rel=1e-9)


def test_clipping_may_have_moved_an_average_by_as_much_as_its_pulls_say():
    # A level pulls at rewards of its arm by 1/p: with p = 0.04 a clipped one moves it 25 times as far, one
    # round in 25, which is √(1/p)·bias at most. Rounds count alike, so weights do not say so.
    plans = np.array([[0.96, 0.04]])
    bucket = np.repeat(np.arange(20), 100)
    rows = drawn(np.random.default_rng(4), plans, np.zeros(len(bucket), dtype=int), bucket, noise=0.1)
    mode = SubGaussian(-1.0, 1.0, 0.1)
    evidence = follow(cells_of(rows), confidence=mode, reference=1).scores[0].evidence
    counted = evidence.weights[0]
    assert evidence.slack[0] == pytest.approx(mode.bias * counted * np.sqrt(1.0 / 0.04))
