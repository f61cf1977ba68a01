"""A copy of a database while servers use it: lines of JSON for any database, or a SQLite file.

The first line says what this is and of which version; a line with a table's name and columns comes before the
lines of its rows; the last line has the number of rows and a hash of all lines before it.
"""

import base64
import gzip
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from orthobandit._foundation.files import whole_file
from orthobandit.errors import DamagedStoreError, ParameterError
from orthobandit.experiment.store.sql.upgrade import NEWEST, is_ready
from orthobandit.service.admin.database import TABLES, Database, check_there, opened, reading

FORMAT = 1
PRIVATE = 0o600  # secrets of webhooks are in it
PAGES = (".db", ".sqlite", ".sqlite3")  # files that are copied page by page


def back_up(where: str | Path, path: str | Path) -> dict[str, int]:
    """Copy a database as it is at one moment; servers go on meanwhile.

    Parameters
    ----------
    where : str or Path
        A SQLite file, or the URL of a database.
    path : str or Path
        A new file. With the ending ``.db`` or ``.sqlite``, and a SQLite database, that is a SQLite file, by
        SQLite's online backup; otherwise it has lines of JSON, compressed, that :func:`restore` can make any
        database of.

    Returns
    -------
    dict
        Rows of each table.
    """
    if Path(path).exists():
        raise ParameterError(f"path={str(path)!r} is there already; choose another name")
    with opened(where) as database:
        check_there(database)
        is_ready(database.engine, database.name, make=False)
        if database.file is not None and Path(path).suffix in PAGES:
            return _copy_pages(database, Path(path))
        with whole_file(path) as unfinished:
            unfinished.touch(PRIVATE)
            rows = _write_lines(database, unfinished)
            _sync(unfinished)
        return rows


def _copy_pages(database: Database, path: Path) -> dict[str, int]:
    with (
        whole_file(path) as unfinished,
        closing(sqlite3.connect(str(database.file))) as source,
        closing(_private(unfinished)) as copy,
    ):
        source.backup(copy)  # in one step: with several, a server that writes would make it begin again
        found = copy.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise DamagedStoreError(f"the copy is damaged ({found}); check the disk")
        # One file, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        return {
            table.name: copy.execute(f"SELECT COUNT(*) FROM {table.name}").fetchone()[0]  # noqa: S608
            for table in TABLES
        }


def _private(path: Path) -> sqlite3.Connection:
    path.touch(PRIVATE)
    return sqlite3.connect(path)


def _write_lines(database: Database, path: Path) -> dict[str, int]:
    digest = sha256()
    rows = dict[str, int]()
    with gzip.open(path, "wb", compresslevel=6) as file, reading(database.engine) as connection:
        for line in _lines(connection, rows):
            digest.update(line)
            file.write(line)
        file.write(_line({"rows": rows, "sha256": digest.hexdigest()}))
    return rows


def _lines(connection: sa.Connection, rows: dict[str, int]) -> Iterator[bytes]:
    about = {"orthobandit": "backup", "format": FORMAT, "version": NEWEST}
    yield _line(about | {"release": version("orthobandit"), "at": time.time()})
    for table in TABLES:
        yield _line({"table": table.name, "columns": [column.name for column in table.c]})
        rows[table.name] = 0
        for row in connection.execute(sa.select(table).order_by(*table.primary_key)):
            rows[table.name] += 1
            yield _line([_plain(value) for value in row])


def _line(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def _plain(value: Any) -> Any:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes | memoryview) else value


def _sync(path: Path) -> None:
    """Wait until a file is on disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
