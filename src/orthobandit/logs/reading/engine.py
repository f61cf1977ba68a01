"""A log in its engine: ask it through Ibis, read keys back, and name rows in messages."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np

from orthobandit._foundation.types import Whole
from orthobandit.errors import OrthobanditError, SourceError
from orthobandit.logs.question import Question

SAMPLE = 10_000  # rows from which kinds of values and offsets are taken


@contextmanager
def engine(name: str, remedy: str = "") -> Iterator[None]:
    """Turn errors of an engine into :class:`SourceError`, and hide its deprecation warnings.

    Every engine has exceptions of its own, which cannot be listed: all of them mean that the log could not
    be read.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            yield
        except OrthobanditError:
            raise  # ours already name the argument and the remedy
        except Exception as error:
            raise SourceError(f"{name} cannot be read: {_words(error)}{remedy}") from None


def _words(error: Exception) -> str:
    """Return the first lines of what an engine says, without positions in SQL that nobody wrote."""
    text = str(error).strip() or type(error).__name__
    if "Compilation rule for" in text:
        return f"its engine lacks what is needed ({text}); copy the table to a Parquet file and analyse that"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("LINE ", "^", "JVM stacktrace", "at org."))]
    shown = "; ".join(kept[:3])
    return shown if len(shown) <= 400 else shown[:400] + "…"


def ibis() -> Any:
    """Return the package Ibis."""
    from orthobandit._foundation.files import optional_package

    return optional_package("ibis", "logs", "Analysing a log")


@dataclass
class Opened:
    """A log that can be asked; close it, or use it as a context.

    Attributes
    ----------
    table : ibis.Table
    name : str
        For messages.
    is_ordered : bool
        Whether rows have numbers that a user can look up: those of files and frames.
    is_text : bool
        Whether every question parses text anew, so that one question less is half the time.
    fields : dict
        Fields of a Question that the source itself knows, e.g. which columns an export has.
    notes : tuple of str
        What a reader should know of how it was opened.
    """

    table: Any
    name: str
    is_ordered: bool = False
    is_text: bool = False
    fields: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    closers: list[Callable[[], object]] = field(default_factory=list, repr=False)

    def fetch(self, expression: Any) -> Any:
        """Return the rows of an Ibis table expression as a pyarrow table."""
        with engine(self.name):
            return expression.to_pyarrow()

    @cached_property
    def schema(self) -> dict[str, Any]:
        """Names of the columns and the Ibis types they have."""
        with engine(self.name):
            return dict(self.table.schema().items())

    @cached_property
    def sample(self) -> Any:
        """The first rows of all columns of plain types, as a pyarrow table."""
        plain = [
            name
            for name, kind in self.schema.items()
            if kind.is_numeric() or kind.is_string() or kind.is_boolean() or kind.is_temporal()
        ]
        return self.fetch(self.table.select(plain).limit(SAMPLE))

    def close(self) -> None:
        """Leave the engine, and remove what was written for it."""
        # Last in, first out: a connection goes before the folder that it writes to.
        while self.closers:
            self.closers.pop()()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Close the log if the block fails; use it between opening a source and returning it."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Opened":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class Coded:
    """A column of keys as numbers: `texts[codes]`, in the order of the values; −1 for NULL."""

    codes: Whole
    texts: tuple[str, ...]


def encode_keys(column: Any) -> Coded:
    """Return a pyarrow column as numbers of its distinct values."""
    encoded = column.combine_chunks().dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    # By type first: numbers and text cannot be compared, and a column may hold both.
    order = sorted(range(len(values)), key=lambda place: (str(type(values[place])), values[place]))
    rank = np.empty(len(values) + 1, dtype=np.int64)
    rank[np.asarray(order, dtype=np.int64)] = np.arange(len(values))
    # Codes of NULL are −1, and index the last place.
    rank[-1] = -1
    return Coded(rank[codes], tuple(text_of(values[place]) for place in order))


def text_of(value: Any) -> str:
    """Return a value of a key as a label: 1.0 is "1", true is "true"."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def first_row(opened: Opened, condition: Any) -> str:
    """Return ", first in row 7" for a condition on the table, where rows have numbers."""
    if not opened.is_ordered:
        return ""
    table = opened.table.mutate(orthobandit_bad=condition, orthobandit_row=ibis().row_number())
    bad = table.filter(table.orthobandit_bad)
    row = opened.fetch(bad.aggregate(row=bad.orthobandit_row.min()))["row"][0].as_py()
    return "" if row is None else f", first in row {row + 1}"


def how_many(question: Question, count: int) -> str:
    """Return "1,200 rows", or units where these are counted."""
    return f"{count:,} {'rows' if question.unit is None else 'units'}"
