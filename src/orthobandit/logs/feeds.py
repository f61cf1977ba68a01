"""What was counted of a log, bucket by bucket, while it is little enough to be kept."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from orthobandit._types import Array, Whole
from orthobandit.estimate import Tally
from orthobandit.estimate.steps import Steps

MOST_FEEDS = 200_000  # plans of a bucket, summed over buckets
MOST_NUMBERS = 2_000_000  # of one kind, counts of each arm or sums: 64 MB for all four


@dataclass(frozen=True, eq=False)
class Counted:
    """Some buckets as they were counted: each is a step, with the plans (G,) of all and forecasts (S,).

    Attributes
    ----------
    plans : (G,) array of int
    forecasts : (S,) array
    steps : Steps
    sums : (G, K) array
        Of the values, before anything was taken off.
    ends : (float, float)
        Smallest and largest residual.
    """

    plans: Whole
    forecasts: Array
    steps: Steps
    sums: Array
    ends: tuple[float, float]


class Feeds:
    """Plans, values of the arms and tallies of the buckets that counted, in the order of time.

    Attributes
    ----------
    count : int
        Plans of a bucket, summed over buckets.
    """

    def __init__(self) -> None:
        self.count, self._arms = 0, 0
        self._counted = list[Counted]()

    def __iter__(self) -> Iterator[tuple[Whole, Array, Tally]]:
        """Yield of each bucket its plans (G,), the values (K,) of the arms, the tally (G, K) of residuals."""
        for one in self._counted:
            edges = np.append(one.steps.first, len(one.plans)).tolist()
            for values, (begin, end) in zip(one.steps.values, pairwise(edges), strict=True):
                yield one.plans[begin:end], values, one.steps.tally[begin:end]

    @property
    def are_kept(self) -> bool:
        """Whether there were few enough of them; otherwise none is kept."""
        return self.count <= MOST_FEEDS and self.count * self._arms <= MOST_NUMBERS

    def add(self, counted: Counted) -> None:
        """Take in some buckets."""
        self.count, self._arms = self.count + len(counted.plans), counted.steps.tally.count
        if self.are_kept:
            self._counted.append(counted)
        else:
            self._counted.clear()
