"""Copy a database while servers use it, and restore the copy into an empty database of any kind.

A backup is a SQLite file, or compressed lines of JSON. The first line holds the format and the versions. A
line with a table's name and columns comes before the lines of its rows. The last line holds the number of
rows of each table and a hash of all the lines before it.
"""

import base64
import gzip
import json
import os
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from orthobandit._foundation.files import whole_file
from orthobandit._foundation.release import __version__, older_words
from orthobandit.errors import (
    Argument,
    DamagedStoreError,
    FileFormatError,
    ParameterError,
    StorageError,
    VersionError,
)
from orthobandit.experiment.store.sql.connections import connect_to_write, lock_tables
from orthobandit.experiment.store.sql.upgrade import NEWEST, OLDEST, is_ready
from orthobandit.service.admin.database import (
    TABLES,
    Database,
    connect_snapshot,
    find_version,
    make_private,
    open_database,
)

FORMAT = 1
PRIVATE_MODE = 0o600  # file mode: a backup holds the secrets of webhooks
PAGES = (".db", ".sqlite", ".sqlite3")  # suffixes of files that are copied page by page
SQLITE = b"SQLite format 3\0"
Row = tuple[sa.Table, dict[str, Any]]
ROWS_PER_INSERT = 1000  # inserted at once


def back_up(where: str | Path, path: str | Path) -> dict[str, int]:
    """Copy a database as it is at one moment, while servers go on.

    Parameters
    ----------
    where : str or Path
        A SQLite file, or the URL of a database.
    path : str or Path
        A new file. If it ends in ``.db``, ``.sqlite`` or ``.sqlite3`` and the database is SQLite, the copy is
        a SQLite file (SQLite's online backup). Otherwise it is compressed lines of JSON, which
        :func:`restore` can read into any database.

    Returns
    -------
    dict
        Rows of each table.
    """
    if Path(path).exists():
        raise ParameterError(Argument("path", str(path)), " exists already; choose another name")
    with open_database(where) as database:
        find_version(database)
        is_ready(database.engine, database.name, make=False)
        if database.file is not None and Path(path).suffix in PAGES:
            return _copy_pages(database, Path(path))
        with whole_file(path) as unfinished:
            unfinished.touch(PRIVATE_MODE)
            rows = _write_lines(database, unfinished)
            _sync(unfinished)
        return rows


def _copy_pages(database: Database, path: Path) -> dict[str, int]:
    """Copy a SQLite database to another file by SQLite's online backup; return the rows of each table."""
    with (
        whole_file(path) as unfinished,
        closing(sqlite3.connect(str(database.file))) as source,
        closing(_connect_private(unfinished)) as copy,
    ):
        source.backup(copy)  # in one step: in several, a write in between would make SQLite begin again
        found = copy.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise DamagedStoreError(f"the copy is damaged ({found}); check the disk")
        # One file, without a log beside it.
        copy.execute("PRAGMA journal_mode = DELETE")
        return {
            table.name: copy.execute(f"SELECT COUNT(*) FROM {table.name}").fetchone()[0]  # noqa: S608
            for table in TABLES
        }


def _connect_private(path: Path) -> sqlite3.Connection:
    path.touch(PRIVATE_MODE)
    return sqlite3.connect(path)


def _write_lines(database: Database, path: Path) -> dict[str, int]:
    """Write all tables as compressed lines of JSON with a hash at the end; return rows by table."""
    digest = sha256()
    rows = dict[str, int]()
    with gzip.open(path, "wb", compresslevel=6) as file, connect_snapshot(database.engine) as connection:
        for line in _lines(connection, rows):
            digest.update(line)
            file.write(line)
        file.write(_line({"rows": rows, "sha256": digest.hexdigest()}))
    return rows


def _lines(connection: sa.Connection, rows: dict[str, int]) -> Iterator[bytes]:
    about = {"orthobandit": "backup", "format": FORMAT, "version": NEWEST}
    yield _line(about | {"release": __version__, "at": time.time()})
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


