"""Requests with a key: done once, and answered alike however often they are repeated."""

import json
from typing import Any

from orthobandit.errors import ConflictError, ParameterError
from orthobandit.experiment.commit.requests import drawn_before
from orthobandit.experiment.commit.transaction import Request, Turn
from orthobandit.experiment.draw.exposures import Exposed
from orthobandit.experiment.proposal import Proposal
from orthobandit.experiment.store import Store

LONGEST = 200  # characters of a key


def check_key(key: str) -> str:
    """Return a key that can be kept."""
    if not isinstance(key, str) or not 0 < len(key) <= LONGEST or not key.isprintable():
        raise ParameterError(f"key={key!r} must be printable text of 1 to {LONGEST} characters")
    return key


def once(store: Store, key: str, words: str, request: Request) -> Request:
    """Return a request that is done unless one with its key was done before.

    That it was done is remembered in the same commit as what it did. One that was refused is not remembered.

    Parameters
    ----------
    store : Store
    key : str
    words : str
        What is requested; the same key with other words is refused.
    request : Request
        Returns proposals, what came of exposures, or nothing.
    """

    def done(turn: Turn) -> Any:
        found = _before(turn, store, key)
        if found is not None:
            if found[0] != words:
                raise ConflictError(f"the key {key!r} was used for another request before; use a new one")
            return found[1]
        value = request(turn)
        turn.done[key] = (words, value)
        if turn.writer is not None:
            turn.writer.remember(key, turn.ledger.at, json.dumps({"words": words, **_kept(value)}))
        return value

    return done


def _kept(value: list[Proposal] | Exposed | None) -> dict[str, Any]:
    """Return what is remembered of a value."""
    if isinstance(value, Exposed):
        return {"exposed": value.to_json()}
    return {"proposals": None if value is None else [one.id for one in value]}


def _before(turn: Turn, store: Store, key: str) -> tuple[str, list[Proposal] | Exposed | None] | None:
    """Return the words and the value of the request with this key, if there was one."""
    if key in turn.done:
        return turn.done[key]
    kept = None if turn.writer is None else turn.writer.recall(key)
    if kept is None:
        return None
    data = json.loads(kept)
    if "exposed" in data:
        return data["words"], Exposed.from_json(data["exposed"])
    numbers = data["proposals"]
    return data["words"], None if numbers is None else drawn_before(turn, store, numbers)
