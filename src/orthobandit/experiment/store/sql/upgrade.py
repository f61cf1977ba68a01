"""Versions of the tables: which one a database has, and the steps to the newest."""

from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from orthobandit._foundation.extras import optional_package
from orthobandit._foundation.release import __version__, older_words
from orthobandit.errors import DamagedStoreError, VersionError
from orthobandit.experiment.store.sql.connections import connect_to_write, lock_tables
from orthobandit.experiment.store.sql.schema import METADATA, RELEASES
from orthobandit.experiment.store.sql.service_tables import ALL_TABLES

NEWEST = "0005"  # the version of schema.py and of service_tables.py
OLDEST = "0005"  # that steps lead on from: the tables of release 0.5
VERSION_TABLE = "orthobandit_version"
FOLDER = Path(__file__).with_name("migrations")
_LOCK = Lock()  # Alembic has one place in a process for what it is working on


def is_ready(engine: Engine, where: str, *, make: bool) -> bool:
    """Bring the tables of a database to the newest version.

    Parameters
    ----------
    engine : Engine
    where : str
        Begins messages.
    make : bool
        Whether to create tables if there are none.

    Returns
    -------
    bool
        False if there are no tables and none were made.

    Raises
    ------
    VersionError
        If they are of a newer release, or of one before 0.5; :class:`DamagedStoreError` if they are of
        another program.
    """
    with engine.connect() as connection:
        found = found_version(connection)
        if found == NEWEST:
            return True
        if found is None and not make:
            return False
    steps = _steps()
    with _LOCK, connect_to_write(engine) as connection, connection.begin():
        lock_tables(connection)
        found = found_version(connection)  # perhaps another process was faster
        if found is None:
            _refuse_other_tables(connection)
            METADATA.create_all(connection, tables=ALL_TABLES)
        elif found < OLDEST:
            raise VersionError(older_words(where))
        elif found not in {step.revision for step in steps.walk_revisions()}:
            raise VersionError(_newer(connection, where, found))
        _climb(connection, steps, is_new=found is None)
    return True


def found_version(connection: Connection) -> str | None:
    """Return the version of a database's tables; None if it has none of ours."""
    if not sa.inspect(connection).has_table(VERSION_TABLE):
        return None
    table = sa.table(VERSION_TABLE, sa.column("version_num"))
    found: str | None = connection.execute(sa.select(table.c.version_num)).scalar()
    return found


def _newer(connection: Connection, where: str, found: str) -> str:
    query = sa.select(RELEASES.c.release).where(RELEASES.c.version == found)
    release = connection.execute(query).scalar()
    by = f"release {release}" if release else "a newer release"
    least = release or __version__
    return f"{where}: written by {by}; this is {__version__}: `pip install 'orthobandit>={least}'`"


def _refuse_other_tables(connection: Connection) -> None:
    there = set(sa.inspect(connection).get_table_names())
    # A server's database may be shared with others as long as names differ. A file belongs to one program.
    other = sorted(
        there
        if connection.dialect.name == "sqlite"
        else there.intersection(table.name for table in ALL_TABLES)
    )
    if other:
        raise DamagedStoreError(
            f"table {other[0]!r} belongs to another program, or the store is damaged; "
            "choose another place, or restore a copy"
        )


def _steps() -> Any:
    script = optional_package("alembic.script", "live", "an experiment in a file")
    return script.ScriptDirectory(FOLDER, version_locations=[FOLDER / "versions"])


def _climb(connection: Connection, steps: Any, *, is_new: bool) -> None:
    """Run the steps to the newest version; tables that were made just now only get its number."""
    run = steps._stamp_revs if is_new else steps._upgrade_revs
    environment = optional_package("alembic.runtime.environment", "live", "an experiment in a file")
    config = optional_package("alembic.config", "live", "an experiment in a file").Config()
    context = environment.EnvironmentContext(config, steps)
    with context:
        context.configure(
            connection=connection,
            version_table=VERSION_TABLE,
            fn=lambda revision, _: run(NEWEST, revision),
        )
        context.run_migrations()
    known = sa.select(RELEASES.c.version).where(RELEASES.c.version == NEWEST)
    if connection.execute(known).first() is None:
        connection.execute(sa.insert(RELEASES).values(version=NEWEST, release=__version__))
