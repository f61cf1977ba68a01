"""A store in a SQLite file or a PostgreSQL database."""

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from orthobandit._foundation.checks import check_positive
from orthobandit.errors import (
    ClosedError,
    ConflictError,
    DamagedFileWarning,
    DamagedStoreError,
    ExperimentExistsError,
    ParameterError,
    StorageError,
    UnknownExperimentError,
)
from orthobandit.experiment.forks import LockedForkable, register_forkable
from orthobandit.experiment.ledger.entries import Entry
from orthobandit.experiment.store.contract import Outcome, Row, Writer, as_json
from orthobandit.experiment.store.sql.connections import (
    acquire_engine,
    address,
    begin,
    check_not_forked_during_write,
    commit,
    connect_to_write,
    file_of,
    is_crowded,
    keep_for_ever,
    lock_tables,
    named_errors,
    note_fork_during_write,
    release_engine,
    roll_back,
    turns_of,
)
from orthobandit.experiment.store.sql.reader import PROPOSALS_PER_STEP, Reader, seal
from orthobandit.experiment.store.sql.schema import EXPERIMENTS
from orthobandit.experiment.store.sql.statements import Statements
from orthobandit.experiment.store.sql.upgrade import is_ready
from orthobandit.experiment.store.sql.writer import End, SQLWriter

DEFAULT_NAME = "experiment"
LONG_GAP = 20  # proposals between two that are asked for: fewer are read along with them


