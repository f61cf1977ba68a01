"""What is private to a package stays in it, and unit tests mirror the packages.

Which layer may import which is checked by `make lint`.
"""

import ast
import re
import sys
from pathlib import Path

import pytest

import orthobandit
from inside import homes

ROOT = Path(orthobandit.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)
UNIT = Path(__file__).parent
PROJECT = UNIT.parents[1]
IMPORT = re.compile(r"^ *from ([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)
NAME = re.compile(r"\w+")
TOOLS = [PROJECT / folder for folder in ("", ".ci", "docs", "tests")]


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def trespasses(source: str, package: str) -> list[str]:
    """Return the private modules and names of other packages that a module of `package` imports.

    Private modules directly under ``orthobandit`` are the foundations that all packages share.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            for place in range(2, len(parts)):
                owner = ".".join(parts[:place])
                is_inside = package == owner or package.startswith(f"{owner}.")
                if parts[0] == "orthobandit" and is_private(parts[place]) and not is_inside:
                    found.append(name)
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_imports_what_is_private_to_another_package(path):
    package = ".".join(["orthobandit", *path.relative_to(ROOT).parent.parts])
    assert trespasses(path.read_text(), package) == []


@pytest.mark.parametrize(
    ("source", "package", "found"),
    [
        ("from orthobandit.design._d_optimal import d_optimal", "orthobandit.policy", 1),
        ("from orthobandit.design import _d_optimal", "orthobandit.policy", 1),
        ("import orthobandit.design._d_optimal", "orthobandit.policy.anytime", 1),
        ("from orthobandit.design.base import _largest", "orthobandit.policy", 1),
        ("from orthobandit.policy._states import freeze", "orthobandit.policy.anytime", 0),
        ("from orthobandit._foundation.linalg import solve_ridge", "orthobandit.policy", 0),
        ("from orthobandit.design import centred_design", "orthobandit.policy", 0),
        ("from numpy._core import multiarray", "orthobandit.policy", 0),
    ],
)
def test_trespasses_are_found(source, package, found):
    assert len(trespasses(source, package)) == found


def imported_packages(source: str) -> set[str]:
    """Return the packages that a module imports, anywhere in it, without those of Python itself."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or ".").partition(".")[0] if not node.level else ".")
    return found - set(sys.stdlib_module_names)


def test_the_verifier_imports_numpy_alone():
    assert imported_packages((ROOT / "verify.py").read_text()) == {"numpy"}


def test_imports_inside_functions_and_relative_ones_are_seen():
    source = "import json, numpy.linalg\ndef f():\n    from scipy import stats\n    from . import arms"
    assert imported_packages(source) == {"numpy", "scipy", "."}


def is_module(path: Path) -> bool:
    return path.is_dir() or path.with_suffix(".py").is_file()


def packages_of(source: str) -> set[str]:
    """Return the packages from which a test imports: by public names, in scripts, through shared samples."""
    packages = set()
    for module, names in IMPORT.findall(source):
        where, *below = module.split(".")
        if where in {"orthobandit", "inside"}:
            homes_of_names = [home for name in NAME.findall(names) for home in homes().get(name, ())]
            packages |= {*below[:1], *(home.split(".")[1] for home in homes_of_names)}
        elif (UNIT.parent / f"{where}.py").is_file():
            packages |= packages_of((UNIT.parent / f"{where}.py").read_text(encoding="utf-8"))
    return packages


def mirrors(path: Path, source: str) -> bool:
    """Tell whether a unit test lies beside its subject.

    The folder is a package of the source, or a module with several files of tests, and the file imports from
    that package. Files in no folder have the name of a module, or of a tool, page or folder of the project.
    """
    package = path.parent
    if package != Path():
        return is_module(ROOT / package) and package.parts[0] in packages_of(source)
    name = path.stem.removeprefix("test_")
    tools = [match for folder in TOOLS for match in folder.glob(f"{name}*") if match.stem == name]
    return is_module(ROOT / name) or bool(tools) or path.name == Path(__file__).name


@pytest.mark.parametrize(
    "path", sorted(UNIT.rglob("test_*.py")), ids=lambda path: str(path.relative_to(UNIT))
)
def test_unit_tests_mirror_the_source(path):
    assert mirrors(path.relative_to(UNIT), path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("path", "source", "is_mirror"),
    [
        ("logs/effects/test_lifts.py", "from orthobandit import analyse", True),
        ("logs/effects/test_lifts.py", "from orthobandit.logs import Ratio", True),
        ("logs/effects/test_lifts.py", "from inside.logs import lifts_of", True),
        ("logs/checks/test_drift.py", "from orthobandit.logs import analyse", True),
        ("logs/effects/test_lifts.py", "from orthobandit import simulate", False),
        ("logs/lifting/test_lifts.py", "from orthobandit import analyse", False),
        ("test_arms.py", "", True),
        ("test_mutants.py", "", True),
        ("test_lifts.py", "from orthobandit import analyse", False),
    ],
)
def test_a_test_far_from_its_subject_is_seen(path, source, is_mirror):
    assert mirrors(Path(path), source) == is_mirror
