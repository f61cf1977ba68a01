"""Connections to SQLite and PostgreSQL: how the two differ, who shares them, and what their errors mean.

Experiments on one database server share a pool of connections; those in one file take turns to write.
"""

import ctypes
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url

from orthobandit.errors import (
    Argument,
    DamagedStoreError,
    ForkError,
    MissingExtraError,
    ParameterError,
    StorageError,
)

WRITES_OPTION = "orthobandit_writes"  # option of connections that write
BACKENDS = ("sqlite", "postgresql")  # what the statements are written and tested for
TABLES_LOCK_KEY = 0x6F7274686F  # key of PostgreSQL's lock while tables are made
PIPELINE_KEY = "orthobandit_group"  # where a connection keeps what it has sent and not yet heard of
# Pages of SQLite's write-ahead log before they move to the file: fewer waits for the disk.
CHECKPOINT_PAGES = 4000
MAX_STATEMENT_SECONDS = 60.0
# Seconds to connect, and to notice that a database's machine has vanished.
LIBPQ = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
# A plan that PostgreSQL made while a table was empty reads all of it, and is kept until that is analysed:
# a minute later, or never. To plan anew takes a tenth of a millisecond. Before release 12 nobody can say so.
PLAN_ANEW = (
    "SELECT set_config(name, 'force_custom_plan', false) FROM pg_settings WHERE name = 'plan_cache_mode'"
)
MAX_KEPT_CONNECTIONS = 10  # connections of a server beyond which those who have written give theirs back
_LOCK = Lock()
_USED: dict[tuple[str, float, int], tuple[Engine, int]] = {}
# By the beginning of SQLite's name of the error.
SQLITE_ERRORS = (
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


def address(where: str | Path) -> URL:
    """Return the URL of a database; a path is that of a SQLite file.

    Raises
    ------
    ParameterError
        If `where` is neither, or a database in memory.
    """
    if isinstance(where, str) and "://" in where:
        try:
            url = make_url(where)
        except sa.exc.ArgumentError as error:
            raise ParameterError(Argument("where", where), f" is not a database URL: {error}") from None
    elif isinstance(where, str | Path) and str(where):
        url = URL.create("sqlite", database=str(where))
    else:
        raise ParameterError(Argument("where", where), " must be a path or the URL of a database")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise ParameterError(
            Argument("where", str(where)), " is not a file; use Experiment.memory to keep nothing"
        )
    return url


def file_of(url: URL) -> Path | None:
    """Return the file of a SQLite database; None for other databases."""
    is_file = url.get_backend_name() == "sqlite" and not str(url.database).startswith("file:")
    return Path(str(url.database)) if is_file else None


def make_engine(url: URL, patience: float, statement_seconds: float | None = MAX_STATEMENT_SECONDS) -> Engine:
    """Return an engine; writers wait `patience` seconds for each other.

    PostgreSQL gives up a statement after `statement_seconds`, and a connection whose client has gone away.
    A commit in SQLite is on disk: with a write-ahead log and ``synchronous=FULL``, it waits for the disk.

    Raises
    ------
    MissingExtraError
        If the driver of the database is not installed; :class:`ParameterError` if there is none.
    """
    try:
        dialect = url.get_dialect()
        if dialect.name not in BACKENDS:
            raise ParameterError(
                Argument("where", str(url)),
                f": experiments are kept in a file or in PostgreSQL, not in {dialect.name};"
                " give a path, or a URL such as postgresql://user@host/database",
            )
        dialect.import_dbapi()
    except sa.exc.ArgumentError:
        raise ParameterError(
            Argument("where", str(url)),
            f": no database {url.drivername!r} is known; give a path, or a URL such as"
            " postgresql://user@host/database",
        ) from None
    except ImportError as error:
        raise MissingExtraError(
            f"{url.drivername} needs {error.name}; install it with `pip install {error.name}`"
        ) from None
    if url.get_backend_name() != "sqlite":
        # What the URL itself says goes first.
        known = {name: value for name, value in LIBPQ.items() if name not in url.query}
        arguments = known if url.get_driver_name() in ("psycopg", "psycopg2") else {}
        engine = sa.create_engine(
            url, pool_size=10, max_overflow=-1, pool_pre_ping=True, connect_args=arguments
        )
        if engine.dialect.name == "postgresql":
            prepare = partial(_prepare_postgresql, patience=patience, statement_seconds=statement_seconds)
            sa.event.listen(engine, "connect", prepare)
        return engine
    engine = sa.create_engine(url, max_overflow=-1, connect_args={"timeout": patience})
    sa.event.listen(engine, "connect", partial(_prepare_sqlite, patience=patience))
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object, *, patience: float) -> None:
    connection.isolation_level = None  # transactions begin where we say so, not at the first insert
    cursor = connection.cursor()
    _keep_a_log(cursor, time.monotonic() + patience)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    cursor.close()


