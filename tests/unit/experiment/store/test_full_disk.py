"""A disk without room: a named error, nothing half-written, and on it goes once there is room."""

import pytest
import sqlalchemy as sa

from experiment_samples import append, asked, next_block, python, texts
from inside.experiment import SQLStore
from orthobandit.errors import StorageError

PLENTY = 1_000_000


@pytest.fixture
def connections():
    """Return a list that all connections made in a test are added to."""
    made = []

    def note(connection, _):
        made.append(connection)

    sa.event.listen(sa.engine.Engine, "connect", note)
    yield made
    sa.event.remove(sa.engine.Engine, "connect", note)


def limit(connections, pages):
    for connection in connections:
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchone()


def fill(store):
    """Append for ever."""
    last, first = 2, 2
    while True:
        block, first = next_block(last, first)
        last = append(store, block)


@pytest.fixture
def store(tmp_path, connections):
    store = SQLStore(tmp_path / "log.db")
    store.create({})
    append(store, next_block(0, 1)[0])
    yield store
    store.close()


def test_a_full_disk_leaves_what_was_there_and_goes_on_with_room(store, connections):
    limit(connections, 20)
    with pytest.raises(StorageError, match=r"log.db: the disk is full; nothing was written: make room"):
        fill(store)
    before = texts(store)
    assert len(list(store.table())) == store.proposals([len(list(store.table()))])[0].number
    with pytest.raises(StorageError):
        append(store, [asked(len(list(store.table())) + 1, 5000, at=1e9)])
    assert texts(store) == before
    limit(connections, PLENTY)
    append(store, [asked(len(list(store.table())) + 1, 5000, at=1e9)])
    assert texts(store)[:-1] == before


def test_a_block_that_ran_out_of_room_cannot_go_on_and_commits_nothing(store, connections):
    before = texts(store)
    limit(connections, 20)

    def go_on_after_an_error():
        with store.exclusive() as writer:
            with pytest.raises(StorageError, match="full"):
                writer.append([asked(2, 5000, at=1e9)])
            limit(connections, PLENTY)
            with pytest.raises(StorageError, match="full"):
                writer.append([asked(2, 1, at=1e9)])

    with pytest.raises(StorageError, match="full"):
        go_on_after_an_error()
    assert texts(store) == before
    assert append(store, [asked(2, 1, at=1e9)]) == 3


def test_a_snapshot_without_room_leaves_the_older_one(store, connections):
    with store.exclusive() as writer:
        writer.keep(1, {"small": True})
    limit(connections, 20)
    with pytest.raises(StorageError, match="full"), store.exclusive() as writer:
        writer.keep(2, {"large": "x" * 500_000})
    assert store.snapshot() == (1, {"small": True})


LIMITED = """
import resource
from experiment_samples import append, asked, texts
from orthobandit.errors import StorageError
from inside.experiment import SQLStore
store = SQLStore(sys.argv[1])
store.create({})
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, most))
done = 0
try:
    while True:
        append(store, [asked(50 * done + 1, 50)])
        done += 1
except StorageError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
assert len(texts(store)) == done > 0, done
append(store, [asked(50 * done + 1, 50)])
assert len(texts(store)) == done + 1
"""


@pytest.mark.slow
def test_a_file_that_may_not_grow_is_a_storage_error_too(tmp_path):
    with python(LIMITED, tmp_path / "log.db") as process:
        assert "log.db: the disk fails; nothing was written" in process.stdout.read()
        assert process.wait() == 0
