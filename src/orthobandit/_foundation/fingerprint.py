"""Fingerprints of finished work: two are equal only if both settings and code are equal.

:func:`fingerprint` hashes a value and the code behind it. The package counts by the source of the modules
that decide the numbers, found by following their imports. A user's own classes and functions count by the
code that is loaded, with the names it uses: helpers, base classes and constants of their modules. Packages
installed beside this one count by version.

:func:`used_code` hashes only the code that a function of this package can reach, so that a change elsewhere
leaves the hash alone. Sources are read, not run. From a starting name the walk goes on to every name that the
statement behind it mentions, through imports and the ``__init__.py`` of packages. Docstrings, comments and
blank lines do not count. Entries that are looked up by name in a catalogue are not followed: the caller names
those that are used as further starts.
"""

import ast
import builtins
import sys
import sysconfig
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache, cached_property, partial
from hashlib import blake2b
from importlib import metadata
from pathlib import Path
from pickle import PicklingError
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Protocol, runtime_checkable

import numpy as np

from orthobandit.errors import ParameterError

PACKAGE = __name__.partition(".")[0]
ROOT = Path(__file__).parent.parent
ENGINES = ("numpy", "scipy", "numba")  # their versions may move the last digit
# What Python adds to a class by itself; the methods that a dataclass gets hold all that its fields decide.
INCIDENTAL = {
    *("__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__parameters__"),
    *("__firstlineno__", "__static_attributes__", "__annotate_func__", "__annotations_cache__"),
    *("__dataclass_fields__", "__dataclass_params__", "__match_args__", "__protocol_attrs__", "_abc_impl"),
}
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


def fingerprint(value: Any, *modules: str) -> str:
    """Return a hash of a value, of the code behind it, and of modules of the package with their imports.

    Parameters
    ----------
    value
        Plain values, arrays, functions, classes and objects, nested in any way.
    *modules : str
        Modules of this package that decide what is made of it.
    """
    content = (_engines(), package_code(*modules), _Walk().plain(value))
    return blake2b(repr(content).encode(), digest_size=16).hexdigest()


@cache
def package_code(*modules: str) -> str:
    """Return a hash of the sources of modules of this package and of all that they import from it."""
    found: dict[str, bytes] = {}
    waiting = [name for name in modules if name.partition(".")[0] == PACKAGE]
    while waiting:
        name = waiting.pop()
        path = _path_of(name)
        if path is None or name in found:
            continue
        found[name] = path.read_bytes()
        waiting += _imported(found[name])
    digest = blake2b(digest_size=16)
    for name in sorted(found):
        digest.update(name.encode() + b"\0" + found[name] + b"\0")
    return digest.hexdigest()