def _keep_a_log(cursor: Any, until: float) -> None:
    """Switch on the write-ahead log; wait for others who open the new file, which SQLite does not."""
    while True:
        try:
            if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= until:
                raise
            time.sleep(0.01)
        else:
            return


def _prepare_postgresql(
    connection: Any, _record: object, *, patience: float, statement_seconds: float | None
) -> None:
    cursor = connection.cursor()
    cursor.execute(f"SET lock_timeout = {max(1, round(1000 * patience))}")  # milliseconds; 0 is for ever
    if statement_seconds is not None:
        milliseconds = max(1, round(1000 * statement_seconds))
        cursor.execute(f"SET statement_timeout = {milliseconds}")
        # A server that hangs within a transaction must not keep its locks from the others.
        cursor.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
    # The locks of a machine that has vanished are released after a minute, and not after hours.
    for name, seconds in (("idle", 30), ("interval", 10), ("count", 3)):
        cursor.execute(f"SET tcp_keepalives_{name} = {seconds}")
    cursor.execute(PLAN_ANEW)
    cursor.close()
    connection.commit()


def _begin_sqlite(connection: Connection) -> None:
    # Immediately: a reader that becomes a writer could find that another was faster, and fail.
    kind = "IMMEDIATE" if connection.get_execution_options().get(WRITES_OPTION) else "DEFERRED"
    connection.exec_driver_sql(f"BEGIN {kind}")


def connect_to_write(engine: Engine) -> Connection:
    """Return a connection whose transactions write."""
    return engine.connect().execution_options(**{WRITES_OPTION: True})


def lock_tables(connection: Connection) -> None:
    """Wait until nobody else creates tables; SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(TABLES_LOCK_KEY)))


def begin(connection: Connection) -> None:
    """Begin a transaction that writes, by the driver itself: SQLAlchemy takes ten times as long.

    PostgreSQL is sent the statements that follow without waiting for each answer, until one is needed.
    """
    if connection.dialect.name == "sqlite":
        _driver(connection).execute("BEGIN IMMEDIATE")
    elif _is_grouped(connection):
        if not _driver(connection).autocommit:  # transactions begin where we say so
            connection.execution_options(isolation_level="AUTOCOMMIT")
        group = connection.info[PIPELINE_KEY] = _driver(connection).pipeline()
        group.__enter__()
        _driver(connection).execute("BEGIN")
    else:
        connection.begin()


def commit(connection: Connection) -> None:
    """Commit the transaction that :func:`begin` began."""
    if connection.dialect.name == "sqlite":
        _driver(connection).commit()
    elif _is_grouped(connection):
        answer = _driver(connection).execute("COMMIT")
        connection.info.pop(PIPELINE_KEY).__exit__(None, None, None)  # raises what any of them met
        if answer.statusmessage != "COMMIT":
            raise connection.dialect.dbapi.OperationalError("the transaction was given up")  # type: ignore[union-attr]
    else:
        connection.commit()


def roll_back(connection: Connection) -> None:
    """Roll back the transaction that :func:`begin` began."""
    if connection.dialect.name == "sqlite":
        _driver(connection).rollback()
    elif _is_grouped(connection):
        group = connection.info.pop(PIPELINE_KEY, None)
        if group is not None:
            with suppress(connection.dialect.dbapi.Error):  # type: ignore[union-attr]
                group.__exit__(None, None, None)
        _driver(connection).execute("ROLLBACK")
    else:
        connection.rollback()


def _is_grouped(connection: Connection) -> bool:
    """Tell whether the driver sends several statements without waiting for the answer to each."""
    pipeline = getattr(connection.dialect.dbapi, "Pipeline", None)
    return pipeline is not None and bool(pipeline.is_supported())


def version(connection: Connection) -> int | None:
    """Return a number that stays the same as long as no other connection writes; None if there is none."""
    if connection.dialect.name != "sqlite":
        return None
    return int(_driver(connection).execute("PRAGMA data_version").fetchone()[0])


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


class Turns:
    """A lock that lets one thread of this process write to a file at a time.

    Without it SQLite lets one thread write and the others poll: a thread that polls at the wrong moment waits
    a tenth of a second, again and again.
    """

    def __init__(self) -> None:
        self._lock = Lock()

    @contextmanager
    def taken(self, where: str, patience: float) -> Iterator[None]:
        """Wait at most so many seconds until nobody else writes; raise :class:`StorageError` after that."""
        if not self._lock.acquire(timeout=patience):
            raise StorageError(f"{where}: another thread holds it; try again, or end the one that hangs")
        try:
            yield
        finally:
            self._lock.release()


def keep_for_ever(thing: object) -> None:
    """Keep an object alive for ever, even when the interpreter ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


