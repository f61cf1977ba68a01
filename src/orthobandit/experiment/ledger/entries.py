"""Entries of the log of an experiment: what was asked, what was told, and everything else that happened.

Entries check themselves when they are made and hold read-only copies, so that what is appended to a store is
what it gives back. Negative zeros become zeros: databases do not keep the sign of a zero.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import pack
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.json_arrays import json_copy
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import ParameterError, RewardError

SORTED = json.JSONEncoder(sort_keys=True)  # made once: to make it takes longer than to use it
NUMBERED = ("plan", "distribution")  # kinds of notes that give a number to what they hold


@dataclass(frozen=True, eq=False)
class Asked:
    """Proposals drawn in one call, all from one distribution.

    Parameters
    ----------
    at : float
        Seconds since the epoch.
    first : int
        Number of the first proposal. Numbers run from 1 in the order of draws, over all calls.
    plan : int
        Number of the plan in force.
    distribution : int
        Number of the distribution that was drawn from; a plan restricted to some arms is another one.
    arms : array of int, shape (n,)
        At least one.
    forecasts : array, shape (m, n)
        One row per metric, in the order of the settings; fixed before the draw.
    units : tuple of str or None, shape (n,)
        Empty if nobody gave any; one that is all None becomes empty.
    held : array of bool, shape (n,)
        Whether the proposal is in the holdout.
    covariates : tuple of mappings, shape (n,)
        Finite numbers by name; empty if nobody gave any.

    Raises
    ------
    ParameterError
        If a shape or a value is wrong.
    """

    at: float
    first: int
    plan: int
    distribution: int
    arms: Whole
    forecasts: Array
    units: tuple[str | None, ...]
    held: Mask
    covariates: tuple[Mapping[str, float], ...] = ()

    def __post_init__(self) -> None:
        arms = _vector("arms", self.arms, np.int64)
        count = arms.size
        forecasts = _copied("forecasts", self.forecasts, np.float64)
        held = _copied("held", self.held, np.bool_)
        if forecasts.ndim != 2 or forecasts.shape[1] != count:
            raise ParameterError(f"forecasts have shape {forecasts.shape}; give (metrics, {count})")
        if held.shape != (count,):
            raise ParameterError(f"held has shape {held.shape}; give one for each of the {count} arms")
        if _least(arms) < 0 or self.first < 1:
            raise ParameterError(f"arms={arms} and first={self.first} must be at least 0 and 1")
        if not _all_finite(forecasts):
            raise ParameterError(f"forecasts={forecasts} must be finite; the running mean can stand in")
        _set(
            self,
            at=checked_moment(self.at),
            first=int(self.first),
            plan=int(self.plan),
            distribution=int(self.distribution),
            arms=arms,
            forecasts=_frozen(forecasts),
            units=_units(self.units, count),
            held=_frozen(held),
            covariates=_covariates(self.covariates, count),
        )

    @property
    def count(self) -> int:
        """Return how many proposals there are."""
        return int(self.arms.size)


@dataclass(frozen=True, eq=False)
class Told:
    """Rewards of one metric.

    Parameters
    ----------
    at : float
        Seconds since the epoch.
    metric : str
    proposals : array of int, shape (n,)
        Numbers of the proposals, at least one; a number may come twice where rewards add up.
    values : array, shape (n,)
        Finite.

    Raises
    ------
    ParameterError
        If a shape or a number is wrong; :class:`RewardError` if a value is not finite.
    """

    at: float
    metric: str
    proposals: Whole
    values: Array

    def __post_init__(self) -> None:
        if not self.metric or not is_storable(self.metric):
            raise ParameterError(f"metric={self.metric!r} must be a name")
        proposals = _vector("proposals", self.proposals, np.int64)
        values = _copied("values", self.values, np.float64)
        if values.shape != proposals.shape:
            raise ParameterError(f"values have shape {values.shape}, proposals {proposals.shape}")
        if _least(proposals) < 1:
            raise ParameterError(f"proposals={proposals} must be numbers of proposals, from 1")
        if not _all_finite(values):
            raise RewardError(f"values={values} must be finite numbers")
        _set(self, at=checked_moment(self.at), proposals=proposals, values=_frozen(values))

    @property
    def count(self) -> int:
        """Return how many rewards there are."""
        return int(self.proposals.size)


@dataclass(frozen=True, eq=False)
class Noted:
    """Anything else: a plan, a distribution, a tick, a pause and so on.

    Parameters
    ----------
    at : float
        Seconds since the epoch.
    kind : str
        Any name but "asked" and "told".
    data : dict
        Plain values without NaN and infinity, kept as JSON gives them back: tuples as lists, keys as text.
        A note of the kind "plan" or "distribution" has an integer ``number``.

    Raises
    ------
    ParameterError
        If the data are not such values.
    """

    at: float
    kind: str
    data: dict[str, Any]

    def __post_init__(self) -> None:
        if not is_storable(self.kind) or self.kind in ("", "asked", "told"):
            raise ParameterError(f"kind={self.kind!r} must be a name other than 'asked' and 'told'")
        try:
            data = json_copy(self.data, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise ParameterError(f"data of kind {self.kind!r} cannot be kept as JSON: {error}") from None
        if not isinstance(data, dict):
            raise ParameterError(f"data={self.data!r} must be a dict")
        if self.kind in NUMBERED and type(data.get("number")) is not int:
            raise ParameterError(f"data of kind {self.kind!r} must have a whole 'number': {self.data!r}")
        _set(self, at=checked_moment(self.at), data=data)


Entry = Asked | Told | Noted


def encode_entry(entry: Entry) -> bytes:
    """Return bytes that are equal if and only if two entries are the same, bit by bit.

    Examples
    --------
    >>> encode_entry(Told(5.0, "signup", [1], [0.1])) == encode_entry(Told(5, "signup", (1,), (0.1,)))
    True
    """
    if isinstance(entry, Told):
        head = pack("<cdqq", b"t", entry.at, entry.count, len(entry.metric.encode()))
        return b"".join((head, entry.metric.encode(), entry.proposals.tobytes(), entry.values.tobytes()))
    if isinstance(entry, Noted):
        return pack("<cd", b"n", entry.at) + _text([entry.kind, entry.data])
    numbers = (entry.first, entry.plan, entry.distribution, *entry.forecasts.shape)
    arrays = (entry.arms.tobytes(), entry.forecasts.tobytes(), entry.held.tobytes())
    # Most proposals have neither units nor covariates, and JSON is the slow part.
    rest = _text([entry.units, entry.covariates]) if entry.units or entry.covariates else b""
    return b"".join((pack("<cd5q", b"a", entry.at, *numbers), *arrays, rest))


def _text(data: Any) -> bytes:
    return SORTED.encode(data).encode()


def _set(entry: Any, **values: Any) -> None:
    entry.__dict__.update(values)  # the one place where a frozen entry is filled


def is_storable(text: object) -> bool:
    """Tell whether every store gives a text back as it was."""
    # PostgreSQL keeps no null characters, and half of a surrogate pair is no UTF-8.
    return isinstance(text, str) and "\0" not in text and text == text.encode(errors="ignore").decode()


def checked_moment(at: float) -> float:
    """Return a moment in seconds since the epoch, or raise an error."""
    if not math.isfinite(at):
        raise ParameterError(f"at={at!r} must be a finite number of seconds since the epoch")
    return float(at) + 0.0


def _copied(name: str, values: ArrayLike, dtype: type) -> Any:
    given = values if isinstance(values, np.ndarray) else np.asarray(values)
    if given.dtype == dtype:
        return given.copy()
    if given.size and not np.can_cast(given.dtype, dtype, "same_kind"):
        raise ParameterError(f"{name} of type {given.dtype} cannot be taken as {dtype.__name__}")
    return np.array(given, dtype=dtype, order="C")


def _vector(name: str, values: ArrayLike, dtype: type) -> Any:
    vector = _copied(name, values, dtype)
    if vector.ndim != 1 or not vector.size:
        raise ParameterError(f"{name} has shape {vector.shape}; give a list of at least one")
    return _frozen(vector)


# Most entries of a website have one row, for which a call of numpy takes longer than everything else.


def _least(array: Whole) -> int:
    return int(array.item() if array.size == 1 else array.min())


def _all_finite(array: Array) -> bool:
    return math.isfinite(array.item()) if array.size == 1 else bool(np.isfinite(array).all())


def _frozen(array: Any) -> Any:
    if array.dtype == np.float64:
        array += 0.0
    array.setflags(write=False)
    return array


def check_asked(units: Sequence[str | None], covariates: Sequence[Mapping[str, float]], count: int) -> None:
    """Raise the errors that :class:`Asked` would raise, before anything is done with a user's arguments."""
    _units(tuple(units), count)
    _covariates(tuple(covariates), count)


def _units(units: tuple[str | None, ...], count: int) -> tuple[str | None, ...]:
    """Check units: one for each arm or none; all-None becomes empty."""
    if len(units) not in (0, count):
        raise ParameterError(f"there are {len(units)} units for {count} arms; give one each or none")
    for unit in units:
        if unit is not None and not is_storable(unit):
            raise ParameterError(
                f"unit {unit!r} must be text without null characters, or None; str() of a number will do"
            )
    return tuple(units) if units and units != (None,) * count else ()


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and math.isfinite(value)


def _covariates(rows: tuple[Mapping[str, float], ...], count: int) -> tuple[Mapping[str, float], ...]:
    """Check covariates: finite numbers by name, for all arms or none."""
    if len(rows) not in (0, count):
        raise ParameterError(f"there are covariates for {len(rows)} of {count} arms; give all or none")
    for row in rows:
        for name, value in row.items():
            if not isinstance(name, str) or not _is_number(value):
                raise ParameterError(f"covariate {name!r}={value!r} must be a finite number by name")
    return tuple({name: float(value) for name, value in row.items()} for row in rows)
