"""The table from the paper to the code names what exists, and leaves out no part of the report."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from orthobandit.reproduction.paper import SECTIONS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`~?(orthobandit(?:\.\w+)+)`", TEXT)))
TESTS = sorted(set(re.findall(r"`([\w/]+\.py)`(?: `(test_\w+)`)?", TEXT)))


def resolved(name):
    """Return what a dotted name stands for: a module, or something in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_exists(name):
    assert resolved(name) is not None


@pytest.mark.parametrize(("file", "function"), TESTS)
def test_every_test_exists(file, function):
    assert f"def {function}" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_every_part_of_the_report_is_named():
    assert [name for name in SECTIONS if f"`{name}`" not in TEXT] == []


def test_every_result_of_the_paper_is_named():
    wanted = ["Definition 1", "Definition 2", "Algorithm 1", "Algorithm 2", "Assumption 1"]
    wanted += [f"Theorem {number}" for number in (3, 4, 6, 7, 8, 18)]
    wanted += [f"Corollary {number}" for number in (5, 16, 17)]
    assert [name for name in wanted if f"| {name}" not in TEXT] == []
