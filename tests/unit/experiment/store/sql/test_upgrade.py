"""Files of older releases are brought up to date, in one step or not at all."""

import shutil
import sqlite3
from threading import Barrier, Thread

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql

from experiment_samples import append, asked, texts, told
from inside.experiment import SQLStore
from orthobandit.errors import StorageError
from orthobandit.experiment.store.sql import upgrade
from orthobandit.experiment.store.sql.service_tables import METADATA
from orthobandit.experiment.store.sql.statements import Statements

STEP = """
import sqlalchemy as sa
from alembic import op

revision, down_revision = "0006", "0005"


def upgrade():
    op.add_column("rewards", sa.Column("note", sa.Text))
    {then}
"""


@pytest.fixture
def path(tmp_path):
    store = SQLStore(tmp_path / "log.db")
    store.create({"window": 60})
    append(store, [asked(1, 3), told(1, 3)])
    store.close()
    return tmp_path / "log.db"


def release(monkeypatch, folder, then="pass"):
    """Let the package have one step more."""
    shutil.copytree(upgrade.FOLDER, folder)
    (folder / "versions" / "v0006_notes.py").write_text(STEP.format(then=then))
    monkeypatch.setattr(upgrade, "FOLDER", folder)
    monkeypatch.setattr(upgrade, "NEWEST", "0006")


def columns(path):
    with sqlite3.connect(path) as connection:
        found = [row[1] for row in connection.execute("PRAGMA table_info(rewards)")]
        versions = connection.execute("SELECT version_num FROM orthobandit_version").fetchall()
    connection.close()
    return found, versions


def test_the_steps_lead_to_the_tables_of_the_schema(path):
    steps = ScriptDirectory(upgrade.FOLDER, version_locations=[upgrade.FOLDER / "versions"])
    assert steps.get_heads() == [upgrade.NEWEST]
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.connect() as connection:
        options = {"version_table": upgrade.VERSION_TABLE, "compare_type": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), METADATA) == []
    engine.dispose()


def test_an_older_file_is_brought_up_to_date_when_opened(path, tmp_path, monkeypatch):
    release(monkeypatch, tmp_path / "steps")
    store = SQLStore(path)
    assert columns(path) == ([*[column.name for column in METADATA.tables["rewards"].c], "note"], [("0006",)])
    assert (store.settings(), len(texts(store))) == ({"window": 60}, 2)
    store.close()


def test_a_step_that_fails_leaves_the_file_as_it_was(path, tmp_path, monkeypatch):
    before = columns(path)
    release(monkeypatch, tmp_path / "steps", then='op.execute("INSERT INTO nowhere VALUES (1)")')
    with pytest.raises(StorageError, match="nowhere"):
        SQLStore(path)
    assert columns(path) == before
    monkeypatch.undo()
    store = SQLStore(path)
    assert len(texts(store)) == 2
    store.close()


def test_statements_are_those_of_postgresql_too():
    statements = Statements(postgresql.dialect())
    assert statements.lock._text.endswith("FOR UPDATE")
    assert "%(above)s" in statements.events._text
    given = statements.events._given((1, 2, 3))
    assert given == {"experiment": 1, "above": 2, "most": 3}


def test_tables_can_be_made_in_several_threads_at_once(tmp_path):
    stores = [SQLStore(tmp_path / f"{number}.db") for number in range(8)]
    barrier, errors = Barrier(len(stores)), []

    def create(store):
        barrier.wait(10)
        try:
            store.create({})
        except Exception as error:  # of Alembic, which has one place for what it is working on
            errors.append(error)

    threads = [Thread(target=create, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for store in stores:
        assert store.settings() == {}
        store.close()
