import importlib
import json
import sys

import pytest

from orthobandit.errors import DamagedFileWarning, ParameterError
from orthobandit.study import cells
from orthobandit.study.cells import Cache, Cell, compute

TABLES = {"runs": {"a": [1, 2], "b": [0.1, 0.30000000000000004]}}


def test_the_key_is_the_content_not_the_labels():
    cell = Cell("math:hypot", {"a": 1, "b": 2.0}, {"name": "x"})
    assert cell.key == Cell("math:hypot", {"b": 2.0, "a": 1}, {"name": "y"}, cost=7.0).key
    assert cell.key != Cell("math:hypot", {"a": 1, "b": 3.0}).key
    assert cell.key != Cell("math:dist", {"a": 1, "b": 2.0}).key


def test_the_cache_returns_what_it_was_given_to_the_last_bit(tmp_path):
    cache, cell = Cache(tmp_path), Cell("math:hypot", {"a": 1})
    assert cache.load(cell) is None
    cache.store(cell, TABLES)
    assert cache.load(cell) == TABLES
    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".json"]


DAMAGES = {
    "empty": lambda text: "",
    "truncated": lambda text: text[:-20],
    "a list": lambda text: "[]",
    "a digit": lambda text: text.replace("0.1", "0.2"),
    "another cell": lambda text: json.dumps({"key": "other", "tables": {}}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_counts_as_absent_and_is_named(tmp_path, damage):
    cache, cell = Cache(tmp_path), Cell("math:hypot", {"a": 1})
    cache.store(cell, TABLES)
    path = next(path for path in tmp_path.rglob("*.json"))
    was = path.read_text()
    path.write_text(DAMAGES[damage](was))
    assert path.read_text() != was
    with pytest.warns(DamagedFileWarning, match=f"{cell.key}.json .* computed again"):
        assert cache.load(cell) is None
    cache.store(cell, TABLES)
    assert cache.load(cell) == TABLES


def test_the_key_knows_the_code_of_a_task_and_of_what_it_uses(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    keys = []
    for factor in (2, 3, 2):
        (tmp_path / "own_helper.py").write_text(f"def times(x):\n    return {factor} * x\n")
        (tmp_path / "own_task.py").write_text(
            "from own_helper import times\ndef task(settings):\n    return times(settings)\n"
        )
        for module in ("own_helper", "own_task"):
            sys.modules.pop(module, None)
        importlib.invalidate_caches()
        cells._task_code.cache_clear()
        keys.append(Cell("own_task:task", {}).key)
    assert keys[0] == keys[2]
    assert keys[0] != keys[1]


def test_a_result_that_is_not_plain_leaves_no_file(tmp_path):
    with pytest.raises(ValueError, match="Out of range"):
        Cache(tmp_path).store(Cell("math:hypot", {}), {"t": {"x": [float("nan")]}})
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_an_error_names_the_cell():
    settings = {
        "policy": {"kind": "sbe", "settings": {"delta": 2.0}},
        "instance": {"kind": "exact-gap", "settings": {"seed": 1}},
        "shift": {"kind": "sine", "settings": {}},
        "noise": {"kind": "gaussian", "settings": {}},
    }
    cell = Cell("orthobandit.study.spec:run_policy", settings, {"policy": "mine", "shift": "sine"})
    with pytest.raises(ParameterError, match=r"cell policy mine, shift sine: delta=2"):
        compute(cell)
