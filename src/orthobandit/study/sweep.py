"""Run cells: what is cached is read, the rest computed once, here, in local processes or on Ray."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager

from orthobandit._checks import check_choice, check_whole
from orthobandit.errors import StudyError
from orthobandit.study._ray import on_ray
from orthobandit.study.cache import Cache
from orthobandit.study.cells import Cell, Tables, compute

Finished = Generator[tuple[Cell, Tables], None, None]
Backend = Callable[[Sequence[Cell], int], Finished]

# done and total, both in units of estimated cost.
Progress = Callable[[float, float], None]

# One thread a worker: the workers themselves are what fills the cores.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def run_cells(
    cells: Sequence[Cell],
    cache: Cache,
    *,
    jobs: int = 1,
    backend: str = "processes",
    progress: Progress | None = None,
) -> list[Tables]:
    """Return the tables of all cells, in their order.

    Cells of the same content are computed once, costly ones first; each is stored when it is finished, so an
    interrupted call goes on from there. Neither `jobs` nor `backend` changes a number.

    Parameters
    ----------
    cells : sequence of Cell
    cache : Cache
    jobs : int
        Processes to use. With more than one, scripts need the usual ``if __name__ == "__main__":``.
    backend : {"processes", "ray"}
        Where to compute. Ray retries cells whose worker died.
    progress : callable (done, total), optional
        Called as cells finish, in units of their estimated cost; cached cells are not counted.
    """
    check_choice("backend", backend, BACKENDS)
    check_whole("jobs", jobs)
    by_key = {cell.key: cell for cell in cells}
    found = {key: tables for key, cell in by_key.items() if (tables := cache.load(cell)) is not None}
    missing = sorted((c for key, c in by_key.items() if key not in found), key=lambda c: -c.cost)
    done, total = 0.0, sum(cell.cost for cell in missing)
    if progress is not None and missing:
        progress(done, total)
    # Closed on the way out, so that an error or Ctrl-C here ends the workers too.
    with closing(BACKENDS[backend](missing, jobs)) as finished:
        for cell, tables in finished:
            cache.store(cell, tables)
            found[cell.key] = tables
            done += cell.cost
            if progress is not None:
                progress(done, total)
    return [found[cell.key] for cell in cells]


def in_processes(cells: Sequence[Cell], jobs: int) -> Finished:
    """Yield cells as they finish; with one job they are computed in this process."""
    if jobs == 1 or len(cells) < 2:
        for cell in cells:
            yield cell, compute(cell)
        return
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    with _environment(dict.fromkeys(THREADS, "1")):
        pool = ProcessPoolExecutor(min(jobs, len(cells)), mp_context=context, initializer=_ignore_interrupt)
        futures: dict[Future[Tables], Cell] = {pool.submit(compute, cell): cell for cell in cells}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise StudyError(
            "a worker process died, perhaps for want of memory; what is finished is kept:"
            " run the same command again to go on, with fewer --jobs if it happens again"
        ) from None
    except BaseException:
        for worker in set(multiprocessing.active_children()) - others:
            worker.terminate()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _ignore_interrupt() -> None:
    # Ctrl-C reaches every process of the terminal; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes started meanwhile; what the user set stays."""
    new = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]


BACKENDS: Mapping[str, Backend] = {"processes": in_processes, "ray": on_ray}
