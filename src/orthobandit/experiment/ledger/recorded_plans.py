"""Recorded plans: which of them the present code would not have made, and which release made them.

A logged plan is a fact: arms were drawn from it, whether or not the present code would make it again. While a
log is read, plans computed from its entries are drafts; the next plan in the log confirms a draft or replaces
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit._foundation.release import __version__
from orthobandit._foundation.types import Array
from orthobandit.estimate import Plan

# By how much a plan may differ that another processor, or another build of its linear algebra, has made of
# the same rewards. Sums differ by 1e-16, and solvers that stop within a tolerance by 1e-10.
ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class Draft:
    """A plan computed while a log is read, with the previous plan to return to.

    Attributes
    ----------
    number : int
        Of its distribution.
    data : dict
        Its note for the log, in case it becomes the plan.
    current : int
        Number of the previous distribution; 0 if there was none.
    plans, restricted : dict
        Distributions by number, and restrictions of the previous plan by the arms that were available.
    maker : str
        Release that made the previous plan.
    """

    number: int
    data: dict[str, Any]
    current: int
    plans: dict[int, Plan]
    restricted: dict[tuple[int, ...], int]
    maker: str

    def is_confirmed_by(self, number: int, plan: Plan) -> bool:
        """Tell whether the log holds this plan, up to rounding errors between processors."""
        return self.number == number and is_same(self.data["plan"], plan.to_json())


@dataclass(frozen=True)
class Differences:
    """Plans of a log that the present code would not have made.

    Attributes
    ----------
    count : int
    first : int
        Number of the first of them.
    releases : tuple of str
        That have made them.
    """

    count: int = 0
    first: int = 0
    releases: tuple[str, ...] = ()

    def and_one(self, plan: int, release: str) -> "Differences":
        """Return the differences with one more plan added: its number and the release that made it."""
        releases = tuple(sorted({*self.releases, release}))
        return Differences(self.count + 1, self.first if self.count else plan, releases)

    def __str__(self) -> str:
        """Return which plans of the log this release would make differently, for messages."""
        if not self.count:
            return "all plans are what this release makes of the log"
        makers = " and ".join(self.releases)
        return f"plan {self.first} was made by release {makers}, and {__version__} plans differently"

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"count": self.count, "first": self.first, "releases": list(self.releases)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Differences":
        """Invert :meth:`to_json`."""
        return cls(int(data["count"]), int(data["first"]), tuple(map(str, data["releases"])))


def are_alike(one: Plan, other: Plan) -> bool:
    """Tell whether two plans of one number draw, centre and test alike, whatever their lengths."""
    return is_same({**one.to_json(), "rounds": 0}, {**other.to_json(), "rounds": 0})


def is_same(one: Any, other: Any) -> bool:
    """Tell whether plain values are equal up to rounding errors between processors.

    Lists of numbers may differ by ROUNDING of their largest magnitude. Probabilities that are 0 must be 0 in
    both, so that no arm is drawn by one plan alone.

    Examples
    --------
    >>> is_same({"values": [0.3, 0.0]}, {"values": [0.30000000000000004, 1e-17]})
    True
    >>> is_same({"probabilities": [1.0, 0.0]}, {"probabilities": [1.0, 1e-17]})
    False
    """
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys() or not all(is_same(value, other[name]) for name, value in one.items()):
            return False
        drawn = [np.array(plan.get("probabilities", ())) != 0 for plan in (one, other)]
        return np.array_equal(*drawn)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        if len(one) != len(other):
            return False
        if all(isinstance(value, float) for value in (*one, *other)):
            return _are_near(np.array(one), np.array(other))
        return all(is_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return _are_near(np.array([one]), np.array([other]))
    return type(one) is type(other) and bool(one == other)


def _are_near(one: Array, other: Array) -> bool:
    if np.array_equal(one, other):
        return True
    scale = max(np.max(np.abs(one)), np.max(np.abs(other)))
    return bool(np.all(np.abs(one - other) <= ROUNDING * scale))
