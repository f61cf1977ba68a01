"""The search for garbage leaves out what stays until the process ends."""

import gc

import pytest

from inside.service import FIRST_COLLECTION_ALLOCATIONS, spare_collector


@pytest.fixture(autouse=True)
def _as_before():
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


def test_what_is_there_by_now_is_left_out():
    before = [[] for _ in range(100)]
    gc.unfreeze()
    spare_collector()
    assert gc.get_freeze_count() > len(before)
    assert not any(one is before for one in gc.get_objects())
    assert gc.get_threshold()[0] == FIRST_COLLECTION_ALLOCATIONS


def test_what_comes_later_is_still_collected():
    spare_collector()
    later = []
    later.append(later)
    del later
    assert gc.collect() > 0
