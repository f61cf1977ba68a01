"""What is in a backup, row by row, after its hash was checked."""

import base64
import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from orthobandit.errors import FileFormatError, VersionError
from orthobandit.experiment.store.sql.upgrade import NEWEST
from orthobandit.service.admin.database import TABLES, check_there, opened, reading
from orthobandit.service.admin.write import FORMAT

SQLITE = b"SQLite format 3\0"
Row = tuple[sa.Table, dict[str, Any]]


@dataclass(frozen=True)
class Kept:
    """A backup.

    Parameters
    ----------
    path : Path
    """

    path: Path

    def rows(self) -> Iterator[Row]:
        """Yield all rows with their tables, in bounded memory; lines of JSON are checked first.

        Raises
        ------
        FileFormatError
            If the file is no backup, or not as it was written; :class:`VersionError` if this release cannot
            restore it.
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
                yield table, dict(zip(columns, map(_value, data), strict=True))
            elif "table" in data:
                table = by_name[data["table"]]
                columns = data["columns"]

    def _is_sqlite(self) -> bool:
        with self.path.open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE

    def _pages(self) -> Iterator[Row]:
        with opened(self.path) as database:
            if check_there(database) != NEWEST:
                raise VersionError(
                    f"{self.path} is of an older release; run `orthobandit db upgrade --db {self.path}`"
                )
            with reading(database.engine) as connection:
                for table in TABLES:
                    for row in connection.execute(sa.select(table)):
                        yield table, row._asdict()

    def _check(self) -> None:
        """Read everything once: nothing is restored of a file that is damaged."""
        digest = sha256()
        last = b""
        first = b""
        for line in self._lines():
            if not first:
                first = line
                self._check_version(line)
            digest.update(last)
            last = line
        try:
            wanted = json.loads(last)["sha256"]
        except (ValueError, TypeError, KeyError):
            wanted = None
        if wanted != digest.hexdigest():
            raise FileFormatError(f"{self.path} is not as it was written, or not whole; take another backup")

    def _check_version(self, line: bytes) -> None:
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
            raise FileFormatError(f"{self.path} is no backup; `orthobandit db backup` makes one")
        if (form, version) != (FORMAT, NEWEST):
            raise VersionError(
                f"{self.path} was written by release {release}; restore it with that one:"
                f" `pip install 'orthobandit=={release}'`, and upgrade then"
            )

    def _lines(self) -> Iterator[bytes]:
        try:
            with gzip.open(self.path, "rb") as file:
                yield from file
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise FileFormatError(
                f"{self.path} is no backup, or not whole ({error}); take another one"
            ) from None


def _value(value: Any) -> Any:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value
