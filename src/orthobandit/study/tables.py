"""Tables of a study: columns joined from cells, Parquet files, and comparisons as text and as LaTeX."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.extras import pyarrow
from orthobandit._foundation.frames import write_columns
from orthobandit._foundation.types import Array
from orthobandit.showing.text import text_table
from orthobandit.study.cells import Cell, Tables

__all__ = [
    "Columns",
    "compared",
    "compared_table",
    "distinct",
    "grouped",
    "join",
    "latex_table",
    "latex_text",
    "pyarrow",
    "read_parquet",
    "samples_of",
    "share_wrong",
    "where",
    "write_parquet",
]

Columns = dict[str, NDArray[Any]]
HEAD = ("policy", "instance", "shift", "runs", "regret ± s.e.", "declared", "wrong", "stop ± s.e.")
PRINTED = ("policy", "instance", "shift", "runs", "regret", "declared", "wrong", "stop")  # heads in LaTeX
# What LaTeX would take for commands, and how to write it as text.
SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: "\\" + letter for letter in "&%$#_{}"},
}


def join(cells: Sequence[Cell], results: Sequence[Tables]) -> dict[str, Columns]:
    """Return each table with the rows of all cells below each other, the cells' labels as first columns."""
    parts: dict[str, list[Columns]] = {}
    for cell, tables in zip(cells, results, strict=True):
        for name, rows in tables.items():
            columns = {column: np.array(values) for column, values in rows.items()}
            size = len(next(iter(columns.values())))
            labels = {label: np.full(size, value) for label, value in cell.labels.items()}
            parts.setdefault(name, []).append(labels | columns)
    return {
        name: {column: np.concatenate([part[column] for part in found]) for column in found[0]}
        for name, found in parts.items()
    }


def where(columns: Columns, **labels: object) -> Columns:
    """Return the rows in which every given column has the given value."""
    size = len(next(iter(columns.values())))
    mask = np.ones(size, dtype=bool)
    for name, value in labels.items():
        mask &= columns[name] == value
    return {name: values[mask] for name, values in columns.items()}


def distinct(columns: Columns, *names: str) -> list[tuple[Any, ...]]:
    """Return the combinations of values of some columns, in the order of first appearance."""
    rows = zip(*(columns[name].tolist() for name in names), strict=True)
    return list(dict.fromkeys(rows))


def grouped(columns: Columns, by: str, value: str) -> tuple[NDArray[Any], Array]:
    """Return the ascending values (G,) of column `by` and its rows' `value` as (G, n), n alike for all.

    Rows keep their order within a group.
    """
    # Stable, so that a column is the same run in every group: fits leave out one run at a time.
    order = np.argsort(columns[by], kind="stable")
    places = np.unique(columns[by])
    return places, np.asarray(columns[value][order], dtype=np.float64).reshape(places.size, -1)


def samples_of(runs: Columns) -> Array:
    """Return the rounds (n,) played until a declaration, or until the run was given up at its limit."""
    return np.where(runs["stop_time"] < 0, runs["limit"], runs["stop_time"]).astype(np.float64)


def share_wrong(runs: Columns) -> float:
    """Return the share of runs that declared a wrong arm."""
    return float(np.mean((runs["declared"] >= 0) & ~runs["is_correct"].astype(bool)))


def compared(runs: Columns, horizon: int) -> list[dict[str, Any]]:
    """Return one row for each policy, instance and shift, as plain JSON values; None where nothing was seen.

    `regret` and `stop` are means over all runs, each with its standard error; a run that declares nothing
    counts with the horizon as its stop, so that giving up does not look fast. `declared` and `wrong` are
    shares of all runs, `wrong` None when nothing was declared.
    """
    names = ("policy", "instance", "shift")
    rows = []
    for labels in distinct(runs, *names):
        chosen = dict(zip(names, labels, strict=True))
        found = where(runs, **chosen)
        stops = samples_of(found | {"limit": np.full(len(found["regret"]), horizon)})
        has_declared = found["declared"] >= 0
        numbers = {
            "runs": len(found["regret"]),
            "regret": float(found["regret"].mean()),
            "regret_error": _standard_error(found["regret"]),
            "declared": float(np.mean(has_declared)),
            "wrong": share_wrong(found) if has_declared.any() else None,
            "stop": float(stops.mean()),
            "stop_error": _standard_error(stops),
        }
        rows.append(chosen | numbers)
    return rows


