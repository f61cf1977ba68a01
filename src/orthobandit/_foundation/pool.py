"""The one pool of worker processes: it leaves none behind, however the parent ends."""

import ctypes
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeVar

from orthobandit.errors import StudyError

T = TypeVar("T")
R = TypeVar("R")

# One thread a worker: the workers themselves are what fills the cores.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
MAX_JOBS = 1024  # processes: more is a slip of the finger
PR_SET_PDEATHSIG = 1  # Linux: the kernel ends a process when its parent ends


def in_processes(
    function: Callable[[T], R], items: Sequence[T], jobs: int, *, remedy: str
) -> Generator[tuple[T, R], None, None]:
    """Yield each item with the result of `function`, as soon as it is computed.

    With one job, or one item, they are computed here and in order. Leaving early, by an error or by closing
    the generator, ends the workers; so does the end of this process, SIGKILL included.

    Parameters
    ----------
    function : callable
        Defined at the top of a module.
    items : sequence
        Arguments of `function`, one for each call.
    jobs : int
        Processes to use.
    remedy : str
        What to do if a worker dies; ends the message of the :class:`StudyError`.
    """
    if jobs == 1 or len(items) < 2:
        for item in items:
            yield item, function(item)
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with _environment(dict.fromkeys(THREAD_VARIABLES, "1")):
        pool = ProcessPoolExecutor(
            min(jobs, len(items)), mp_context=context, initializer=_begin, initargs=(os.getpid(),)
        )
        futures: dict[Future[R], T] = {pool.submit(function, item): item for item in items}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException as error:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        if isinstance(error, BrokenProcessPool):
            raise StudyError(f"a worker process ended before its work was done: {remedy}") from None
        raise
    finally:
        pool.shutdown()


def _begin(parent: int) -> None:
    """Prepare a worker: it ignores Ctrl-C, which the parent handles, and ends with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)  # it ended before the kernel was told
    # Elsewhere, and where another thread of the parent started this process, a pipe tells.
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    process = multiprocessing.parent_process()
    if process is not None:
        multiprocessing.connection.wait([process.sentinel])
        os._exit(1)


@contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Set environment variables for processes started meanwhile; what the user set stays."""
    new = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]
