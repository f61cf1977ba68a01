"""Connections to a database as a whole, whatever it is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from orthobandit.errors import UnknownExperimentError
from orthobandit.experiment.store.sql.dialects import address, connected, file_of
from orthobandit.experiment.store.sql.failures import named_errors
from orthobandit.experiment.store.sql.service_schema import METADATA
from orthobandit.experiment.store.sql.upgrade import NEWEST, found_version, is_ready

PATIENCE = 30.0  # seconds to wait for other processes
# Those that follow from others are left out: what release made the tables is known anew.
TABLES = [table for table in METADATA.sorted_tables if table.name != "releases"]


class Database(NamedTuple):
    """A database that is open: what it is called in messages, the engine, and its file if it is one."""

    name: str
    engine: Engine
    file: Path | None


@contextmanager
def opened(where: str | Path) -> Iterator[Database]:
    """Open a database; errors have their names."""
    url = address(where)
    file = file_of(url)
    engine = connected(url, PATIENCE)
    name = str(file or url)
    try:
        with named_errors(name, engine.dialect.dbapi):
            yield Database(name, engine, file)
    finally:
        engine.dispose()


def make_private(where: str | Path) -> None:
    """Make the file of a new database, if it is one, so that only its owner can read what is put there."""
    file = file_of(address(where))
    if file is not None and not file.exists() and file.parent.is_dir():
        file.touch(mode=0o600)


def check_there(database: Database) -> str:
    """Return the version of a database's tables.

    Raises
    ------
    UnknownExperimentError
        If it has none of ours.
    """
    found = None
    if database.file is None or database.file.exists():  # to connect would make the file
        with database.engine.connect() as connection:
            found = found_version(connection)
    if found is None:
        raise UnknownExperimentError(f"{database.name} has no experiments; check the place")
    return found


def upgrade(where: str | Path) -> tuple[str, str]:
    """Bring the tables of a database to the newest version; return the versions before and after."""
    with opened(where) as database:
        before = check_there(database)
        is_ready(database.engine, database.name, make=False)
        return before, NEWEST


def reading(engine: Engine) -> sa.Connection:
    """Return a connection whose reads all see the database as it is now, and hold up nobody."""
    connection = engine.connect().execution_options(stream_results=True, yield_per=1000)
    if engine.dialect.name == "postgresql":
        return connection.execution_options(isolation_level="REPEATABLE READ")
    return connection
