"""Run cells: read cached ones, compute the others once, in this process, in local processes or on Ray."""

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from orthobandit._foundation.checks import check_choice, check_whole
from orthobandit._foundation.files import optional_package
from orthobandit._foundation.pool import MOST_JOBS, in_processes
from orthobandit._foundation.types import Progress
from orthobandit.errors import NotStoredWarning, OutputError, StudyError
from orthobandit.study.cells import Cache, Cell, Tables, describe, timed

__all__ = ["BACKENDS", "Progress", "run_cells"]

RETRIES = 3  # how often Ray starts a cell again after its worker died
Timed = tuple[Tables, float]
Finished = Generator[tuple[Cell, Timed], None, None]
Backend = Callable[[Sequence[Cell], int], Finished]
Kind = tuple[str, ...]
LEAST = 1e-3  # seconds of a cell: nothing takes no time


def run_cells(
    cells: Sequence[Cell],
    cache: Cache,
    *,
    jobs: int = 1,
    backend: str = "processes",
    progress: Progress | None = None,
) -> list[Tables]:
    """Return the tables of all cells, in their order.

    Cells of the same content are computed once: one of every kind, then costly ones first. Each is stored
    when it is finished, so an interrupted call goes on from there. Neither `jobs` nor `backend` changes
    a number.

    Parameters
    ----------
    cells : sequence of Cell
    cache : Cache
    jobs : int
        Processes to use. With more than one, scripts need the usual ``if __name__ == "__main__":``.
    backend : {"processes", "ray"}
        Where to compute. Ray retries cells whose worker died.
    progress : callable (done, total), optional
        Called first with what is cached, then as cells finish, in seconds of work. The total is told anew
        each time, as it is learned what cells of each kind take.
    """
    check_choice("backend", backend, BACKENDS)
    check_whole("jobs", jobs, most=MOST_JOBS)
    by_key = {cell.key: cell for cell in cells}
    costs = Costs(by_key.values())
    found = {}
    for key, cell in by_key.items():
        entry = cache.entry(cell)
        if entry is not None:
            found[key] = entry[0]
            costs.finish(cell, entry[1])
    missing = in_order(cell for key, cell in by_key.items() if key not in found)
    if progress is not None and missing:
        progress(*costs.progress())
    # Closed on the way out, so that an error or Ctrl-C here ends the workers too.
    has_room = True
    with closing(BACKENDS[backend](missing, jobs)) as finished:
        for cell, (tables, seconds) in finished:
            has_room = has_room and _is_kept(cache, cell, tables, seconds)
            found[cell.key] = tables
            costs.finish(cell, seconds)
            if progress is not None:
                progress(*costs.progress())
    return [found[cell.key] for cell in cells]


def _is_kept(cache: Cache, cell: Cell, tables: Tables, seconds: float) -> bool:
    """Cache a finished cell; return False, with a warning, if the disk is full."""
    try:
        cache.store(cell, tables, seconds)
    except OutputError as error:
        warnings.warn(f"{error}; the study goes on without keeping cells", NotStoredWarning, stacklevel=3)
        return False
    return True


def _in_processes(cells: Sequence[Cell], jobs: int) -> Finished:
    remedy = (
        "it was killed, perhaps for want of memory; what is finished is kept: run the same command again to"
        " go on, with fewer --jobs if it happens again"
    )
    return in_processes(timed, cells, jobs, remedy=remedy)


def on_ray(cells: Sequence[Cell], jobs: int) -> Finished:
    """Yield cells as they finish on the cluster at ``RAY_ADDRESS``, or on a local Ray with `jobs` workers.

    Only the caller stores results, so a cell that was started twice is still counted once.
    """
    ray = optional_package("ray", "ray", "backend='ray'")
    if not cells:
        return
    is_mine = not ray.is_initialized()
    if is_mine:
        _connect(ray, jobs)
    remote = ray.remote(max_retries=RETRIES, num_cpus=1)(timed)
    pending = {remote.remote(cell): cell for cell in cells}
    try:
        while pending:
            ready, _ = ray.wait(list(pending), num_returns=1)
            for reference in ready:
                cell = pending.pop(reference)
                yield cell, _result(ray, reference, cell)
    finally:
        for reference in pending:
            ray.cancel(reference, force=True)
        if is_mine:
            ray.shutdown()


