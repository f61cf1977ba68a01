"""What was taken in of a log, bucket by bucket, while it is little enough to be kept."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate import Tally
from orthobandit.estimate.confidence.steps import Steps

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
    ends : (K,) arrays, twice
        Smallest and largest residual of each arm.
    """

    plans: Whole
    forecasts: Array
    steps: Steps
    sums: Array
    ends: tuple[Array, Array]


class Bucket(NamedTuple):
    """What was taken in of a bucket: when it begins, plans (G,), values (K,) of the arms, tally (G, K)."""

    begins: float
    plans: Whole
    values: Array
    tally: Tally


class Feeds:
    """Plans, values of the arms and tallies of all buckets, in the order of time.

    Attributes
    ----------
    count : int
        Plans of a bucket, summed over buckets.
    """

    def __init__(self) -> None:
        self.count = 0
        self._arms = 0
        self._pilot = list[tuple[Counted, Array]]()
        self._counted = list[tuple[Counted, Array]]()

    def __iter__(self) -> Iterator[tuple[Whole, Array, Tally]]:
        """Yield plans (G,), values (K,) of the arms and tally (G, K) of each bucket that counted."""
        for bucket in self.counted():
            yield bucket.plans, bucket.values, bucket.tally

    def pilot(self) -> Iterator[Bucket]:
        """Yield the buckets before the first that counted; their residuals are around their own means."""
        return _buckets(self._pilot)

    def counted(self) -> Iterator[Bucket]:
        """Yield the buckets that counted."""
        return _buckets(self._counted)

    @property
    def are_kept(self) -> bool:
        """Whether there were few enough of them; otherwise none is kept."""
        return self.count <= MOST_FEEDS and self.count * self._arms <= MOST_NUMBERS

    def add(self, counted: Counted, begins: Array, *, is_pilot: bool = False) -> None:
        """Take in some buckets, and when each (S,) begins."""
        self.count = self.count + len(counted.plans)
        self._arms = counted.steps.tally.count
        if self.are_kept:
            (self._pilot if is_pilot else self._counted).append((counted, begins))
        else:
            self._pilot.clear()
            self._counted.clear()


def _buckets(kept: list[tuple[Counted, Array]]) -> Iterator[Bucket]:
    for one, begins in kept:
        edges = np.append(one.steps.first, len(one.plans)).tolist()
        rows = zip(begins.tolist(), one.steps.values, pairwise(edges), strict=True)
        for start, values, (begin, end) in rows:
            yield Bucket(start, one.plans[begin:end], values, one.steps.tally[begin:end])
