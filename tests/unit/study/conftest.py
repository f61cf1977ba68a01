from pathlib import Path

import pytest

from inside.study import Cell


@pytest.fixture
def toy_cells(tmp_path, monkeypatch):
    """Return a maker of cells of a toy task, and of the numbers that were computed so far."""
    here = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(here)
    monkeypatch.setenv("PYTHONPATH", f"{here}:{Path(__file__).parents[3] / 'src'}")
    marks = tmp_path / "marks"
    marks.mkdir()

    def cells(task, numbers):
        return [
            Cell(f"toy_tasks:{task}", {"number": n, "folder": str(marks)}, {"name": f"n{n}"}) for n in numbers
        ]

    def computed():
        found = [path.name.split("-") for path in marks.iterdir()]
        return sorted(int(number) for number, _ in found if number.isdigit())

    cells.folder, cells.computed = marks, computed
    return cells
