"""What is private to a package stays in it; which layer may import which is checked by `make lint`."""

import ast
import sys
from pathlib import Path

import pytest

import orthobandit

ROOT = Path(orthobandit.__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if "__pycache__" not in path.parts)


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