def compared_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the rows of :func:`compared` as a table to read; ``≥`` where runs ended at the horizon."""
    return text_table(HEAD, [cells_of(row) for row in rows], words=3)


def cells_of(row: dict[str, Any]) -> tuple[str, ...]:
    """Return a row of :func:`compared` as text cells."""
    stop = _with_error(row["stop"], row["stop_error"], ",.0f")
    return (
        *(str(row[name]) for name in ("policy", "instance", "shift", "runs")),
        _with_error(row["regret"], row["regret_error"], ",.1f"),
        f"{row['declared']:.1%}".replace("%", " %"),
        "–" if row["wrong"] is None else f"{row['wrong']:.1%}".replace("%", " %"),
        "none declared" if not row["declared"] else ("≥ " if row["declared"] < 1 else "") + stop,
    )


def _with_error(value: float, error: float | None, form: str) -> str:
    return format(value, form) + ("" if error is None else f" ± {format(error, form)}")


def _standard_error(values: NDArray[Any]) -> float | None:
    return float(values.std(ddof=1) / np.sqrt(values.size)) if values.size > 1 else None


def write_parquet(path: Path, columns: Columns) -> None:
    """Write columns to a Parquet file, whole or not at all."""
    write_columns(path, columns)


def read_parquet(path: Path) -> Columns:
    """Read a file that :func:`write_parquet` wrote."""
    _, parquet = pyarrow()
    table = parquet.read_table(path)
    return {name: np.array(table.column(name).to_pylist()) for name in table.column_names}


def latex_text(text: str) -> str:
    r"""Return text with what LaTeX takes for commands written out.

    Examples
    --------
    >>> print(latex_text("50 % of a_b"))
    50 \% of a\_b
    """
    return re.sub(r"[\\~^&%$#_{}]", lambda found: SPECIAL[found[0]], text)


def latex_table(rows: Sequence[dict[str, Any]], *, caption: str = "", label: str = "") -> str:
    r"""Return the rows of :func:`~orthobandit.study.tables.compared`, the least regret of each block in bold.

    A block is an instance and a shift; policies whose mean is within two standard errors of the difference
    to the least are in bold as well, since the runs do not tell them apart.
    """
    lines = [r"\begin{tabular}{lllrrrrr}", r"\toprule", " & ".join(PRINTED) + r" \\", r"\midrule"]
    lines += [" & ".join(_cells(row, is_best=_is_best(row, rows))) + r" \\" for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if caption:
        named = [rf"\label{{{label}}}"] if label else []
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(caption)}}}",
            *named,
            *lines,
            r"\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _is_best(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> bool:
    block = [one for one in rows if (one["instance"], one["shift"]) == (row["instance"], row["shift"])]
    least = min(block, key=lambda one: float(one["regret"]))
    spread = math.hypot(row["regret_error"] or 0.0, least["regret_error"] or 0.0)
    return bool(row["regret"] <= least["regret"] + 2 * spread)


def _cells(row: dict[str, Any], *, is_best: bool) -> list[str]:
    regret = _number(row["regret"], row["regret_error"], 1)
    stop = "--" if not row["declared"] else _number(row["stop"], row["stop_error"], 0)
    return [
        *(latex_text(str(row[name])) for name in ("policy", "instance", "shift")),
        str(row["runs"]),
        rf"\textbf{{{regret}}}" if is_best else regret,
        _share(row["declared"]),
        "--" if row["wrong"] is None else _share(row["wrong"]),
        (r"$\ge$ " if 0 < row["declared"] < 1 else "") + stop,
    ]


def _number(value: float, error: float | None, places: int) -> str:
    shown = (f"{number:,.{places}f}".replace(",", r"\,") for number in (value, error) if number is not None)
    return r" $\pm$ ".join(shown)


def _share(value: float) -> str:
    return rf"{100 * value:.1f}\,\%"
