"""Read small tables: CSV with the standard library, Parquet with pyarrow when it is installed."""

import csv
from pathlib import Path

from orthobandit._files import pyarrow
from orthobandit.errors import FileFormatError

Table = dict[str, list[object]]


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
    if not header:
        raise FileFormatError(f"{path} is empty; a header line and one line an arm are needed")
    _check_names(path, header)
    for line, row in numbered:
        if len(row) != len(header):
            raise FileFormatError(f"{path} line {line} has {len(row)} fields; the header has {len(header)}")
    return {name: [row[j] for _, row in numbered] for j, name in enumerate(header)}


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
