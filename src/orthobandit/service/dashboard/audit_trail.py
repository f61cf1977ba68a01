"""What was done to an experiment, when and by whom: its log, and what was asked for on pages."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from orthobandit.experiment.store.sql.schema import EVENTS, EXPERIMENTS
from orthobandit.service.dashboard.actions import Action
from orthobandit.service.registry import Registry

KINDS = ("begin", "pause", "resume", "stop", "retire", "extend")  # of notes that somebody has caused
ELSEWHERE = "the API, or Python"
UNHEEDED = {"undone": "undone", "refused": "refused", "waiting": "can be undone", "doing": "being done"}


class Step(NamedTuple):
    """Something that was done, or was asked for and not done."""

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
        # Whoever asked first for what is in the log has caused it: what comes later changes nothing.
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
    query = (
        sa.select(EVENTS.c.at, EVENTS.c.kind, EVENTS.c.data)
        .join(EXPERIMENTS, EXPERIMENTS.c.id == EVENTS.c.experiment)
        .where(EXPERIMENTS.c.name == key, EVENTS.c.kind.in_(KINDS))
        .order_by(EVENTS.c.seq)
    )
    with registry.reading() as connection:
        return [(at, kind, json.loads(data)) for at, kind, data in connection.execute(query)]


def _words(kind: str, data: dict[str, Any], arm: str) -> str:
    if kind == "begin":
        return "begun"
    if kind == "stop":
        return f"stopped: {data['reason']}" if data.get("reason") else "stopped"
    if kind == "retire":
        return f"{arm!r} retired by hand"
    if kind == "extend":
        return f"arms added; they are now {', '.join(map(repr, data['labels']))}"
    return {"pause": "paused", "resume": "resumed"}[kind]
