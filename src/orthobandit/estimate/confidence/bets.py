"""Bets against a claim: boundaries for bounded increments that cost what rounds turned out to be like.

Let x be increments of S around predictable centres, |x| ≤ c in every round, and 0 < λ < 1/c. For z > −1,
log(1 + z) ≥ z − φ(|z|)·z² with φ(y) = (−log(1−y) − y)/y². So exp(λx − φ(λ|x|)·λ²x²) ≤ 1 + λx, whose mean is
1 + λ·(what the centre is off by), and exp(λS − Σφ(λ|x|)·λ²x²) is a supermartingale: the inequality of Fan,
Grama & Liu (2015), *with the size that each round turned out to have* in the place of c. Since
φ(y) ≤ ½ + y/3(1−y), a bet λ costs at most

    λ²V/2 + λ³H/3(1 − λh),    V = Σx², H ≥ Σ|x|³, h ≥ max |x|.

All three may be seen afterwards. What c costs is that no bet may exceed 1/c, and no more: where rounds are
mostly far smaller than c, boundaries are nearly those of normal increments. A mixture of bets is a
supermartingale again, and ever reaches 1/α with probability at most α (Ville).
"""

from math import exp, log
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Mask
from orthobandit.estimate.confidence.boundaries import STEPS, TOLERANCE, Grid, LogBets, flat
from orthobandit.estimate.confidence.evidence import Tuning

# steps of √2 below and above 1/√ρ that bets are mixed over
LOWEST = 80
HIGHEST = 40
BOLDEST = 0.95  # highest bet in units of the one that a single round could ruin
RUINOUS = BOLDEST * (1.0 + 1e-9)  # beyond it by more than rounding
NEGLIGIBLE = 45.0  # what logarithms of parts of a sum may be below the largest
TINY = 1e-300  # least share of a bet


class Spent(NamedTuple):
    """What bets cost: V = Σx², H ≥ Σ|x|³ and h ≥ max |x|; arrays."""

    variance: ArrayLike
    third: ArrayLike
    peak: ArrayLike


def reaches_bets(total: ArrayLike, spent: Spent, tuning: Tuning) -> Mask:
    """Tell whether the mixture of bets has reached 1/α at S = `total`: it ever does with probability α."""
    shape, entries = _entries(spent, tuning, total)
    return _reached(entries, _prior(tuning.grid)).reshape(shape)


def bets_boundary(spent: Spent, tuning: Tuning) -> Array:
    """Return the S at which the mixture of bets reaches 1/α.

    Parameters
    ----------
    spent : Spent
    tuning : Tuning
        Bets are distributed as |N(0, 1/ρ)|, mixed over multiples of ρ, or log-normally around 1/√ρ, and cut
        where c allows no more.
    """
    shape, entries = _entries(spent, tuning, 0.0)
    return _roots(entries, _prior(tuning.grid)).reshape(shape)


def _entries(spent: Spent, tuning: Tuning, total: ArrayLike) -> tuple[tuple[int, ...], Array]:
    """Return the shape of the answer, and rows (7, n): V, H, h, log(1/α), 1/√ρ, the highest bet, S."""
    unit = 1.0 / np.sqrt(tuning.rho)
    cap = BOLDEST / np.asarray(tuning.scale)
    shape, rows = flat(*spent, -np.log(tuning.alpha), unit, cap, total)
    return shape, np.stack(rows)


def _prior(grid: Grid | LogBets) -> Array:
    """Return rows (3, m): bets in units of 1/√ρ, logarithms of their shares and of all from each on."""
    bets = 2.0 ** (np.arange(-LOWEST, HIGHEST + 1) / 2.0)
    edges = np.append(0.0, bets[:-1] * 2.0**0.25)
    if isinstance(grid, LogBets):
        logs = np.append(-np.inf, np.log(edges[1:]))
        left = grid.shares @ scipy.special.ndtr(-logs / grid.deviations[:, np.newaxis])
    else:
        left = grid.shares @ scipy.special.erfc(edges * np.sqrt(grid.multiples / 2.0)[:, np.newaxis])
    shares = -np.diff(left, append=0.0)
    return np.stack([bets, np.log(np.maximum(shares, TINY)), np.log(np.maximum(left, TINY))])


@compiled
def _lines(entry: Array, prior: Array, lines: Array) -> int:
    """Write every bet, and the logarithm of its share less what it cost, to `lines`; return how many.

    Bets above the highest are all made at the highest. Where a round was larger than c, which only modes
    without a declared c allow, bets that it would have ruined are lost.
    """
    v = entry[0]
    third = entry[1]
    peak = entry[2]
    unit = entry[4]
    cap = entry[5]
    for k in range(prior.shape[1]):
        bet = prior[0, k] * unit
        share = prior[1, k]
        is_last = bet >= cap
        if is_last:
            bet = cap
            share = prior[2, k]
        if bet * peak > RUINOUS:
            lines[0, k] = bet
            lines[1, k] = -np.inf
            return max(k, 1)
        lines[0, k] = bet
        lines[1, k] = share - bet * bet * (0.5 * v + bet * third / (3.0 * (1.0 - bet * peak)))
        if is_last:
            return k + 1
    return int(prior.shape[1])


@compiled
def _mixture(total: float, lines: Array) -> tuple[float, float]:
    """Return log Σ exp(line at S) and its slope in S."""
    most = -np.inf
    for k in range(lines.shape[1]):
        most = max(most, lines[1, k] + lines[0, k] * total)
    summed = 0.0
    slope = 0.0
    for k in range(lines.shape[1]):
        far = lines[1, k] + lines[0, k] * total - most
        if far > -NEGLIGIBLE:
            share = exp(far)
            summed += share
            slope += share * lines[0, k]
    return most + log(summed), slope / summed


@compiled
def _reached(entries: Array, prior: Array) -> Mask:
    out = np.zeros(entries.shape[1], dtype=np.bool_)
    lines = np.empty((2, prior.shape[1]))
    for i in range(out.size):
        v = entries[0, i]
        goal = entries[3, i]
        cap = entries[5, i]
        total = entries[6, i]
        # No bet gains more than λS − λ²V/2, which is largest at λ = S/V, or at the highest bet.
        best = min(total / v, cap) if v > 0.0 else cap
        if total > 0.0 and best * (total - 0.5 * best * v) >= goal:
            count = _lines(entries[:, i], prior, lines)
            out[i] = _mixture(total, lines[:, :count])[0] >= goal
    return out


@compiled
def _roots(entries: Array, prior: Array) -> Array:
    """Return where mixtures reach their goals, never below.

    They are convex in S, and at least as large as any one line: from where the first line gets there,
    Newton's method comes down to the root without passing it.
    """
    out = np.empty(entries.shape[1])
    lines = np.empty((2, prior.shape[1]))
    for i in range(out.size):
        goal = entries[3, i]
        here = np.inf
        count = _lines(entries[:, i], prior, lines)
        for k in range(count):
            here = min(here, (goal - lines[1, k]) / lines[0, k])
        if here == np.inf:
            out[i] = here
            continue
        for _ in range(STEPS):
            value, slope = _mixture(here, lines[:, :count])
            step = (value - goal) / slope
            if step <= TOLERANCE * here:
                break
            here -= step
        out[i] = here
    return out
