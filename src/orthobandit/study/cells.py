"""Cells: the smallest pieces of a study, named by what decides their numbers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

import orthobandit
from orthobandit.errors import OrthobanditError, ParameterError

# Plain columns of equal length, and several such tables by name: what a cell computes.
Rows = dict[str, list[Any]]
Tables = dict[str, Rows]

# Parts of the package that change how results are shown or started, never the results.
PRESENTATION = {"cli", "service", "study", "testing.py", "logs.py"}
DECISIVE = ("study/makers.py", "study/tasks.py")


@dataclass(frozen=True, eq=False)
class Cell:
    """One piece of work.

    Parameters
    ----------
    task : str
        ``"module:function"``; the function takes the settings and returns tables.
    settings : dict
        Plain JSON values: all that decides the numbers.
    labels : dict
        What a reader calls this cell; becomes columns of the joined tables and decides nothing.
    cost : float
        Rough processor time in seconds, for the order of work and the time left.

    Examples
    --------
    >>> Cell("math:hypot", {"a": 1}, {"name": "x"}).key == Cell("math:hypot", {"a": 1}, {"name": "y"}).key
    True
    """

    task: str
    settings: Mapping[str, Any]
    labels: Mapping[str, str | int | float] = field(default_factory=dict)
    cost: float = 1.0

    @cached_property
    def key(self) -> str:
        """A hash of the task, its settings and the code that computes it."""
        content = {"task": self.task, "settings": self.settings, "code": code_tag(self.task)}
        text = json.dumps(content, sort_keys=True, allow_nan=False)
        return blake2b(text.encode(), digest_size=16).hexdigest()


@cache
def code_tag(task: str) -> str:
    """Return a hash of the sources that decide a task's numbers: a cached result is never out of date."""
    root = Path(orthobandit.__file__).parent
    sources = {p for p in root.rglob("*.py") if p.relative_to(root).parts[0] not in PRESENTATION}
    sources |= {root / name for name in DECISIVE}
    own = import_module(task.partition(":")[0]).__file__
    sources |= {Path(own)} if own else set()
    digest = blake2b(digest_size=8)
    for path in sorted(sources):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def compute(cell: Cell) -> Tables:
    """Run a cell's task; an error names the cell."""
    module, _, name = cell.task.partition(":")
    try:
        tables: Tables = getattr(import_module(module), name)(dict(cell.settings))
    except OrthobanditError as error:
        raise ParameterError(f"cell {describe(cell)}: {error}") from error
    return tables


def describe(cell: Cell) -> str:
    """Return a cell's labels for people."""
    return ", ".join(f"{name} {value}" for name, value in cell.labels.items()) or cell.key
