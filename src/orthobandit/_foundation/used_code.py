"""A hash of the code that a function of this package can reach, so that a change elsewhere leaves it alone.

Sources are read, not run. From a starting name the walk goes on to every name that the statement behind it
mentions, through imports and the doors (``__init__.py``) of packages. Docstrings, comments and blank lines do
not count. What is looked up by name in a catalogue is not followed: whoever knows which entry is used names
it as a further start.
"""

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path

from orthobandit._foundation.fingerprint import PACKAGE, ROOT
from orthobandit.errors import ParameterError

__all__ = ["used_code", "used_names"]

ALL = "*"  # every name of a module
# Rendering, messages, files and the bookkeeping of cells decide no number.
IGNORED = tuple(
    f"{PACKAGE}.{room}"
    for room in (
        "showing",
        "errors",
        "study.cells",
        *(f"_foundation.{name}" for name in ("release", "files", "fingerprint", "used_code", "pool")),
    )
)
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


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
    """Return the source behind every name that the starts can reach; arguments as in :func:`used_code`."""
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
    place = ROOT.joinpath(*module.split(".")[1:])
    path = next((one for one in (place.with_suffix(".py"), place / "__init__.py") if one.is_file()), None)
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
