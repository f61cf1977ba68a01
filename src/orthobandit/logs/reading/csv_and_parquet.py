"""Files of a log: which ones a path names, and how CSV, TSV and Parquet are read, separators included."""

import csv
import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from orthobandit._foundation.arm_files import SEPARATORS
from orthobandit.errors import Argument, FileFormatError

PARQUET = (".parquet", ".pq")
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".txt")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # the byte order marks
MOST_LINE_CHARACTERS = 1_000_000  # of the first lines of a file
SEPARATOR_WORDS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}


def find_files(path: str) -> Sequence[str]:
    """Return the files that a path, a folder or a pattern names, all of one kind, sorted."""
    if not path.strip():
        raise FileFormatError(
            Argument("source", path), " is empty; name a file, a folder, a pattern or a URL"
        )
    place = Path(path)
    if place.is_dir():
        found = sorted(str(one) for one in place.rglob("*") if one.is_file() and not one.name.startswith("."))
        files = [one for one in found if one.lower().endswith((*PARQUET, *TEXT))]
        remedy = f"{path} has no .parquet, .csv or .tsv file in it"
    elif any(sign in path for sign in "*?[") and not place.exists():
        files = sorted(str(one) for one in _matching(place) if one.is_file())
        remedy = f"no file is called {path}"
    else:
        files = [path] if place.is_file() else []
        remedy = f"{path} is not a file, a folder, a pattern such as logs/*.csv or a URL such as postgres://…"
    if not files:
        raise FileFormatError(remedy)
    kinds = {
        "parquet" if one.lower().endswith(PARQUET) else "text" if one.lower().endswith(TEXT) else one
        for one in files
    }
    if not kinds <= {"parquet", "text"}:
        other = min(kinds - {"parquet", "text"})
        raise FileFormatError(f"{other} does not end in .csv, .tsv, .csv.gz or .parquet; these can be read")
    if len(kinds) > 1:
        raise FileFormatError(
            f"{path} has both Parquet and text files; name one kind, as in {path}/*.parquet"
        )
    return files


def _matching(pattern: Path) -> Iterator[Path]:
    """Yield the files that a pattern names, which may begin anywhere."""
    return Path(pattern.anchor or ".").glob(str(pattern.relative_to(pattern.anchor)))


def check_files(files: Sequence[str]) -> bool:
    """Raise :class:`FileFormatError` for files that no engine can read; return whether they are text."""
    is_text = not files[0].lower().endswith(PARQUET)
    # An engine would name columns that are not there, and not say that the file is empty.
    for file in files:
        if Path(file).stat().st_size == 0:
            raise FileFormatError(f"{file} is empty; a log has a header and one row per draw")
        if is_text and _begins_with(file, UTF_16):
            raise FileFormatError(
                f"{file} is text in UTF-16, as some spreadsheets save it; save it as UTF-8 (CSV UTF-8)"
            )
    return is_text


def _begins_with(path: str, marks: tuple[bytes, ...]) -> bool:
    """Tell whether a file begins with one of the marks."""
    with Path(path).open("rb") as file:
        return file.read(max(map(len, marks))).startswith(marks)


def read_files(backend: Any, files: Sequence[str], *, is_text: bool) -> Any:
    """Return files as one Ibis table of an Ibis DuckDB backend."""
    # DuckDB detects separator, quotes and header of text by itself. Columns are matched by name, because
    # files of a folder may have them in another order.
    return (backend.read_csv if is_text else backend.read_parquet)(files, union_by_name=True)


def read_headers(files: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the fields of the first line of each text file, before an engine has made names of them."""
    return tuple(next(iter(_first_lines(file)), ()) for file in files)


def read_first_row(file: str) -> dict[str, str]:
    """Return the fields of the first row of a text file as they are written, by column."""
    lines = _first_lines(file)
    return dict(zip(*lines, strict=False)) if len(lines) == 2 else {}


def _first_lines(file: str) -> list[tuple[str, ...]]:
    """Return the fields of the first two lines of a text file; fewer if it cannot be read."""
    opened = gzip.open if file.lower().endswith(".gz") else open
    try:
        with opened(file, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
            texts = [line for _ in range(2) if (line := lines.readline(MOST_LINE_CHARACTERS))]
    except (OSError, EOFError):
        return []  # the engine says what is wrong with it
    # The separator is the sign that makes most fields of the header.
    found = [list(csv.reader(texts, delimiter=sign)) for sign in SEPARATORS]
    widest = max(found, key=lambda rows: len(rows[0]) if rows else 0)
    return [tuple(field.strip() for field in row) for row in widest]


def check_header(name: str, column: str, headers: Sequence[tuple[str, ...]]) -> None:
    """Raise :class:`FileFormatError` if the first lines of text files name a column more than once.

    An engine would call the second one by another name, and take the first without a word.
    """
    often = max((header.count(column) for header in headers), default=0)
    if often > 1:
        raise FileFormatError(
            f"{name} has {often} columns called {column!r}; rename all but the one that is meant"
        )


def check_separator(name: str, columns: Sequence[str]) -> None:
    """Raise :class:`FileFormatError` if a file was read as one column that has separators in its name."""
    if len(columns) != 1:
        return
    # DuckDB finds the separator of a file by itself; if it finds none, say what it seems to be. The comma
    # comes last, because a name may have one in it.
    for sign in reversed(SEPARATORS):
        if sign in columns[0]:
            words = SEPARATOR_WORDS.get(sign, repr(sign))
            raise FileFormatError(
                f"{name} was read as the single column {columns[0]!r}: it seems to be separated by {words},"
                " but not in all its lines; mend these or save it with commas"
            )
