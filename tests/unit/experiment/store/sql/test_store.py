"""Files that cannot be used are refused with an error that says what to do."""

import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from experiment_samples import append, asked, long_log, next_block, texts, told
from inside.experiment import MemoryStore, Noted, SQLStore, encode_entry
from orthobandit.errors import (
    DamagedFileWarning,
    DamagedStoreError,
    ExperimentExistsError,
    MissingExtraError,
    ParameterError,
    StorageError,
    UnknownExperimentError,
    VersionError,
)
from orthobandit.experiment.store.sql.reader import ENTRIES_PER_BLOCK


@pytest.fixture
def path(tmp_path):
    """Return a file with an experiment of a few hundred entries, closed."""
    store = SQLStore(tmp_path / "log.db")
    store.create({"window": 60})
    last, first = append(store, [Noted(0.0, "plan", {"number": 1})]), 1
    while last < 300:
        block, first = next_block(last, first)
        last = append(store, block)
    with store.exclusive() as writer:
        writer.keep(7, {"after": 7})
    store.close()
    return tmp_path / "log.db"


def change(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def test_a_commit_in_a_file_waits_for_the_disk(path):
    store = SQLStore(path)
    connection = store._write_connection().connection.dbapi_connection
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    store.close()


def test_a_missing_file_is_an_unknown_experiment_and_is_not_made(tmp_path):
    store = SQLStore(tmp_path / "missing.db")
    with pytest.raises(UnknownExperimentError, match=r"missing.db does not exist; make it with Exp"):
        store.settings()
    assert not (tmp_path / "missing.db").exists()
    other = SQLStore(tmp_path / "missing.db")
    other.create({"made": "elsewhere"})
    assert store.settings() == {"made": "elsewhere"}


def test_names_are_known_or_not(path):
    with pytest.raises(
        UnknownExperimentError, match="has no experiment 'other'; create it, or check the name"
    ):
        SQLStore(path, "other").entries().__next__()
    with pytest.raises(
        ExperimentExistsError, match="has an experiment 'experiment'; open it, or choose another"
    ):
        SQLStore(path).create({})
    SQLStore(path, "other").create({"window": 5})
    assert SQLStore(path).settings() == {"window": 60}
    assert list(SQLStore(path, "other").entries()) == []


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("some notes that are dear to me\n" * 50)
    with pytest.raises(DamagedStoreError, match=r"notes.txt: it is not a database; choose another file"):
        SQLStore(tmp_path / "notes.txt")
    assert (tmp_path / "notes.txt").read_text() == "some notes that are dear to me\n" * 50


def test_a_store_that_cannot_be_opened_keeps_no_connection(tmp_path, monkeypatch):
    (tmp_path / "notes.txt").write_text("some notes that are dear to me\n" * 50)
    released = []
    monkeypatch.setattr("orthobandit.experiment.store.sql.store.release_engine", released.append)
    with pytest.raises(DamagedStoreError):
        SQLStore(tmp_path / "notes.txt")
    assert len(released) == 1
    released[0].dispose()


@pytest.mark.parametrize("table", ["events", "contacts"])  # a name that we use, too, and one that we do not
def test_a_database_of_another_program_is_left_alone(tmp_path, table):
    change(tmp_path / "mine.db", f"CREATE TABLE {table} (id INTEGER)")
    store = SQLStore(tmp_path / "mine.db")
    with pytest.raises(DamagedStoreError, match=f"table '{table}' belongs to another program"):
        store.create({})
    with sqlite3.connect(tmp_path / "mine.db") as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [(table,)]
    connection.close()


def test_a_folder_and_a_missing_folder_are_named(tmp_path):
    with pytest.raises(StorageError, match="is a folder; give the path of a file in it"):
        SQLStore(tmp_path).create({})
    with pytest.raises(StorageError, match=r"missing/log.db: there is no folder '.*missing'; make it"):
        SQLStore(tmp_path / "missing" / "log.db").create({})


def test_a_file_that_can_only_be_read_is_read(path):
    keeper = SQLStore(path)  # SQLite cannot make the files beside it in read-only mode
    keeper.settings()
    store = SQLStore(f"sqlite:///file:{path}?mode=ro&uri=true")
    assert texts(store) == texts(keeper)
    with pytest.raises(StorageError, match="it cannot be written to; change its permissions and try again"):
        append(store, [Noted(1e9, "tick", {})])
    assert texts(store) == texts(keeper)


def test_a_newer_file_says_which_release_to_install(path):
    newer = "UPDATE orthobandit_version SET version_num = '0999'"
    change(path, newer, "INSERT INTO releases VALUES ('0999', '7.3')")
    with pytest.raises(VersionError, match=r"written by release 7.3; .*`pip install 'orthobandit>=7.3'`"):
        SQLStore(path)


def test_a_file_that_was_replaced_is_not_written_to(path, tmp_path):
    store = SQLStore(path)
    store.settings()
    path.rename(tmp_path / "moved.db")
    with pytest.raises(StorageError, match="the file was moved or replaced; open it again"):
        append(store, [Noted(1e9, "tick", {})])
    (tmp_path / "moved.db").rename(path)
    append(store, [Noted(1e9, "tick", {})])


@pytest.mark.parametrize(
    ("statement", "entry"),
    [
        ("UPDATE rewards SET value = value + 1e-12 WHERE event = 15", 15),
        ("UPDATE proposals SET arm = 3 WHERE number = 1", 2),
        ("UPDATE proposals SET forecasts = '[0.5]' WHERE number = 1", 2),
        ("UPDATE proposals SET forecasts = 'x' WHERE number = 1", None),
        ("UPDATE proposals SET held = 1 WHERE number = 1", 2),
        ("UPDATE events SET at = at + 0.5 WHERE seq = 1", 1),
        ("UPDATE events SET kind = 'distribution' WHERE seq = 1", 1),
        ("UPDATE events SET data = '{\"number\": 2}' WHERE seq = 1", 1),
        ("UPDATE events SET data = '{' WHERE seq = 1", None),
        ("DELETE FROM events WHERE seq = 1", 2),
        ("DELETE FROM proposals WHERE number = 1", 2),
        ("DELETE FROM rewards WHERE event = 3", 3),
        ("UPDATE events SET seal = x'00' WHERE seq = 40", 40),
    ],
)
def test_a_log_that_was_changed_is_noticed(path, statement, entry):
    change(path, statement)
    store = SQLStore(path)
    what = "an entry between 1 and 305" if entry is None else f"entry {entry}"
    message = f"log.db: {what} has changed since it was written; restore a copy"
    with pytest.raises(DamagedStoreError, match=message):
        list(store.entries())
    store.close()


def test_changed_settings_are_noticed(path):
    change(path, "UPDATE experiments SET settings = '{\"window\": 61}'")
    message = "the settings have changed since they were written; restore a copy"
    with pytest.raises(DamagedStoreError, match=message):
        SQLStore(path).settings()


def test_a_changed_snapshot_is_as_none(path):
    change(path, "UPDATE snapshots SET state = '{}'")
    with pytest.warns(
        DamagedFileWarning, match="the snapshot after entry 7 is damaged; the log is read instead"
    ):
        assert SQLStore(path).snapshot() is None


def test_a_missing_table_is_noticed(path):
    change(path, "DROP TABLE rewards")
    with pytest.raises(DamagedStoreError, match="it lacks what it should hold; restore a copy"):
        list(SQLStore(path).entries())


def test_overwritten_bytes_are_noticed_or_without_effect(path):
    whole, rng = path.read_bytes(), np.random.default_rng(5)
    store = SQLStore(path)
    wanted = (store.settings(), texts(store))
    store.close()
    noticed = 0
    for _ in range(120):  # half of the pages belong to tables that are empty here
        start = int(rng.integers(0, len(whole) - 64))
        path.write_bytes(whole[:start] + rng.bytes(64) + whole[start + 64 :])
        try:
            store = SQLStore(path)
            assert (store.settings(), texts(store)) == wanted
        except (DamagedStoreError, VersionError, UnknownExperimentError):
            noticed += 1
        finally:
            store.close()
            for beside in ("log.db-wal", "log.db-shm"):
                path.with_name(beside).unlink(missing_ok=True)
    assert noticed > 20


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "must be a path or the URL"),
        (3, "must be a path or the URL"),
        ("sqlite://", "is not a file; use Experiment.memory"),
        (":memory:", "is not a file; use Experiment.memory"),
        ("://", "is not a database URL"),
        ("nonsense://place", "no database .nonsense. is known"),
    ],
)
def test_a_place_that_is_none_is_refused(where, message):
    with pytest.raises(ParameterError, match=message):
        SQLStore(where)


