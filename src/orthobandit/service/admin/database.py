"""Open a whole database of any kind, find its version, upgrade it, and check it against its log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from orthobandit.errors import InputError, OrthobanditError, UnknownExperimentError
from orthobandit.experiment import Experiment
from orthobandit.experiment.store.sql.connections import address, file_of, make_engine, named_errors
from orthobandit.experiment.store.sql.schema import EXPERIMENTS, PLANS
from orthobandit.experiment.store.sql.service_tables import ALL_TABLES
from orthobandit.experiment.store.sql.upgrade import NEWEST, found_version, is_ready

PATIENCE_SECONDS = 30.0  # seconds to wait for other processes
# Not `releases`, which records the schema version and is written when tables are created.
TABLES = [table for table in ALL_TABLES if table.name != "releases"]


class Database(NamedTuple):
    """An open database: its name for messages, its engine, and its file if it has one."""

    name: str
    engine: Engine
    file: Path | None


@contextmanager
def open_database(where: str | Path) -> Iterator[Database]:
    """Open a database; its errors are raised as this package's own."""
    url = address(where)
    file = file_of(url)
    # Copies and checks of large databases take as long as they take.
    engine = make_engine(url, PATIENCE_SECONDS, statement_seconds=None)
    name = str(file or url)
    try:
        with named_errors(name, engine.dialect.dbapi):
            yield Database(name, engine, file)
    finally:
        engine.dispose()


def make_private(where: str | Path) -> None:
    """Create the file of a new SQLite database so that only its owner can read it."""
    file = file_of(address(where))
    if file is not None and not file.exists() and file.parent.is_dir():
        file.touch(mode=0o600)


def find_version(database: Database) -> str:
    """Return the version of a database's tables.

    Raises
    ------
    UnknownExperimentError
        If it has no tables of this package.
    """
    found = None
    if database.file is None or database.file.exists():  # connecting would create the file
        with database.engine.connect() as connection:
            found = found_version(connection)
    if found is None:
        raise UnknownExperimentError(f"{database.name} has no experiments; check the place")
    return found


def upgrade(where: str | Path) -> tuple[str, str]:
    """Upgrade the tables of a database; return the versions before and after."""
    with open_database(where) as database:
        before = find_version(database)
        is_ready(database.engine, database.name, make=False)
        return before, NEWEST


def connect_snapshot(engine: Engine) -> sa.Connection:
    """Return a connection whose reads all see one snapshot of the database, without blocking writers."""
    connection = engine.connect().execution_options(stream_results=True, yield_per=1000)
    if engine.dialect.name == "postgresql":
        return connection.execution_options(isolation_level="REPEATABLE READ")
    return connection


class Finding(NamedTuple):
    """Something wrong, in one experiment or (`experiment` is None) in the whole database."""

    experiment: str | None
    what: str


def check(where: str | Path, say: Callable[[str], None] = lambda _: None) -> list[Finding]:
    """Check a database's pages, and every experiment's draws, state and plan numbers.

    Servers may use the database meanwhile. An experiment whose policy comes from another package cannot be
    checked here, which is a finding as well.

    Parameters
    ----------
    where : str or Path
    say : function
        Prints a line for each experiment.
    """
    found: list[Finding] = []
    with open_database(where) as database:
        find_version(database)
        found += [Finding(None, what) for what in _pages(database)]
        with database.engine.connect() as connection:
            names = [row[0] for row in connection.execute(sa.select(EXPERIMENTS.c.name).order_by("name"))]
        twice = list(_plans(database))
        for name in names:
            wrong = [one for one in twice if one.experiment == name]
            checked = _check_experiment(where, name)
            wrong += [Finding(name, what) for what in checked.wrong]
            say(f"{name}: {'; '.join(one.what for one in wrong) or checked.words}")
            found += wrong
    return found


def _pages(database: Database) -> Iterator[str]:
    if database.engine.dialect.name != "sqlite":
        return
    with database.engine.connect() as connection:
        for (line,) in connection.execute(sa.text("PRAGMA integrity_check(20)")):
            if line != "ok":
                yield str(line)


def _plans(database: Database) -> Iterator[Finding]:
    """Yield a finding for every distribution that is in the log more than once."""
    # A plan that two servers wrote both would leave it open what visitors were drawn from.
    plan = PLANS.c
    twice = (
        sa.select(EXPERIMENTS.c.name, plan.number)
        .where(EXPERIMENTS.c.id == plan.experiment)
        .group_by(EXPERIMENTS.c.name, plan.number)
        .having(sa.func.count() > 1)
    )
    with database.engine.connect() as connection:
        for name, number in connection.execute(twice):
            yield Finding(name, f"distribution {number} was noted more than once")


class Checked(NamedTuple):
    """The findings of one experiment, and the line to print if there are none."""

    wrong: list[str]
    words: str = "as it should be"


def _check_experiment(where: str | Path, name: str) -> Checked:
    """Recompute all draws and the state of one experiment."""
    try:
        with Experiment.open(where, name=name) as experiment:
            audit = experiment.audit()
            replay = experiment.replay()
    except InputError as error:  # settings that only another package can read
        return Checked([f"cannot be checked, but from Python: {error}"])
    except OrthobanditError as error:
        return Checked([str(error)])
    wrong = [str(one) for one in (audit, replay) if not one.passed]
    if wrong or not replay.planned_by:
        return Checked(wrong)
    makers = " and ".join(replay.planned_by)
    return Checked(
        [], f"planned by {makers}, which this release cannot re-derive; draws, tallies and claims check"
    )
