"""Drifting gaps in a log: as the live test finds them, and with many plans a bucket."""

import numpy as np
import pytest

from cells_by_hand import cells_of, drawn
from orthobandit import ArmSet, ContrastSequence, Plan, Tally
from orthobandit.experiment.constancy import Constancy
from orthobandit.logs.drift import find_drift
from orthobandit.logs.gathered import gather
from orthobandit.logs.sizes import SizesInTime
from orthobandit.logs.strata import Strata, levels_before

ARMS = {
    "free": ArmSet.one_hot(3),
    "featured": ArmSet([[0.0, 1.0], [1.0, 1.0], [2.5, 1.0]]),
}
BUCKETS = 30


def log(seed, turn=None, size=80, zero=False):
    """Return rows with one plan a bucket; gaps change sign at bucket `turn`."""
    rng = np.random.default_rng(seed)
    plans = rng.dirichlet([4.0, 4.0, 4.0], BUCKETS)
    if zero:
        plans[:5] = [0.5, 0.5, 0.0]
    bucket = np.repeat(np.arange(BUCKETS), size)
    rows = drawn(rng, plans, bucket, bucket, 3.0 * np.sin(bucket / 4.0), [0.0, 1.0, 2.5])
    if turn is not None:
        rows.reward -= 2.0 * np.array([0.0, 1.0, 2.5])[rows.arm] * (bucket >= turn)
    return rows


def residuals(rows, arms):
    strata = Strata.of(cells_of(rows, arms=arms))
    levels = levels_before(strata)
    return strata.minus(levels), levels


def fed(rows, levels):
    """Yield plan and tally of every bucket but the first."""
    for bucket in range(1, BUCKETS):
        mine = rows.bucket == bucket
        count = rows.plans.shape[1]
        yield (
            Plan(rows.plans[bucket], int(mine.sum())),
            Tally.of(rows.arm[mine], rows.reward[mine] - levels[bucket], count),
        )


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("kind", ARMS)
def test_evidence_is_that_of_a_sequence_of_contrasts(kind, zero):
    arms, rows = ARMS[kind], log(1, zero=zero)
    strata, levels = residuals(rows, arms)
    sizes = SizesInTime.of(strata)
    evidence = gather(arms, strata, sizes, 1).evidence(sizes)
    sequence = ContrastSequence.start(arms, [[0, 1], [2, 1]])
    for place, (plan, tally) in enumerate(fed(rows, levels)):
        sequence = sequence.add(plan, tally)
        for name in ("totals", "weights", "variances", "pooled", "peaks", "events"):
            want = np.broadcast_to(getattr(sequence.evidence, name), 2)
            known = sequence.evidence.weights > 0
            assert getattr(evidence, name)[place][known] == pytest.approx(want[known], rel=1e-9), name


@pytest.mark.parametrize("turn", [None, 12])
@pytest.mark.parametrize("kind", ARMS)
def test_drift_is_found_where_the_live_test_finds_it(kind, turn):
    arms, rows = ARMS[kind], log(2, turn)
    strata, levels = residuals(rows, arms)
    live = Constancy.start(arms, 1)
    for plan, tally in fed(rows, levels):
        live = live.and_of(plan, tally)
    found, splits = find_drift(arms, strata, 1)
    assert splits > 3
    assert (found is None) == (live.found is None) == (turn is None)
    if found is not None:
        assert found.drift.before == pytest.approx(live.found.before, rel=1e-9)
        assert found.drift.after == pytest.approx(live.found.after, rel=1e-9)
        for name in ("arm", "reference", "split", "found"):
            assert getattr(found.drift, name) == getattr(live.found, name)
        assert found.split < found.seen


@pytest.mark.parametrize("turn", [None, 15])
def test_rows_with_their_own_probabilities_are_added_up(turn):
    rng, size = np.random.default_rng(3), 6000
    plans = rng.dirichlet([4.0, 4.0, 4.0], size)
    bucket = np.repeat(np.arange(BUCKETS), size // BUCKETS)
    rows = drawn(rng, plans, np.arange(size), bucket, np.sin(bucket / 4.0), [0.0, 1.0, 2.0])
    if turn is not None:
        rows.reward -= 2.0 * rows.arm * (bucket >= turn)
    strata = Strata.of(cells_of(rows))
    found, _ = find_drift(ARMS["free"], strata.minus(levels_before(strata)), 0)
    assert (found is None) == (turn is None)
    if found is not None:
        assert 0.0 < found.drift.before[0] < found.drift.before[1]
        assert found.drift.after[1] < found.drift.before[0]


def test_blocks_do_not_matter(monkeypatch):
    strata, _ = residuals(log(4), ARMS["featured"])
    whole = gather(ARMS["featured"], strata, SizesInTime.of(strata), 0)
    monkeypatch.setattr("orthobandit.logs.gathered.BLOCK", 60)
    parts = gather(ARMS["featured"], strata, SizesInTime.of(strata), 0)
    for name in vars(whole):
        assert np.asarray(getattr(parts, name)) == pytest.approx(np.asarray(getattr(whole, name)))
