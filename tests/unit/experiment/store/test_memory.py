"""The store in memory beyond the contract: long logs, and the room they take."""

import tracemalloc

import numpy as np
import pytest

from experiment_samples import append, asked, long_log, texts, told
from inside.experiment import Asked, MemoryStore, Told, encode_entry
from orthobandit.experiment.store.memory import ENTRIES_PER_BLOCK


@pytest.fixture
def store():
    store = MemoryStore()
    store.create({})
    return store


def test_a_long_log_is_read_back_from_anywhere(store):
    entries = long_log(np.random.default_rng(1), 3 * ENTRIES_PER_BLOCK + 5)
    for start in range(0, len(entries), 97):
        append(store, entries[start : start + 97])
    wanted = [encode_entry(entry) for entry in entries]
    for after in (
        0,
        1,
        ENTRIES_PER_BLOCK - 1,
        ENTRIES_PER_BLOCK,
        ENTRIES_PER_BLOCK + 1,
        3 * ENTRIES_PER_BLOCK,
        len(entries) - 1,
    ):
        assert texts(store, after) == wanted[after:]


def test_a_failed_block_leaves_a_long_log_as_it_was(store):
    entries = long_log(np.random.default_rng(2), 2 * ENTRIES_PER_BLOCK + 100)
    append(store, entries[:700])
    with pytest.raises(ZeroDivisionError), store.exclusive() as writer:
        _ = writer.append(entries[700:]) / 0
    append(store, entries[700:])
    assert texts(store) == [encode_entry(entry) for entry in entries]


def test_the_table_sums_rewards_over_entries(store):
    rng = np.random.default_rng(3)
    count = 3000
    append(store, [asked(1, count)])
    sums, last = np.zeros(count), np.full(count, -1.0)
    for at in range(5):
        numbers = rng.integers(1, count + 1, 1507)
        values = rng.integers(0, 8, numbers.size) / 8.0
        append(store, [Told(float(at), "signup", numbers, values)])
        np.add.at(sums, numbers - 1, values)
        last[numbers - 1] = at
    for index, (row, rewards, times) in enumerate(store.table()):
        assert row.number == index + 1
        assert rewards.get("signup", 0.0) == sums[index]
        assert times.get("signup", -1.0) == last[index]


def test_the_time_of_each_proposal_is_that_of_its_entry(store):
    for at in range(2 * ENTRIES_PER_BLOCK):
        append(store, [asked(3 * at + 1, 3, float(at)), told(3 * at + 1, 1, float(at))])
    numbers = [1, 3, 4, 3 * ENTRIES_PER_BLOCK, 3 * ENTRIES_PER_BLOCK + 1, 6 * ENTRIES_PER_BLOCK]
    assert [row.at for row in store.proposals(numbers)] == [(number - 1) // 3 for number in numbers]


def test_a_proposal_and_its_reward_take_at_most_600_bytes_one_by_one(store):
    """10⁶ proposals are to fit in 600 MB."""
    rng, length = np.random.default_rng(4), 4096
    arms, forecasts = rng.integers(0, 5, length), rng.random(length)
    delays = rng.integers(1, 50, length)
    held = np.array([False])
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for start in range(0, length, 512):
            entries = []
            for index in range(start, start + 512):
                at, forecast = 1.7e9 + index / 7, forecasts[index : index + 1, None]
                entries.append(Asked(at, index + 1, 3, 8, arms[index : index + 1], forecast, (), held))
                settled = max(index + 1 - delays[index], 1)
                entries.append(Told(at, "signup", np.array([settled]), forecasts[index : index + 1]))
            append(store, entries)
        entries = None
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (after - before) / length <= 600


def test_what_a_failed_block_did_is_not_seen(store):
    append(store, [asked(1, 1), told(1, 1)])
    block = store.exclusive()
    writer = block.__enter__()
    writer.append([Asked(9.0, 2, 1, 1, [0], [[0.5]], ("anna",), [False]), told(1, 1, 9.0)])
    assert writer.known(["anna"]) == {"anna": 2}
    assert [seq for seq, _ in writer.entries(1)] == [2, 3, 4]
    block.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert [len(list(store.entries())), len(list(store.table()))] == [2, 1]
    with store.exclusive() as writer:
        assert writer.known(["anna"]) == {}
