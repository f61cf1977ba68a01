"""Cells: the smallest pieces of a study, named by a hash of settings and code, and cached when finished."""

import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

from orthobandit._foundation.files import read_sealed, write_sealed
from orthobandit._foundation.fingerprint import PACKAGE, fingerprint, used_code
from orthobandit.errors import DamagedFileWarning, FileFormatError, OrthobanditError, ParameterError

# Plain columns of equal length, and several such tables by name: what a cell computes.
Rows = dict[str, list[Any]]
Tables = dict[str, Rows]

# Makers by name; a cell's code has those that its settings name.
CATALOGUES = frozenset(
    {
        "orthobandit.peers.catalogue:POLICIES",
        "orthobandit.simulation.instances:INSTANCES",
        "orthobandit.simulation.noise:NOISES",
        "orthobandit.simulation.shifts:SHIFTS",
    }
)


@dataclass(frozen=True, eq=False)
class Cell:
    """One piece of work.

    Parameters
    ----------
    task : str
        ``"module:function"``; the function takes the settings and returns tables.
    settings : dict
        Plain JSON values: everything that determines the numbers.
    labels : dict
        Names for the reader; they become columns of the joined tables and do not affect the numbers.
    cost : float
        CPU time in seconds, roughly: for the order of work and the time left.

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
    def content(self) -> str:
        """A hash of the task, its settings and the code that they use, the same on every machine."""
        # As JSON, since that is how settings reach a file and come back: a tuple is a list.
        settings = json.dumps(self.settings, sort_keys=True, allow_nan=False)
        code = _task_code(self.task, *_makers(self.settings))
        return blake2b(f"{code} {settings}".encode(), digest_size=16).hexdigest()

    @cached_property
    def key(self) -> str:
        """A hash of the content and of the versions of numpy, scipy and numba."""
        return fingerprint(self.content)


@cache
def _task_code(task: str, *makers: str) -> str:
    """Return a hash of the code of a task and of what its settings name.

    Computed once, since code does not change while it runs.
    """
    # What the settings name is walked by itself, so that a change of one policy leaves cells of others alone.
    return used_code(task, *makers, without=CATALOGUES)


def _makers(settings: Mapping[str, Any]) -> list[str]:
    """Return where the code is that a cell's settings name: its policy, its arms, its shift and so on.

    Each is ``module:name`` of a class or function of this package. Settings name it by its kind in a
    catalogue, as ``{"policy": {"kind": "sbe"}}``.
    """
    # Here, since the catalogues' module builds cells.
    from orthobandit.study.spec import KINDS

    found = []
    for what, makers in KINDS.items():
        named = settings.get(what)
        if isinstance(named, Mapping) and named.get("kind") in makers:
            maker = makers[named["kind"]]
            while isinstance(maker, partial):
                maker = maker.func
            # A user's own code is in the settings, as a hash.
            if maker.__module__.partition(".")[0] == PACKAGE:
                found.append(f"{maker.__module__}:{maker.__qualname__.partition('.')[0]}")
    return found


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
    """Finished cells in a folder, found again by content: one file per cell, whole or absent.

    Any number of processes and studies may share a folder: a file is named by the hash of everything that
    determines its numbers, and appears whole.
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
