"""Checkpoints: the rounds after which a run is looked at."""

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._types import Whole
from orthobandit.errors import ParameterError


def default_checkpoints(horizon: int) -> Whole:
    """Return up to 50 rounds, evenly spaced in the logarithm, ending with the horizon."""
    return np.unique(np.geomspace(1, horizon, 50).round().astype(np.int64).clip(1, horizon))


def checked_checkpoints(checkpoints: ArrayLike, horizon: int | None = None) -> Whole:
    """Return ascending rounds (C,) from at least 1 to at most the horizon, or say what they must be."""
    array = np.asarray(checkpoints)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu":
        raise ParameterError(f"checkpoints={array.tolist()!r} must be a list of whole numbers")
    last = int(array[-1]) if horizon is None else horizon
    if array[0] < 1 or array[-1] > last or np.any(np.diff(array) <= 0):
        raise ParameterError(
            f"checkpoints run from {array[0]} to {array[-1]}; they must ascend from at least 1"
            f" to at most the horizon {last}"
        )
    return array.astype(np.int64)
