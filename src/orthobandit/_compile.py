"""The one decorator behind every compiled function: typed, cached on disk, IEEE-exact."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba import types
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

P = ParamSpec("P")
R = TypeVar("R")

OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba in nopython mode and cache the machine code on disk.

    Fast-math stays off: compensated sums and signed infinities must mean what they say. Dividing by zero
    gives an infinity as in numpy; a check before every division would keep loops from being vectorised.
    """
    return cast(Callable[P, R], numba.njit(**OPTIONS)(function))


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
    return numba.njit(signature, **OPTIONS)(function.py_func)


def _type(example: Any) -> Any:
    return numba.typeof(example)  # type: ignore[no-untyped-call]
