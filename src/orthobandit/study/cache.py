"""Finished cells on disk: one file a cell, whole or absent."""

import warnings
from pathlib import Path

from orthobandit._files import read_sealed, write_sealed
from orthobandit.errors import DamagedFileWarning, FileFormatError
from orthobandit.study.cells import Cell, Tables


class Cache:
    """Finished cells in a folder, found again by content.

    Any number of processes and studies may share a folder: a file is named by the hash of all that decides
    its numbers and appears at once.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def load(self, cell: Cell) -> Tables | None:
        """Return a cell's tables; None, with a warning if its file is damaged, when it has to be computed."""
        path = self._path(cell)
        try:
            data = read_sealed(path)
            if data.get("key") != cell.key:
                raise FileFormatError(f"{path} holds another cell")
        except FileNotFoundError:
            return None
        except FileFormatError as error:
            warnings.warn(f"{error}; the cell is computed again", DamagedFileWarning, stacklevel=2)
            return None
        tables: Tables = data["tables"]
        return tables

    def store(self, cell: Cell, tables: Tables) -> None:
        """Keep a cell's tables; a reader sees the whole file or none."""
        data = {"key": cell.key, "task": cell.task, "settings": dict(cell.settings), "tables": tables}
        write_sealed(self._path(cell), data)

    def _path(self, cell: Cell) -> Path:
        return self.folder / cell.key[:2] / f"{cell.key}.json"
