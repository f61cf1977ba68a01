"""Actions of admins, with time to undo them, and the audit trail of who did what and when.

Stopping an experiment or retiring an arm cannot be taken back once it is in the log. So it waits for some
seconds in a table that all servers share, and may be undone until then. Any server carries out what is due:
it claims the row first, and the row's id is stored in the same commit as the effect. If a server dies in
between, another takes over, and nothing is done twice.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import Any, NamedTuple

import sqlalchemy as sa

from orthobandit.errors import OrthobanditError, StorageError
from orthobandit.experiment import Experiment
from orthobandit.experiment.store.sql.schema import EVENTS, EXPERIMENTS
from orthobandit.experiment.store.sql.service_tables import ACTIONS
from orthobandit.service.registry import Registry

UNDO_SECONDS = 10.0  # seconds to undo what cannot be taken back later
RETRY_SECONDS = 30.0  # seconds after which an action that somebody began to do is begun again
LOG = logging.getLogger("orthobandit.service")
KINDS = ("begin", "pause", "resume", "stop", "retire", "extend")  # kinds of log entries that a person causes
ELSEWHERE = "the API, or Python"
UNHEEDED = {"undone": "undone", "refused": "refused", "waiting": "can be undone", "doing": "being done"}


class Action(NamedTuple):
    """An action that somebody asked for; the fields are the columns of the table."""

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
        """Record an action that is done once the time to undo it is over."""
        now = self._clock()
        action = Action(token_hex(8), key, kind, arm, reason, by, now, now + UNDO_SECONDS, "waiting", "")
        self._write(action)
        return action

    def do(self, key: str, kind: str, by: str) -> None:
        """Do an action at once that can be reversed later, and record it even if it is refused."""
        now = self._clock()
        action = Action(token_hex(8), key, kind, "", "", by, now, now, "done", "")
        try:
            _perform(self._registry.get(key), action)
        except StorageError:
            raise  # nothing can be recorded now either
        except OrthobanditError as error:
            self._write(action._replace(state="refused", detail=str(error)))
            raise
        self._write(action)

    def note(self, key: str, kind: str, by: str, at: float) -> None:
        """Record an action that was done by other means, and who did it."""
        self._write(Action(token_hex(8), key, kind, "", "", by, at, at, "done", ""))

    def _write(self, action: Action) -> None:
        with self._registry.writing() as connection:
            connection.execute(sa.insert(ACTIONS).values(**action._asdict()))

    def undo(self, key: str, id: str) -> bool:  # noqa: A002
        """Undo a pending action; return whether it was still pending."""
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
        """Do the actions that are due and record errors; return the ids that still wait, by experiment."""
        now = self._clock()
        is_stale = (ACTIONS.c.state == "doing") & (ACTIONS.c.due <= now - RETRY_SECONDS)
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
        if not self._move(action, action.state, "doing"):
            return  # another server was first
        try:
            experiment = self._registry.get(action.experiment)
            _perform(experiment.once(f"dashboard {action.id}"), action)
        except StorageError as error:  # it is not known to be done, and others must not wait for it
            LOG.warning("%s of %r is tried again: %s", action.kind, action.experiment, error)
            self._move(action, "doing", action.state)
        except OrthobanditError as error:
            self._move(action, "doing", "refused", str(error))
        else:
            self._move(action, "doing", "done")

    def _move(self, action: Action, before: str, after: str, detail: str = "") -> bool:
        """Move an action from one state to another; return whether it was in the first."""
        is_so = (ACTIONS.c.id == action.id) & (ACTIONS.c.state == before)
        with self._registry.writing() as connection:
            change = sa.update(ACTIONS).where(is_so).values(state=after, detail=detail)
            return bool(connection.execute(change).rowcount)


def _perform(experiment: Experiment, action: Action) -> None:
    if action.kind == "pause":
        experiment.pause()
    elif action.kind == "resume":
        experiment.resume()
    elif action.kind == "stop":
        experiment.stop(action.reason)
    else:
        experiment.retire(action.arm)


class Step(NamedTuple):
    """One line of the audit trail: something done, or asked for and not done."""

    at: float
    words: str
    by: str
    is_done: bool


def steps(registry: Registry, key: str, labels: Sequence[str], actions: Sequence[Action]) -> list[Step]:
    """Return what was done to an experiment, the newest first.

    Parameters
    ----------
    registry : Registry
    key : str
    labels : sequence of str
        Of its arms.
    actions : sequence of Action
        What was asked for on pages, the oldest first.
    """
    left = [one for one in actions if one.state == "done"]
    out = []
    for at, kind, data in _notes(registry, key):
        arm = labels[data["arm"]] if kind == "retire" else ""
        # The earliest matching request caused the log's entry: later ones changed nothing.
        cause = next((one for one in left if (one.kind, one.arm) == (kind, arm) and one.at <= at), None)
        if cause is not None:
            left.remove(cause)
        out.append(Step(at, _words(kind, data, arm), ELSEWHERE if cause is None else cause.by, True))
    for one in actions:
        if one.state != "done" or one in left:
            ended = f"{UNHEEDED.get(one.state, 'nothing was to be done')}"
            why = f": {one.detail}" if one.detail else ""
            asked = f"asked to {one.kind}{f' {one.arm!r}' if one.arm else ''}"
            out.append(Step(one.at, f"{asked}, {ended}{why}", one.by, False))
    return sorted(out, key=lambda step: step.at, reverse=True)


def _notes(registry: Registry, key: str) -> list[tuple[float, str, dict[str, Any]]]:
    """Return time, kind and data of all changes in the log of an experiment."""
    query = (
        sa.select(EVENTS.c.at, EVENTS.c.kind, EVENTS.c.data)
        .join(EXPERIMENTS, EXPERIMENTS.c.id == EVENTS.c.experiment)
        .where(EXPERIMENTS.c.name == key, EVENTS.c.kind.in_(KINDS))
        .order_by(EVENTS.c.seq)
    )
    with registry.reading() as connection:
        return [(at, kind, json.loads(data)) for at, kind, data in connection.execute(query)]


def _words(kind: str, data: dict[str, Any], arm: str) -> str:
    """Return a change in words, for the audit trail."""
    if kind == "begin":
        return "begun"
    if kind == "stop":
        return f"stopped: {data['reason']}" if data.get("reason") else "stopped"
    if kind == "retire":
        return f"{arm!r} retired by hand"
    if kind == "extend":
        return f"arms added; they are now {', '.join(map(repr, data['labels']))}"
    return {"pause": "paused", "resume": "resumed"}[kind]
