"""Open a whole database of any kind, find its version, and upgrade it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from orthobandit.errors import UnknownExperimentError
from orthobandit.experiment.store.sql.connections import address, file_of, make_engine, named_errors
from orthobandit.experiment.store.sql.upgrade import NEWEST, found_version, is_ready
from orthobandit.service.tables import ALL_TABLES

PATIENCE_SECONDS = 30.0  # seconds to wait for other processes
# Not `releases`, which records the schema version and is written when tables are created.
TABLES = [table for table in ALL_TABLES if table.name != "releases"]


class Database(NamedTuple):
    """An open database: its name for messages, its engine, and its file if it has one."""

    name: str
    engine: Engine
    file: Path | None


@contextmanager
def open_database(where: str | Path) -> Iterator[Database]:
    """Open a database; its errors are raised as this package's own."""
    url = address(where)
    file = file_of(url)
    # Copies and checks of large databases take as long as they take.
    engine = make_engine(url, PATIENCE_SECONDS, statement_seconds=None)
    name = str(file or url)
    try:
        with named_errors(name, engine.dialect.dbapi):
            yield Database(name, engine, file)
    finally:
        engine.dispose()


def make_private(where: str | Path) -> None:
    """Create the file of a new SQLite database so that only its owner can read it."""
    file = file_of(address(where))
    if file is not None and not file.exists() and file.parent.is_dir():
        file.touch(mode=0o600)


def find_version(database: Database) -> str:
    """Return the version of a database's tables.

    Raises
    ------
    UnknownExperimentError
        If it has no tables of this package.
    """
    found = None
    if database.file is None or database.file.exists():  # connecting would create the file
        with database.engine.connect() as connection:
            found = found_version(connection)
    if found is None:
        raise UnknownExperimentError(f"{database.name} has no experiments; check the place")
    return found


def upgrade(where: str | Path) -> tuple[str, str]:
    """Upgrade the tables of a database; return the versions before and after."""
    with open_database(where) as database:
        before = find_version(database)
        is_ready(database.engine, database.name, make=False)
        return before, NEWEST


def connect_snapshot(engine: Engine) -> sa.Connection:
    """Return a connection whose reads all see one snapshot of the database, without blocking writers."""
    connection = engine.connect().execution_options(stream_results=True, yield_per=1000)
    if engine.dialect.name == "postgresql":
        return connection.execution_options(isolation_level="REPEATABLE READ")
    return connection
