"""Finished parts of a run, kept in a folder so that an interrupted run can go on."""

import warnings
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from orthobandit._foundation.files import check_folder, read_sealed, write_sealed
from orthobandit._foundation.fingerprint import fingerprint
from orthobandit._foundation.types import Whole
from orthobandit.errors import DamagedFileWarning, FileFormatError, NotStoredWarning, OutputError
from orthobandit.simulation.result import RunResult

if TYPE_CHECKING:
    from orthobandit.simulation.runner import Job


class Parts:
    """The parts of one job in ``folder/<fingerprint>/``; other jobs may share the folder."""

    def __init__(self, folder: str | Path, job: "Job") -> None:
        check_folder("resume", folder)
        self.folder = Path(folder) / job_fingerprint(job)
        check_folder("resume", self.folder)

    def load(self, numbers: Whole) -> list[RunResult]:
        """Return what is stored of the replications of these numbers, each once.

        A part that is damaged is removed, with a warning: what it held counts as not yet computed.
        """
        missing = numbers
        found = []
        for path in sorted(self.folder.glob("part-*.json")):
            try:
                part = RunResult.from_json(read_sealed(path))
            except FileNotFoundError:
                continue  # another process with the same job found it damaged
            except FileFormatError as error:
                warnings.warn(f"{error}; its replications are run again", DamagedFileWarning, stacklevel=4)
                path.unlink(missing_ok=True)
                continue
            part = part.only(np.isin(part.replications, missing))
            missing = np.setdiff1d(missing, part.replications)
            found.append(part)
        return found

    def kept(self, part: RunResult) -> "Parts | None":
        """Keep a finished part; None, with a warning, if there is no room for it or for others to come."""
        first, last = int(part.replications[0]), int(part.replications[-1])
        try:
            write_sealed(self.folder / f"part-{first:09d}-{last:09d}.json", part.to_json())
        except OutputError as error:
            warnings.warn(f"{error}; the run goes on without keeping parts", NotStoredWarning, stacklevel=3)
            return None
        return self


def job_fingerprint(job: "Job") -> str:
    """Return a hash of all that decides what a replication of this job does: settings and code."""
    settings = {field.name: getattr(job, field.name) for field in fields(job)}
    return fingerprint(settings, "orthobandit.simulation")
