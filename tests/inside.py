"""Names from inside the package that many tests need, found wherever they live.

    from inside.estimate import Follower  # from whichever module of orthobandit.estimate defines it
    monkeypatch.setattr("inside.service.ROUND_SECONDS", 0.05)  # in the module that defines it

Public names come from their public packages, and the tests of a module import that module. What else a test
needs comes from here, so that a module can be renamed or moved without a change in tests of something else.
A name is looked for in the package that is asked, then in all; one module alone may define it.
"""

import re
import sys
from collections import defaultdict
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path

import orthobandit

ROOT = Path(orthobandit.__file__).parent
DEFINITION = re.compile(r"^(?:(?:class|def|async def) (?=\w)|(?=\w+(?:: [^=\n]+)? = ))(\w+)", re.MULTILINE)
__path__: list[str] = []  # lets `inside.estimate` be imported; `Finder` makes it


@cache
def homes() -> dict[str, set[str]]:
    """Return, by name, the modules that define it at their top level."""
    modules = defaultdict(set)
    for path in ROOT.rglob("*.py"):
        parts = ("orthobandit", *path.relative_to(ROOT).with_suffix("").parts)
        for name in DEFINITION.findall(path.read_text(encoding="utf-8")):
            modules[name].add(".".join(parts).removesuffix(".__init__"))
    return modules


def home(name: str, package: str) -> str:
    """Return the one module that defines a name: of the package, or of all."""
    everywhere = homes().get(name, set())
    near = {module for module in everywhere if f"{module}.".startswith(f"orthobandit.{package}.")}
    candidates = sorted(near or everywhere)
    if len(candidates) != 1:
        raise ImportError(f"{name!r} must have one home, and has {len(candidates)}: {', '.join(candidates)}")
    return candidates[0]


class Inside:
    """All names that the modules of one package define; what is set here is set in its module."""

    # Without a dictionary of its own, so that `monkeypatch` reads and restores the module's value.
    __slots__ = ("_package",)

    def __init__(self, package):
        object.__setattr__(self, "_package", package)

    def __getattr__(self, name):
        return getattr(self._module_of(name), name)

    def __setattr__(self, name, value):
        setattr(self._module_of(name), name, value)

    def _module_of(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return import_module(home(name, self._package))


class Finder:
    """Makes `inside.<package>` when Python's import system asks for it."""

    @staticmethod
    def find_spec(name, _path=None, _target=None):
        return ModuleSpec(name, Finder) if name.startswith("inside.") else None

    @staticmethod
    def create_module(spec):
        return Inside(spec.name.removeprefix("inside."))

    @staticmethod
    def exec_module(module):
        """Leave the module empty: it looks names up as they are asked."""


sys.meta_path.append(Finder)
