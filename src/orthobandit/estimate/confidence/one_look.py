"""Margins of ordinary intervals, for one look, that are right for small counts and skewed values too.

An estimate is T₊ − T₋: what the arms with a positive weight have added, less what those with a negative one
have. z standard errors to each side of it are too few where a side rests on few events: an arm without a
single sale seems to have no variance at all. So each side has a margin of its own above and below, and the
two are joined as the square root of the sum of squares (Newcombe 1998; Zou & Donner 2008).

Let V be the variance of a side, j what a typical row weighs, and z the quantile.

- Values of 0 and 1 with a rate p, skewness factor s = 1 − 2p. Exact limits of a Poisson or binomial number
  of events are, to second order (Cornish & Fisher),

      above: z·√(V + j²·(1 + s)/2) + j·((z² − 1)·s/3 + (1 + s)/2)
      below: z·√(V + j²·(1 − s)/2) − j·((z² − 1)·s/3 − (1 − s)/2)

  which for rare events (s = 1) is k + 1 + z√(k + 1) + (z² − 1)/3 above and k − z√k + (z² − 1)/3 below: after
  k = 0, 3 and 10 events 3.9, 9.9 and 18.5 (exact limits at 95 %: 3.7, 8.8 and 18.4).
- Other values. A studentised mean needs z·√V + j·κ·(2z² + 1)/6 on the side that the values are skewed to,
  κ = E r³/E r² (Johnson 1978). κ is taken as the largest residual less the size of the smallest: exact for
  two values, about 0 for symmetric ones, and too large for long tails, which is the safe error. The other
  side is not narrowed. ⅔(jκ)² in the variance are the events of which a side may have seen none yet.
  κ is the larger of that of all rows and that of the side's own: arms that are skewed to opposite sides look
  symmetric together. A side that has not seen one row's worth of the largest residual may be skewed either
  way, as far as any arm is.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Mask
from orthobandit.estimate import Tally
from orthobandit.estimate.confidence.evidence import Seen
from orthobandit.estimate.confidence.modes import EVENTS

ROUNDING = 1e-9  # of the largest weight: arms that weigh less are on neither side


@dataclass(frozen=True, eq=False)
class Sides:
    """What the rows of both sides of m estimates weigh; the arms with a positive weight first.

    Attributes
    ----------
    variances : (2, m) array
        Σ (w·r)² over rows of weight w and residual r.
    squares, cubes : (2, m) arrays
        Σ w² and Σ |w|³ over the rows.
    ones : (2, m) array
        Σ w²·(value), which is the weight of rows with the value 1 where values are 0 and 1.
    low, high : float
        Smallest and largest residual of any row.
    lows, highs : (2, m) arrays
        The same of the arms of each side.
    is_two_valued : bool
        Whether all values are 0 or 1.
    """

    variances: Array
    squares: Array
    cubes: Array
    ones: Array
    lows: Array
    highs: Array
    low: float = 0.0
    high: float = 0.0
    is_two_valued: bool = False

    @classmethod
    def start(cls, count: int, *, is_two_valued: bool) -> "Sides":
        """Return the sides of so many estimates before the first row."""
        zeros = np.zeros((2, count))
        return cls(zeros, zeros, zeros, zeros, zeros, zeros, is_two_valued=is_two_valued)

    def add(self, weights: Array, tally: Tally, values: Array, ends: tuple[ArrayLike, ArrayLike]) -> "Sides":
        """Return the sides with rows of G plans.

        Parameters
        ----------
        weights : (G, m, K) array
            What a residual of each arm is multiplied by.
        tally : Tally
            Of residuals (G, K).
        values : (G, K) array
            Sums of the values themselves.
        ends : (array-like, array-like)
            Smallest and largest residual of each arm (K,), or of all.
        """
        counts = tally.counts.astype(np.float64)
        parts = np.zeros((4, *self.squares.shape))
        arms = counts.shape[-1]
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (arms,)) for end in ends)
        lows = np.zeros(self.lows.shape)
        highs = np.zeros(self.highs.shape)
        least = ROUNDING * np.abs(weights).max(initial=0.0)
        on_side = np.zeros((2, len(lows[0]), arms), dtype=np.bool_)
        # One layout, so that one compiled function serves all callers.
        weighed, squares, rows, sums = (
            np.ascontiguousarray(one, dtype=np.float64) for one in (weights, tally.squares, counts, values)
        )
        _add_sides(weighed, squares, rows, sums, least, parts, on_side)
        for side in range(2):
            lows[side] = np.where(on_side[side], low, 0.0).min(axis=1)
            highs[side] = np.where(on_side[side], high, 0.0).max(axis=1)
        return self.with_sums(parts, lows, highs, (float(low.min()), float(high.max())))

    def with_sums(self, parts: Array, lows: Array, highs: Array, ends: tuple[float, float]) -> "Sides":
        """Return the sides with rows that were added up elsewhere.

        Parameters
        ----------
        parts : (4, 2, m) array
            Σ (w·r)², Σ w², Σ |w|³ and Σ w²·(value).
        lows, highs : (2, m) arrays
            Smallest and largest residual of the arms of each side.
        ends : (float, float)
            Of all rows.
        """
        return replace(
            self,
            variances=self.variances + parts[0],
            squares=self.squares + parts[1],
            cubes=self.cubes + parts[2],
            ones=self.ones + parts[3],
            lows=np.minimum(self.lows, lows),
            highs=np.maximum(self.highs, highs),
            low=min(self.low, ends[0]),
            high=max(self.high, ends[1]),
        )

    def wait(self, seen: Seen, events: Array, *, is_exact: bool) -> Mask:
        """Tell for which estimates (m,) nothing can be said yet, as in intervals that hold at all times.

        Values of 0 and 1 that were declared need not wait: their margins are right for any count. Others wait
        while all that is large has been seen in fewer than ten rows' worth of it; and, unless they are 0 and
        1 so far, while an arm that matters has hardly been drawn.

        Parameters
        ----------
        seen : Seen
            What residuals were like.
        events : (m,) array
            Of the evidence; 0 where an arm that matters has hardly been drawn.
        is_exact : bool
            Whether a range was declared.
        """
        if self.is_two_valued and is_exact:
            return np.zeros(np.shape(events), dtype=np.bool_)
        are_rare = bool(seen.sizes.excess > 0 and seen.sizes.events < EVENTS)
        hidden = np.zeros(np.shape(events), dtype=np.bool_) if self.is_two_valued else np.asarray(events) == 0
        return np.asarray(hidden | are_rare)

    def margins(self, z: Array) -> tuple[Array, Array]:
        """Return how far truth may be below and above the sums (m,), at a finite quantile z (m,)."""
        some = np.where(self.squares > 0, self.squares, 1.0)
        jump = self.cubes / some
        if self.is_two_valued:
            below, above = self._two_valued(z, jump, 1.0 - 2.0 * self.ones / some)
        else:
            below, above = (self._skewed(z, jump * self._skewness(jump, sign)) for sign in (-1.0, 1.0))
        return np.hypot(below[0], above[1]), np.hypot(above[0], below[1])

    def _skewness(self, jump: Array, sign: float) -> Array:
        """Return κ (2, m) towards one side, at least 0."""
        own = self.highs + self.lows
        largest = jump * max(self.high, -self.low)
        shown = np.divide(self.variances, largest**2, out=np.ones_like(largest), where=largest > 0)
        borrowed = np.maximum(1.0 - shown, 0.0) * np.abs(own).max(initial=0.0)
        pooled = max(sign * (self.high + self.low), 0.0)
        return np.asarray(np.maximum(np.maximum(sign * own, borrowed), pooled))

    def _two_valued(self, z: Array, jump: Array, skew: Array) -> tuple[Array, Array]:
        shift = (z**2 - 1.0) / 3.0 * skew
        below, above = (
            z * np.sqrt(self.variances + jump**2 * (1.0 + sign * skew) / 2.0)
            + jump * (sign * shift + (1.0 + sign * skew) / 2.0)
            for sign in (-1.0, 1.0)
        )
        return np.maximum(below, 0.0), np.maximum(above, 0.0)

    def _skewed(self, z: Array, jump: Array) -> Array:
        return np.asarray(z * np.sqrt(self.variances + 2.0 / 3.0 * jump**2) + jump * (2.0 * z**2 + 1.0) / 6.0)


@compiled
def _add_sides(
    weights: Array, squares: Array, counts: Array, values: Array, least: float, parts: Array, on_side: Mask
) -> None:
    """Add Σ w²·(squares), Σ w²·(counts), Σ |w|³·(counts) and Σ w²·(values) to `parts` (4, 2, m) by side.

    `on_side` (2, m, K) is set where an arm has a weight above `least` to that side in any plan.
    """
    plans, rows, arms = weights.shape
    for plan in range(plans):
        for row in range(rows):
            for arm in range(arms):
                weight = weights[plan, row, arm]
                if weight == 0.0:
                    continue
                side = 0 if weight > 0.0 else 1
                squared = weight * weight
                parts[0, side, row] += squared * squares[plan, arm]
                parts[1, side, row] += squared * counts[plan, arm]
                parts[2, side, row] += squared * abs(weight) * counts[plan, arm]
                parts[3, side, row] += squared * values[plan, arm]
                if abs(weight) > least:
                    on_side[side, row, arm] = True
