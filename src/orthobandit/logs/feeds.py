"""What was counted of a log, bucket by bucket, while it is little enough to be kept."""

from collections.abc import Iterator

from orthobandit._types import Array, Whole
from orthobandit.estimate import Tally

MOST_FEEDS = 200_000  # plans of a bucket, summed over buckets
MOST_NUMBERS = 2_000_000  # of one kind, counts of each arm or sums: 64 MB for all four


class Feeds:
    """Plans, values of the arms and tallies of the buckets that counted, in the order of time.

    Attributes
    ----------
    count : int
        Plans of a bucket, summed over buckets.
    """

    def __init__(self) -> None:
        self.count, self._arms = 0, 0
        self._buckets = list[tuple[Whole, Array, Tally]]()

    def __iter__(self) -> Iterator[tuple[Whole, Array, Tally]]:
        return iter(self._buckets)

    @property
    def are_kept(self) -> bool:
        """Whether there were few enough of them; otherwise none is kept."""
        return self.count <= MOST_FEEDS and self.count * self._arms <= MOST_NUMBERS

    def add(self, plans: Whole, values: Array, tally: Tally) -> None:
        """Take in a bucket: its plans (G,), the values (K,) of the arms, the tally (G, K) of residuals."""
        self.count, self._arms = self.count + len(plans), tally.count
        if self.are_kept:
            self._buckets.append((plans, values, tally))
        else:
            self._buckets.clear()
