"""Engines: experiments of a database server share one pool of connections, those of a file their turns."""

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from weakref import WeakValueDictionary

from sqlalchemy.engine import URL, Engine

from orthobandit.errors import ForkError, StorageError
from orthobandit.experiment.store.sql.dialects import connected, file_of

KEPT = 10  # connections of a server beyond which those who have written give theirs back
_LOCK = Lock()
_USED: dict[tuple[str, float, int], tuple[Engine, int]] = {}


class Turns:
    """Lets one thread of this process write to a file at a time.

    SQLite would let one write, and the others try again every now and then: whoever tries at the wrong moment
    waits for a tenth of a second, again and again.
    """

    def __init__(self) -> None:
        self._lock = Lock()

    @contextmanager
    def taken(self, where: str, patience: float) -> Iterator[None]:
        """Wait for so many seconds until nobody else writes; :class:`StorageError` if that is not enough."""
        if not self._lock.acquire(timeout=patience):
            raise StorageError(f"{where}: another thread keeps it; try again, or end the one that hangs")
        try:
            yield
        finally:
            self._lock.release()


def keep_for_ever(thing: object) -> None:
    """Keep an object from being destroyed, even when the interpreter ends."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


# Files whose parent process was in the middle of a write when it forked this one. SQLite counts the locks of
# a process by itself and holds the parent's for its own: whoever writes would wait for ever.
_FORKED_DURING_WRITE = set[Path]()


def note_fork_during_write(file: Path) -> None:
    """Remember, in the child, that a file was being written to when this process was forked."""
    _FORKED_DURING_WRITE.add(file)


def check_not_forked_during_write(file: Path | None) -> None:
    """Raise :class:`ForkError` if this process can never write to a file."""
    if file in _FORKED_DURING_WRITE:
        raise ForkError(
            f"{file}: this process was forked while a thread of its parent wrote to the file, and can never"
            " write to it; start it by the method 'spawn' or 'forkserver' of multiprocessing, or fork before"
            " threads begin"
        )


def _forget_locks() -> None:
    """Replace the lock in the child of a fork, where whoever held it is not."""
    global _LOCK
    _LOCK = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_locks)


_TURNS = WeakValueDictionary[tuple[Path | None, int], Turns]()


def turns_of(url: URL) -> Turns | None:
    """Return what all who write to a file in this process share; None if the database is no file."""
    file = file_of(url)
    if file is None:
        return None
    key = (file.resolve(), os.getpid())  # not that of a parent, whose threads are not here
    with _LOCK:
        return _TURNS.setdefault(key, Turns())


def engine_of(url: URL, patience: float) -> Engine:
    """Return the engine of a database, made if nobody has it; :func:`let_go` of it in the end.

    A file has an engine for everybody who opens it: another file may have its name by then.

    Parameters
    ----------
    url : URL
    patience : float
        Seconds that writers wait for each other.
    """
    if file_of(url) is not None:
        return connected(url, patience)
    key = (url.render_as_string(hide_password=False), patience, os.getpid())
    with _LOCK:
        engine, users = _USED.get(key) or (connected(url, patience), 0)
        _USED[key] = (engine, users + 1)
        return engine


def let_go(engine: Engine) -> None:
    """Close the connections of an engine, once nobody uses it any more."""
    with _LOCK:
        for key, (found, users) in list(_USED.items()):
            if found is engine and users > 1:
                _USED[key] = (found, users - 1)
                return
            if found is engine:
                del _USED[key]
    engine.dispose()


def is_crowded(engine: Engine) -> bool:
    """Tell whether more connections are out than one process should keep."""
    checked_out = getattr(engine.pool, "checkedout", None)
    return checked_out is not None and checked_out() > KEPT
