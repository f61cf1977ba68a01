"""Turn arrays and nested values into plain ones that survive JSON, which has no infinity and no NaN.

Long arrays become their bytes as text, which is exact, short, and quick to write and to read.
"""

import json
import math
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from typing import Any
from zlib import compress, decompress
from zlib import error as ZlibError  # noqa: N812

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from orthobandit._foundation.types import Array
from orthobandit.errors import ParameterError


def plain(numbers: ArrayLike) -> Any:
    """Return numbers as plain lists, None where they are not finite.

    Examples
    --------
    >>> plain([1.5, float("inf")]), plain(2.0)
    ([1.5, None], 2.0)
    """
    given = np.asarray(numbers, dtype=np.float64)
    kept = given.astype(np.object_)
    kept[~np.isfinite(given)] = None
    return kept.tolist()


def numbers_of(data: Any, missing: float = np.inf) -> Array:
    """Invert :func:`plain`, with `missing` where it wrote None.

    Examples
    --------
    >>> numbers_of([1.5, None]).tolist()
    [1.5, inf]
    """
    given = np.array(data, dtype=np.float64)
    return np.asarray(np.where(np.isnan(given), missing, given))


def plain_values(data: Any) -> Any:
    """Return nested values as plain dictionaries and lists, None for numbers that are not finite.

    Examples
    --------
    >>> plain_values({"ends": (1.5, float("inf")), "rows": np.int64(3)})
    {'ends': [1.5, None], 'rows': 3}
    """
    if isinstance(data, Mapping):
        return {str(key): plain_values(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [plain_values(value) for value in data]
    if isinstance(data, np.ndarray | np.generic):
        return plain_values(data.tolist())
    return None if isinstance(data, float) and not math.isfinite(data) else data


MAX_SHOWN_NUMBERS = 6  # of an array, in one line
MAX_SHOWN_LETTERS = 60  # of a field, in one line


def brief(thing: Any) -> str:
    """Return one line for a dataclass that holds arrays: short ones as they are, others by their shape.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Pair:
    ...     few: Any
    ...     many: Any
    ...     __repr__ = brief
    >>> Pair(np.array([0.25, 0.75]), np.zeros((3, 200)))
    Pair(few=[0.25, 0.75], many=(3, 200) array)
    """
    shown = [f"{name}={_field(getattr(thing, name))}" for name in thing.__dataclass_fields__]
    return f"{type(thing).__name__}({', '.join(shown)})"


def _field(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.size > MAX_SHOWN_NUMBERS:
            return f"{value.shape} array"
        value = value.tolist()
        return f"{value:.6g}" if isinstance(value, float) else _rounded(value)
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_LETTERS and "\n" not in text else f"{type(value).__name__}(…)"


def _rounded(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_rounded, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


COMPRESS_FROM_BYTES = 4096  # shorter arrays are kept as they are
ZLIB_LEVEL = 1


def packed(array: NDArray[Any], *, compressed: bool = False) -> dict[str, Any]:
    """Return an array as its type, its shape and its bytes, little-endian.

    Parameters
    ----------
    array : array
    compressed : bool
        Whether the bytes of a long array are compressed, while other threads go on: to write a short text to
        a disk takes less time than that.

    Examples
    --------
    >>> packed(np.array([1.0, 2.0]))
    {'type': '<f8', 'shape': [2], 'bytes': 'AAAAAAAA8D8AAAAAAAAAQA=='}
    >>> sorted(packed(np.zeros(1000), compressed=True))
    ['shape', 'type', 'zlib']
    """
    kind = array.dtype.newbyteorder("<")
    data = np.ascontiguousarray(array, dtype=kind)
    is_short = not compressed or data.nbytes < COMPRESS_FROM_BYTES
    text = b64encode(data.tobytes() if is_short else compress(data.data, ZLIB_LEVEL)).decode("ascii")
    return {"type": kind.str, "shape": list(array.shape), "bytes" if is_short else "zlib": text}


def unpacked(name: str, data: Any, dtype: DTypeLike, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Invert :func:`packed`, or raise an error; `shape` has None where any length will do.

    Examples
    --------
    >>> unpacked("gaps", packed(np.array([1.0, 2.0])), np.float64, (2,)).tolist()
    [1.0, 2.0]
    """
    try:
        kind = np.dtype(data["type"])
        sizes = tuple(int(size) for size in data["shape"])
        raw = b64decode(data["zlib" if "zlib" in data else "bytes"], validate=True)
        array = np.frombuffer(decompress(raw) if "zlib" in data else raw, dtype=kind).reshape(sizes)
    except (KeyError, TypeError, ValueError, Error, ZlibError):
        raise ParameterError(f"data[{name!r}] is not a packed array; was it written by `dump`?") from None
    fits = len(sizes) == len(shape) and all(
        want in (None, size) for want, size in zip(shape, sizes, strict=True)
    )
    if not fits or kind != np.dtype(dtype):
        wanted = tuple("any" if size is None else size for size in shape)
        raise ParameterError(
            f"data[{name!r}] has type {kind} and shape {sizes} but {np.dtype(dtype)} and {wanted} are needed;"
            " was it dumped with other arms?"
        )
    return np.array(array, dtype=dtype)


def sparse(array: NDArray[Any]) -> dict[str, Any]:
    """Return a mostly-zero vector (K,) as its length, and the positions and values of its other entries."""
    places = np.flatnonzero(array)
    return {"length": len(array), "places": packed(places), "values": packed(array[places])}


def unsparse(name: str, data: Any, dtype: DTypeLike, length: int) -> NDArray[Any]:
    """Invert :func:`sparse`, or say what does not fit."""
    if not isinstance(data, Mapping) or data.get("length") != length:
        raise ParameterError(f"data[{name!r}] is not a vector of {length}; was it dumped with other arms?")
    places = unpacked(name, data.get("places"), np.int64, (None,))
    values = unpacked(name, data.get("values"), dtype, (len(places),))
    if places.size and not 0 <= places.min() <= places.max() < length:
        raise ParameterError(f"data[{name!r}] has a place outside 0 to {length - 1}")
    out = np.zeros(length, dtype=dtype)
    out[places] = values
    return out


PACK_FROM_NUMBERS = 1_000  # shorter lists stay lists
PACKED_LIST = "packed list"  # marks a list that was packed


def pack_lists(data: Any) -> Any:
    """Return nested values with long lists of numbers packed: as JSON they are short and quickly written.

    Examples
    --------
    >>> short = pack_lists({"gaps": [[0.5] * 1000] * 2, "few": [1, 2]})
    >>> short["few"], sorted(short["gaps"])
    ([1, 2], ['packed list'])
    >>> unpack_lists(short) == {"gaps": [[0.5] * 1000] * 2, "few": [1, 2]}
    True
    """
    if isinstance(data, Mapping):
        return {key: pack_lists(value) for key, value in data.items()}
    if not isinstance(data, list):
        return data
    array = _array_of(data)
    if array is None:
        return [pack_lists(value) for value in data]
    return {PACKED_LIST: packed(array, compressed=True)} if array.size >= PACK_FROM_NUMBERS else data


def _array_of(data: list[Any]) -> NDArray[Any] | None:
    """Return numbers of one type in lists of equal lengths as an array; None if they are anything else."""
    first: Any = data
    while isinstance(first, list) and first:
        first = first[0]
    if type(first) not in (float, int, bool):
        return None
    try:
        array = np.array(data)
    except (ValueError, OverflowError):  # lists of several lengths, or too large a number
        return None
    # An array has one type for all; numbers that would not come back as they were are left alone.
    is_same = array.dtype.kind == {float: "f", int: "i", bool: "b"}[type(first)]
    return array if is_same else None


def unpack_lists(data: Any) -> Any:
    """Invert :func:`pack_lists`; values without packed lists are returned unchanged."""
    if isinstance(data, Mapping):
        if data.keys() == {PACKED_LIST}:
            given = data[PACKED_LIST]
            shape = tuple(int(size) for size in given["shape"])
            return _lists_of(unpacked(PACKED_LIST, given, given["type"], shape))
        return {key: unpack_lists(value) for key, value in data.items()}
    if isinstance(data, list):
        return [unpack_lists(value) for value in data]
    return data


def _lists_of(array: NDArray[Any]) -> Any:
    """Return an array as lists, row by row: other threads may run in between."""
    return array.tolist() if array.ndim < 2 else [_lists_of(row) for row in array]


# Python's JSON lets no other thread run until it has done all of a value. A table of a million numbers would
# stop a server for half a second, so tables are done row by row.
LONG_TABLE_ROWS = 100


def json_text(data: Any, *, separators: tuple[str, str] = (", ", ": "), **options: Any) -> str:
    """Return what ``json.dumps`` returns, and let other threads run between the rows of long tables.

    All its options may be given but ``indent``.

    Examples
    --------
    >>> table = {"features": [[0.5, 1.0]] * 200, "name": "page"}
    >>> json_text(table) == json.dumps(table)
    True
    """
    between, colon = separators
    if isinstance(data, dict) and data and all(type(key) is str for key in data):
        items = sorted(data.items()) if options.get("sort_keys") else data.items()
        return (
            "{"
            + between.join(
                json.dumps(key, ensure_ascii=options.get("ensure_ascii", True))
                + colon
                + json_text(value, separators=separators, **options)
                for key, value in items
            )
            + "}"
        )
    if _is_long_table(data):
        return "[" + between.join(json_text(row, separators=separators, **options) for row in data) + "]"
    return json.dumps(data, separators=separators, **options)


def json_copy(data: Any, **options: Any) -> Any:
    """Return a value as it comes back after being written as JSON and read again; long tables row by row."""
    if isinstance(data, dict) and all(type(key) is str for key in data):
        return {key: json_copy(value, **options) for key, value in data.items()}
    if _is_long_table(data):
        return [json_copy(row, **options) for row in data]
    return json.loads(json.dumps(data, **options))


def _is_long_table(data: Any) -> bool:
    return (
        isinstance(data, list | tuple) and len(data) > LONG_TABLE_ROWS and isinstance(data[0], list | tuple)
    )
