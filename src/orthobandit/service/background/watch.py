"""Reports of all experiments of a database, refreshed only when something may have changed."""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

import sqlalchemy as sa

from orthobandit.errors import ConflictError, DamagedStoreError, OrthobanditError, VersionError
from orthobandit.experiment.report.report import Report
from orthobandit.experiment.store.sql.schema import EVENTS, EXPERIMENTS
from orthobandit.service.registry import Registry

LOG = logging.getLogger("orthobandit.service")
MAX_WATCHED_EXPERIMENTS = 1_000  # newest experiments that are watched
SETTLING_SECONDS = 30.0  # seconds after which proposals that wait may have been settled by the clock alone


class Look(NamedTuple):
    """The latest report of an experiment.

    Parameters
    ----------
    seq, at : int, float
        The newest entry of its log that was no tick, and when that was logged.
    report : Report
    """

    seq: int
    at: float
    report: Report


class Newest(NamedTuple):
    """The newest entry of an experiment that is no tick of the clock."""

    key: str
    seq: int
    at: float


class Looks:
    """Reports of all experiments, refreshed when their logs have grown or windows may have passed.

    Making a report settles proposals whose window has passed, which may start the next plan.

    Parameters
    ----------
    registry : Registry
    clock : callable
        Returns seconds.
    """

    def __init__(self, registry: Registry, clock: Callable[[], float] = time.monotonic) -> None:
        self._registry = registry
        self._clock = clock
        self._kept: dict[str, tuple[float, Look]] = {}
        self._refused = set[str]()
        self._lock = Lock()

    def all(self) -> dict[str, Look]:
        """Return the latest look at each experiment, by key.

        Raises
        ------
        StorageError
            If the database cannot be read.
        """
        with self._lock:
            kept = {}
            now = self._clock()
            for newest in self._newest():
                found = self._kept.get(newest.key)
                if found is None or self._is_old(found, newest, now):
                    look = self._look_at(newest)
                    found = None if look is None else (now, look)
                if found is not None:
                    kept[newest.key] = found
            self._kept = kept
            return {key: look for key, (_, look) in kept.items()}

    def _is_old(self, found: tuple[float, Look], newest: Newest, now: float) -> bool:
        at, look = found
        may_settle = look.report.awaited > 0 and now - at >= SETTLING_SECONDS
        return look.seq != newest.seq or may_settle

    def _look_at(self, newest: Newest) -> Look | None:
        """Make the report of an experiment; None, with a warning once, if this server cannot read it."""
        try:
            return Look(newest.seq, newest.at, self._registry.get(newest.key).report())
        except (ConflictError, DamagedStoreError, VersionError) as error:
            # Of a policy or a release that this server does not know, or damaged: the others go on.
            if newest.key not in self._refused:
                LOG.warning("%r cannot be looked at: %s", newest.key, error)
            self._refused.add(newest.key)
            return None

    def _newest(self) -> list[Newest]:
        """Return the newest entry that is no tick, of the newest experiments."""
        event = EVENTS.c
        other = EVENTS.alias().c
        # One step into the index for each experiment, and not a walk through its log.
        newest = (
            sa.select(other.seq)
            .where(other.experiment == EXPERIMENTS.c.id, other.kind != "tick")
            .order_by(other.seq.desc())
            .limit(1)
            .scalar_subquery()
            .correlate(EXPERIMENTS)
        )
        query = (
            sa.select(EXPERIMENTS.c.name, event.seq, event.at)
            .where(event.experiment == EXPERIMENTS.c.id, event.seq == newest)
            .order_by(EXPERIMENTS.c.id.desc())
            .limit(MAX_WATCHED_EXPERIMENTS)
        )
        with self._registry.reading() as connection:
            return [Newest(*row) for row in connection.execute(query)]


def reports(looks: Looks) -> dict[str, Report] | None:
    """Return all reports by key, in order; None if the database cannot be read."""
    try:
        found = looks.all()
    except OrthobanditError as error:
        LOG.warning("experiments cannot be looked at: %s", error)
        return None
    return {key: found[key].report for key in sorted(found)}
