"""Finished cells on disk: one file a cell, whole or absent."""

import json
import os
from pathlib import Path

from orthobandit.study.cells import Cell, Tables


class Cache:
    """Finished cells in a folder, found again by content.

    Any number of processes and studies may share a folder: a file is named by the hash of all that decides
    its numbers and appears at once.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def load(self, cell: Cell) -> Tables | None:
        """Return a cell's tables, or None if it was not computed yet or its file is damaged."""
        try:
            data = json.loads(self._path(cell).read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return None
        if not isinstance(data, dict) or data.get("key") != cell.key:
            return None
        tables: Tables = data["tables"]
        return tables

    def store(self, cell: Cell, tables: Tables) -> None:
        """Keep a cell's tables; a reader sees the whole file or none."""
        path = self._path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        data = {"key": cell.key, "task": cell.task, "settings": dict(cell.settings), "tables": tables}
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            unfinished.write_text(json.dumps(data, allow_nan=False), encoding="utf-8")
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)

    def _path(self, cell: Cell) -> Path:
        return self.folder / cell.key[:2] / f"{cell.key}.json"
