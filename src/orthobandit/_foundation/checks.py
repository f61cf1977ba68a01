"""Checks of settings at the public edge: each names the argument, its value and the remedy."""

import math
import os
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.types import Whole
from orthobandit.errors import Argument, ParameterError

MAX_DELTA = 0.5  # above it claims would be wrong more often than right


def check_fraction(name: str, value: object) -> float:
    """Return `value` as a float strictly between 0 and 1."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise ParameterError(Argument(name, value), " must lie strictly between 0 and 1")
    return float(value)


def check_delta(value: object) -> float:
    """Return δ, the probability of a wrong claim, as a float in (0, ½].

    Whoever gives more than ½ almost surely means 1 − δ: claims that are wrong more often than right serve
    nobody.
    """
    delta = check_fraction("delta", value)
    if delta > MAX_DELTA:
        raise ParameterError(Argument("delta", value), f" {advise_on_delta(delta)}")
    return delta


def advise_on_delta(delta: float) -> str:
    """Say what a δ above ½ means, and which one is meant.

    Examples
    --------
    >>> advise_on_delta(0.95)
    'lets claims be wrong with probability 0.95; if they should be right with that probability, give 0.05'
    """
    return (
        f"lets claims be wrong with probability {delta:g}; if they should be right with that probability,"
        f" give {1.0 - delta:.3g}"
    )


def check_positive(name: str, value: object) -> float:
    """Return `value` as a finite float above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise ParameterError(Argument(name, value), " must be a finite number above 0")
    return float(value)


def check_whole(
    name: str, value: object, least: int = 1, most: int | None = None, *, remedy: str = ""
) -> int:
    """Return `value` as an int of at least `least` and at most `most`; the `remedy` ends the message."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(Argument(name, value), f" must be a whole number of at least {least}{remedy}")
    whole = int(value)
    if most is not None and whole > most:
        limit = f"{most:,}" if most < 10**9 else f"{most:.3g}"
        raise ParameterError(Argument(name, value), f" must be a whole number of at most {limit}{remedy}")
    return whole


def check_fits(what: str, size: float, instead: str) -> None:
    """Raise an error if something would need more memory than the machine has, before it is allocated.

    Parameters
    ----------
    what : str
        What would need it.
    size : float
        Bytes.
    instead : str
        What can do with less.
    """
    if size > memory():
        raise ParameterError(
            f"{what} would need {size / 2**30:,.0f} GiB of memory, and this machine has"
            f" {memory() / 2**30:,.1f}; {instead}"
        )


def memory() -> float:
    """Return the bytes of memory of this machine; 16 GiB where it does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return 16.0 * 2**30


def check_choice(name: str, value: object, valid: Iterable[str]) -> str:
    """Return `value` if it is one of the `valid` names; the message suggests the nearest one."""
    names = list(map(str, valid))  # members of an enumeration by their values
    if isinstance(value, str) and (value in names or (isinstance(valid, dict) and value in valid)):
        return value
    near = nearest_name(value, names)
    hint = f"; did you mean {near!r}?" if near else ""
    raise ParameterError(Argument(name, value), f" is not one of {', '.join(map(repr, names))}{hint}")


def check_pairs(pairs: ArrayLike, count: int) -> Whole:
    """Return `pairs` as numbers (m, 2) of `count` arms, m ≥ 1."""
    given = np.asarray(pairs)
    if given.ndim != 2 or given.shape[1] != 2 or not len(given) or given.dtype.kind not in "iu":
        raise ParameterError(
            f"pairs have shape {given.shape} and type {given.dtype};"
            " numbers of arms (m, 2), one pair or more, are needed"
        )
    if np.any((given < 0) | (given >= count)):
        raise ParameterError(f"pairs name an arm outside 0 to {count - 1}")
    return given.astype(np.int64)


def nearest(value: object, valid: Iterable[str]) -> str:
    """Return the remedy for an unknown name: the nearest valid one, or all of them.

    Examples
    --------
    >>> nearest("scal", ["delta", "scale"]), nearest("foo", ["horizon", "seeds"])
    ("did you mean 'scale'?", 'the names are horizon, seeds')
    """
    names = sorted(valid)
    near = nearest_name(value, names)
    if near:
        return f"did you mean {near!r}?"
    return f"the names are {', '.join(names)}" if names else "there are none"


def nearest_name(value: object, names: list[str]) -> str | None:
    """Return the valid name that an unknown one is most like, or None."""
    # Below this share of common letters a suggestion is more often wrong than right.
    found = get_close_matches(str(value).lower(), names, n=1, cutoff=0.55)
    return found[0] if found else None
