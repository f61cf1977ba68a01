"""The lock that one server of a database holds, and another gets when that one is gone."""

import sqlite3
from contextlib import suppress

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from orthobandit.experiment.store.sql.dialects import address, connected, file_of

LOCK = 0x6F727468_6B656570  # the key of PostgreSQL's advisory lock, which holds within one database
PATIENCE = 5.0  # seconds


class KeeperLock:
    """A lock that ends with the process, however that ends.

    In PostgreSQL it is an advisory lock of a connection of its own: the server lets go of it when the
    connection breaks. For a SQLite file it is SQLite's own lock, of an empty file beside it: the system lets
    go of it with the process. In other databases there is none, and every server takes itself for the keeper:
    nothing is counted or kept twice then either, but messages may be sent twice.

    Parameters
    ----------
    where : str or Path
    """

    def __init__(self, where: object) -> None:
        url = address(str(where))
        self._file = file_of(url)
        self._engine: Engine | None = None
        if url.get_backend_name() == "postgresql":
            self._engine = connected(url, PATIENCE)
        self._connection: Connection | None = None
        self._beside: sqlite3.Connection | None = None

    def is_held(self) -> bool:
        """Tell whether this process holds the lock; tries to get it if not."""
        if self._engine is not None:
            return self._is_held_in_postgresql(self._engine)
        if self._file is not None:
            return self._beside is not None or self._is_locked_beside(f"{self._file}-keeper")
        return True

    def _is_held_in_postgresql(self, engine: Engine) -> bool:
        try:
            if self._connection is not None:
                self._connection.execute(sa.text("SELECT 1"))  # broken, if the lock is lost
                return True
            connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            if connection.execute(sa.select(sa.func.pg_try_advisory_lock(LOCK))).scalar():
                self._connection = connection
                return True
            connection.close()
        except sa.exc.SQLAlchemyError:
            self._drop()
        return False

    def _is_locked_beside(self, path: str) -> bool:
        # Used by one thread, and let go of by another once that has ended.
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            connection.close()
            return False
        self._beside = connection
        return True

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(sa.exc.SQLAlchemyError):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None

    def release(self) -> None:
        """Let go of the lock."""
        self._drop()
        if self._beside is not None:
            self._beside.close()
            self._beside = None
        if self._engine is not None:
            self._engine.dispose()
