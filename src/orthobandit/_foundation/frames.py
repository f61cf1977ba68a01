"""Read and make data frames of pandas, polars or pyarrow, whichever is installed."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.checks import check_choice
from orthobandit._foundation.extras import optional_package, pyarrow
from orthobandit._foundation.files import whole_file

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow as arrow

    Frame = pandas.DataFrame | polars.DataFrame | arrow.Table

Library = Literal["pandas", "polars", "pyarrow"]
LIBRARIES: tuple[Library, ...] = get_args(Library)
Columns = Mapping[str, Sequence[Any] | NDArray[Any]]


def frame_of(columns: Columns, library: str | None = None) -> Any:
    """Return columns of equal length as a frame.

    Parameters
    ----------
    columns : dict of str to sequence
        None stands for a value that is not there.
    library : {"pandas", "polars", "pyarrow"}, optional
        Which kind of frame; by default the first of them that is installed.

    Examples
    --------
    >>> frame_of({"arm": ["a", "b"], "gap": [0.5, None]}, "pyarrow").column_names
    ['arm', 'gap']
    """
    if library is None:
        library = next((name for name in LIBRARIES if find_spec(name) is not None), LIBRARIES[0])
    check_choice("library", library, LIBRARIES)
    extra = "parquet" if library == "pyarrow" else "frames"
    package = optional_package(library, extra, f"a frame of {library}")
    if library == "pyarrow":
        return package.table(_listed(columns))
    return package.DataFrame(_listed(columns))


def write_columns(path: str | Path, columns: Columns) -> None:
    """Write columns to a Parquet file, whole or not at all."""
    arrow, parquet = pyarrow()
    table = arrow.table(_listed(columns))
    with whole_file(path) as unfinished:
        parquet.write_table(table, unfinished)


def is_frame(thing: object) -> bool:
    """Tell whether this is a table of pandas, polars, pyarrow or narwhals."""
    module = type(thing).__module__.partition(".")[0]
    return module in {*LIBRARIES, "narwhals"} and hasattr(thing, "columns")


def columns_of(frame: Any) -> tuple[dict[str, list[object]], list[object] | None]:
    """Return the columns of a frame, and its pandas index if that is more than row numbers."""
    kind = type(frame).__module__.partition(".")[0]
    if kind == "pyarrow":
        return frame.to_pydict(), None
    if kind != "pandas":
        return {name: frame[name].to_list() for name in frame.columns}, None
    columns = {str(name): frame.iloc[:, place].tolist() for place, name in enumerate(frame.columns)}
    index = frame.index
    is_number = index.name is None and index.dtype.kind in "iu"
    if index.nlevels == 1 and is_number and np.array_equal(index.to_numpy(), np.arange(len(index))):
        return columns, None
    return columns, [" ".join(map(str, one)) if isinstance(one, tuple) else one for one in index.tolist()]


def _listed(columns: Columns) -> dict[str, list[Any]]:
    return {
        name: values.tolist() if isinstance(values, np.ndarray) else list(values)
        for name, values in columns.items()
    }
