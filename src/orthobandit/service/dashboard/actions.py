"""What admins do on pages, with time to undo it.

To stop an experiment or to retire an arm cannot be taken back once it is in the log. So it waits for some
seconds in a table that all servers share, and may be undone until then. Any server does what is due: it
claims the row first, and the experiment remembers the row's id in the commit that does it. A server that dies
in between is followed by another, and nothing is done twice.
"""

import logging
import time
from collections.abc import Callable
from secrets import token_hex
from typing import NamedTuple

import sqlalchemy as sa

from orthobandit.errors import OrthobanditError, StorageError
from orthobandit.experiment import Experiment
from orthobandit.service.registry import Registry
from orthobandit.service.tables import ACTIONS

GRACE = 10.0  # seconds to undo what cannot be taken back later
STALE = 30.0  # seconds after which an action that somebody began to do is begun again
LOG = logging.getLogger("orthobandit.service")


class Action(NamedTuple):
    """Something that somebody asked for; columns of the table."""

    id: str
    experiment: str
    kind: str
    arm: str
    reason: str
    by: str
    at: float
    due: float
    state: str
    detail: str


class Actions:
    """The actions of a database.

    Parameters
    ----------
    registry : Registry
    clock : callable
        Returns seconds since the epoch.
    """

    def __init__(self, registry: Registry, clock: Callable[[], float] = time.time) -> None:
        self._registry = registry
        self._clock = clock

    def ask(self, key: str, kind: str, by: str, *, arm: str = "", reason: str = "") -> Action:
        """Write down what is to be done once the time to undo it is over."""
        now = self._clock()
        action = Action(token_hex(8), key, kind, arm, reason, by, now, now + GRACE, "waiting", "")
        self._write(action)
        return action

    def do(self, key: str, kind: str, by: str) -> None:
        """Do at once what can be taken back later, and write it down, also if it is refused."""
        now = self._clock()
        action = Action(token_hex(8), key, kind, "", "", by, now, now, "done", "")
        try:
            _done(self._registry.get(key), action)
        except StorageError:
            raise
        except OrthobanditError as error:
            self._write(action._replace(state="refused", detail=str(error)))
            raise
        self._write(action)

    def note(self, key: str, kind: str, by: str, at: float) -> None:
        """Write down what was done by other means, and who has done it."""
        self._write(Action(token_hex(8), key, kind, "", "", by, at, at, "done", ""))

    def _write(self, action: Action) -> None:
        with self._registry.writing() as connection:
            connection.execute(sa.insert(ACTIONS).values(**action._asdict()))

    def undo(self, key: str, id: str) -> bool:  # noqa: A002
        """Take an action back that waits; return whether it did."""
        waits = (ACTIONS.c.id == id) & (ACTIONS.c.experiment == key) & (ACTIONS.c.state == "waiting")
        with self._registry.writing() as connection:
            undone = sa.update(ACTIONS).where(waits).values(state="undone")
            return bool(connection.execute(undone).rowcount)

    def of(self, key: str) -> list[Action]:
        """Return the actions on an experiment, the oldest first."""
        query = sa.select(ACTIONS).where(ACTIONS.c.experiment == key).order_by(ACTIONS.c.at, ACTIONS.c.id)
        with self._registry.reading() as connection:
            return [Action(*row) for row in connection.execute(query)]

    def waiting(self, key: str) -> list[Action]:
        """Return the actions that can still be undone."""
        return [one for one in self.of(key) if one.state == "waiting"]

    def do_due(self) -> dict[str, str]:
        """Do what is due, errors are written down with it; return what waits still, by experiment."""
        now = self._clock()
        is_stale = (ACTIONS.c.state == "doing") & (ACTIONS.c.due <= now - STALE)
        query = sa.select(ACTIONS).where((ACTIONS.c.state == "waiting") | is_stale)
        with self._registry.reading() as connection:
            found = [Action(*row) for row in connection.execute(query.order_by(ACTIONS.c.due))]
        rest: dict[str, str] = {}
        for action in found:
            if action.due <= now:
                self._do(action)
            else:
                rest[action.experiment] = f"{rest.get(action.experiment, '')} {action.id}"
        return rest

    def _do(self, action: Action) -> None:
        """Do an action, unless it was undone in between or another server does it."""
        if not self._moved(action, action.state, "doing"):
            return
        try:
            experiment = self._registry.get(action.experiment)
            _done(experiment.once(f"dashboard {action.id}"), action)
        except StorageError as error:  # it is not known to be done, and others must not wait for it
            LOG.warning("%s of %r is tried again: %s", action.kind, action.experiment, error)
            self._moved(action, "doing", action.state)
        except OrthobanditError as error:
            self._moved(action, "doing", "refused", str(error))
        else:
            self._moved(action, "doing", "done")

    def _moved(self, action: Action, before: str, after: str, detail: str = "") -> bool:
        """Bring an action from one state into another; return whether it was in the first."""
        is_so = (ACTIONS.c.id == action.id) & (ACTIONS.c.state == before)
        with self._registry.writing() as connection:
            change = sa.update(ACTIONS).where(is_so).values(state=after, detail=detail)
            return bool(connection.execute(change).rowcount)


def _done(experiment: Experiment, action: Action) -> None:
    if action.kind == "pause":
        experiment.pause()
    elif action.kind == "resume":
        experiment.resume()
    elif action.kind == "stop":
        experiment.stop(action.reason)
    else:
        experiment.retire(action.arm)
