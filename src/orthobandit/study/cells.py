"""Cells: the smallest pieces of a study, named by a hash of settings and code, and cached when finished."""

import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

from orthobandit._foundation.files import read_sealed, write_sealed
from orthobandit._foundation.fingerprint import fingerprint
from orthobandit.errors import DamagedFileWarning, FileFormatError, OrthobanditError, ParameterError

# Plain columns of equal length, and several such tables by name: what a cell computes.
Rows = dict[str, list[Any]]
Tables = dict[str, Rows]


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
        CPU time in seconds, roughly: decides the order of work and the time that is shown as left.

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
        # As JSON, since that is how settings reach a file and come back: a tuple is a list.
        settings = json.dumps(self.settings, sort_keys=True, allow_nan=False)
        return blake2b(f"{_task_code(self.task)} {settings}".encode(), digest_size=16).hexdigest()


@cache
def _task_code(task: str) -> str:
    """Return the fingerprint of a task's code; computed once, since code does not change while it runs."""
    return fingerprint((task, _task(task)), task.partition(":")[0])


def _task(task: str) -> Callable[[dict[str, Any]], Tables]:
    module, _, name = task.partition(":")
    function: Callable[[dict[str, Any]], Tables] = getattr(import_module(module), name)
    return function


def compute(cell: Cell) -> Tables:
    """Run a cell's task; an error names the cell."""
    try:
        return _task(cell.task)(dict(cell.settings))
    except OrthobanditError as error:
        raise ParameterError(f"cell {describe(cell)}: {error}") from error


def timed(cell: Cell) -> tuple[Tables, float]:
    """Run a cell's task; return its tables and the seconds it took."""
    begin = time.perf_counter()
    return compute(cell), time.perf_counter() - begin


def describe(cell: Cell) -> str:
    """Return a cell's labels as words, to name it in an error."""
    return ", ".join(f"{name} {value}" for name, value in cell.labels.items()) or cell.key


class Cache:
    """Finished cells in a folder, found again by content: one file a cell, whole or absent.

    Any number of processes and studies may share a folder: a file is named by the hash of all that decides
    its numbers and appears at once.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def load(self, cell: Cell) -> Tables | None:
        """Return a cell's tables; None, with a warning if its file is damaged, when it has to be computed."""
        entry = self.entry(cell)
        return None if entry is None else entry[0]

    def entry(self, cell: Cell) -> tuple[Tables, float | None] | None:
        """Return a cell's tables, and the seconds it took if they were noted; None as in :meth:`load`."""
        path = self._path(cell)
        try:
            data = read_sealed(path)
            # Somebody may have renamed or copied files of the folder.
            if data.get("key") != cell.key:
                raise FileFormatError(f"{path} holds another cell")
        except FileNotFoundError:
            return None
        except FileFormatError as error:
            warnings.warn(f"{error}; the cell is computed again", DamagedFileWarning, stacklevel=2)
            return None
        return data["tables"], data.get("seconds")

    def store(self, cell: Cell, tables: Tables, seconds: float | None = None) -> None:
        """Keep a cell's tables, and the seconds it took; a reader sees the whole file or none."""
        settings = dict(cell.settings)
        data: dict[str, Any] = {"key": cell.key, "task": cell.task, "settings": settings, "tables": tables}
        if seconds is not None:
            data["seconds"] = round(seconds, 3)
        write_sealed(self._path(cell), data)

    def _path(self, cell: Cell) -> Path:
        # Two letters of the key as a folder: some file systems get slow with 10⁵ files in one.
        return self.folder / cell.key[:2] / f"{cell.key}.json"