def _connect(ray: Any, jobs: int) -> None:
    if os.environ.get("RAY_ADDRESS"):
        ray.init(log_to_driver=False, logging_level="ERROR")
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        address="local", num_cpus=jobs, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )


def _result(ray: Any, reference: Any, cell: Cell) -> Timed:
    try:
        found: Timed = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise StudyError(
            f"cell {describe(cell)} was lost {RETRIES + 1} times on Ray ({type(error).__name__});"
            " what is finished is kept: run the same command again to go on"
        ) from None
    return found


BACKENDS: Mapping[str, Backend] = {"processes": _in_processes, "ray": on_ray}


class Costs:
    """Seconds that cells took and will take.

    A cell says beforehand what it may cost, roughly; how far off that is depends on its kind: the task, the
    policy, the instance, the shift. So the factor between seconds and costs is learned kind by kind, and
    for kinds of which none is finished from all together.

    Parameters
    ----------
    cells : iterable of Cell
        All that there are.

    Examples
    --------
    >>> cells = [Cell("math:hypot", {"n": n}, cost=2.0) for n in range(4)]
    >>> costs = Costs(cells)
    >>> costs.progress()
    (0.0, 8.0)
    >>> costs.finish(cells[0], 6.0)
    >>> costs.progress()
    (6.0, 24.0)
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._left: dict[Kind, float] = {}
        self._seconds: dict[Kind, float] = {}  # of finished cells whose seconds are known
        self._costs: dict[Kind, float] = {}  # of the same
        self._untimed: dict[Kind, float] = {}
        for cell in cells:
            kind = kind_of(cell)
            self._left[kind] = self._left.get(kind, 0.0) + cell.cost

    def finish(self, cell: Cell, seconds: float | None) -> None:
        """Count a cell as finished; None if nobody knows how long it took."""
        kind = kind_of(cell)
        self._left[kind] -= cell.cost
        if seconds is None:
            self._untimed[kind] = self._untimed.get(kind, 0.0) + cell.cost
            return
        self._seconds[kind] = self._seconds.get(kind, 0.0) + max(seconds, LEAST)
        self._costs[kind] = self._costs.get(kind, 0.0) + cell.cost

    def progress(self) -> tuple[float, float]:
        """Return the seconds of work that are done, and of all work as far as can be told."""
        known = sum(self._costs.values())
        usual = sum(self._seconds.values()) / known if known else 1.0
        factor = {kind: self._seconds[kind] / self._costs[kind] for kind in self._costs if self._costs[kind]}
        done = sum(self._seconds.values(), start=0.0)
        done += sum(cost * factor.get(kind, usual) for kind, cost in self._untimed.items())
        left = sum(max(cost, 0.0) * factor.get(kind, usual) for kind, cost in self._left.items())
        return done, done + left


def kind_of(cell: Cell) -> Kind:
    """Return what cells that cost alike have in common: the task, and settings that are names or kinds.

    Examples
    --------
    >>> kind_of(Cell("math:hypot", {"policy": {"kind": "sbe"}, "design": "anchor", "seed": 3}))
    ('math:hypot', 'design=anchor', 'policy=sbe')
    """
    named = {}
    for key, value in cell.settings.items():
        name = value.get("kind") if isinstance(value, dict) else value
        if isinstance(name, str):
            named[key] = name
    return (cell.task, *(f"{key}={name}" for key, name in sorted(named.items())))


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Return the order of work: one cell of every kind, to learn what it takes, then the rest.

    Costly ones come first, so that the last to finish are short.
    """
    costly = sorted(cells, key=lambda cell: -cell.cost)
    first: dict[Kind, Cell] = {}
    for cell in costly:
        first.setdefault(kind_of(cell), cell)
    pilots = {id(cell) for cell in first.values()}
    return [*first.values(), *(cell for cell in costly if id(cell) not in pilots)]
