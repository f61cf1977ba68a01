"""Run a sweep from Python, and what it found: tables, frames, Parquet files, a plot, LaTeX."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_choice
from orthobandit._foundation.frames import frame_of, write_columns
from orthobandit._foundation.types import Progress
from orthobandit.showing.figure import COLOURS, axes_for, remove_clutter
from orthobandit.showing.html import html_table
from orthobandit.study.cells import Cache
from orthobandit.study.spec import Sweep
from orthobandit.study.sweep import run_cells
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


@dataclass(frozen=True, eq=False)
class SweepResult:
    """What a sweep found; prints as the table of the comparison.

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
        """A row a policy, instance and shift; see :func:`~orthobandit.study.tables.compared`."""
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
            What the frame is of; by default the first that is installed.
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
    """Run a study; return what it found.

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
    cells = study.cells()
    if out is None:
        with TemporaryDirectory() as folder:
            found = run_cells(cells, Cache(folder), jobs=jobs, backend=backend, progress=progress)
    else:
        found = run_cells(cells, Cache(Path(out) / "cells"), jobs=jobs, backend=backend, progress=progress)
    return SweepResult(study, join(cells, found))
