"""The experiments of one database, by key, kept open while the service runs."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from orthobandit.arms import ArmSet
from orthobandit.errors import ConflictError, ExperimentExistsError, InputError, UnknownExperimentError
from orthobandit.experiment import Experiment
from orthobandit.experiment.differences import other_arms, other_settings
from orthobandit.experiment.settings import Options, Settings
from orthobandit.experiment.store.sql.connections import (
    acquire_engine,
    address,
    connect_to_write,
    file_of,
    named_errors,
    release_engine,
    turns_of,
)
from orthobandit.experiment.store.sql.schema import EXPERIMENTS
from orthobandit.experiment.store.sql.upgrade import VERSION_TABLE, is_ready
from orthobandit.policy import Policy

PATIENCE_SECONDS = 30.0  # seconds to wait for other processes
_DEFAULTS = Options()


class Registry:
    """The experiments of a database; makes the database if there is none.

    Several registries, in several processes, may share a database: every experiment sees what others did.

    Parameters
    ----------
    where : str or Path
        A SQLite file, or the URL of a database.

    Raises
    ------
    StorageError
        If the database cannot be read or made.

    Examples
    --------
    >>> import tempfile
    >>> from orthobandit import AnytimeElimination
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     registry = Registry(folder + "/all.db")
    ...     made = registry.create("page", ArmSet.one_hot(2), AnytimeElimination(rewards=(0, 1)))
    ...     registry.page(10), registry.get("page") is made
    ...     registry.close()
    (['page'], True)
    """

    def __init__(self, where: str | Path) -> None:
        url = address(where)
        file = file_of(url)
        self.where: str | Path = where if file is None else file.absolute()
        self._shown = str(file or url)  # the text of a URL hides its password
        self._engine = acquire_engine(address(self.where), PATIENCE_SECONDS)
        self._is_closed = False
        self._open: dict[str, Experiment] = {}
        self._lock = Lock()
        try:
            with self.errors():
                is_ready(self._engine, self._shown, make=True)
        except BaseException:
            release_engine(self._engine)  # nobody else has this registry, and its connection would stay open
            raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection for reading; the database's errors are raised as :class:`StorageError`."""
        with self.errors(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection in a transaction that is committed at the end."""
        with self.errors(), connect_to_write(self._engine) as connection, connection.begin():
            yield connection

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise the database's errors as this package's own."""
        with named_errors(self._shown, self._engine.dialect.dbapi):
            yield

    def page(self, limit: int, after: str = "", allows: Callable[[str], bool] | None = None) -> list[str]:
        """Return the first `limit` keys beyond `after`, in order, of those that `allows` lets through."""
        name = EXPERIMENTS.c.name
        query = sa.select(name).where(name > after).order_by(name)
        with self.reading() as connection:
            if allows is None:
                return list(connection.scalars(query.limit(limit)))
            return list(islice(filter(allows, connection.scalars(query)), limit))

    def settings(self, key: str) -> dict[str, Any]:
        """Return the settings of an experiment without opening it."""
        with self.reading() as connection:
            query = sa.select(EXPERIMENTS.c.settings).where(EXPERIMENTS.c.name == key)
            found = connection.execute(query).scalar()
        if found is None:
            raise _unknown(key)
        return dict(json.loads(found))

    def create(
        self, key: str, arms: ArmSet, policy: Policy[Any] | None, options: Options = _DEFAULTS
    ) -> Experiment:
        """Begin an experiment and keep it open; see :meth:`Experiment.create`."""
        try:
            made = Experiment.create(self.where, arms, policy, name=key, **vars(options))
        except ExperimentExistsError:
            raise ExperimentExistsError(
                f"there is already an experiment {key!r}; choose another key"
            ) from None
        with self._lock:
            kept = self._open.setdefault(key, made)
        if kept is not made:  # somebody asked for it in between
            made.close()
        return kept

    def find_open(self, key: str) -> Experiment | None:
        """Return an experiment that is open in this process, or None."""
        return self._open.get(key)

    def get(self, key: str) -> Experiment:
        """Return an experiment, opened if it is not open yet."""
        found = self._open.get(key)
        if found is not None:
            return found
        with self._lock:  # to open one twice would read its log twice
            if key not in self._open:
                self._open[key] = self._open_experiment(key)
            return self._open[key]

    def get_same(self, key: str, wanted: Settings) -> Experiment:
        """Return an experiment that must have been created with these settings, but for the key of draws.

        Raises
        ------
        ExperimentExistsError
            If it was created with others; the message says which.
        """
        _refuse_other(key, other_settings(self.settings(key), wanted))
        experiment = self.get(key)
        _refuse_other(key, other_arms(wanted.arms, experiment.settings.arms, experiment.arms))
        return experiment

    def open_keys(self) -> list[str]:
        """Return the keys of experiments that are open in this process."""
        with self._lock:
            return list(self._open)

    def _open_experiment(self, key: str) -> Experiment:
        try:
            return Experiment.open(self.where, name=key)
        except UnknownExperimentError:
            raise _unknown(key) from None
        except InputError as error:
            raise ConflictError(f"{key!r} can be used from Python only: {error}") from None

    def try_write(self) -> None:
        """Write a value that is there already; raise :class:`StorageError` if the database refuses it."""
        table = sa.table(VERSION_TABLE, sa.column("version_num"))
        turns = turns_of(address(self.where))
        turn = nullcontext() if turns is None else turns.taken(self._shown, PATIENCE_SECONDS)
        with turn, self.writing() as connection:
            connection.execute(sa.update(table).values(version_num=table.c.version_num))

    def close(self) -> None:
        """Save the states of all experiments and close them."""
        with self._lock:
            for one in self._open.values():
                one.close()
            self._open.clear()
            if not self._is_closed:
                self._is_closed = True
                release_engine(self._engine)


def _refuse_other(key: str, differences: Sequence[str]) -> None:
    """Raise :class:`ExperimentExistsError` if there are differences between settings."""
    if differences:
        raise ExperimentExistsError(
            f"there is already an experiment {key!r}, with other settings: {'; '.join(differences)}; give the"
            " same ones, or choose another key"
        )


def _unknown(key: str) -> UnknownExperimentError:
    return UnknownExperimentError(f"there is no experiment {key!r}; create it, or check the key")
