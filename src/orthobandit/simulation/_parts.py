"""Finished parts of a run, kept in a folder so that an interrupted run can go on."""

from dataclasses import fields, is_dataclass
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.simulation._group import Job
from orthobandit.simulation.result import RunResult


class Parts:
    """The parts of one job in ``folder/<fingerprint>/``; other jobs may share the folder."""

    def __init__(self, folder: str | Path, job: Job) -> None:
        self.folder = Path(folder) / fingerprint(job)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ParameterError(
                f"resume={str(folder)!r} cannot be made a folder: {error.strerror}"
            ) from None

    def load(self, numbers: NDArray[np.int64]) -> list[RunResult]:
        """Return what is stored of the replications of these numbers, each once."""
        missing, found = numbers, []
        for path in sorted(self.folder.glob("part-*.json")):
            part = RunResult.read(path)
            part = part.only(np.isin(part.replications, missing))
            missing = np.setdiff1d(missing, part.replications)
            found.append(part)
        return found

    def store(self, part: RunResult) -> None:
        """Keep a finished part."""
        first, last = int(part.replications[0]), int(part.replications[-1])
        part.write(self.folder / f"part-{first:09d}-{last:09d}.json")


def fingerprint(job: Job) -> str:
    """Return a hash of all that decides what a replication of this job does."""
    settings = {field.name: getattr(job, field.name) for field in fields(job)}
    text = repr((version("orthobandit"), _canonical(settings)))
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _canonical(value: Any) -> Any:
    """Return nested tuples of plain values that differ whenever the settings differ."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return (type(value).__name__, repr(value))
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return ("array", array.dtype.str, array.shape, array.tobytes())
    if isinstance(value, type | FunctionType | BuiltinFunctionType):
        if "<" in value.__qualname__:
            raise ParameterError(
                f"{value!r} has no lasting name; to resume, define it at the top of a module"
            )
        return (value.__module__, value.__qualname__)
    if isinstance(value, list | tuple):
        return (type(value).__name__, tuple(_canonical(item) for item in value))
    if isinstance(value, dict):
        return ("dict", sorted((repr(_canonical(key)), _canonical(item)) for key, item in value.items()))
    if isinstance(value, set | frozenset):
        return ("set", sorted(repr(_canonical(item)) for item in value))
    if isinstance(value, ArmSet):
        return ("ArmSet", _canonical(value.features), value.labels)
    if is_dataclass(value):
        kept = {field.name: getattr(value, field.name) for field in fields(value)}
        return (_canonical(type(value)), _canonical(kept))
    # Anything else is what it would be copied from.
    return _canonical(value.__reduce_ex__(4)[:3])
