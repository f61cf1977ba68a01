import json

import pytest

from orthobandit.errors import ParameterError
from orthobandit.study.cache import Cache
from orthobandit.study.cells import Cell, compute

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


@pytest.mark.parametrize("damage", ["", "{", "[]", json.dumps({"key": "other", "tables": {}})])
def test_a_damaged_file_counts_as_absent(tmp_path, damage):
    cache, cell = Cache(tmp_path), Cell("math:hypot", {"a": 1})
    cache.store(cell, TABLES)
    next(path for path in tmp_path.rglob("*.json")).write_text(damage)
    assert cache.load(cell) is None


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
    cell = Cell("orthobandit.study.tasks:run_policy", settings, {"policy": "mine", "shift": "sine"})
    with pytest.raises(ParameterError, match=r"cell policy mine, shift sine: delta=2"):
        compute(cell)
