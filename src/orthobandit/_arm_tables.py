"""Arms out of tables: which columns are labels and which are features, and what is perhaps not meant."""

import warnings
from collections.abc import Sequence

import numpy as np

from orthobandit._tables import Table, label_column, label_of, number_of
from orthobandit._types import Array
from orthobandit.errors import FeatureError, FileFormatError, InputWarning

# Names of columns that number the arms rather than describe them.
NUMBERS = {"id", "armid", "index", "idx", "nr", "no", "number", "key", "sku"}
ROWS = 8  # arms from which on 1, 2, 3, … beside other features hardly describes them


def row_name(row: int, labels: Sequence[str] | None) -> str:
    """Return what messages call the arm in a row."""
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
    """Return features (K, d) and labels of the arms in a table, and warn of what is perhaps not meant.

    Parameters
    ----------
    where : object
        What messages call the table.
    table : dict of str to list
    label : str, optional
        The column of labels; by default the `index` if there is one, else as
        :func:`~orthobandit._tables.label_column` finds it.
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
        word, column = name.strip().lower(), features[:, place]
        is_named = word in NUMBERS or word.endswith(("_id", " id", "_nr", "_no"))
        counts = np.arange(len(column))
        is_counted = (
            place == 0
            and len(names) > 1
            and len(column) >= ROWS
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
