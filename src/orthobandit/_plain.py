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
