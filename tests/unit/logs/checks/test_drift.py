"""Drifting gaps in a log: as the live test finds them, and with many plans a bucket."""

import numpy as np
import pytest

from cells_by_hand import cells_of, drawn, follow
from inside.estimate import Constancy
from orthobandit import ArmSet, Bounded, Plan
from orthobandit.logs.checks import find_drift

ARMS = {
    "free": ArmSet.one_hot(3),
    "featured": ArmSet([[0.0, 1.0], [1.0, 1.0], [2.5, 1.0]]),
}
BUCKETS = 30


def log(seed, turn=None, size=80):
    """Return rows with one plan per bucket; gaps change sign at bucket `turn`."""
    rng = np.random.default_rng(seed)
    plans = rng.dirichlet([4.0, 4.0, 4.0], BUCKETS)
    bucket = np.repeat(np.arange(BUCKETS), size)
    rows = drawn(rng, plans, bucket, bucket, 3.0 * np.sin(bucket / 4.0), [0.0, 1.0, 2.5])
    if turn is not None:
        rows.reward -= 2.0 * np.array([0.0, 1.0, 2.5])[rows.arm] * (bucket >= turn)
    return rows


@pytest.mark.parametrize("turn", [None, 12])
@pytest.mark.parametrize("kind", ARMS)
def test_drift_is_found_as_the_live_test_finds_it(kind, turn):
    arms = ARMS[kind]
    follower = follow(cells_of(log(2, turn), arms=arms), reference=1, is_recorded=True)
    live = Constancy.start(arms, 1)
    for plans, values, tally in follower.feeds:
        plan = Plan(follower.cells.plans[plans[0]], int(tally.rounds[0]), live.sequence.centre(values))
        live = live.and_of(plan, tally[0])
    found, splits = find_drift(follower.snapshots, [0, 2], 1)
    assert splits > 3
    assert (found is None) == (live.found is None) == (turn is None)
    if found is not None:
        for name in ("arm", "reference", "split"):
            assert getattr(found.drift, name) == getattr(live.found, name)
        # The live test knows the largest residual after each split; here it is that of all rows.
        assert live.found.found <= found.drift.found <= live.found.found + 240
        assert found.split < found.seen


@pytest.mark.parametrize("turn", [None, 15])
def test_rows_with_their_own_probabilities_are_added_up(turn):
    rng, size = np.random.default_rng(3), 6000
    plans = rng.dirichlet([4.0, 4.0, 4.0], size)
    bucket = np.repeat(np.arange(BUCKETS), size // BUCKETS)
    rows = drawn(rng, plans, np.arange(size), bucket, np.sin(bucket / 4.0), [0.0, 1.0, 2.0])
    if turn is not None:
        rows.reward -= 2.0 * rows.arm * (bucket >= turn)
    found, _ = find_drift(follow(cells_of(rows)).snapshots, [1, 2], 0)
    assert (found is None) == (turn is None)
    if found is not None:
        assert 0.0 < found.drift.before[0] < found.drift.before[1]
        assert found.drift.after[1] < found.drift.before[0]


@pytest.mark.parametrize("turn", [None, 20])
def test_rewards_of_0_and_1_in_the_exact_mode(turn):
    rng = np.random.default_rng(5)
    bucket = np.repeat(np.arange(40), 300)
    rows = drawn(rng, [[0.5, 0.5]], 0 * bucket, bucket)
    better = rows.arm == (0 if turn is None else (bucket >= turn))
    rows.reward = (rng.random(12_000) < np.where(better, 0.6, 0.4)).astype(float)
    found, _ = find_drift(follow(cells_of(rows), confidence=Bounded(0.0, 1.0)).snapshots, [1], 0)
    assert (found is None) == (turn is None)
