"""The one decorator behind every compiled function: typed, cached on disk, IEEE-exact."""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba import types
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

P = ParamSpec("P")
R = TypeVar("R")

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba in nopython mode and cache the machine code on disk.

    Fast-math stays off: compensated sums and signed infinities must mean what they say. Dividing by zero
    gives an infinity as in numpy; a check before every division would keep loops from being vectorised.
    """
    return cast(Callable[P, R], _cached(function))


def _cached(function: Any) -> Any:
    made: Any = numba.njit(**OPTIONS)(function)
    made._cache = Kept(function)
    return made


def compiled_for(
    function: Callable[P, R], arguments: Sequence[Any], callbacks: Sequence[tuple[Any, Sequence[Any]]]
) -> Callable[P, R]:
    """Return a compiled function that takes other compiled functions as its last arguments.

    Those are passed by address. Passed as they are, they would be part of the caller's machine code, which
    could then not be cached on disk: every process would compile it again.

    Parameters
    ----------
    function : compiled function
    arguments : sequence
        Examples of its arguments before the functions.
    callbacks : sequence of (result, arguments)
        Examples of what each function returns and takes.
    """
    passed = [types.FunctionType(_type(result)(*map(_type, given))) for result, given in callbacks]
    return cast(Callable[P, R], _specialised(function, (*map(_type, arguments), *passed)))


def takes(function: Any, result: Any, arguments: Sequence[Any]) -> bool:
    """Tell whether this is a compiled function of such arguments with such a result, given by examples."""
    if not isinstance(function, Dispatcher):
        return False
    try:
        function.compile(tuple(map(_type, arguments)))
    except NumbaError:
        return False
    found: Any = function.overloads[tuple(map(_type, arguments))]
    return bool(found.signature.return_type == _type(result))


@cache
def _specialised(function: Any, signature: tuple[Any, ...]) -> Any:
    made = _cached(function.py_func)
    made.compile(signature)
    made.disable_compile()
    return made


def _type(example: Any) -> Any:
    return numba.typeof(example)  # type: ignore[no-untyped-call]


class Kept(FunctionCache):
    """Machine code on disk that is good as long as nothing it was made of has changed.

    By itself numba looks at the file of the function alone, though the code of all that it calls is part of
    its own; and it fails where a kept signature names something that has moved since.
    """

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._function, self._is_stamped = function, False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is kept for a signature, if it is still good."""
        self._stamp()
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (ImportError, AttributeError):  # of what was kept, something has moved
            self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature."""
        self._stamp()
        super().save_overload(sig, data)  # type: ignore[no-untyped-call]

    def _stamp(self) -> None:
        if not self._is_stamped:
            paths = sorted(_files(self._function, set()))
            found = {path: path.stat() for path in paths if path.exists()}
            stamp = tuple((str(path), one.st_mtime_ns, one.st_size) for path, one in found.items())
            self._cache_file._source_stamp, self._is_stamped = stamp, True


def _files(function: FunctionType, seen: set[FunctionType]) -> set[Path]:
    """Return the files of a function and of all compiled functions that it calls, those again, and so on."""
    seen.add(function)
    out = {Path(function.__code__.co_filename)}
    for called in _called(function.__code__, function.__globals__):
        if called.py_func not in seen:
            out |= _files(called.py_func, seen)
    return out


def _called(code: CodeType, known: dict[str, Any]) -> Iterator[Any]:
    """Return the compiled functions that code names, by themselves or as part of a module."""
    for name in code.co_names:
        thing = known.get(name)
        if isinstance(thing, Dispatcher):
            yield thing
        elif isinstance(thing, ModuleType) and thing.__name__.startswith(__package__):
            yield from (one for one in vars(thing).values() if isinstance(one, Dispatcher))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _called(inner, known)
