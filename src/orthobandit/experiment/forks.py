"""Objects that repair themselves in the child of ``os.fork``, where only one thread survives.

A lock that another thread held at the fork stays locked in the child for ever, and what that thread was
changing stays half changed. So before a fork, threads get a moment to finish, and in the child every
registered object replaces its locks and drops unfinished work.
"""

import os
import time
from threading import RLock, get_ident
from weakref import WeakSet

PATIENCE_SECONDS = 10.0  # that a fork waits for threads at work, in all


class Forkable:
    """An object with threads, locks or connections that must act before and after a fork.

    Attributes
    ----------
    fork_order : int
        Objects whose threads wait for locks of others come first, or a fork and a thread wait for each other.
    """

    fork_order = 0

    def before_fork(self, seconds: float) -> None:
        """Wait at most so many seconds until no thread is at work, and keep others from starting."""

    def after_fork_in_parent(self) -> None:
        """Let threads go on; called by the thread that called :meth:`before_fork`."""

    def after_fork_in_child(self) -> None:
        """Replace locks and connections; this is the only thread. Called even if the wait was too short."""


class LockedForkable(Forkable):
    """An object whose work is done under one lock, which a fork takes first.

    Derived classes call ``super().after_fork_in_child()`` before they drop what else did not survive.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._forking: int | None = None  # the thread that forks

    def before_fork(self, seconds: float) -> None:
        """Wait until the lock is free, and let no other thread take it."""
        if self._lock.acquire(timeout=seconds):
            self._forking = get_ident()

    def after_fork_in_parent(self) -> None:
        """Let other threads take the lock."""
        if self._forking == get_ident():
            self._forking = None
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """Replace the lock, which a thread that is not in this process may hold."""
        self._lock = RLock()
        self._forking = None


_FORKABLE = WeakSet[Forkable]()


def register_forkable(thing: Forkable) -> None:
    """Call an object's methods at every fork for as long as it lives."""
    _FORKABLE.add(thing)


def _before() -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    for thing in sorted(_FORKABLE, key=lambda thing: thing.fork_order):
        thing.before_fork(max(0.0, until - time.monotonic()))


def _after_in_parent() -> None:
    for thing in list(_FORKABLE):
        thing.after_fork_in_parent()


def _after_in_child() -> None:
    for thing in list(_FORKABLE):
        thing.after_fork_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
