"""The table from the paper to the code names what exists, and leaves out no part of the report."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from inside.reproduction import SECTIONS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`~?(orthobandit(?:\.\w+)+)`", TEXT)))
# A file may be followed by several functions of it.
TESTS = sorted(
    {
        (file, function)
        for file, functions in re.findall(r"`([\w/]+/test_\w+\.py)`((?:,? `test_\w+`)*)", TEXT)
        for function in re.findall(r"test_\w+", functions) or [""]
    }
)


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


ROWS = [line for line in TEXT.splitlines() if line.startswith("| ") and "{py:obj}" in line]


@pytest.mark.parametrize("row", ROWS, ids=[row.split("|")[1].strip() for row in ROWS])
def test_the_tests_of_a_row_use_what_it_names(row):
    names = [name.rpartition(".")[2] for name in re.findall(r"`~?(orthobandit(?:\.\w+)+)`", row)]
    files = dict.fromkeys(re.findall(r"`([\w/]+\.py)`", row))
    assert files
    text = "".join((ROOT / "tests" / file).read_text(encoding="utf-8") for file in files)
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


def test_every_part_of_the_report_is_named():
    assert [name for name in SECTIONS if f"`{name}`" not in TEXT] == []


def test_every_result_of_the_paper_is_named():
    """Definitions, theorems, corollaries, lemmas and a remark share a counter that ends at 27."""
    kinds = r"(?:Definition|Theorem|Corollary|Lemma|Remark)s?"
    named = " ".join(line.split("|")[1] for line in TEXT.splitlines() if line.startswith("| "))
    numbers = {
        int(number)
        for found in re.findall(rf"{kinds} (\d+(?:, \d+)*)", named)
        for number in found.split(", ")
    }
    assert numbers == set(range(1, 28))
    for name in ("Algorithm 1", "Algorithm 2", "Assumption 1", "Figure 1", "Figure 2", "Figures 3, 4"):
        assert name in named
