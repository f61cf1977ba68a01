"""Evidence on the gaps to a reference arm at the end of each bucket, for any number of plans in it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orthobandit._types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate.evidence import HIDDEN, Evidence
from orthobandit.logs.pulls import cost, pulls_of
from orthobandit.logs.sizes import SizesInTime
from orthobandit.logs.strata import Strata, totals_at

BLOCK = 2_000_000  # numbers that are tabulated at a time
MOST = 2_000_000_000  # numbers, above which it would take minutes


@dataclass(frozen=True, eq=False)
class Gathered:
    """Sums over the rows of T buckets and those before, as ``ContrastSequence`` has them after each bucket.

    Attributes
    ----------
    totals, weights, variances, pooled, peaks : (T, m) arrays
        As in :class:`~orthobandit.estimate.evidence.Evidence`, in the asymptotic mode.
    hidden : (T, m) array of bool
        Gaps that rest on arms of which too little is known.
    first : (m,) array
        v of the first plan that could tell; 1 if none could.
    """

    totals: Array
    weights: Array
    variances: Array
    pooled: Array
    peaks: Array
    hidden: Mask
    first: Array

    def evidence(self, sizes: SizesInTime) -> Evidence:
        """Return the evidence (T, m) at the end of each bucket."""
        seen = np.where(self.hidden, 0.0, sizes.events[:, np.newaxis])
        slack = np.zeros_like(self.totals)
        return Evidence(self.totals, self.weights, self.variances, slack, self.pooled, self.peaks, seen)


def gather(arms: ArmSet, strata: Strata, sizes: SizesInTime, reference: int) -> Gathered:
    """Return the evidence of strata of residuals, whose `sizes` are given."""
    count, others = len(sizes.buckets), len(arms) - 1
    sums = {name: np.zeros((count, others)) for name in ("totals", "weights", "variances", "pooled")}
    carried, needed, peaks = (np.zeros((count, others)) for _ in range(3))
    first, unseen = np.ones(others), np.ones(others, dtype=np.bool_)
    for block, tables in _tables(strata, cost(arms)):
        p, place = strata.plans[strata.plan[block]], np.searchsorted(sizes.buckets, strata.bucket[block])
        n, squared = tables[0].sum(axis=1)[:, np.newaxis], tables[2].sum(axis=1)[:, np.newaxis]
        pulls = pulls_of(arms, p, reference)
        weight = np.where(pulls.known, 1.0 / pulls.variance, 0.0)
        share = np.maximum(pulls.variance, pulls.carry(p * sizes.ratio[place]))
        parts = {
            "totals": weight * pulls.push(tables[1]),
            "weights": weight * n,
            "variances": weight**2 * pulls.carry(tables[2]),
            "pooled": weight**2 * squared * share,
        }
        for name, values in parts.items():
            _add(sums[name], place, values)
        _add(carried, place, weight**2 * n * pulls.carry(np.where(sizes.hardly[place], p, 0.0)))
        _add(needed, place, weight**2 * n * pulls.variance * pulls.known)
        np.maximum.at(peaks, place, weight * pulls.reach * sizes.excess[place][:, np.newaxis])
        fresh = unseen & pulls.known.any(axis=0)
        first[fresh] = pulls.variance[pulls.known.argmax(axis=0), np.arange(others)][fresh]
        unseen &= ~fresh
    whole = {name: np.cumsum(values, axis=0) for name, values in sums.items()}
    hidden = _kept(carried > HIDDEN * needed, needed > 0)
    return Gathered(**whole, peaks=np.maximum.accumulate(peaks, axis=0), hidden=hidden, first=first)


def _kept(state: Mask, known: Mask) -> Mask:
    """Return each state (T, m), or the last one that was known where it is not; False before any was."""
    place = np.where(known, np.arange(len(state))[:, np.newaxis], -1)
    last = np.maximum.accumulate(place, axis=0)
    return np.asarray(np.take_along_axis(state, np.maximum(last, 0), axis=0) & (last >= 0))


def _add(out: Array, place: Whole, values: Array) -> None:
    """Add rows of `values` to the rows of `out` named by `place`, which ascends."""
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    out[place[starts]] += np.add.reduceat(values, starts, axis=0)


def _tables(strata: Strata, numbers: int) -> Iterator[tuple[Whole, list[Array]]]:
    """Yield some strata (n,) with the counts, sums and squares (n, K) of their arms, until all were had."""
    arms, size = strata.plans.shape[1], max(BLOCK // numbers, 1)
    filled = np.flatnonzero(strata.by_stratum(strata.counts) > 0)
    order = np.argsort(strata.stratum, kind="stable")
    ranked = strata.stratum[order]
    for start in range(0, len(filled), size):
        block = filled[start : start + size]
        cells = order[np.searchsorted(ranked, block[0]) : np.searchsorted(ranked, block[-1], side="right")]
        index = np.searchsorted(block, strata.stratum[cells]) * arms + strata.arm[cells]
        parts = (strata.counts, strata.sums, strata.squares)
        yield block, [totals_at(index, part[cells], len(block) * arms).reshape(-1, arms) for part in parts]
