"""Arrays and nested values as plain ones that survive JSON, which has no infinity and no NaN."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._types import Array


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
    """Return what :func:`plain` has written, `missing` where it wrote None.

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


SMALL, LONG = 6, 60  # numbers of an array, and letters of a field, that one line has room for


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
        if value.size > SMALL:
            return f"{value.shape} array"
        value = value.tolist()
        return f"{value:.6g}" if isinstance(value, float) else _rounded(value)
    text = repr(value)
    return text if len(text) <= LONG and "\n" not in text else f"{type(value).__name__}(…)"


def _rounded(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_rounded, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)