def test_a_missing_driver_is_named_and_the_password_is_not(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        MissingExtraError, match=r"needs psycopg; install it with `pip install psycopg`"
    ) as found:
        SQLStore("postgresql+psycopg://me:secret@host/data")
    assert "secret" not in str(found.value)


def test_plans_are_found_by_number(path):
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT kind, number, event FROM plans").fetchall() == [("plan", 1, 1)]
    connection.close()


def test_a_long_log_is_read_back_from_anywhere_and_its_table_is_that_of_the_store_in_memory(tmp_path):
    store, other = SQLStore(tmp_path / "log.db"), MemoryStore()
    entries = long_log(np.random.default_rng(6), 2 * ENTRIES_PER_BLOCK + 5)
    for each in (store, other):
        each.create({})
        for start in range(0, len(entries), 97):
            append(each, entries[start : start + 97])
    wanted = [encode_entry(entry) for entry in entries]
    for after in (0, 1, ENTRIES_PER_BLOCK - 1, ENTRIES_PER_BLOCK, ENTRIES_PER_BLOCK + 1, len(entries) - 1):
        assert texts(store, after) == wanted[after:]
    assert list(store.table()) == list(other.table())
    store.close()


def test_an_entry_larger_than_a_block_is_read_back(tmp_path):
    store = SQLStore(tmp_path / "log.db")
    store.create({})
    entries = [asked(1, 10), asked(11, 30_000), told(1, 30_000), asked(30_011, 1)]
    append(store, entries)
    append(store, [Noted(0.0, "tick", {"count": count}) for count in range(1500)])
    assert len(texts(store)) == 1504
    assert sum(len(text) for text in texts(store)[:4]) > 60_000 * 8
    assert len(list(store.table())) == 30_011


