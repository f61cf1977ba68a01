"""The same cells on a real local Ray."""

import pytest

from inside.study import Cache, Cell, run_cells
from orthobandit.errors import ParameterError

pytest.importorskip("ray", reason="Ray is an extra: pip install '.[ray]'")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def test_a_killed_worker_is_retried_and_nothing_counted_twice(toy_cells, tmp_path):
    cells = toy_cells("die_once", range(5))
    found = run_cells(cells, Cache(tmp_path / "cells"), jobs=2, backend="ray")
    assert [tables["squares"]["square"][0] for tables in found] == [0, 1, 4, 9, 16]
    assert (toy_cells.folder / "dying-2").exists()
    assert toy_cells.computed() == [0, 1, 2, 3, 4]
    assert run_cells(cells, Cache(tmp_path / "local")) == found


def test_an_error_on_ray_is_the_error_here(tmp_path):
    bad = Cell("orthobandit.study.spec:run_policy", {"policy": {"kind": "sbe", "settings": {"delta": 2}}})
    with pytest.raises((ParameterError, KeyError)):
        run_cells([bad, Cell(bad.task, {})], Cache(tmp_path), jobs=1, backend="ray")
