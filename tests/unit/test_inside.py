"""Tests name few private modules, so that nearly every module can be renamed without them."""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import inside
from inside.logs import follow_metric
from orthobandit.estimate import ContrastSequence, Tuning
from public_names import MODULES

TESTS = Path(inside.__file__).parent
DOCUMENTED = re.compile(r"automodule:: ([\w.]+)")
MOST_TEST_FILES = 3
DOTTED = re.compile(r"\borthobandit(?:\.\w+)+")
SOURCES = {
    ".".join(path.relative_to(inside.ROOT.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in inside.ROOT.rglob("*.py")
}


def public_modules() -> set[str]:
    """Return the modules that users import: promised, documented, or where the program begins."""
    pages = (TESTS.parent / "docs" / "reference").glob("*.md")
    documented = {name for page in pages for name in DOCUMENTED.findall(page.read_text(encoding="utf-8"))}
    project = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {*MODULES, *documented, *(start.partition(":")[0] for start in project["scripts"].values())}


def module_of(name: str) -> str:
    """Return the module that a dotted name begins with."""
    while name and name not in SOURCES:
        name = name.rpartition(".")[0]
    return name


def modules_named(source: str) -> set[str]:
    """Return the modules of the package that a file imports, or names in a string."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= set(DOTTED.findall(node.value))
    return {module_of(name) for name in names} - {""}


def test_no_private_module_is_named_by_more_than_three_test_files():
    files = defaultdict(list)
    public = public_modules()
    for path in TESTS.rglob("*.py"):
        for module in modules_named(path.read_text(encoding="utf-8")) - public:
            files[module].append(str(path.relative_to(TESTS)))
    crowded = {module: sorted(names) for module, names in files.items() if len(names) > MOST_TEST_FILES}
    assert crowded == {}, "import public names from their package, others from `inside.<package>`"


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("from orthobandit.policy import _states", {"orthobandit.policy._states"}),
        ("from orthobandit.estimate.tally import Tally", {"orthobandit.estimate.tally"}),
        ("import orthobandit.arms, numpy.linalg", {"orthobandit.arms"}),
        ("patch('orthobandit.service.registry.TOKENS')", {"orthobandit.service.registry"}),
        ("from orthobandit.logs import analyse", {"orthobandit.logs"}),
        ("from inside.estimate import Cells", set()),
    ],
)
def test_modules_are_seen_in_imports_and_in_strings(source, modules):
    assert modules_named(source) == modules


def test_errors_the_verifier_and_the_program_are_public():
    assert {"orthobandit.errors", "orthobandit.verify", "orthobandit.cli"} <= public_modules()


def test_a_name_is_found_in_the_package_that_is_asked():
    assert follow_metric.__module__.startswith("orthobandit.logs.")
    assert inside.home("Asked", "experiment") != inside.home("Asked", "logs")
    assert inside.home("Tuning", "estimate") == Tuning.__module__


def test_a_name_that_moved_to_another_package_is_found_there():
    assert inside.home("ContrastSequence", "logs") == ContrastSequence.__module__


@pytest.mark.parametrize(
    ("name", "package", "modules"), [("Grid", "service", "orthobandit.reproduction"), ("Nobody", "logs", "0")]
)
def test_a_name_with_several_homes_or_none_is_refused(name, package, modules):
    with pytest.raises(ImportError, match=f"'{name}' must have one home, and has .*{modules}"):
        inside.home(name, package)


def test_what_is_set_is_set_in_the_module_that_defines_it(monkeypatch):
    monkeypatch.setattr("inside.estimate.LEVEL_SHARE", 0.25)
    assert sys.modules[inside.home("LEVEL_SHARE", "estimate")].LEVEL_SHARE == 0.25
    monkeypatch.undo()
    assert sys.modules[inside.home("LEVEL_SHARE", "estimate")].LEVEL_SHARE != 0.25
