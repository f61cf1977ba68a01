"""The one decorator behind every compiled function: typed, cached on disk, IEEE-exact."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba in nopython mode and cache the machine code on disk.

    Fast-math stays off: compensated sums and signed infinities must mean what they say. Dividing by zero
    gives an infinity as in numpy; a check before every division would keep loops from being vectorised.
    """
    return cast(Callable[P, R], numba.njit(cache=True, nogil=True, error_model="numpy")(function))
