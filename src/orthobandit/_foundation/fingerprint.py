"""Fingerprints of finished work: two are equal only if both settings and code are equal.

:func:`used_code` hashes the source that a name can reach. Sources are read, not run. From a starting name the
walk goes on to every name that the statement behind it mentions, through imports and the ``__init__.py`` of
packages, so that a change elsewhere leaves the hash alone. Docstrings, comments and blank lines do not count.
Entries that are looked up by name in a catalogue are not followed: the caller names those that are used as
further starts. Modules of this package are read, and a user's own; other packages count by version.

:func:`fingerprint` hashes a value as well, with the source of every class and function in it.
"""

import ast
import sys
import sysconfig
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, lru_cache, partial
from hashlib import blake2b
from importlib import metadata
from importlib.util import find_spec, resolve_name
from pathlib import Path
from pickle import PicklingError
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from orthobandit.errors import ParameterError

PACKAGE = __name__.partition(".")[0]
ROOT = Path(__file__).parent.parent
ENGINES = ("numpy", "scipy", "numba")  # their versions may move the last digit
ALL = "*"  # every name of a module
# Rendering, messages, files, the bookkeeping of cells and of compiled code decide no number.
IGNORED = tuple(
    f"{PACKAGE}.{room}"
    for room in (
        "showing",
        "errors",
        "study.cells",
        *(f"_foundation.{name}" for name in ("release", "extras", "files", "fingerprint", "pool", "compile")),
    )
)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@runtime_checkable
class HasIdentity(Protocol):
    """A value that names what distinguishes it from others of its kind, whatever it has cached since."""

    def identity(self) -> tuple[Any, ...]:
        """Return plain values and arrays that are equal only for equal values."""
        ...


def fingerprint(value: Any, *starts: str) -> str:
    """Return a hash of a value, of the code of what is in it, and of the versions of numpy, scipy and numba.

    Parameters
    ----------
    value
        Plain values, arrays, functions, classes and objects, nested in any way.
    *starts : str
        ``"module:name"`` of this package: what is made of the value.
    """
    walk = _Walk()
    plain = walk.plain(value)
    content = (_engines(), used_code(*starts, *sorted(walk.starts)), plain)
    return blake2b(repr(content).encode(), digest_size=16).hexdigest()


def _path_of(name: str) -> Path | None:
    """Return the file of a module of this package or of the user's own; None for any other."""
    top, *below = name.split(".")
    if top == PACKAGE:
        place = ROOT.joinpath(*below)
        paths = (place.with_suffix(".py"), place / "__init__.py")
        return next((path for path in paths if path.is_file()), None)
    if _outside(name) is not None:
        return None
    file = _file_of(name)
    return None if file is None else Path(file)


def _file_of(module: str) -> str | None:
    """Return where a module comes from, whether it is imported already or not; None if it is in no file."""
    if module in sys.modules:
        return getattr(sys.modules[module], "__file__", None)
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        return None
    return spec.origin if spec is not None and spec.has_location else None


@cache
def _engines() -> tuple[str, ...]:
    return tuple(f"{name} {metadata.version(name)}" for name in ENGINES)


