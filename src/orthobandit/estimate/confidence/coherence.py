"""Make intervals agree with what is claimed beside them: one event, one set of possible truths.

Two kinds of claim hold together on one event: every gap lies in its interval, and the best arm is one of
those still active, the leader being within ε of it. So the truth lies in the box of the intervals *and* among
the gaps that the second claim allows. :func:`project_intervals` returns the smallest box around both. That
costs no error probability: on the event nothing true is cut off.

Where every pair of arms has an interval, :func:`close_differences` does the same for these: what follows from
two gaps for a third.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.types import Array, Mask

ROUNDING = 1e-9  # of the size of the bounds: contradictions below this are none


@dataclass(frozen=True, eq=False)
class Coherent:
    """What intervals and claims say together.

    Attributes
    ----------
    low, high : (K,) arrays
        Ends of each arm's gap to the reference arm.
    epsilon : float
        The leader is within this of the best arm.
    possible : (K,) array of bool
        Arms that may be the best.
    is_empty : bool
        Whether no gaps satisfy both kinds of claim. Then one of them is false, or the model is; the other
        attributes are as they were given, and must not be shown.
    """

    low: Array
    high: Array
    epsilon: float
    possible: Mask
    is_empty: bool

    def clip(self, estimates: ArrayLike) -> Array:
        """Return point estimates (K,), each moved to the nearest end where it lies outside its interval."""
        return np.clip(np.asarray(estimates, dtype=np.float64), self.low, self.high)

    def clip_below(self, estimates: ArrayLike, top: int, racing: Mask) -> Array:
        """Return point estimates (K,) within their intervals, none in the race above that of `top`.

        The arm on top must be among those that may be the best: its interval then reaches up to the lower end
        of every other, so that there is room for both.
        """
        out = self.clip(estimates)
        out[top] = max(out[top], min(float(np.max(self.low[racing])), float(self.high[top])))
        out[racing] = np.maximum(np.minimum(out[racing], out[top]), self.low[racing])
        return out


def project_intervals(
    low: ArrayLike,
    high: ArrayLike,
    *,
    active: ArrayLike,
    retired: ArrayLike | None = None,
    leader: int | None = None,
    epsilon: float = np.inf,
) -> Coherent:
    """Return the tightest intervals that follow from given ones and from the claims about the best arm.

    If the active arm s is the best, the gaps g satisfy g_j ≤ g_s for all j, and g_s ≤ g_leader + ε. These are
    constraints on differences, so the box around them is found by one step along each: with
    L = max_j low_j and H = min(high_s, high_leader + ε) there are such gaps if and only if L ≤ H; then
    low_s is L, low_leader at least L − ε, and every high_j at most H. The result is the smallest box that
    holds the boxes of all s.

    Parameters
    ----------
    low, high : array-like (K,)
        Ends of the gap of each arm to a common reference, which is [0, 0] for the reference itself.
    active : array-like (K,) of bool
        The best arm is one of these.
    retired : array-like (K,) of bool, optional
        Arms that the claims are not about: they may be better than the best of the others.
    leader : int, optional
        An arm that is within `epsilon` of the best.
    epsilon : float
        0 for an arm that is declared the best.

    Examples
    --------
    Arm 1 is declared; the intervals alone would leave its gap to arm 0 open.

    >>> found = project_intervals([0, -0.1, -0.2], [0, 0.4, 0.6], active=[False, True, False])
    >>> found.low.tolist(), found.high.tolist()
    ([0.0, 0.0, -0.2], [0.0, 0.4, 0.4])
    """
    low, high = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    racing = np.ones(len(low), dtype=np.bool_) if retired is None else ~np.asarray(retired, dtype=np.bool_)
    candidates = np.asarray(active, dtype=np.bool_) & racing
    ceiling = np.inf if leader is None else high[leader] + epsilon
    # L: the best arm is at least as good as the lower end of any other.
    floor = float(np.max(low[racing]))
    # H, for every arm that may be the best.
    tops = np.minimum(high, ceiling)
    possible = candidates & (tops >= floor)
    if not possible.any() or np.any(low > high):
        return Coherent(low, high, float(epsilon), candidates, is_empty=True)
    highest = float(np.max(tops[possible]))
    new_low, new_high = low.copy(), high.copy()
    new_high[racing] = np.minimum(high[racing], highest)
    if np.count_nonzero(possible) == 1:  # otherwise another arm may be the best, and this one need not be
        new_low[possible] = floor
    within = float(epsilon)
    if leader is not None and candidates[leader]:
        new_low[leader] = max(new_low[leader], floor - epsilon)
        rivals = possible.copy()
        rivals[leader] = False
        # The leader is the best itself, or another arm is, no further above it than the intervals allow.
        lead = float(np.max(tops[rivals])) - float(new_low[leader]) if rivals.any() else 0.0
        within = min(within, max(lead, 0.0))
    # Adding and taking away ε may have moved an end by a rounding error.
    return Coherent(np.minimum(new_low, new_high), new_high, within, possible, is_empty=False)


def pool_above(estimates: ArrayLike, counts: ArrayLike, top: int, racing: ArrayLike) -> Array:
    """Return the nearest estimates of which that of `top` is the largest: least squares weighted by rounds.

    The arm on top and those above it are pooled, the largest first, until the next is below their mean.

    Parameters
    ----------
    estimates, counts : array-like (K,)
        Estimated rewards up to a common level, and the rounds of each arm.
    top : int
    racing : array-like (K,) of bool
        Arms that must not be above it.

    Examples
    --------
    >>> pool_above([0.0, 3.0, 5.0, 1.0], [10, 10, 30, 10], top=1, racing=[True] * 4).tolist()
    [0.0, 4.5, 4.5, 1.0]
    """
    out = np.array(estimates, dtype=np.float64)
    weights = np.maximum(np.asarray(counts, dtype=np.float64), 1.0)
    above = np.flatnonzero(np.asarray(racing, dtype=np.bool_) & (out > out[top]))
    pool = [top]
    mean = float(out[top])
    for arm in above[np.argsort(-out[above])]:
        if out[arm] <= mean:
            break
        pool.append(int(arm))
        mean = float(np.average(out[pool], weights=weights[pool]))
    out[pool] = mean
    return out


def close_differences(upper: ArrayLike) -> tuple[Array, bool]:
    """Return the tightest bounds on differences of K numbers that follow from given ones.

    From x_i − x_k ≤ a and x_k − x_j ≤ b follows x_i − x_j ≤ a + b. The smallest bound is that of the shortest
    path from i to j (Floyd and Warshall); there are such numbers if and only if no path from i to itself is
    negative.

    Parameters
    ----------
    upper : array-like (K, K)
        Entry (i, j) bounds x_i − x_j from above; +inf where nothing is known.

    Returns
    -------
    closed : (K, K) array
    is_empty : bool
        Whether the bounds contradict each other; the result means nothing then.

    Examples
    --------
    >>> closed, is_empty = close_differences([[0, 1, 9], [1, 0, 1], [9, -0.5, 0]])
    >>> closed.tolist(), is_empty
    ([[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [0.5, -0.5, 0.0]], False)
    """
    closed = np.array(upper, dtype=np.float64)
    known = np.abs(closed[np.isfinite(closed)])
    for k in range(len(closed)):
        closed = np.minimum(closed, closed[:, k, np.newaxis] + closed[k])
    is_empty = bool(np.any(np.diag(closed) < -ROUNDING * known.max(initial=0.0)))
    np.fill_diagonal(closed, 0.0)
    return closed, is_empty