def _path_of(name: str) -> Path | None:
    place = ROOT.joinpath(*name.split(".")[1:])
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def _imported(source: bytes) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names if item.name.partition(".")[0] == PACKAGE)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == PACKAGE:
            yield str(node.module)
            yield from (f"{node.module}.{item.name}" for item in node.names)


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
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    installed = [Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")]
    if not file or not any(Path(file).resolve().is_relative_to(folder) for folder in installed):
        return None
    try:
        return f"{module} {metadata.version(top)}"
    except metadata.PackageNotFoundError:
        return f"{module} {getattr(sys.modules[top], '__version__', '')}"


class _Walk:
    """One walk over a value: what was met already is named, not walked again."""

    def __init__(self) -> None:
        self._met: dict[int, tuple[int, Any]] = {}  # number in the walk; kept, so that no id is used twice
        self._depth = 0  # of code: what stands in code need not be a value that can be copied

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
        """Return plain values that identify a function or class; None for anything else."""
        # Compiled by numba, or remembered by functools.
        inner = getattr(value, "py_func", None) or getattr(value, "__wrapped__", None)
        if isinstance(inner, FunctionType) and not isinstance(value, FunctionType):
            return self.plain(inner)
        if isinstance(value, property):
            return ("property", *map(self.plain, (value.fget, value.fset)))
        if isinstance(value, cached_property):
            return ("property", self.plain(value.func))
        if isinstance(value, classmethod | staticmethod | MethodType):
            owner = getattr(value, "__self__", None)
            return (type(value).__name__, self.plain(value.__func__), self.plain(owner))
        if isinstance(value, partial):
            return ("partial", *map(self.plain, (value.func, value.args, value.keywords)))
        if isinstance(value, ModuleType):
            return ("module", value.__name__, _outside(value.__name__))
        if isinstance(value, type | FunctionType | BuiltinFunctionType):
            module = value.__module__ or ""
            outside = _outside(module)
            if outside is not None or isinstance(value, BuiltinFunctionType):
                return (outside or module, value.__qualname__)
            own = self._class(value) if isinstance(value, type) else self._function(value)
            return (module, value.__qualname__, own)
        return None

    def _class(self, value: type) -> Any:
        own = {name: item for name, item in vars(value).items() if name not in INCIDENTAL}
        return (self.plain(value.__bases__), self._within_code(own))

    def _function(self, function: FunctionType) -> Any:
        held = [cell.cell_contents for cell in function.__closure__ or () if cell != type(cell)()]
        given = (function.__defaults__, function.__kwdefaults__, held)
        return (self._bytecode(function.__code__, function.__globals__), self._within_code(given))

    def _within_code(self, value: Any) -> Any:
        self._depth += 1
        try:
            return self.plain(value)
        finally:
            self._depth -= 1

    def _bytecode(self, code: CodeType, names: dict[str, Any]) -> Any:
        constants = tuple(
            self._bytecode(item, names) if isinstance(item, CodeType) else self._within_code(item)
            for item in code.co_consts
        )
        used = tuple(self._used(name, code, names) for name in code.co_names)
        return (code.co_code, constants, code.co_names, code.co_varnames, used)

    def _used(self, name: str, code: CodeType, names: dict[str, Any]) -> Any:
        """Return the value of a name in the code, if it is the user's own."""
        if name not in names:
            # An attribute or a builtin; or a module that is imported inside the function.
            found = None if hasattr(builtins, name) else sys.modules.get(name)
        else:
            found = names[name]
        if isinstance(found, ModuleType) and _outside(found.__name__) is None:
            taken = [part for part in code.co_names if part in vars(found)]
            return (found.__name__, tuple(self._within_code(vars(found)[part]) for part in taken))
        return self._within_code(found)

    def _object(self, value: Any) -> Any:
        if is_dataclass(value):
            kept = {field.name: getattr(value, field.name) for field in fields(value)}
            return (self.plain(type(value)), self.plain(kept))
        # Anything else is what it would be copied from.
        try:
            made = value.__reduce_ex__(4)
        except (TypeError, AttributeError, PicklingError):
            if self._depth:
                return ("opaque", self.plain(type(value)))
            raise ParameterError(
                f"{value!r} cannot be recognised when a run is resumed; use values that can be pickled"
            ) from None
        return self.plain(made if isinstance(made, str) else list(made[:3]))


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
    waiting = [_split(start) for start in starts]
    while waiting:
        module, name = waiting.pop()
        if (module, name) in met or f"{module}:{name}" in without or module.startswith(IGNORED):
            continue
        met.add((module, name))
        source = _source(module)
        if source is None:
            raise ParameterError(f"{module!r} is not a module of {PACKAGE}")
        if name == ALL:
            waiting += [(module, own) for own in (*source.statements, *source.imports)]
        elif name in source.imports:
            target, imported = source.imports[name]
            if target.partition(".")[0] == PACKAGE:
                waiting.append((target, imported or ALL))
        elif name in source.statements:
            # What a module does besides defining names may change any of them.
            statements = {name: source.statements[name], "": source.loose}
            for key, parts in statements.items():
                found[f"{module}:{key}"] = "\n".join(source.text(part) for part in parts)
                waiting += [(module, used) for part in parts for used in _names(part) if source.has(used)]
        elif _source(f"{module}.{name}") is not None:
            waiting.append((f"{module}.{name}", ALL))
        else:
            raise ParameterError(f"{module}:{name} is not defined there")
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


@cache
def _source(module: str) -> _Source | None:
    path = _path_of(module)
    return None if path is None else read_source(path)


def read_source(path: Path) -> _Source:
    """Return the top-level statements of a file by the names that they define."""
    text = path.read_text(encoding="utf-8")
    found = _Source(text.splitlines())
    for statement in _top_level(ast.parse(text).body):
        if isinstance(statement, ast.Import):
            for item in statement.names:
                # `import a.b` binds a; `import a.b as c` binds a.b.
                bound = item.asname or item.name.partition(".")[0]
                found.imports[bound] = (item.name, None)
        elif isinstance(statement, ast.ImportFrom):
            for item in statement.names:
                found.imports[item.asname or item.name] = (str(statement.module), item.name)
        elif isinstance(statement, Definition):
            found.statements.setdefault(statement.name, []).append(statement)
        elif names := list(_assigned(statement)):
            for name in names:
                found.statements.setdefault(name, []).append(statement)
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            found.loose.append(statement)
    return found


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements, those inside a top-level `if` or `try` as well, but not what only types need."""
    for statement in body:
        if isinstance(statement, ast.If):
            if getattr(statement.test, "id", "") != "TYPE_CHECKING":
                yield from _top_level([*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            handlers = [inner for handler in statement.handlers for inner in handler.body]
            yield from _top_level([*statement.body, *handlers, *statement.orelse, *statement.finalbody])
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
