"""Keys that the engine grouped by: their values as numbers and labels, and the rows that hold them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit._foundation.types import Whole
from orthobandit.logs.question import Question
from orthobandit.logs.reading.engine import Opened, ibis


@dataclass(frozen=True)
class Coded:
    """A column of keys as numbers: `texts[codes]`, in the order of the values; −1 for NULL."""

    codes: Whole
    texts: tuple[str, ...]


def coded(column: Any) -> Coded:
    """Return a pyarrow column as numbers of its distinct values."""
    encoded = column.combine_chunks().dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    order = sorted(range(len(values)), key=lambda place: (str(type(values[place])), values[place]))
    rank = np.empty(len(values) + 1, dtype=np.int64)
    rank[np.asarray(order, dtype=np.int64)] = np.arange(len(values))
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
