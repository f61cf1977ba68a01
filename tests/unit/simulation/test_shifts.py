import numpy as np
import pytest

from orthobandit.errors import ParameterError
from orthobandit.simulation import (
    SHIFTS,
    CancelBest,
    Constant,
    Jumps,
    Limited,
    LogAlternating,
    Oblivious,
    RandomWalk,
    Replay,
    Scaled,
    Seasonal,
    Sine,
    Trend,
    named_shift,
)
from orthobandit.simulation.shifts import CHUNK_ROUNDS

OBLIVIOUS = [shift for shift in (make() for make in SHIFTS.values()) if isinstance(shift, Oblivious)]


def test_formulas_by_hand():
    assert Constant().values(0, 2).tolist() == [0, 0]
    assert Constant(3.5).values(7, 1).tolist() == [3.5]
    np.testing.assert_allclose(Sine().values(0, 2), [1 + np.sin(2), 1 + np.sin(4)], rtol=1e-14)
    assert Trend(slope=0.5, intercept=1).values(2, 2).tolist() == [2.5, 3.0]
    assert Jumps(every=2, levels=(0.0, 1.0)).values(0, 6).tolist() == [0, 0, 1, 1, 0, 0]
    weekly = Seasonal(day=4, amplitude=1.0, weekend=10.0)
    np.testing.assert_allclose(weekly.values(0, 4), [0, 1, 0, -1], atol=1e-15)
    np.testing.assert_allclose(weekly.values(19, 2), [-1, 10], atol=1e-15)
    np.testing.assert_allclose(weekly.values(27, 2), [9, 0], atol=1e-15)


def test_log_alternating_in_both_forms():
    rounds = np.arange(1, 40_000)
    signs = (-1.0) ** (rounds % 3)
    printed = LogAlternating().values(0, rounds.size)
    np.testing.assert_allclose(printed, np.maximum(np.log(rounds + 1) / 5, 2) * signs)
    assert np.all(np.abs(printed[:22_000]) == 2)
    assert np.abs(printed[-1]) > 2
    meant = LogAlternating("min").values(0, rounds.size)
    np.testing.assert_allclose(meant, np.minimum(np.log(rounds + 1) / 5, 2) * signs)
    with pytest.raises(ParameterError, match="form='mean'"):
        LogAlternating("mean")


@pytest.mark.parametrize("start", [0, CHUNK_ROUNDS - 3, 10**6, 10**9])
def test_fast_sine_is_the_sine(start):
    rounds = np.arange(start + 1, start + 8, dtype=float)
    np.testing.assert_allclose(Sine().values(start, 7), 1 + np.sin(2 * rounds), atol=1e-14)


@pytest.mark.parametrize("shift", [*OBLIVIOUS, RandomWalk(0.1, limit=1.0)], ids=repr)
def test_values_do_not_depend_on_how_they_are_cut(shift):
    whole = shift.values(CHUNK_ROUNDS - 50, 100, seed=3, replication=2)
    parts = [
        shift.values(CHUNK_ROUNDS - 50 + i, n, seed=3, replication=2) for i, n in ((0, 1), (1, 48), (49, 51))
    ]
    assert np.array_equal(np.concatenate(parts), whole)
    assert shift.values(5, 0).shape == (0,)


def test_random_walks_belong_to_their_replication():
    walk = RandomWalk()
    first = walk.values(0, 10, seed=1, replication=0)
    assert not np.array_equal(first, walk.values(0, 10, seed=1, replication=1))
    assert not np.array_equal(first, walk.values(0, 10, seed=2, replication=0))
    assert not walk.is_shared
    assert not Limited(walk).is_shared


def test_random_walk_has_no_seam_between_chunks_and_spans():
    walk = RandomWalk(1.0)
    for seam in (CHUNK_ROUNDS, 256 * CHUNK_ROUNDS):
        steps = np.diff(walk.values(seam - 3, 6, seed=5))
        assert np.all(np.abs(steps) < 6)


def test_reflected_walk_keeps_its_limit_and_its_steps():
    free = RandomWalk(0.3).values(0, 5000, seed=1)
    held = RandomWalk(0.3, limit=2.0).values(0, 5000, seed=1)
    assert np.abs(free).max() > 2
    assert np.abs(held).max() <= 2
    assert np.all(np.abs(np.diff(held)) <= np.abs(np.diff(free)) + 1e-12)
    inside = int(np.argmax(np.abs(free) > 2))
    np.testing.assert_allclose(held[:inside], free[:inside], atol=1e-12)


def test_replay_reads_the_array_and_knows_its_length():
    shift = Replay([1.0, 2.0, 3.0])
    assert shift.values(1, 2).tolist() == [2, 3]
    with pytest.raises(ParameterError, match="known for 3 rounds; 4"):
        shift.values(1, 3)
    with pytest.raises(ParameterError, match="known for 3 rounds; 4"):
        Scaled(shift, 2.0).values(1, 3)
    assert Replay([1.0, 2.0], repeats=True).values(1, 4).tolist() == [2, 1, 2, 1]


def test_wrappers_map_and_cut():
    assert Scaled(Trend(1.0), 0.5, offset=-1.0).values(0, 3).tolist() == [-0.5, 0.0, 0.5]
    assert Limited(Trend(1.0), 2.0).values(0, 4).tolist() == [1, 2, 2, 2]
    assert np.abs(Limited(LogAlternating()).values(0, 100)).max() == 1
    with pytest.raises(ParameterError, match="not an oblivious shift"):
        Limited(CancelBest())


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Constant(np.nan),
        lambda: Sine(amplitude=np.inf),
        lambda: Trend(slope=np.nan),
        lambda: Seasonal(day=0),
        lambda: Jumps(every=0),
        lambda: Jumps(levels=()),
        lambda: Jumps(levels=(0.0, np.inf)),
        lambda: Replay([]),
        lambda: Replay([[1.0]]),
        lambda: Replay([1.0, np.nan]),
        lambda: Replay(["a"]),
        lambda: RandomWalk(np.inf),
        lambda: RandomWalk(limit=0.0),
        lambda: Limited(Sine(), -1.0),
        lambda: Scaled(Sine(), np.nan),
        lambda: Sine().values(-1, 1),
        lambda: named_shift("cosine"),
    ],
)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(ParameterError):
        wrong()


def test_every_named_shift_is_made():
    for name in SHIFTS:
        assert named_shift(name) == SHIFTS[name]()