def test_without_sqlalchemy_experiments_in_memory_work_and_files_say_what_is_missing():
    script = (
        "import sys; sys.modules['sqlalchemy'] = None\n"
        "from orthobandit.errors import MissingExtraError\n"
        "import orthobandit.experiment.store as stores\n"
        "stores.MemoryStore().create({})\n"
        "try:\n    stores.SQLStore\nexcept MissingExtraError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)  # noqa: S603
    assert done.stdout == (
        "an experiment in a file needs sqlalchemy; install it with `pip install '.[live]'` in"
        " orthobandit's folder\n"
    )
    assert issubclass(MissingExtraError, ImportError)


def test_no_statement_reads_a_whole_table(path):
    store = SQLStore(path)
    connection = store._write_connection().connection.dbapi_connection
    queries = [name for name in vars(store._statements) if not name.startswith(("_", "add"))]
    assert len(queries) == 17
    for name in queries:
        statement = getattr(store._statements, name)
        values = statement._given(tuple(range(len(statement._names) - len(statement._constants))))
        plan = connection.execute("EXPLAIN QUERY PLAN " + statement._text, values).fetchall()
        for *_, step in plan:
            # Rows of the newest entry and of the newest proposal are put side by side: one each.
            allowed = ("MATERIALIZE anon", "CO-ROUTINE anon", "SCAN anon") if name == "newest" else ()
            assert step.startswith(("SEARCH", "MULTI-INDEX OR", "INDEX", *allowed)), (name, step)
    store.close()


def test_an_interrupted_beginning_leaves_the_store_usable(path, monkeypatch):
    store = SQLStore(path)
    last = append(store, [Noted(1e9, "tick", {})])

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("orthobandit.experiment.store.sql.store.SQLWriter", interrupted)
        with pytest.raises(KeyboardInterrupt):
            append(store, [Noted(1e9, "tick", {})])
    assert append(store, [Noted(1e9, "tick", {})]) == last + 1
    store.close()


def test_units_are_looked_up_and_not_searched(tmp_path):
    store = SQLStore(tmp_path / "log.db")
    store.create({})
    append(store, [asked(1, 3, units=("ann", "bob", "cid"))])
    with sqlite3.connect(tmp_path / "log.db") as file:
        query = store._statements.known_few._text
        [(*_, plan)] = file.execute(f"EXPLAIN QUERY PLAN {query}", (1, *["ann"] * 16))
    file.close()
    store.close()
    assert "proposals_by_unit (experiment=? AND unit=?)" in plan