# Files whose parent process was in the middle of a write when it forked this one. SQLite counts the locks of
# a process by itself and holds the parent's for its own: whoever writes would wait for ever.
_FORKED_DURING_WRITE = set[Path]()


def note_fork_during_write(file: Path) -> None:
    """Remember, in the child, that a file was being written to when this process was forked."""
    _FORKED_DURING_WRITE.add(file)


def check_not_forked_during_write(file: Path | None) -> None:
    """Raise :class:`ForkError` if this process can never write to a file."""
    if file in _FORKED_DURING_WRITE:
        raise ForkError(
            f"{file}: this process was forked while a thread of its parent wrote to the file, and can never"
            " write to it; start it by the method 'spawn' or 'forkserver' of multiprocessing, or fork before"
            " threads begin"
        )


def _forget_locks() -> None:
    """Replace the lock in the child of a fork: the thread that held it does not exist there."""
    global _LOCK
    _LOCK = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


_TURNS = WeakValueDictionary[tuple[Path | None, int], Turns]()


def turns_of(url: URL) -> Turns | None:
    """Return the lock that writers to a file share in this process; None if the database is not a file."""
    file = file_of(url)
    if file is None:
        return None
    key = (file.resolve(), os.getpid())  # not that of a parent, whose threads are not here
    with _LOCK:
        return _TURNS.setdefault(key, Turns())


def acquire_engine(url: URL, patience: float) -> Engine:
    """Return the engine of a database, shared within the process; call :func:`release_engine` at the end.

    Each opening of a file gets its own engine, because another file may have the same name by then.

    Parameters
    ----------
    url : URL
    patience : float
        Seconds that writers wait for each other.
    """
    if file_of(url) is not None:
        return make_engine(url, patience)
    key = (url.render_as_string(hide_password=False), patience, os.getpid())
    with _LOCK:
        engine, users = _USED.get(key) or (make_engine(url, patience), 0)
        _USED[key] = (engine, users + 1)
        return engine


def release_engine(engine: Engine) -> None:
    """Close the connections of an engine, once nobody uses it any more."""
    with _LOCK:
        for key, (found, users) in list(_USED.items()):
            if found is engine and users > 1:
                _USED[key] = (found, users - 1)
                return
            if found is engine:
                del _USED[key]
    engine.dispose()


def is_crowded(engine: Engine) -> bool:
    """Return whether more connections are in use than one process should keep."""
    checked_out = getattr(engine.pool, "checkedout", None)
    return checked_out is not None and checked_out() > MAX_KEPT_CONNECTIONS


@contextmanager
def named_errors(where: str, dbapi: Any) -> Iterator[None]:
    """Raise errors of the database `where` as :class:`StorageError` or :class:`DamagedStoreError`.

    Parameters
    ----------
    where : str
        Begins the message, also of a :class:`DamagedStoreError` raised in the block.
    dbapi : module
        The driver, whose errors are not wrapped where its cursor is used directly.
    """
    try:
        yield
    except sa.exc.DBAPIError as error:
        raise name_error(where, error.orig) from error
    except sa.exc.SQLAlchemyError as error:
        raise StorageError(f"{where}: {error}") from error
    except DamagedStoreError as error:
        raise DamagedStoreError(f"{where}: {error}") from error
    except dbapi.Error as error:
        raise name_error(where, error) from error
    except UnicodeDecodeError as error:
        # SQLite's driver cannot even repeat its complaint, of names in the file that are no text.
        raise DamagedStoreError(f"{where}: it is damaged; restore a copy ({error})") from error
    except OSError as error:
        raise StorageError(f"{where}: {error.strerror or error}; nothing was written") from error


def name_error(where: str, error: BaseException | None) -> StorageError:
    """Return the error to raise for one of a database driver."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_CANTOPEN"):
        if Path(where).is_dir():
            return StorageError(f"{where} is a folder; give the path of a file in it")
        if not Path(where).parent.is_dir():
            return StorageError(f"{where}: there is no folder {str(Path(where).parent)!r}; make it first")
    for beginning, kind, advice in SQLITE_ERRORS:
        if name.startswith(beginning):
            return kind(f"{where}: {advice} ({error})")
    if "decode" in str(error):  # SQLite's driver has no number for text that is none
        return DamagedStoreError(f"{where}: it is damaged; restore a copy ({error})")
    return StorageError(f"{where}: {error}; nothing was written: try again when the database is well")
