"""Requests that clients send and how they read the answers: all of a client except the network."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import numpy as np

from orthobandit.errors import DesignError, MissingExtraError, OrthobanditError, ServiceError
from orthobandit.experiment import Proposal
from orthobandit.service.http.problem_kinds import ERRORS, PREFIX

Rewards = float | Mapping[str, float]
ManyRewards = Sequence[float] | Mapping[str, Sequence[float]]
# Errors that can be made from their message alone.
PLAIN = {kind: error for error, kind in ERRORS if error not in (DesignError, MissingExtraError)}


@dataclass(frozen=True)
class Call:
    """One request; a write has an idempotency key, by which the server recognises a repeat."""

    method: str
    path: str
    json: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def read(path: str) -> Call:
    """Return a request that changes nothing."""
    return Call("GET", path, headers={"Accept": "application/json"})


def write(path: str, json: Any = None, key: str | None = None) -> Call:
    """Return a request that changes something, with this idempotency key or a new one."""
    return Call("POST", path, {} if json is None else json, {"Idempotency-Key": key or uuid4().hex})


def of(key: str, *parts: str) -> str:
    """Return the path of an experiment, or of something of it.

    Examples
    --------
    >>> of("page", "arms", "a/b", "retire")
    '/v1/experiments/page/arms/a%2Fb/retire'
    """
    return "/".join(["/v1/experiments", *(quote(part, safe="") for part in (key, *parts))])


def given(**values: Any) -> dict[str, Any]:
    """Return the values that are not None, with lists for tuples and arrays."""
    return {
        name: value if isinstance(value, str | Mapping) or not isinstance(value, Sequence) else list(value)
        for name, value in values.items()
        if value is not None
    }


def told(rewards: ManyRewards) -> Any:
    """Return rewards as plain lists."""
    if isinstance(rewards, Mapping):
        return {name: np.asarray(values, float).tolist() for name, values in rewards.items()}
    return np.asarray(rewards, float).tolist()


def proposal_of(data: Mapping[str, Any]) -> Proposal:
    """Return a proposal as `Experiment.ask` would."""
    probabilities = np.array(data["probabilities"], dtype=float)
    probabilities.flags.writeable = False
    return Proposal(
        id=data["id"],
        arm=data["arm"],
        label=data["label"],
        plan=data["plan"],
        probabilities=probabilities,
        baseline=data["baseline"],
        held=data["held"],
    )


def error_of(status: int, data: Any, text: str) -> OrthobanditError:
    """Return the error that an answer stands for: the same class that `Experiment` would raise."""
    if not isinstance(data, Mapping) or not str(data.get("type", "")).startswith(PREFIX):
        return ServiceError(f"the server answered {status}: {text[:200]!r}", status=status)
    kind = str(data["type"]).removeprefix(PREFIX)
    detail = str(data.get("detail", ""))
    known = PLAIN.get(kind)
    if known is not None:
        return known(detail)
    return ServiceError(f"{data.get('title')}: {detail}", status=status, kind=kind)
