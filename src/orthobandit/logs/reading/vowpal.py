"""Vowpal Wabbit's JSON lines as a table: one decision a line, with the probabilities of all its actions."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit._foundation.files import pyarrow
from orthobandit.errors import FileFormatError, InputWarning

COST = "_label_cost"
CHOSEN = "_label_action"
PROBABILITY = "_label_probability"


def read_vw(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Read decisions that Vowpal Wabbit logged as JSON lines (``.json`` or ``.dsjson``).

    ``a`` lists the numbers of the actions (from 1) in the order of their probabilities ``p``; the one that
    was taken is ``_label_Action``, else the first of ``a``. The reward is minus ``_label_cost``. Lines that
    are no decisions are counted in a warning.

    Returns
    -------
    source : pyarrow.Table
        Columns line, at (where there is ``Timestamp``), arm, reward, and p:<action> (or p).
    fields : dict
        Of a Question.
    """
    decisions, others = _decisions(Path(path))
    if not decisions:
        raise FileFormatError(f"{path} has no decision: no line with {COST!r}")
    if others:
        warnings.warn(
            f"{path}: {others:,} lines have no {COST!r} and are left out", InputWarning, stacklevel=2
        )
    columns: dict[str, Any] = {
        "line": [number for number, _ in decisions],
        "arm": [str(one["arm"]) for _, one in decisions],
        "reward": [one["reward"] for _, one in decisions],
    }
    fields: dict[str, Any] = {"arm": "arm", "reward": "reward", "time": "line"}
    if all(one["at"] for _, one in decisions):
        columns["at"] = [one["at"] for _, one in decisions]
        fields["time"] = "at"
    if all(one["p"] for _, one in decisions):
        count = max(max(one["p"]) for _, one in decisions)
        p = np.zeros((len(decisions), count))
        for row, (_, one) in enumerate(decisions):
            p[row, np.array(list(one["p"])) - 1] = list(one["p"].values())
        columns |= {f"p:{action + 1}": p[:, action] for action in range(count)}
        fields["probabilities"] = tuple(f"p:{action + 1}" for action in range(count))
    else:
        columns["p"] = [one["own"] for _, one in decisions]
        fields["probabilities"] = ("p",)
    return pyarrow()[0].table(columns), fields


def _decisions(path: Path) -> tuple[list[tuple[int, dict[str, Any]]], int]:
    """Return (line, decision) of every decision, and how many lines are none."""
    found = []
    others = 0
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                entry = _entry(path, number, line)
                if COST in entry:
                    found.append((number, _decision(path, number, entry)))
                else:
                    others += 1
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from None
    return found, others


def _entry(path: Path, number: int, line: str) -> dict[str, Any]:
    """Return a line as a mapping; labels are written in several ways: _label_cost and _label_Cost."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise FileFormatError(f"{path} line {number} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise FileFormatError(f"{path} line {number} is not a JSON object")
    return {key.lower() if key.startswith("_label_") else key: value for key, value in data.items()}


def _decision(path: Path, number: int, entry: dict[str, Any]) -> dict[str, Any]:
    actions = entry.get("a") or []
    p = entry.get("p") or []
    try:
        if len(actions) != len(p):
            raise ValueError(f"'a' has {len(actions)} actions, 'p' {len(p)} probabilities")
        laws = {int(action): float(value) for action, value in zip(actions, p, strict=True)}
        if min(laws, default=1) < 1:
            raise ValueError("actions are numbered from 1")
        return {
            "arm": int(entry[CHOSEN] if CHOSEN in entry else actions[0]),
            "reward": 0.0 - float(entry[COST]),
            "own": float(entry.get(PROBABILITY, np.nan)),
            "at": entry.get("Timestamp"),
            "p": laws,
        }
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path} line {number} is not a decision that can be read: {error}") from None
