"""Rounds of several plans, step by step, and what residuals were like after each."""

from dataclasses import astuple, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate.confidence.evidence import Sizes, relative_squares
from orthobandit.estimate.tally import Tally


def owners(first: Whole, count: int) -> Whole:
    """Return which step each of so many rows is of, from the first row of each step."""
    return np.repeat(np.arange(len(first)), np.diff(np.append(first, count)))


@dataclass(frozen=True, eq=False)
class Steps:
    """G plans with their tallies, in S steps; those of one step are taken to be of one time.

    Attributes
    ----------
    probabilities : (G, K) array
    rounds : (G,) array of int
        How long each plan is in force.
    tally : Tally
        Of residuals (G, K).
    values : (S, K) array
        What was taken from the rewards of each arm, the same for all plans of a step.
    first : (S,) array of int
        The first plan of each step, ascending from 0; every step has one. One step by default.
    """

    probabilities: Array
    rounds: Whole
    tally: Tally
    values: Array
    first: Whole = field(default_factory=lambda: np.zeros(1, dtype=np.int64))

    @cached_property
    def step(self) -> Whole:
        """Which step each plan (G,) is of."""
        return owners(self.first, len(self.probabilities))

    @cached_property
    def whole(self) -> Tally:
        """The tally (S, K) of each step."""
        return self.tally.gathered(self.first)


@dataclass(frozen=True, eq=False)
class Seen:
    """What residuals were like: their sizes, how often arms came up, and how loud each was.

    Attributes
    ----------
    sizes : Sizes
        How large residuals were.
    drawn, relative : (K,) arrays
        Rounds of each arm, and its squared residuals in units of the others'; see
        :func:`~orthobandit.estimate.confidence.evidence.relative_squares`. All have a leading axis (S,)
        for S moments.
    """

    sizes: Sizes
    drawn: Array
    relative: Array

    @classmethod
    def start(cls, count: int) -> "Seen":
        """Return what is known before the first round, of so many arms."""
        return cls(Sizes(), np.zeros(count), np.zeros(count))

    def along(self, tallies: Tally) -> "Seen":
        """Return it (S,) as it grows with each of S tallies (S, K), each of one time."""
        return Seen(
            self.sizes.along(tallies),
            self.drawn + np.cumsum(tallies.counts, axis=0),
            self.relative + np.cumsum(relative_squares(tallies), axis=0),
        )

    def at(self, place: int) -> "Seen":
        """Return what was known at one of several moments."""
        rounds, *sizes = (part[place] for part in astuple(self.sizes))
        return Seen(Sizes(int(rounds), *map(float, sizes)), self.drawn[place], self.relative[place])

    def with_arms(self, count: int) -> "Seen":
        """Return it with so many more arms, of which nothing was seen."""
        return Seen(self.sizes, np.pad(self.drawn, (0, count)), np.pad(self.relative, (0, count)))

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly."""
        return {
            "sizes": [int(self.sizes.rounds), *map(float, astuple(self.sizes)[1:])],
            "drawn": self.drawn.tolist(),
            "relative": self.relative.tolist(),
        }

    @classmethod
    def from_json(cls, data: Any) -> "Seen":
        """Invert :meth:`to_json`."""
        rounds, *sizes = data["sizes"]
        drawn, relative = (np.array(data[name], dtype=np.float64) for name in ("drawn", "relative"))
        return cls(Sizes(int(rounds), *map(float, sizes)), drawn, relative)
