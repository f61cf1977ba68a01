"""How δ is shared by segments, some of which come late."""

import numpy as np
import pytest

from cells_by_hand import Rows, cells_of
from inside.estimate import Measure
from inside.logs import Asked
from orthobandit import Asymptotic
from orthobandit.logs.effects.segments import by_segment, segment_shares

PER_BUCKET = 300


def growing(buckets, segments_by_bucket):
    """Return the cells of the first buckets of a log whose segments in each bucket are given."""
    rng = np.random.default_rng(1)
    bucket = np.repeat(np.arange(buckets), PER_BUCKET)
    segment = np.concatenate([np.resize(segments_by_bucket[place], PER_BUCKET) for place in range(buckets)])
    arm = rng.integers(0, 2, len(bucket))
    reward = rng.standard_normal(len(bucket)) + 3.0 * arm
    rows = Rows(np.array([[0.5, 0.5]]), bucket, 0 * bucket, arm, reward, segment)
    return cells_of(rows, segments=[f"s{place}" for place in range(segment.max() + 1)])


# The second bucket begins after 300 rows, the third after 600: the first two are the beginning.
COMING = [[0], [0, 1], [0, 1, 2, 3], [0, 1], [3, 4], [0, 1, 2, 3, 4]]


def test_shares_of_segments_by_hand():
    shares = segment_shares(growing(6, COMING))
    np.testing.assert_allclose(shares, [0.45, 0.45, 0.1 / 2 / 2, 0.1 / 2 / 2, 0.1 / 6])


def test_the_share_of_a_segment_stays_as_the_log_grows():
    last = segment_shares(growing(6, COMING))
    for buckets in range(1, 6):
        shares = segment_shares(growing(buckets, COMING))
        known = shares > 0
        np.testing.assert_array_equal(shares[known], last[: len(shares)][known])
        assert shares.sum() <= 1.0


@pytest.mark.parametrize(("buckets", "known"), [(2, 0), (3, 2), (4, 4), (5, 4), (6, 5)])
def test_new_segments_of_the_last_bucket_have_no_share_yet(buckets, known):
    assert np.count_nonzero(segment_shares(growing(buckets, COMING))) == known


def test_nothing_is_claimed_of_a_segment_whose_share_is_not_known():
    cells = growing(5, COMING)
    measure = Measure(0, None, (), Asymptotic(), delta=0.05, baseline="auto", reference=0, is_sequential=True)
    found, (differ,) = by_segment(cells, Asked("reward", "reward", 0), measure, once=False)
    *earlier, newest = found
    assert [one.effects[1].verdict for one in earlier[:2]] == ["better", "better"]
    assert newest.effects[1].interval == (None, None)
    assert newest.effects[1].verdict == "undecided"
    assert newest.effects[0].verdict == "reference"
    assert differ.apart == ()


def test_for_one_look_all_segments_share_alike():
    cells = growing(1, COMING)
    measure = Measure(0, None, (), Asymptotic(), delta=0.05, baseline="auto", reference=0)
    (one,) = by_segment(cells, Asked("reward", "reward", 0), measure, once=True)[0]
    assert one.effects[1].verdict == "better"
