"""Long arrays inside JSON: their bytes as text, which is exact, short, and quick to write and to read."""

from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from orthobandit.errors import ParameterError


def packed(array: NDArray[Any]) -> dict[str, Any]:
    """Return an array as its type, its shape and its bytes, little end first.

    Examples
    --------
    >>> packed(np.array([1.0, 2.0]))
    {'type': '<f8', 'shape': [2], 'bytes': 'AAAAAAAA8D8AAAAAAAAAQA=='}
    """
    kind = array.dtype.newbyteorder("<")
    data = np.ascontiguousarray(array, dtype=kind)
    return {"type": kind.str, "shape": list(array.shape), "bytes": b64encode(data.tobytes()).decode("ascii")}


def unpacked(name: str, data: Any, dtype: DTypeLike, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Invert :func:`packed`, or say what does not fit; `shape` has None where any length will do.

    Examples
    --------
    >>> unpacked("gaps", packed(np.array([1.0, 2.0])), np.float64, (2,)).tolist()
    [1.0, 2.0]
    """
    try:
        kind, sizes = np.dtype(data["type"]), tuple(int(size) for size in data["shape"])
        array = np.frombuffer(b64decode(data["bytes"], validate=True), dtype=kind).reshape(sizes)
    except (KeyError, TypeError, ValueError, Error):
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
    """Return a vector (K,) that is mostly 0 by its length, the places of the others and what is there."""
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
