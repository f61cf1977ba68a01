"""What databases complain about, as errors that say what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import exc

from orthobandit.errors import DamagedStoreError, StorageError

# By the beginning of SQLite's name of the error.
SQLITE = (
    ("SQLITE_FULL", StorageError, "the disk is full; nothing was written: make room and try again"),
    ("SQLITE_READONLY", StorageError, "it cannot be written to; change its permissions and try again"),
    ("SQLITE_BUSY", StorageError, "another process keeps it; try again, or end the one that hangs"),
    ("SQLITE_LOCKED", StorageError, "another process keeps it; try again, or end the one that hangs"),
    ("SQLITE_NOTADB", DamagedStoreError, "it is not a database; choose another file, or restore a copy"),
    ("SQLITE_CORRUPT", DamagedStoreError, "it is damaged; restore a copy"),
    ("SQLITE_CONSTRAINT", DamagedStoreError, "its parts contradict each other; restore a copy"),
    ("SQLITE_ERROR", DamagedStoreError, "it lacks what it should hold; restore a copy"),
    (
        "SQLITE_CANTOPEN",
        StorageError,
        "it cannot be opened; check its folder and its permissions",
    ),
    ("SQLITE_PERM", StorageError, "it cannot be opened; check its permissions"),
    (
        "SQLITE_IOERR",
        StorageError,
        "the disk fails; nothing was written: make room, or check the disk",
    ),
)


@contextmanager
def named_errors(where: str, dbapi: Any) -> Iterator[None]:
    """Raise errors of the database `where` as :class:`StorageError` or :class:`DamagedStoreError`.

    Parameters
    ----------
    where : str
        Begins the message, also of a :class:`DamagedStoreError` raised in the block.
    dbapi : module
        The driver, whose errors come bare where its cursor is used.
    """
    try:
        yield
    except exc.DBAPIError as error:
        raise named(where, error.orig) from error
    except exc.SQLAlchemyError as error:
        raise StorageError(f"{where}: {error}") from error
    except DamagedStoreError as error:
        raise DamagedStoreError(f"{where}: {error}") from error
    except dbapi.Error as error:
        raise named(where, error) from error
    except UnicodeDecodeError as error:
        # SQLite's driver cannot even repeat its complaint, of names in the file that are no text.
        raise DamagedStoreError(f"{where}: it is damaged; restore a copy ({error})") from error
    except OSError as error:
        raise StorageError(f"{where}: {error.strerror or error}; nothing was written") from error


def named(where: str, error: BaseException | None) -> StorageError:
    """Return the error to raise for one of a database driver."""
    name = getattr(error, "sqlite_errorname", "")
    for beginning, kind, advice in SQLITE:
        if name.startswith(beginning):
            return kind(f"{where}: {advice} ({error})")
    if "decode" in str(error):  # SQLite's driver has no number for text that is none
        return DamagedStoreError(f"{where}: it is damaged; restore a copy ({error})")
    return StorageError(f"{where}: {error}; nothing was written: try again when the database is well")
