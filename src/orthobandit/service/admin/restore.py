"""A database out of a backup: all of it in one transaction, and never over what is there."""

from itertools import groupby
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from orthobandit.errors import ParameterError, StorageError
from orthobandit.experiment.store.sql.dialects import lock_tables, writing
from orthobandit.experiment.store.sql.upgrade import is_ready
from orthobandit.service.admin.database import TABLES, Database, make_private, opened
from orthobandit.service.admin.read import Kept

ROWS = 1000  # inserted at once


def restore(path: str | Path, where: str | Path) -> dict[str, int]:
    """Restore a backup into a database that is empty, of any kind.

    Parameters
    ----------
    path : str or Path
        What :func:`back_up` wrote.
    where : str or Path
        A SQLite file, which is made, or the URL of a database.

    Returns
    -------
    dict
        Rows of each table.

    Raises
    ------
    ParameterError
        If there is something already, or no such backup.
    """
    if not Path(path).is_file():
        raise ParameterError(f"path={str(path)!r} is no file")
    with opened(where) as database:
        is_new = database.file is not None and not database.file.exists()
        try:
            make_private(where)
            return _filled(database, Kept(Path(path)))
        except BaseException:
            if is_new and database.file is not None:
                database.engine.dispose()
                for end in ("", "-wal", "-shm"):
                    Path(f"{database.file}{end}").unlink(missing_ok=True)
            raise


def _filled(database: Database, kept: Kept) -> dict[str, int]:
    is_ready(database.engine, database.name, make=True)
    counts = {table.name: 0 for table in TABLES}
    with writing(database.engine) as connection, connection.begin():
        lock_tables(connection)
        _refuse_what_is_there(database, connection)
        for table, rows in groupby(kept.rows(), key=lambda row: row[0]):
            batch: list[dict[str, Any]] = []
            for _, row in rows:
                batch.append(row)
                if len(batch) == ROWS:
                    counts[table.name] += _insert(connection, table, batch)
            counts[table.name] += _insert(connection, table, batch)
        if connection.dialect.name == "postgresql":
            # The next experiment has the next number.
            connection.execute(
                sa.text(
                    "SELECT setval(pg_get_serial_sequence('experiments', 'id'),"
                    " (SELECT COALESCE(MAX(id), 0) + 1 FROM experiments), false)"
                )
            )
    return counts


def _insert(connection: sa.Connection, table: sa.Table, batch: list[dict[str, Any]]) -> int:
    count = len(batch)
    if batch:
        connection.execute(sa.insert(table), batch)
        batch.clear()
    return count


def _refuse_what_is_there(database: Database, connection: sa.Connection) -> None:
    for table in TABLES:
        if connection.execute(sa.select(sa.literal(1)).select_from(table).limit(1)).first() is not None:
            raise StorageError(
                f"{database.name} has rows in {table.name!r}, and nothing is overwritten; restore into a new"
                " file or an empty database"
            )