class SQLStore(LockedForkable):
    """A :class:`~orthobandit.experiment.store.Store` in a file or a database.

    A SQLite file has a write-ahead log, and a commit waits for the disk. Entries are sealed by a chain of
    hashes from the settings on, so that damage is noticed when they are read.

    Parameters
    ----------
    where : str or Path
        A file, which :meth:`create` makes, or a URL such as ``postgresql+psycopg://user@host/database``.
    name : str
        Of the experiment; a file or database can hold many.
    patience : float
        Seconds to wait for other processes before :class:`StorageError`.

    Raises
    ------
    StorageError
        If the file or database cannot be read; :class:`DamagedStoreError` if it is something else.
    VersionError
        If it was written by a newer release.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = SQLStore(folder + "/signup.db")
    ...     store.create({"window": 60})
    ...     store.settings()
    ...     store.close()
    {'window': 60}
    """

    def __init__(self, where: str | Path, name: str = DEFAULT_NAME, *, patience: float = 30.0) -> None:
        super().__init__()
        if not isinstance(name, str) or not name.strip():
            raise ParameterError(f"name={name!r} must be text, such as 'signup'")
        self._url = address(where)
        self._file = file_of(self._url)
        if self._file is not None:
            self._file = self._file.absolute()
            self._url = self._url.set(database=str(self._file))
        self._where = str(self._file or self._url)  # the text of a URL hides its password
        self._name = name
        self._patience = check_positive("patience", patience)
        self._is_closed = False
        self._writer: SQLWriter | None = None
        self._connection: Connection | None = None
        self._end: End | None = None  # where the log ended when this store wrote last
        self._connect()
        register_forkable(self)
        try:
            self._has_tables(make=False)
        except BaseException:
            self.close()  # nobody else has this store, and its connection would stay open
            raise

    @property
    def title(self) -> str:
        """The name of the experiment, or of its file if none was chosen."""
        return self._file.stem if self._file is not None and self._name == DEFAULT_NAME else self._name

    def create(self, settings: Mapping[str, Any]) -> None:
        """Begin the experiment, and make the file if there is none; see :meth:`Store.create`."""
        text = as_json("settings", settings)
        self._refresh()
        with self._lock:
            self._refuse_second_block()
            self._has_tables(make=True)
            with self._errors(), connect_to_write(self._engine) as connection, connection.begin():
                lock_tables(connection)
                named = EXPERIMENTS.c.name == self._name
                if connection.execute(sa.select(EXPERIMENTS.c.id).where(named)).first() is not None:
                    raise ExperimentExistsError(
                        f"{self._where} has an experiment {self._name!r}; open it, or choose another name"
                    )
                row = {"name": self._name, "settings": text, "seal": seal(text.encode())}
                connection.execute(sa.insert(EXPERIMENTS).values(row))

    def settings(self) -> dict[str, Any]:
        """Return a copy of the settings; see :meth:`Store.settings`."""
        self._ready()
        return dict(json.loads(self._text))

    @contextmanager
    def exclusive(self) -> Iterator[Writer]:
        """Wait for the others, then write; see :meth:`Store.exclusive`."""
        self._refresh()
        with self._lock:
            self._refuse_second_block()
            reader = self._ready()
            with self._alone():
                check_not_forked_during_write(self._file)
                try:
                    with self._errors():
                        connection = self._write_connection()
                        begin(connection)
                    with SQLWriter(reader, connection, self._errors, self._end) as writer:
                        self._writer = writer
                        yield writer
                    with self._errors():
                        commit(connection)
                    self._end = writer.end
                    if is_crowded(self._engine):
                        self._give_back()
                except BaseException:
                    self._end = None
                    self._undo()
                    raise
                finally:
                    self._writer = None

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """Yield what is committed; see :meth:`Store.entries`."""
        reader = self._ready()
        with self._cursor() as cursor:
            before = reader.seal(cursor, after)
        while before is not None:
            reader = self._ready()  # perhaps it was closed, or this is another process by now
            with self._cursor() as cursor:
                found, before = reader.block(cursor, after, before)
            if not found:
                return
            yield from found
            after = found[-1][0]

    def snapshot(self) -> tuple[int, dict[str, Any]] | None:
        """Return the newest snapshot; see :meth:`Store.snapshot`. A damaged one is none, with a warning."""
        reader = self._ready()
        with self._cursor() as cursor:
            found = reader.statements.newest_snapshot.run(cursor, reader.experiment)
        if not found:
            return None
        [(seq, text, mark)] = found
        if seal(text.encode()) != bytes(mark):
            message = f"{self._where}: the snapshot after entry {seq} is damaged; the log is read instead"
            warnings.warn(message, DamagedFileWarning, stacklevel=2)
            return None
        return seq, json.loads(text)

    def proposals(self, numbers: Sequence[int]) -> list[Row]:
        """Return proposals by number; see :meth:`Store.proposals`."""
        reader = self._ready()
        with self._cursor() as cursor:
            return reader.proposals(cursor, numbers)

    def outcomes(self, numbers: Sequence[int]) -> list[Outcome]:
        """Return proposals with their rewards by number; see :meth:`Store.outcomes`."""
        reader = self._ready()
        with self._cursor() as cursor:
            reader.proposals(cursor, numbers)  # refuses those that were never drawn
            outcomes = [
                outcome
                for first, last in _stretches(sorted({int(number) for number in numbers}))
                for outcome in reader.outcomes(cursor, first - 1, last)
            ]
        by_number = {outcome.proposal.number: outcome for outcome in outcomes}
        return [by_number[int(number)] for number in numbers]

    def distribution(self, number: int) -> dict[str, Any]:
        """Return a plan or distribution by number; see :meth:`Store.distribution`."""
        reader = self._ready()
        with self._cursor() as cursor:
            found = reader.distribution(cursor, number)
        if found is None:
            raise ParameterError(f"number={number!r} is not a distribution of this experiment")
        return found

    def table(self) -> Iterator[Outcome]:
        """Yield proposals with their rewards; see :meth:`Store.table`."""
        last = 0
        while True:
            reader = self._ready()
            with self._cursor() as cursor:
                found = reader.outcomes(cursor, last)
            if not found:
                return
            yield from found
            last = found[-1].proposal.number

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            if self._process == os.getpid():  # those of a parent are its own to close
                self._give_back()
                release_engine(self._engine)

    def _connect(self) -> None:
        self._engine = acquire_engine(self._url, self._patience)
        self._turns = turns_of(self._url)
        self._statements = Statements(self._engine.dialect)
        self._writer = None
        self._connection = None
        self._reader: Reader | None = None
        self._end = None
        self._process = os.getpid()
        self._identity: tuple[int, int] | None = None  # of the file

    def _errors(self) -> AbstractContextManager[None]:
        return named_errors(self._where, self._engine.dialect.dbapi)

    def _alone(self) -> AbstractContextManager[None]:
        return nullcontext() if self._turns is None else self._turns.taken(self._where, self._patience)

    def _has_tables(self, *, make: bool) -> bool:
        # Opening a file that is not there would make it.
        if self._file is not None and not make and not (self._file.exists() and self._file.stat().st_size):
            return False
        with self._errors():
            return is_ready(self._engine, self._where, make=make)

    def _refresh(self) -> None:
        if self._is_closed:
            raise ClosedError(f"{self._where}: the store is closed; open it again")
        if self._process != os.getpid():
            with self._lock:
                if self._process != os.getpid():
                    self._connect()

    fork_order = 1  # after the queues, whose threads wait for this lock

    def after_fork_in_child(self) -> None:
        """Make the next call reconnect, and leave the parent's connections alone.

        Connections do not survive a fork: two processes would write to the same one. Even closing them is
        unsafe, because that would roll back the parent's open transaction.
        """
        super().after_fork_in_child()
        if self._writer is not None and self._file is not None:
            note_fork_during_write(self._file)
        self._writer = None
        keep_for_ever(self._engine)
        keep_for_ever(self._connection)

    def _ready(self) -> Reader:
        self._refresh()
        if self._reader is None:
            self._reader = self._found()
        if self._file is not None and self._identity != _identity(self._file):
            raise StorageError(f"{self._where}: the file was moved or replaced; open it again")
        return self._reader

    def _found(self) -> Reader:
        """Return the reader of the experiment; raise an error if there is no such experiment."""
        found = []
        if self._has_tables(make=False):
            with self._cursor() as cursor:
                found = self._statements.find.run(cursor, self._name)
        if not found and self._file is not None and not self._file.exists():
            raise UnknownExperimentError(
                f"{self._where} does not exist; make it with Experiment.create, or check the path"
            )
        if not found:
            raise UnknownExperimentError(
                f"{self._where} has no experiment {self._name!r}; create it, or check the name and the place"
            )
        [(number, text, mark)] = found
        if seal(text.encode()) != bytes(mark):
            raise DamagedStoreError(
                f"{self._where}: the settings have changed since they were written; restore a copy"
            )
        self._text = text
        self._identity = None if self._file is None else _identity(self._file)
        return Reader(self._statements, number, bytes(mark))

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        with self._errors(), self._engine.connect() as connection:
            cursor = connection.connection.cursor()
            try:
                yield cursor
            finally:
                cursor.close()

    def _refuse_second_block(self) -> None:
        if self._writer is not None:
            raise ConflictError("this thread has an exclusive block open; end that one first")

    def _write_connection(self) -> Connection:
        if self._connection is None:
            self._connection = connect_to_write(self._engine)
        return self._connection

    def _give_back(self) -> None:
        """Return the connection to the pool."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _undo(self) -> None:
        if self._connection is None:
            return
        try:
            roll_back(self._connection)
        except Exception:
            # The connection is in a state that nobody knows; the database undoes what it began.
            self._connection.invalidate()
            self._connection.close()
            self._connection = None


def _identity(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _stretches(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the first and the last number of stretches without long gaps, each of which is read at once.

    Examples
    --------
    >>> _stretches([3, 4, 9, 500])
    [(3, 9), (500, 500)]
    """
    stretches: list[tuple[int, int]] = []
    for number in numbers:
        first, last = stretches[-1] if stretches else (number, number)
        if stretches and number - last <= LONG_GAP and number - first < PROPOSALS_PER_STEP:
            stretches[-1] = (first, number)
        else:
            stretches.append((number, number))
    return stretches
