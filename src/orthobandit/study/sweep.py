"""Run a sweep, in processes or on Ray, and hold its result.

:func:`run_cells` reads cached cells and computes the others once, in this process, in local processes or on
Ray. :func:`run_sweep` does so for a whole study and returns a :class:`SweepResult`: tables, frames, Parquet
files, a plot, LaTeX.
"""

import os
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_choice, check_whole
from orthobandit._foundation.extras import optional_package
from orthobandit._foundation.frames import frame_of, write_columns
from orthobandit._foundation.pool import MAX_JOBS, in_processes
from orthobandit._foundation.types import Progress
from orthobandit.errors import Argument, NotStoredWarning, OutputError, ParameterError, StudyError
from orthobandit.showing.charts import COLOURS, axes_for, remove_clutter
from orthobandit.showing.html import html_table
from orthobandit.study.cells import Cache, Cell, Tables, describe, timed
from orthobandit.study.spec import Sweep
from orthobandit.study.tables import (
    HEAD,
    Columns,
    cells_of,
    compared,
    compared_table,
    distinct,
    join,
    latex_table,
    where,
)

__all__ = ["BACKENDS", "Progress", "run_cells"]

# How often Ray starts a cell again after its worker died: a machine may be taken away, but a cell that kills
# its worker by itself, say for want of memory, should stop the study soon.
RAY_RETRIES = 3
Timed = tuple[Tables, float]
Finished = Generator[tuple[Cell, Timed], None, None]
Backend = Callable[[Sequence[Cell], int], Finished]
Kind = tuple[str, ...]
# Seconds of a cell, at least: a cell timed at 0 would make all cells of its kind look free.
MIN_CELL_SECONDS = 1e-3


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
        Called first with what is cached, then as cells finish, in seconds of work. The total is updated each
        time, as the cost of each kind of cell becomes known.
    """
    check_choice("backend", backend, BACKENDS)
    check_whole("jobs", jobs, most=MAX_JOBS)
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
    # One processor a cell: the compiled loops inside use one thread each.
    remote = ray.remote(max_retries=RAY_RETRIES, num_cpus=1)(timed)
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
        # A Ray that the caller started may have other work to do.
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
        # The error that the cell itself raised, without Ray's traceback around it.
        raise error.cause from None
    except ray.exceptions.RayError as error:
        raise StudyError(
            f"cell {describe(cell)} was lost {RAY_RETRIES + 1} times on Ray ({type(error).__name__});"
            " what is finished is kept: run the same command again to go on"
        ) from None
    return found


BACKENDS: Mapping[str, Backend] = {"processes": _in_processes, "ray": on_ray}


class Costs:
    """Seconds that cells took and will take.

    A cell says beforehand what it may cost, roughly; how far off that is depends on its kind: the task, the
    policy, the instance, the shift. So the factor between seconds and costs is learned for each kind, and
    from all cells together for kinds of which none has finished.

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
        self._seconds[kind] = self._seconds.get(kind, 0.0) + max(seconds, MIN_CELL_SECONDS)
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
    """Return the cost group of a cell: its task, and its settings that are names or kinds.

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


@dataclass(frozen=True, eq=False)
class SweepResult:
    """The result of a sweep; prints as a table that compares the policies.

    Attributes
    ----------
    study : Sweep
    tables : dict of str to columns
        `runs` with a row a run and `curves` with a row a run and round, each beside its policy, instance,
        shift and seed.
    """

    study: Sweep
    tables: dict[str, Columns]

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """A row per policy, instance and shift; see :func:`~orthobandit.study.tables.compared`."""
        return compared(self.tables["runs"], self.study.horizon)

    def __str__(self) -> str:
        return compared_table(self.rows)

    def __repr__(self) -> str:
        runs = len(self.tables["runs"]["regret"])
        return f"SweepResult({len(self.rows)} comparisons, {runs:,} runs of {self.study.horizon:,} rounds)"

    def _repr_html_(self) -> str:
        return html_table(HEAD, [cells_of(row) for row in self.rows], words=3)

    def to_frame(self, table: str = "compared", *, library: str | None = None) -> Any:
        """Return a table as a frame.

        Parameters
        ----------
        table : {"compared", "runs", "curves"}
            The comparison, or one of the `tables`.
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame; by default the first that is installed.
        """
        names = {name: [row[name] for row in self.rows] for name in self.rows[0]}
        tables: dict[str, Any] = {"compared": names, **self.tables}
        return frame_of(tables[check_choice("table", table, tables)], library)

    def to_parquet(self, folder: str | Path) -> list[Path]:
        """Write ``runs.parquet`` and ``curves.parquet`` to a folder; return their paths."""
        return list(self.written(folder))

    def written(self, folder: str | Path) -> Iterator[Path]:
        """Write the tables and yield their paths as they are written."""
        for name, columns in self.tables.items():
            path = Path(folder) / f"{name}.parquet"
            write_columns(path, columns)
            yield path

    def to_latex(self, caption: str = "", label: str = "") -> str:
        r"""Return the comparison as a LaTeX table for booktabs: best policies in bold, errors behind ±.

        Parameters
        ----------
        caption, label : str
            With a caption it becomes a ``table`` with a ``\\caption``, and a ``\\label`` if given.
        """
        return latex_table(self.rows, caption=caption, label=label)

    def plot(self, axes: Any = None, *, instance: str | None = None, shift: str | None = None) -> Any:
        """Draw the mean regret of every policy on one instance under one shift; return the axes.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        instance, shift : str, optional
            Which; the first by default.
        """
        made = self.study
        instance = check_choice("instance", instance or next(iter(made.instances)), made.instances)
        shift = check_choice("shift", shift or next(iter(made.shifts)), made.shifts)
        chosen = where(self.tables["curves"], instance=instance, shift=shift)
        drawn = remove_clutter(axes_for(axes))
        for place, (policy,) in enumerate(distinct(chosen, "policy")):
            curve = where(chosen, policy=policy)
            rounds = np.unique(curve["round"])
            means = [float(curve["regret"][curve["round"] == mark].mean()) for mark in rounds]
            drawn.plot(
                [0, *rounds], [0.0, *means], label=policy, color=COLOURS[place % len(COLOURS)], linewidth=1.8
            )
        drawn.set_xlabel("rounds")
        drawn.set_ylabel("mean regret (units of reward)")
        drawn.set_xlim(left=0)
        drawn.set_ylim(bottom=0)
        drawn.set_title(f"{instance}, shift {shift}", loc="left", fontsize="medium", parse_math=False)
        drawn.legend(frameon=False, fontsize="small")
        return drawn


def run_sweep(
    study: Sweep,
    out: str | Path | None = None,
    *,
    jobs: int = 1,
    backend: str = "processes",
    progress: Progress | None = None,
) -> SweepResult:
    """Run a study and return its result.

    Parameters
    ----------
    study : Sweep
        Made in Python, or by :func:`~orthobandit.study.toml.read_spec` from a file.
    out : path, optional
        A folder in which finished cells are kept, so that the same call goes on after an interruption and a
        larger study computes only what is new; without it nothing is kept.
    jobs, backend, progress
        As in :func:`~orthobandit.study.sweep.run_cells`.

    Examples
    --------
    >>> from orthobandit.study import Part, Sweep, run_sweep
    >>> study = Sweep(
    ...     policies={"uniform": Part("uniform")},
    ...     instances={"two": Part("table", {"features": [[0.0], [1.0]], "theta": [1.0]})},
    ...     shifts={"sine": Part("sine")},
    ...     horizon=200,
    ...     replications=4,
    ... )
    >>> run_sweep(study)
    SweepResult(1 comparisons, 4 runs of 200 rounds)
    """
    if not isinstance(study, Sweep):
        raise ParameterError(
            Argument("study", study),
            " is not a Sweep; orthobandit.study.read_spec(path) makes one from a TOML file",
        )
    cells = study.cells()
    if out is None:
        with TemporaryDirectory() as folder:
            found = run_cells(cells, Cache(folder), jobs=jobs, backend=backend, progress=progress)
    else:
        found = run_cells(cells, Cache(Path(out) / "cells"), jobs=jobs, backend=backend, progress=progress)
    return SweepResult(study, join(cells, found))
