"""Connections: the one place that knows how databases differ."""

import sqlite3
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url

from orthobandit.errors import MissingExtraError, ParameterError

WRITES = "orthobandit_writes"  # option of connections that write
BACKENDS = ("sqlite", "postgresql")  # what the statements are written and tested for
LOCK = 0x6F7274686F  # key of PostgreSQL's lock while tables are made
GROUP = "orthobandit_group"  # where a connection keeps what it has sent and not yet heard of
CHECKPOINT = 4000  # pages of SQLite's write-ahead log before they move to the file: fewer waits for the disk
LONGEST_STATEMENT = 60.0  # seconds
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
PLANNED = (
    "SELECT set_config(name, 'force_custom_plan', false) FROM pg_settings WHERE name = 'plan_cache_mode'"
)


def address(where: str | Path) -> URL:
    """Return the URL of a path or a URL.

    Raises
    ------
    ParameterError
        If `where` is neither, or a database in memory.
    """
    if isinstance(where, str) and "://" in where:
        try:
            url = make_url(where)
        except sa.exc.ArgumentError as error:
            raise ParameterError(f"where={where!r} is no URL of a database: {error}") from None
    elif isinstance(where, str | Path) and str(where):
        url = URL.create("sqlite", database=str(where))
    else:
        raise ParameterError(f"where={where!r} must be a path or the URL of a database")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise ParameterError(f"where={str(where)!r} is not a file; use MemoryStore to keep nothing")
    return url


def file_of(url: URL) -> Path | None:
    """Return the file of a database, if it is one that can be looked at."""
    is_file = url.get_backend_name() == "sqlite" and not str(url.database).startswith("file:")
    return Path(str(url.database)) if is_file else None


def connected(url: URL, patience: float, statement_seconds: float | None = LONGEST_STATEMENT) -> Engine:
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
                f"where={str(url)!r}: experiments are kept in a file or in PostgreSQL, not in {dialect.name};"
                " give a path, or a URL such as postgresql://user@host/database"
            )
        dialect.import_dbapi()
    except sa.exc.ArgumentError:
        raise ParameterError(
            f"where={str(url)!r}: no database {url.drivername!r} is known; give a path, or a URL such as"
            " postgresql://user@host/database"
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
    cursor.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
    cursor.close()


def _keep_a_log(cursor: Any, until: float) -> None:
    """Have changes written ahead; SQLite does not wait by itself while another opens the same new file."""
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
    cursor.execute(PLANNED)
    cursor.close()
    connection.commit()


def _begin_sqlite(connection: Connection) -> None:
    # Immediately: a reader that becomes a writer could find that another was faster, and fail.
    kind = "IMMEDIATE" if connection.get_execution_options().get(WRITES) else "DEFERRED"
    connection.exec_driver_sql(f"BEGIN {kind}")


def writing(engine: Engine) -> Connection:
    """Return a connection whose transactions write."""
    return engine.connect().execution_options(**{WRITES: True})


def lock_tables(connection: Connection) -> None:
    """Wait until nobody else makes tables; SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))


def begin(connection: Connection) -> None:
    """Begin to write, by the driver itself: SQLAlchemy's way takes ten times as long.

    PostgreSQL is sent all that follows without waiting for each answer, until somebody asks for one.
    """
    if connection.dialect.name == "sqlite":
        _driver(connection).execute("BEGIN IMMEDIATE")
    elif _is_grouped(connection):
        if not _driver(connection).autocommit:  # transactions begin where we say so
            connection.execution_options(isolation_level="AUTOCOMMIT")
        group = connection.info[GROUP] = _driver(connection).pipeline()
        group.__enter__()
        _driver(connection).execute("BEGIN")
    else:
        connection.begin()


def commit(connection: Connection) -> None:
    """End what :func:`begin` began, for good."""
    if connection.dialect.name == "sqlite":
        _driver(connection).commit()
    elif _is_grouped(connection):
        answer = _driver(connection).execute("COMMIT")
        connection.info.pop(GROUP).__exit__(None, None, None)  # raises what any of them met
        if answer.statusmessage != "COMMIT":
            raise connection.dialect.dbapi.OperationalError("the transaction was given up")  # type: ignore[union-attr]
    else:
        connection.commit()


def undo(connection: Connection) -> None:
    """End what :func:`begin` began as if it had not been."""
    if connection.dialect.name == "sqlite":
        _driver(connection).rollback()
    elif _is_grouped(connection):
        group = connection.info.pop(GROUP, None)
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