@cache
def _outside(module: str) -> str | None:
    """Return the name and version that a module counts by; None for the user's own, which count by code."""
    top = module.partition(".")[0]
    if top in {"__main__", "__mp_main__"}:
        return None  # a script or a notebook, whatever started it
    if top == PACKAGE or top in sys.stdlib_module_names:
        return module
    file = _file_of(module)
    if file is None:
        return None
    installed = [Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")]
    if not any(Path(file).resolve().is_relative_to(folder) for folder in installed):
        return None if file.endswith(".py") else module  # an extension that somebody has compiled
    try:
        return f"{module} {metadata.version(top)}"
    except metadata.PackageNotFoundError:
        return f"{module} {getattr(sys.modules.get(top), '__version__', '')}"


class _Walk:
    """One walk over a value: what was met already is named, not walked again."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[int, Any]] = {}  # number in the walk; kept, so that no id is used twice
        self.starts: set[str] = set()  # classes and functions that were met, as "module:name"

    def plain(self, value: Any) -> Any:
        """Return nested tuples of plain values that differ whenever the value or its code does."""
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return (type(value).__name__, repr(value))
        if (isinstance(value, np.ndarray) and value.dtype != object) or isinstance(value, np.generic):
            array = np.asarray(value)
            return ("array", array.dtype.str, array.shape, array.tobytes())
        # Modules and classes may have a function of this name, as numpy does.
        if isinstance(value, HasIdentity) and not isinstance(value, ModuleType | type):
            return (type(value).__name__, *map(self.plain, value.identity()))
        if id(value) in self._met:
            return ("met", self._met[id(value)][0])
        self._met[id(value)] = (len(self._met), value)
        found = self._code(value)
        if found is None:
            found = self._container(value) or self._object(value)
            # Equal values may or may not be one object: walked again, unless within itself.
            del self._met[id(value)]
        return found

    def _container(self, value: Any) -> Any:
        if type(value) in (list, tuple):
            return (type(value).__name__, tuple(self.plain(item) for item in value))
        if type(value) is dict:
            items = sorted(value.items(), key=lambda item: repr(item[0]))
            return ("dict", tuple((self.plain(key), self.plain(item)) for key, item in items))
        if isinstance(value, set | frozenset):
            return ("set", tuple(self.plain(item) for item in sorted(value, key=repr)))
        return None

    def _code(self, value: Any) -> Any:
        """Return plain values that name a function, class or module; None for anything else."""
        # Compiled by numba, or remembered by functools.
        inner = getattr(value, "py_func", None) or getattr(value, "__wrapped__", None)
        if isinstance(inner, FunctionType) and not isinstance(value, FunctionType):
            return self.plain(inner)
        if isinstance(value, MethodType):
            return ("method", self.plain(value.__func__), self.plain(value.__self__))
        if isinstance(value, partial):
            return ("partial", *map(self.plain, (value.func, value.args, value.keywords)))
        if isinstance(value, ModuleType):
            self._start(value.__name__, ALL)
            return ("module", value.__name__)
        if isinstance(value, BuiltinFunctionType):
            return (value.__module__, value.__qualname__)
        if not isinstance(value, type | FunctionType):
            return None
        self._start(value.__module__, value.__qualname__.partition(".")[0])
        name = (value.__module__, value.__qualname__)
        is_made = isinstance(value, FunctionType) and "<" in value.__qualname__
        return (*name, self._made(value)) if is_made else name

    def _start(self, module: str, name: str) -> None:
        """Count the source of a name, or the version of the package that it is from."""
        top = module.partition(".")[0]
        if top not in sys.stdlib_module_names:
            self.starts.add(f"{module}:{name}")

    def _made(self, function: Any) -> Any:
        """Return what tells functions apart that one statement has made."""
        held = [cell.cell_contents for cell in function.__closure__ or () if cell != type(cell)()]
        given = (function.__defaults__, function.__kwdefaults__, held)
        return (_bytecode(function.__code__), self.plain(given))

    def _object(self, value: Any) -> Any:
        if is_dataclass(value):
            kept = {field.name: getattr(value, field.name) for field in fields(value)}
            return (self.plain(type(value)), self.plain(kept))
        # Anything else is what it would be copied from.
        try:
            made = value.__reduce_ex__(4)
        except (TypeError, AttributeError, PicklingError):
            raise ParameterError(
                f"{value!r} cannot be recognised when a run is resumed; use values that can be pickled"
            ) from None
        return self.plain(made if isinstance(made, str) else list(made[:3]))


def _bytecode(code: CodeType) -> Any:
    constants = [_bytecode(item) if isinstance(item, CodeType) else repr(item) for item in code.co_consts]
    return (code.co_code, constants, code.co_names, code.co_varnames)


def used_code(*starts: str, without: Collection[str] = ()) -> str:
    """Return a hash of everything that the starts can reach.

    Parameters
    ----------
    *starts : str
        ``"module:name"`` of this package.
    without : collection of str
        Names, written likewise, at which the walk stops: catalogues.

    Examples
    --------
    >>> bound = used_code("orthobandit.theory:error_bound")
    >>> bound == used_code("orthobandit.theory.bounds:error_bound")
    True
    >>> bound == used_code("orthobandit.theory:regret_bound")
    False
    """
    digest = blake2b(digest_size=16)
    for name, text in sorted(used_names(*starts, without=without).items()):
        digest.update(f"{name}\0{text}\0".encode())
    return digest.hexdigest()


def used_names(*starts: str, without: Collection[str] = ()) -> dict[str, str]:
    """Return the source of every name that `starts` reach, by name; arguments as in :func:`used_code`."""
    found: dict[str, str] = {}
    met: set[tuple[str, str]] = set()
    sources: dict[str, _Source] = {}  # files may change between two walks
    waiting = [_split(start) for start in starts]
    while waiting:
        module, name = waiting.pop()
        if (module, name) in met or f"{module}:{name}" in without or module.startswith(IGNORED):
            continue
        met.add((module, name))
        is_own = module.partition(".")[0] != PACKAGE  # the user's, or another package's
        outside = _outside(module) if is_own else None
        if outside is not None:
            found[f"{module}:{name}"] = outside
            continue
        source = sources[module] if module in sources else _source(module)
        if source is None:
            if is_own and _path_of(f"{module}.{name}") is not None:  # of a folder without __init__.py
                waiting.append((f"{module}.{name}", ALL))
                continue
            raise ParameterError(
                f"{module}:{name} is in no file; write it in a module of its own, so that its code is known"
                if is_own
                else f"{module!r} is not a module of {PACKAGE}"
            )
        sources[module] = source
        if is_own:  # what another module puts into this one
            waiting += [(target, ALL) for target in source.stars]
        if name == ALL:
            waiting += [(module, own) for own in (*source.statements, *source.imports)]
        elif name in source.imports:
            target, imported = source.imports[name]
            if is_own or target.partition(".")[0] == PACKAGE:
                waiting.append((target, imported or ALL))
        elif name in source.statements:
            # What a module does besides defining names may change any of them.
            statements = {name: source.statements[name], "": source.loose}
            for key, parts in statements.items():
                found[f"{module}:{key}"] = "\n".join(source.text(part) for part in parts)
                waiting += [(module, used) for part in parts for used in _names(part) if source.has(used)]
        elif _source(f"{module}.{name}") is not None:
            waiting.append((f"{module}.{name}", ALL))
        elif not is_own:
            raise ParameterError(f"{module}:{name} is not defined there")
        else:  # made while the module ran
            waiting.append((module, ALL))
    return found


def _split(start: str) -> tuple[str, str]:
    module, colon, name = start.partition(":")
    if not colon:
        raise ParameterError(f"{start!r} must be written as module:name")
    return module, name


@dataclass
class _Source:
    """One module: what its top-level statements define, import and do besides."""

    lines: list[str]
    statements: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imports: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    loose: list[ast.stmt] = field(default_factory=list)
    stars: list[str] = field(default_factory=list)  # modules that all names are imported from

    def has(self, name: str) -> bool:
        return name in self.statements or name in self.imports

    def offset(self, statement: ast.stmt) -> int:
        """Return by how many lines decorators precede the statement."""
        decorators = statement.decorator_list if isinstance(statement, Definition) else []
        return statement.lineno - min([statement.lineno, *(one.lineno for one in decorators)])

    def text(self, statement: ast.stmt) -> str:
        """Return the source of a statement without docstrings, comment lines and blank lines."""
        first = statement.lineno - self.offset(statement)
        dropped: set[int] = set()
        kept: set[int] = set()
        for node in ast.walk(statement):
            if isinstance(node, Definition):
                dropped |= _docstring_lines(node)
            elif isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno:
                # A line that begins with # inside a text is no comment.
                kept |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        lines = []
        for number in range(first, (statement.end_lineno or statement.lineno) + 1):
            line = self.lines[number - 1].rstrip()
            is_comment = line.lstrip().startswith("#") and number not in kept
            if line and not is_comment and number not in dropped:
                lines.append(line)
        return "\n".join(lines)


def _docstring_lines(node: Definition) -> set[int]:
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is None:
        return set()
    return set(range(first.lineno, (first.end_lineno or first.lineno) + 1))


def _source(module: str) -> _Source | None:
    path = _path_of(module)
    if path is None:
        return None
    return read_source(path.read_text(encoding="utf-8"), module, is_door=path.name == "__init__.py")


@lru_cache(maxsize=4096)
def read_source(text: str, module: str, *, is_door: bool) -> _Source:
    """Return the top-level statements of a module by the names that they define.

    The ``__init__.py`` of a package (`is_door`) may import names when they are first asked for, and then says
    where they are in what only type checkers run.
    """
    found = _Source(text.splitlines())
    tree = ast.parse(text)
    package = module if is_door else module.rpartition(".")[0]
    for statement in _top_level(tree.body, is_door=is_door):
        if isinstance(statement, ast.Import | ast.ImportFrom):
            _add_imports(found, statement, package)
        elif isinstance(statement, Definition):
            found.statements.setdefault(statement.name, []).append(statement)
        elif names := list(_assigned(statement)):
            for name in names:
                found.statements.setdefault(name, []).append(statement)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            found.loose.append(statement)
    if module.partition(".")[0] != PACKAGE:
        for node in ast.walk(tree):  # inside functions, too
            if isinstance(node, ast.Import | ast.ImportFrom):
                _add_imports(found, node, package)
    return found


def _add_imports(found: _Source, statement: ast.Import | ast.ImportFrom, package: str) -> None:
    if isinstance(statement, ast.Import):
        for item in statement.names:
            # `import a.b` binds a; `import a.b as c` binds a.b.
            found.imports.setdefault(item.asname or item.name.partition(".")[0], (item.name, None))
        return
    target = statement.module or ""
    if statement.level:
        target = resolve_name("." * statement.level + target, package)
    for item in statement.names:
        if item.name == ALL:
            found.stars.append(target)
        else:
            found.imports.setdefault(item.asname or item.name, (target, item.name))


def _top_level(body: list[ast.stmt], *, is_door: bool) -> Iterator[ast.stmt]:
    """Yield statements, those inside a top-level `if` or `try` as well.

    What only types need is left out, but of doors.
    """
    for statement in body:
        if isinstance(statement, ast.If):
            if is_door or getattr(statement.test, "id", "") != "TYPE_CHECKING":
                yield from _top_level([*statement.body, *statement.orelse], is_door=is_door)
        elif isinstance(statement, ast.Try):
            handlers = [inner for handler in statement.handlers for inner in handler.body]
            inside = [*statement.body, *handlers, *statement.orelse, *statement.finalbody]
            yield from _top_level(inside, is_door=is_door)
        else:
            yield statement


def _assigned(statement: ast.stmt) -> Iterator[str]:
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, ast.AnnAssign | ast.AugAssign):
        targets = [statement.target]
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                yield node.id


def _names(statement: ast.stmt) -> set[str]:
    """Return the names that a statement mentions, quoted annotations aside."""
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
