"""Columns give back what was appended, whatever its size, in few bytes."""

import numpy as np
import pytest

from orthobandit.experiment.store.columns import CHUNK, Column


@pytest.mark.parametrize("size", [1, 7, 1000, CHUNK, 2 * CHUNK + 3])
@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.bool_])
def test_a_column_reads_what_was_appended_across_chunks(size, dtype):
    rng = np.random.default_rng(size)
    wanted = rng.integers(-3, 300, 3 * CHUNK).astype(dtype)
    column = Column(dtype)
    for start in range(0, len(wanted), size):
        part = wanted[start : start + size]
        column.append(part, len(part))
        column.settle()
        if size == 1 and start == 100:
            wanted = wanted[:101]
            break
    assert len(column) == len(wanted)
    for start, stop in [(0, len(wanted)), (1, len(wanted) - 1), (CHUNK - 1, CHUNK + 1), (5, 5)]:
        found = column.read(start, min(stop, len(wanted)))
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted[start:stop])


@pytest.mark.parametrize("extreme", [0, 255, 256, -1, -128, -129, 2**31, -(2**31) - 1, 2**63 - 1, -(2**63)])
def test_whole_numbers_survive_packing(extreme):
    column = Column(np.int64)
    wanted = np.arange(CHUNK) % 2 * np.int64(extreme)
    column.append(wanted, CHUNK)
    column.settle()
    np.testing.assert_array_equal(column.read(0, CHUNK), wanted)


def test_packing_tells_zeros_apart():
    column = Column(np.float64)
    column.append(np.where(np.arange(CHUNK) % 2, 0.0, -0.0), CHUNK)
    column.settle()
    assert np.signbit(column.read(0, 4)).tolist() == [True, False, True, False]


def test_rows_of_several_numbers_stay_together():
    column = Column(np.float64, 3)
    wanted = np.arange(3.0 * (CHUNK + 2)).reshape(-1, 3)
    column.append(wanted, len(wanted))
    column.settle()
    np.testing.assert_array_equal(column.read(CHUNK - 1, CHUNK + 2), wanted[CHUNK - 1 :])


def test_equal_numbers_take_no_room_and_small_ones_a_byte():
    equal, small = Column(np.int64), Column(np.int64)
    for _ in range(10):
        equal.append(7, CHUNK)
        small.append(np.arange(CHUNK) % 200, CHUNK)
        equal.settle()
        small.settle()
    assert equal.nbytes < 1000
    assert small.nbytes < 11 * CHUNK


def test_what_is_not_settled_can_be_taken_back():
    column = Column(np.int64)
    column.append([1, 2], 2)
    column.settle()
    column.append(np.arange(CHUNK), CHUNK)
    column.cut(2)
    column.append(3, 1)
    assert column.read(0, 3).tolist() == [1, 2, 3]
