"""How large residuals were by the end of each bucket: what an asymptotic interval must know to be honest."""

from dataclasses import dataclass

import numpy as np

from orthobandit._types import Array, Mask, Whole
from orthobandit.estimate.evidence import USUAL, events, expected_shares, hardly_drawn
from orthobandit.logs.strata import Strata, totals_at


@dataclass(frozen=True, eq=False)
class SizesInTime:
    """Sizes of residuals at the end of T buckets, all that have rows, as if each were one tally.

    It is what :class:`~orthobandit.estimate.evidence.Sizes` has after each bucket. Rows of a bucket are taken
    together whatever plan they are from: with one row a plan there is no scatter within plans.

    Attributes
    ----------
    buckets : (T,) array of int
    rounds : (T,) array
        Of this bucket and those before it.
    scattered, excess : (T,) arrays
        So far; see ``Sizes``.
    largest : (T,) array
        Of the bucket alone.
    ratio : (T, K) array
        How much larger than others squared residuals of an arm are, as seen so far.
    hardly : (T, K) array of bool
        Arms of which too little is known.
    """

    buckets: Whole
    rounds: Array
    scattered: Array
    excess: Array
    largest: Array
    ratio: Array
    hardly: Mask

    @classmethod
    def of(cls, strata: Strata) -> "SizesInTime":
        """Compute from strata of residuals."""
        present = strata.bucket[strata.stratum]
        buckets, place = np.unique(present, return_inverse=True)
        count, arms = len(buckets), strata.plans.shape[1]
        n, s, q = (totals_at(place, part, count) for part in (strata.counts, strata.sums, strata.squares))
        largest = np.zeros(count)
        np.maximum.at(largest, place, strata.largest)
        rounds, total = np.cumsum(n), np.cumsum(q)
        mean = np.maximum(q / n, total / rounds)
        beyond = np.maximum(largest**2 - mean * (2.0 * np.log(rounds) + USUAL), 0.0)
        excess = np.minimum(2.0 * np.sqrt(beyond), largest)
        index = place * arms + strata.arm
        counts, squares = (
            totals_at(index, part, count * arms).reshape(count, arms)
            for part in (strata.counts, strata.squares)
        )
        typical = np.where(q > 0, q, n) / n
        relative = np.where(q[:, np.newaxis] > 0, squares / typical[:, np.newaxis], counts)
        drawn = np.cumsum(counts, axis=0)
        planned = _planned(strata, buckets)
        return cls(
            buckets,
            rounds,
            np.cumsum(np.maximum(q - s**2 / n, 0.0)),
            np.maximum.accumulate(excess),
            largest,
            expected_shares(np.ones_like(drawn), np.cumsum(relative, axis=0), drawn),
            hardly_drawn(planned, 1.0, drawn),
        )

    @property
    def events(self) -> Array:
        """See ``Sizes.events``: of all rows up to the end of each bucket (T,)."""
        return events(self.scattered, np.maximum.accumulate(self.largest))

    def events_since(self, place: int) -> Array:
        """Return the events of the buckets after one, up to each later one (T − place − 1,)."""
        largest = np.maximum.accumulate(self.largest[place + 1 :])
        return events(self.scattered[place + 1 :] - self.scattered[place], largest)


def _planned(strata: Strata, buckets: Whole) -> Array:
    """Return the rounds (T, K) that each arm should have had in a bucket."""
    rows = strata.by_stratum(strata.counts)
    out = np.zeros((len(buckets), strata.plans.shape[1]))
    kept = rows > 0
    place = np.searchsorted(buckets, strata.bucket[kept])
    for arm in range(out.shape[1]):
        expected = rows[kept] * strata.probability(arm)[kept]
        out[:, arm] = totals_at(place, expected, len(buckets))
    return out
