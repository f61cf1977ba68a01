"""CONTRIBUTING sends nobody to a file or a name that is not there."""

import re
from pathlib import Path

import pytest

import orthobandit

ROOT = Path(orthobandit.__file__).parent
TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
TABLE = TEXT.split("## Where a change goes")[1].split("\n## ")[0]
CHANGES = re.findall(r"^\| (?!To change|-)([^|]+) \| ([^|]+) \|$", TABLE, re.M)
TREE = TEXT.split("| Layer, top to bottom")[1].split("\n\n")[0]
LAYERS = [line for line in TREE.splitlines() if "`" in line]


def paths(where: str) -> list[str]:
    return [word for word in re.findall(r"`([^`]+)`", where) if "/" in word or word.endswith(".py")]


def near(word: str, before: list[str]) -> bool:
    """Tell whether a path exists, under the package or beside a path that was named before it."""
    folders = [ROOT, *(ROOT / Path(one).parent for one in before), *(ROOT / one for one in before)]
    return any((folder / word).exists() for folder in folders)


@pytest.mark.parametrize(("what", "where"), CHANGES, ids=[what for what, _ in CHANGES])
def test_every_change_has_its_files(what, where):
    named = paths(where)
    assert named
    for place, word in enumerate(named):
        if "(when it exists)" in where:
            continue
        assert near(word, named[:place]), f"{what}: there is no {word}"


def test_there_are_at_least_fifteen_changes():
    assert len(CHANGES) >= 15


def test_names_in_the_table_are_in_the_files_beside_them():
    for _, where in CHANGES:
        files = [ROOT / word for word in paths(where) if (ROOT / word).is_file()]
        for name in re.findall(r"`([A-Z][A-Za-z]+|centred_sums)`", where):
            assert any(name in file.read_text() for file in files), name


@pytest.mark.parametrize("line", LAYERS)
def test_every_layer_is_in_the_tree(line):
    for name in re.findall(r"`([a-z_]+)`", line.split("|")[1]):
        is_there = (ROOT / name).is_dir() or (ROOT / f"{name}.py").is_file()
        assert is_there, name


def test_no_foundation_is_left_out():
    named = set(re.findall(r"`([a-z_]+)`", " ".join(line.split("|")[1] for line in LAYERS)))
    modules = {path.stem for path in ROOT.glob("*.py")} - {"__init__", "__main__"}
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert modules | folders <= named


def test_a_release_by_the_book_has_the_new_number():
    [line] = [line for line in TEXT.replace("\n", " ").split(". ") if "set `__version__` in" in line]
    code, citation = re.findall(r" in `([^`]+)`", line)[:2]
    root = Path(__file__).parents[2]
    assert f'\n__version__ = "{orthobandit.__version__}"\n' in (root / code).read_text()
    assert f"\nversion: {orthobandit.__version__}\n" in (root / citation).read_text()
