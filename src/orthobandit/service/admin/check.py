"""Check a database against its log by recomputing every draw and state."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from orthobandit.errors import InputError, OrthobanditError
from orthobandit.experiment import Experiment
from orthobandit.experiment.store.sql.schema import EXPERIMENTS, PLANS
from orthobandit.service.admin.database import Database, find_version, open_database


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
