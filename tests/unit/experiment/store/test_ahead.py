"""What others have written is read by the way, and is the same as if it were read by itself."""

import pytest
import sqlalchemy as sa

from experiment_samples import asked, next_block, told
from inside.experiment import SQLStore, encode_entry
from orthobandit.errors import DamagedStoreError
from orthobandit.experiment.store.sql.reader import ENTRIES_READ_AHEAD, Ahead
from orthobandit.experiment.store.sql.schema import REWARDS


@pytest.fixture
def both(tmp_path):
    """Return two that write to one log."""
    one, other = (SQLStore(tmp_path / "log.db") for _ in range(2))
    one.create({})
    yield one, other
    one.close()
    other.close()


@pytest.fixture
def read(monkeypatch):
    """Return a list of whether entries that were read ahead could be used."""
    found, block = [], Ahead.block

    def noted(self, last, before):
        out = block(self, last, before)
        found.append(out is not None)
        return out

    monkeypatch.setattr(Ahead, "block", noted)
    return found


def written(store, seen, entries):
    """Append entries, after reading what was written since the entry `seen`; return that and the newest."""
    with store.exclusive() as writer:
        others = list(writer.entries(seen))
        return others, writer.append(entries)


def test_two_that_take_turns_read_each_other(both, read):
    seen, last, first, log = [0, 0], 0, 1, []
    for turn in range(12):
        who = turn % 2
        entries, first = next_block(last, first)
        others, last = written(both[who], seen[who], entries)
        assert [seq for seq, _ in others] == list(range(seen[who] + 1, last - len(entries) + 1))
        assert [encode_entry(entry) for _, entry in others] == log[seen[who] :]
        log += [encode_entry(entry) for entry in entries]
        seen[who] = last
    assert read == [True] * (12 - 2 * 2)  # all but the first two turns of each


def test_more_than_were_read_ahead_are_read(both, read):
    for number in (1, 2, 3):
        written(both[number % 2], number - 1, [asked(number)])
    _, last = written(both[0], 3, [told(1) for _ in range(ENTRIES_READ_AHEAD + 5)])
    others, _ = written(both[1], 3, [told(2)])
    assert [seq for seq, _ in others] == list(range(4, last + 1))
    assert read[-1] is False


def test_what_this_block_has_appended_is_read_too(both):
    for number in (1, 2, 3):
        written(both[number % 2], number - 1, [asked(number)])
    written(both[0], 3, [told(1)])
    with both[1].exclusive() as writer:
        writer.append([told(2)])
        assert [seq for seq, _ in writer.entries(3)] == [4, 5]


def test_damage_is_noticed(both):
    for number in (1, 2, 3):
        written(both[number % 2], number - 1, [asked(number)])
    written(both[0], 3, [told(1)])
    with both[0]._engine.begin() as connection:
        connection.execute(sa.update(REWARDS).values(value=99.0))
    with pytest.raises(DamagedStoreError, match="entry 4 has changed since it was written"):
        written(both[1], 3, [])
