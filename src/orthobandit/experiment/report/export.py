"""Export: every proposal with its probabilities and rewards, as CSV or Parquet."""

import csv
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from orthobandit._foundation.extras import pyarrow
from orthobandit._foundation.files import whole_file
from orthobandit.errors import ParameterError
from orthobandit.experiment.ledger.entries import NUMBERED, Noted
from orthobandit.experiment.settings import Settings
from orthobandit.experiment.store.contract import Store

ROWS_PER_BLOCK = 10_000  # that are written at a time
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # beginnings of text that spreadsheets take for a formula
TEXT = (2, 3)  # places of columns that hold words of visitors and of whoever made the experiment: unit, arm


def write_export(
    path: str | Path, settings: Settings, store: Store, settled: int, *, raw: bool = False
) -> None:
    """Write all proposals as CSV or Parquet, whole or not at all, in bounded memory.

    Columns: proposal, at, unit, arm, plan, distribution, holdout, settled, silence, ``p:<label>`` of every
    arm, then of every metric its forecast and its value. Where nothing was told, the value is 0 once that is
    final (``settled`` and ``silence="zero"``), and empty otherwise.

    Parameters
    ----------
    path : str or Path
    settings : Settings
    store : Store
    settled : int
        Length of the settled prefix, whose values are final. Later proposals have early values only, which
        differ from those that are still to come.
    raw : bool
        Whether text in CSV is written as it is. Otherwise text that a spreadsheet would evaluate gets a ``'``
        in front; numbers are always written as they are.
    """
    if not isinstance(path, str | Path):
        raise ParameterError(f"path={path!r} must be the path of a file that ends in .csv or .parquet")
    kind = Path(path).suffix.lower()
    if kind not in (".csv", ".parquet"):
        raise ParameterError(f"path={str(path)!r} must end in .csv or .parquet")
    labels = _labels(settings, store)
    rows = _rows(settings, store, settled)
    names = columns(settings, labels)
    with whole_file(path) as unfinished:
        if kind == ".csv":
            with unfinished.open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(names if raw else [neutralise(name) for name in names])
                writer.writerows(rows if raw else map(_neutralise_row, rows))
            return
        _write_parquet(unfinished, names, rows)


def neutralise(text: str | None) -> str | None:
    """Return text that no spreadsheet takes for a formula.

    Examples
    --------
    >>> neutralise("=HYPERLINK(1)"), neutralise("-5 %"), neutralise("5 %")
    ("'=HYPERLINK(1)", "'-5 %", '5 %')
    """
    return f"'{text}" if text is not None and text.startswith(FORMULA) else text


def _neutralise_row(row: list[Any]) -> list[Any]:
    for place in TEXT:
        row[place] = neutralise(row[place])
    return row


def columns(settings: Settings, labels: tuple[str, ...]) -> list[str]:
    """Return the names of the columns."""
    out = ["proposal", "at", "unit", "arm", "plan", "distribution", "holdout", "settled", "silence"]
    out += [f"p:{label}" for label in labels]
    for name in settings.names:
        out += [f"forecast:{name}", name]
    return out


def _labels(settings: Settings, store: Store) -> tuple[str, ...]:
    """Return the labels of all arms that there have ever been."""
    # Settings hold the arms of the beginning; later ones are in the log.
    labels = settings.arms.labels
    for _, entry in store.entries():
        if isinstance(entry, Noted) and entry.kind == "extend":
            labels = tuple(entry.data["labels"])
    return labels


def _rows(settings: Settings, store: Store, settled: int) -> Iterator[list[Any]]:
    """Yield every proposal as a row in the order of :func:`columns`."""
    labels = _labels(settings, store)
    # By number: the probabilities from which proposals were drawn.
    distributions: dict[int, list[float]] = {}
    for _, entry in store.entries():
        if isinstance(entry, Noted) and entry.kind in NUMBERED:
            probabilities = list(entry.data["plan"]["probabilities"])
            # Arms that came later could not be drawn from earlier distributions.
            later_arms = len(labels) - len(probabilities)
            distributions[int(entry.data["number"])] = probabilities + [0.0] * later_arms
    for row, rewards, _ in store.table():
        is_settled = row.number <= settled
        # An empty cell would be left out by whoever takes a mean, and silence depends on the arm: who buys
        # less is silent more often. Before the window has passed, silence is no zero yet.
        untold = 0.0 if is_settled and settings.silence == "zero" else None
        out: list[Any] = [
            row.number,
            datetime.fromtimestamp(row.at, UTC).isoformat(),
            row.unit,
            labels[row.arm],
            row.plan,
            row.distribution,
            row.held,
            is_settled,
            settings.silence,
            *distributions[row.distribution],
        ]
        for place, name in enumerate(settings.names):
            out += [row.forecasts[place], rewards.get(name, untold)]
        yield out


def _write_parquet(path: Path, names: list[str], rows: Iterator[list[Any]]) -> None:
    """Write rows to a Parquet file, some thousands at a time."""
    arrow, parquet = pyarrow()
    whole = ("proposal", "plan", "distribution")
    text = ("at", "unit", "arm", "silence")
    kinds = {
        name: arrow.int64()
        if name in whole
        else arrow.string()
        if name in text
        else arrow.bool_()
        if name in ("holdout", "settled")
        else arrow.float64()
        for name in names
    }
    schema = arrow.schema(list(kinds.items()))
    with parquet.ParquetWriter(path, schema) as writer:
        while part := list(islice(rows, ROWS_PER_BLOCK)):
            table = {name: [row[place] for row in part] for place, name in enumerate(names)}
            writer.write_table(arrow.table(table, schema=schema))
