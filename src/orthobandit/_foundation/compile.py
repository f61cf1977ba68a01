"""The one decorator behind every compiled function: typed, cached on disk, IEEE-exact."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba import types
from numba.core.caching import FunctionCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError

P = ParamSpec("P")
R = TypeVar("R")

MAX_WAIT_SECONDS = 60.0  # for another process that compiles the same function
POLL_SECONDS = 0.05

PACKAGE = __name__.partition(".")[0]
# `_nrt` is spelled out, since a function first met while its caller is compiled would take over the caller's.
OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": True}
IN_PLACE: dict[str, Any] = {"_nrt": False}  # without numba's run time, which allocates and counts references


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba in nopython mode and cache the machine code on disk.

    Fast-math stays off: compensated sums and signed infinities must mean what they say. Dividing by zero
    gives an infinity as in numpy; a check before every division would keep loops from being vectorised.
    """
    return cast(Callable[P, R], _cached(function))


def compiled_in_place(function: Callable[P, R]) -> Callable[P, R]:
    """Compile, as :func:`compiled` does, a function that allocates nothing: it writes to what it is given.

    Its caller holds all arrays that it works on, so references to them are not counted. Counting takes two
    locked instructions wherever a row of an array is taken, longer than the arithmetic on a short row. A
    function that does allocate cannot be compiled like this; one that it calls may.
    """
    return cast(Callable[P, R], _cached(function, **IN_PLACE))


def _cached(function: Any, **options: Any) -> Any:
    made: Any = numba.njit(**{**OPTIONS, **options})(function)
    if not hasattr(made, "compile"):
        return made  # NUMBA_DISABLE_JIT=1, for debuggers and profilers: there is nothing to keep
    kept = Kept(function)
    compile_signature = made.compile

    def compile_once(signature: Any) -> Any:
        with global_compiler_lock:  # the threads of this process take turns
            try:
                return compile_signature(signature)
            finally:
                # Here and not where code is saved: code that cannot be compiled is never saved.
                kept.release()

    made._cache = kept
    made.compile = compile_once
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


def typed(function: Any, result: Any, arguments: Sequence[Any]) -> Any:
    """Return a compiled function with arguments and a result of these types, given by examples.

    Where the result is of another type that converts, such as a whole number, the function is compiled once
    more. None if it is not compiled, does not take such arguments or returns something else.
    """
    config: Any = numba.config
    if config.DISABLE_JIT:
        return function if callable(function) else None  # for debuggers and profilers nothing is compiled
    if not isinstance(function, Dispatcher):
        return None
    return _typed(function, _type(result), tuple(map(_type, arguments)))


@cache
def _typed(function: Any, result: Any, arguments: tuple[Any, ...]) -> Any:
    try:
        function.compile(arguments)
        if function.overloads[arguments].signature.return_type == result:
            return function
        return numba.njit(result(*arguments), **OPTIONS)(function.py_func)
    except NumbaError:
        return None


@cache
def _specialised(function: Any, signature: tuple[Any, ...]) -> Any:
    if not isinstance(function, Dispatcher):
        return function  # NUMBA_DISABLE_JIT=1, as above
    is_in_place = not function.targetoptions.get("_nrt", True)
    made = _cached(function.py_func, **(IN_PLACE if is_in_place else {}))
    made.compile(signature)
    made.disable_compile()
    return made


def _type(example: Any) -> Any:
    return numba.typeof(example)  # type: ignore[no-untyped-call]


class Kept(FunctionCache):
    """A cache of machine code that is valid as long as no source it was compiled from has changed.

    By itself numba looks at the file of the function alone, though the code of all that it calls is part of
    its own; and it fails where a kept signature names something that has moved since.

    Processes that start together would also all compile the same functions, and could overwrite each other's
    index. So the first that misses a function takes a lock, and the others wait for what it saves.
    """

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._function = function
        self._is_stamped = False
        self._lock = Lock(Path(self.cache_path) / f"{self._impl.filename_base}.lock")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached code for a signature if still valid; if not, take the lock to compile it."""
        self._stamp()
        found = self._load(sig, target_context)
        if found is None and self._lock.take():
            # Another process may have saved it while this one waited.
            found = self._load(sig, target_context)
        return found

    def release(self) -> None:
        """Let other processes compile the function."""
        self._lock.release()

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        except (ImportError, AttributeError):  # of what was kept, something has moved
            self.flush()  # type: ignore[no-untyped-call]
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Cache the code that was compiled for a signature."""
        self._stamp()
        super().save_overload(sig, data)  # type: ignore[no-untyped-call]

    def _stamp(self) -> None:
        if not self._is_stamped:
            paths = sorted(_files(self._function, set()))
            found = {path: path.stat() for path in paths if path.exists()}
            stamp = tuple((str(path), one.st_mtime_ns, one.st_size) for path, one in found.items())
            self._cache_file._source_stamp = stamp
            self._is_stamped = True


class Lock:
    """A lock between processes, held on a file; work goes on without it where it cannot be had.

    That is where the file system has no locks, or where another process holds this one for a minute. The
    operating system releases the locks of a process that ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def take(self) -> bool:
        """Wait for the lock; tell whether it was taken just now."""
        if self._descriptor is not None:
            return False
        try:
            fcntl: Any = import_module("fcntl")  # Windows has none
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o666)
        except (ImportError, OSError):
            return False
        give_up = time.monotonic() + MAX_WAIT_SECONDS
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < give_up:
                    time.sleep(POLL_SECONDS)
                    continue
            except OSError:  # a file system without locks
                pass
            else:
                self._descriptor = descriptor
                return True
            os.close(descriptor)
            return False

    def release(self) -> None:
        """Let others take the lock, if this process holds it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


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
        elif isinstance(thing, ModuleType) and thing.__name__.startswith(PACKAGE):
            yield from (one for one in vars(thing).values() if isinstance(one, Dispatcher))
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _called(inner, known)
