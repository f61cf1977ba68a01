"""Arms in CSV, TSV and Parquet files: separators and headers, labels and features, likely slips."""

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from orthobandit._foundation.extras import pyarrow
from orthobandit._foundation.types import Array
from orthobandit.errors import FeatureError, FileFormatError, InputWarning

Table = dict[str, list[object]]

LABEL_NAMES = {"label", "arm", "name"}  # columns that name the arms, wherever they stand
SEPARATORS = (",", "\t", ";", "|")
# Names of columns that number the arms rather than describe them.
NUMBERING_NAMES = {"id", "armid", "index", "idx", "nr", "no", "number", "key", "sku"}
MIN_COUNTED_ROWS = 8  # with this many arms or more, a column 1, 2, 3, … is likely to number them


def read_table(path: Path) -> Table:
    """Return the columns of a CSV, TSV or Parquet file, in the file's order."""
    if not path.is_file():
        raise FileFormatError(f"{path} is not a file")
    suffix = path.suffix.lower()
    if suffix in {".csv", ".tsv"}:
        return _read_text(path, "," if suffix == ".csv" else "\t")
    if suffix in {".parquet", ".pq"}:
        return _read_parquet(path)
    raise FileFormatError(f"{path} ends in {suffix!r}; .csv, .tsv and .parquet can be read")


def _read_text(path: Path, delimiter: str) -> Table:
    try:
        with path.open(newline="", encoding="utf-8-sig") as lines:
            delimiter = _delimiter_of(lines.readline(), delimiter)
            lines.seek(0)
            reader = csv.reader(lines, delimiter=delimiter)
            header = next(reader, [])
            numbered = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{path} cannot be read as text ({error}); save it as UTF-8") from None
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    header = [name.strip() for name in header]
    if not any(header):
        raise FileFormatError(f"{path} is empty; a header line and one line per arm are needed")
    _check_header(path, header)
    _check_names(path, header)
    if not numbered:
        raise FileFormatError(f"{path} has a header line and nothing below it; one line per arm is needed")
    for line, row in numbered:
        if len(row) != len(header):
            raise FileFormatError(f"{path} line {line} has {len(row)} fields; the header has {len(header)}")
    return {name: [row[j] for _, row in numbered] for j, name in enumerate(header)}


def _delimiter_of(header: str, usual: str) -> str:
    """Return what separates columns: what the file's name says, unless the header has only another sign."""
    others = [one for one in SEPARATORS if one != usual and one in header]
    return others[0] if others and usual not in header else usual


def _check_header(path: Path, header: list[str]) -> None:
    """Refuse a header with numbers where names should stand."""
    numbers = [name for name in header if number_of(name) is not None]
    if numbers and len(numbers) >= len(header) - 1 and not LABEL_NAMES & {name.lower() for name in header}:
        raise FileFormatError(
            f"{path} begins with the line {', '.join(header)}, which looks like an arm; a header line with"
            " the columns' names is needed first"
        )


def _check_names(path: Path, names: list[str]) -> None:
    if len(set(names)) < len(names):
        raise FileFormatError(f"{path} has a column name twice: {', '.join(names)}; rename one")


def _read_parquet(path: Path) -> Table:
    arrow, parquet = pyarrow()
    try:
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except (arrow.ArrowException, OSError) as error:
        raise FileFormatError(f"{path} cannot be read as Parquet: {error}") from None
    _check_names(path, table.column_names)
    return {name: table.column(name).to_pylist() for name in table.column_names}


def label_column(table: Table) -> str | None:
    """Return the column that names the arms: by its own name, else the first without a number, else none."""
    for name in table:
        if name.strip().lower() in LABEL_NAMES:
            return name
    for name, values in table.items():
        if values and all(number_of(value) is None for value in values):
            return name
    return None


def label_of(value: object) -> str:
    """Return an entry as a label; None becomes an empty one."""
    return "" if value is None else str(value)


def number_of(value: object) -> float | None:
    """Return an entry as a number, or None if it is none."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def row_name(row: int, labels: Sequence[str] | None) -> str:
    """Return the name of a row in messages: its number, and its label if it has one."""
    if labels is None or row >= len(labels):
        return f"row {row}"
    return f'row {row} ("{labels[row]}")'


def arms_in(
    where: object,
    table: Table,
    label: str | None = None,
    features: Sequence[str] | None = None,
    index: Sequence[object] | None = None,
) -> tuple[Array, list[str] | None]:
    """Return features (K, d) and labels of the arms in a table; warn of likely slips.

    Parameters
    ----------
    where : object
        What messages call the table.
    table : dict of str to list
    label : str, optional
        The column of labels; by default the `index` if there is one, else as
        :func:`~orthobandit._foundation.arm_files.label_column` finds it.
    features : sequence of str, optional
        The feature columns, in this order; by default every column but the labels.
    index : sequence, optional
        Labels that stand beside the columns.
    """
    names = list(table)
    chosen = label if label is not None else None if index is not None else label_column(table)
    wanted = list(features) if features is not None else [name for name in names if name != chosen]
    for name in [*wanted, *([] if chosen is None else [chosen])]:
        if name not in table:
            raise FileFormatError(f"{where} has no column {name!r}; its columns are {', '.join(names)}")
    if features is None and not all(name.strip() for name in wanted):
        raise FileFormatError(f"{where} has a column without a name; name it or list the feature columns")
    if not wanted:
        raise FeatureError(f"{where} has no feature column beside the labels ({chosen!r}); add one")
    rows = list(zip(*(table[name] for name in wanted), strict=True))
    named = table[chosen] if chosen is not None else index
    labels = None if named is None else [label_of(value) for value in named]
    array = _parsed(rows, wanted, labels)
    if features is None:
        _warn_of_numbers(where, wanted, array)
    return array, labels


def _warn_of_numbers(where: object, names: Sequence[str], features: Array) -> None:
    for place, name in enumerate(names):
        word = name.strip().lower()
        column = features[:, place]
        is_named = word in NUMBERING_NAMES or word.endswith(("_id", " id", "_nr", "_no"))
        counts = np.arange(len(column))
        is_counted = (
            place == 0
            and len(names) > 1
            and len(column) >= MIN_COUNTED_ROWS
            and np.array_equal(column - column[0], counts)
            and column[0] in (0, 1)
        )
        if is_named or is_counted:
            warnings.warn(
                f"{where}: the column {name!r} is taken as a feature; if it only numbers the arms, make it"
                " the label, or list the feature columns",
                InputWarning,
                stacklevel=4,
            )


def warn_of_twins(where: object, features: Array, labels: Sequence[str]) -> None:
    """Warn if two arms have the same features."""
    first: dict[bytes, int] = {}
    for row, values in enumerate(features):
        one = first.setdefault(values.tobytes(), row)
        if one != row:
            warnings.warn(
                f"{where}: the arms {labels[one]!r} and {labels[row]!r} have the same features, so that they"
                " count as equally good",
                InputWarning,
                stacklevel=3,
            )
            return


def _parsed(rows: list[tuple[object, ...]], names: list[str], labels: list[str] | None) -> Array:
    array = np.empty((len(rows), len(names)))
    for i, row in enumerate(rows):
        for j, value in enumerate(row):
            number = number_of(value)
            if number is None:
                raise FeatureError(
                    f"features {row_name(i, labels)} has {value!r} in column {names[j]!r}; every feature"
                    " must be a finite number"
                )
            array[i, j] = number
    return array
