"""Read small tables: CSV with the standard library, Parquet with pyarrow when it is installed."""

import csv
from pathlib import Path

from orthobandit._files import pyarrow
from orthobandit.errors import FileFormatError

Table = dict[str, list[object]]

LABELS = {"label", "arm", "name"}  # columns that name the arms, wherever they stand
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
NAMED = {",": ", or call it .csv", "\t": ", or call it .tsv"}  # files that another name would make right


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
            reader = csv.reader(lines, delimiter=delimiter)
            header = next(reader, [])
            numbered = [(reader.line_num, row) for row in reader if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise FileFormatError(f"{path} cannot be read as text ({error}); save it as UTF-8") from None
    except OSError as error:
        raise FileFormatError(f"{path} cannot be read: {error.strerror}") from None
    header = [name.strip() for name in header]
    if not any(header):
        raise FileFormatError(f"{path} is empty; a header line and one line an arm are needed")
    _check_header(path, header, delimiter)
    _check_names(path, header)
    if not numbered:
        raise FileFormatError(f"{path} has a header line and nothing below it; one line an arm is needed")
    for line, row in numbered:
        if len(row) != len(header):
            raise FileFormatError(f"{path} line {line} has {len(row)} fields; the header has {len(header)}")
    return {name: [row[j] for _, row in numbered] for j, name in enumerate(header)}


def _check_header(path: Path, header: list[str], delimiter: str) -> None:
    """Refuse a header that shows another separator, or numbers where names should stand."""
    for other, name in SEPARATORS.items():
        if len(header) == 1 and other != delimiter and other in header[0]:
            raise FileFormatError(
                f"{path} is separated by {name}, but a {path.suffix.lower()} file by {SEPARATORS[delimiter]};"
                f" save it with {SEPARATORS[delimiter]}{NAMED.get(other, '')}"
            )
    numbers = [name for name in header if number_of(name) is not None]
    if numbers and len(numbers) >= len(header) - 1 and not LABELS & {name.lower() for name in header}:
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
        if name.strip().lower() in LABELS:
            return name
    for name, values in table.items():
        if values and all(number_of(value) is None for value in values):
            return name
    return None


def label_of(value: object) -> str:
    """Return an entry as a label; nothing is an empty one."""
    return "" if value is None else str(value)


def number_of(value: object) -> float | None:
    """Return an entry as a number, or None if it is none."""
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