@dataclass(frozen=True)
class Kept:
    """A backup.

    Parameters
    ----------
    path : Path
    """

    path: Path

    def rows(self) -> Iterator[Row]:
        """Yield all rows with their tables, in bounded memory; the hash of JSON lines is checked first.

        Raises
        ------
        FileFormatError
            If the file is not a backup or is damaged.
        VersionError
            If this release cannot restore it.
        """
        if self._is_sqlite():
            yield from self._pages()
            return
        self._check()
        by_name = {table.name: table for table in TABLES}
        table = TABLES[0]
        columns = list[str]()
        for line in self._lines():
            data = json.loads(line)
            if isinstance(data, list):
                yield table, dict(zip(columns, map(_decode_value, data), strict=True))
            elif "table" in data:
                table = by_name[data["table"]]
                columns = data["columns"]

    def _is_sqlite(self) -> bool:
        with self.path.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE

    def _pages(self) -> Iterator[Row]:
        """Yield the rows of a backup that is a SQLite file."""
        with open_database(self.path) as database:
            version = find_version(database)
            if version != NEWEST:
                is_older = version < OLDEST
                raise VersionError(
                    older_words(str(self.path))
                    if is_older
                    else f"{self.path} has tables of version {version}, and {NEWEST} can be restored; run"
                    f" `orthobandit db upgrade --db {self.path}` first"
                )
            with connect_snapshot(database.engine) as connection:
                for table in TABLES:
                    for row in connection.execute(sa.select(table)):
                        yield table, row._asdict()

    def _check(self) -> None:
        """Check the hash before anything is read: nothing of a damaged file is restored."""
        digest = sha256()
        last = b""
        first = b""
        for line in self._lines():
            if not first:
                first = line
                self._check_version(line)
            digest.update(last)
            last = line  # the last line holds the hash, and is not part of it
        try:
            wanted = json.loads(last)["sha256"]
        except (ValueError, TypeError, KeyError):
            wanted = None
        if wanted != digest.hexdigest():
            raise FileFormatError(
                f"{self.path} has changed since it was written, or is incomplete; take another backup"
            )

    def _check_version(self, line: bytes) -> None:
        """Raise an error if the first line is not that of a backup this release can restore."""
        try:
            about = json.loads(line)
            kind, form, version, release = (
                about[key] for key in ("orthobandit", "format", "version", "release")
            )
        except (ValueError, TypeError, KeyError):
            kind = ""
            form = 0
            version = ""
            release = ""
        if kind != "backup":
            raise FileFormatError(f"{self.path} is not a backup; `orthobandit db backup` makes one")
        if str(version) < OLDEST:
            raise VersionError(older_words(str(self.path)))
        if form != FORMAT or version != NEWEST:
            raise VersionError(
                f"{self.path} was written by release {release}; restore it with that one:"
                f" `pip install 'orthobandit=={release}'`, and upgrade then"
            )

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines of a compressed backup."""
        try:
            with gzip.open(self.path, "rb") as file:
                yield from file
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileFormatError(
                f"{self.path} is not a backup, or is incomplete ({error}); take another one"
            ) from None


def _decode_value(value: Any) -> Any:
    """Return a value of a row from JSON, where bytes are written as ``{"base64": …}``."""
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value


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
        If there is no such backup.
    """
    if not Path(path).is_file():
        raise ParameterError(Argument("path", str(path)), " is not a file")
    with open_database(where) as database:
        is_new = database.file is not None and not database.file.exists()
        try:
            make_private(where)
            return _fill(database, Kept(Path(path)))
        except BaseException:
            # Half a database would look like a whole one to the next server.
            if is_new and database.file is not None:
                database.engine.dispose()
                for end in ("", "-wal", "-shm"):
                    Path(f"{database.file}{end}").unlink(missing_ok=True)
            raise


def _fill(database: Database, kept: Kept) -> dict[str, int]:
    """Insert all rows of a backup in one transaction; return rows by table."""
    is_ready(database.engine, database.name, make=True)
    counts = {table.name: 0 for table in TABLES}
    with connect_to_write(database.engine) as connection, connection.begin():
        lock_tables(connection)  # a server that starts now must not write in between
        _refuse_what_is_there(database, connection)
        for table, rows in groupby(kept.rows(), key=lambda row: row[0]):
            batch: list[dict[str, Any]] = []
            for _, row in rows:
                batch.append(row)
                if len(batch) == ROWS_PER_INSERT:
                    counts[table.name] += _insert(connection, table, batch)
            counts[table.name] += _insert(connection, table, batch)
        if connection.dialect.name == "postgresql":
            # Rows were inserted with their ids: let the next experiment have the next one.
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
