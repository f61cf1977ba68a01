"""Tables of a study: named columns, joined from cells, written to and read from Parquet."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit._files import pyarrow, whole_file
from orthobandit.study.cells import Cell, Tables

__all__ = [
    "Columns",
    "compared",
    "distinct",
    "grouped",
    "join",
    "pyarrow",
    "read_parquet",
    "samples_of",
    "share_wrong",
    "text_table",
    "where",
    "write_parquet",
]

Columns = dict[str, NDArray[Any]]


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


def grouped(columns: Columns, by: str, value: str) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the ascending values (G,) of column `by` and its rows' `value` as (G, n), n alike for all.

    Rows keep their order within a group.
    """
    order = np.argsort(columns[by], kind="stable")
    places = np.unique(columns[by])
    return places, np.asarray(columns[value][order], dtype=np.float64).reshape(places.size, -1)


def samples_of(runs: Columns) -> NDArray[np.float64]:
    """Return the rounds (n,) played until a declaration, or until the run was given up at its limit."""
    return np.where(runs["stop_time"] < 0, runs["limit"], runs["stop_time"]).astype(np.float64)


def share_wrong(runs: Columns) -> float:
    """Return the share of runs that declared a wrong arm."""
    return float(np.mean((runs["declared"] >= 0) & ~runs["is_correct"].astype(bool)))


def compared(runs: Columns) -> list[dict[str, Any]]:
    """Return one row for each policy, instance and shift: mean regret, declarations, stop time."""
    names = ("policy", "instance", "shift")
    rows = []
    for labels in distinct(runs, *names):
        chosen = dict(zip(names, labels, strict=True))
        found = where(runs, **chosen)
        stops = found["stop_time"][found["stop_time"] >= 0]
        numbers = {
            "runs": len(found["regret"]),
            "regret": float(found["regret"].mean()),
            "declared": float(np.mean(found["declared"] >= 0)),
            "correct": float(np.mean(found["is_correct"])),
            "mean stop": float(stops.mean()) if stops.size else None,
        }
        rows.append(chosen | numbers)
    return rows


def text_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return rows of the same keys as aligned text."""
    lines = [list(rows[0]), *([_text(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def _text(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def write_parquet(path: Path, columns: Columns) -> None:
    """Write columns to a Parquet file, whole or not at all."""
    arrow, parquet = pyarrow()
    table = arrow.table({name: values.tolist() for name, values in columns.items()})
    with whole_file(path) as unfinished:
        parquet.write_table(table, unfinished)


def read_parquet(path: Path) -> Columns:
    """Read what :func:`write_parquet` wrote."""
    _, parquet = pyarrow()
    table = parquet.read_table(path)
    return {name: np.array(table.column(name).to_pylist()) for name in table.column_names}
