"""Time-uniform boundaries for martingales: how far a sum may stray, at every time at once.

S is a martingale and V its variance process. A boundary u(V) has P(some time: S ≥ u(V)) ≤ α.
All functions take arrays of any shapes that broadcast.

A boundary is tightest near one V, which its parameter ρ stands for, and before an experiment one knows V at
the decision only within orders of magnitude. So supermartingales are mixed over a few ρ: that costs a little
where one guess would have been right, and saves a lot where it would not. A union over boundaries costs more
everywhere, because components that are nearly as good add up in a mixture and do not in a union.

Components of the normal mixture are, up to constant factors, 2·exp(e) − 1, e = S²/2(V+ρ). They bound the
mixture of Howard et al. (2021) from below, by Φ(x) ≥ 1 − exp(−x²/2)/2, so they reach 1/α no sooner, and no
special function of S is needed. Where increments are bounded, see
:mod:`orthobandit.estimate.confidence.bets`.
"""

from math import exp, log, log1p, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Mask

STEPS = 200  # of Newton's method between two sides, which takes about six
TOLERANCE = 1e-10  # of a boundary
LOG_TWO = log(2.0)


class Grid(NamedTuple):
    """Multiples of a guessed ρ, and their shares of the mixture."""

    multiples: Array
    shares: Array


class LogBets(NamedTuple):
    """Normal laws of the logarithm of a bet λ, in units of 1/√ρ: standard deviations, and their shares."""

    deviations: Array
    shares: Array


ALONE = Grid(np.ones(1), np.ones(1))
# Around a ρ that is known well, as where the number of rounds is: a good guess costs log(1/0.9) in log(1/α),
# a bad one a few units and never more.
NEAR = Grid(1e3 ** np.arange(-2.0, 3.0), np.array([0.025, 0.025, 0.9, 0.025, 0.025]))
# Around a guess that may be off by orders of magnitude either way.
WIDE = Grid(np.array([1.0 / 8000.0, 1.0 / 20.0, 1.0, 20.0, 8000.0]), np.array([0.02, 0.13, 0.7, 0.13, 0.02]))
# Around the bet 1/√ρ that suits a gap which somebody expects: four fifths within a factor of two or so, and
# one fifth over orders of magnitude, in case the gap is another.
EXPECTED = LogBets(np.array([0.5, 2.5]), np.array([0.8, 0.2]))


def tightest_rho(variance: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the mixture parameter ρ whose boundary is tightest near V = `variance`.

    ρ = V/(2·log(1/α) + log(1 + 2·log(1/α))), as in Howard et al. (2021, §3.5).
    """
    double = -2.0 * np.log(np.asarray(alpha, dtype=np.float64))
    return np.asarray(np.asarray(variance, dtype=np.float64) / (double + np.log1p(double)))


def normal_level(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike, grid: Grid) -> Array:
    """Return the exponent of the component that alone has the lowest boundary at V, at its share of α."""
    shape, (v, a, r) = flat(variance, alpha, rho)
    return _levels(v, a, r, grid.multiples, grid.shares).reshape(shape)


def normal_exponent(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike) -> Array:
    """Return l = log(1 + √((V+ρ)/ρ)/(2α)), the exponent of :func:`normal_mixture`."""
    return normal_level(variance, alpha, rho, ALONE)


def normal_mixture(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike) -> Array:
    """Return the one-sided Robbins boundary u(V) = √(2(V+ρ)·l), with l of :func:`normal_exponent`.

    It holds if exp(λS − λ²V/2) is a supermartingale for every λ > 0 (Howard et al. 2021, Eq. 14).
    """
    v = np.asarray(variance, dtype=np.float64)
    r = np.asarray(rho, dtype=np.float64)
    return np.asarray(np.sqrt(2.0 * (v + r) * normal_exponent(v, alpha, r)))


def reaches_normal(
    total: ArrayLike, variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike, grid: Grid
) -> Mask:
    """Tell whether the mixture of normal mixtures has reached 1/α at S = `total` and V = `variance`.

    It ever does with probability at most α if exp(λS − λ²V/2) is a supermartingale for every λ > 0.
    """
    shape, (total, v, goal, rho) = flat(total, variance, -np.log(alpha), rho)
    return _reaches(total, v, goal, rho, np.log(grid.shares), grid.multiples).reshape(shape)


def normal_boundary(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike, grid: Grid) -> Array:
    """Return the u(V) at which the mixture of normal mixtures reaches 1/α."""
    shape, (v, goal, rho) = flat(variance, -np.log(alpha), rho)
    return _roots(v, goal, rho, np.log(grid.shares), grid.multiples).reshape(shape)


def flat(*arrays: ArrayLike) -> tuple[tuple[int, ...], list[Array]]:
    """Return the shape that arrays broadcast to, and each as one row of so many numbers."""
    shape = np.broadcast_shapes(*(np.shape(one) for one in arrays))
    return shape, [np.array(np.broadcast_to(one, shape), dtype=np.float64).ravel() for one in arrays]


@compiled
def _levels(v: Array, alpha: Array, rho: Array, multiples: Array, shares: Array) -> Array:
    offsets = np.log(shares)
    out = np.empty(v.size)
    for i in range(v.size):
        out[i] = _lowest(v[i], -log(alpha[i]), rho[i], offsets, multiples)[0]
    return out


@compiled
def _lowest(v: float, goal: float, rho: float, offsets: Array, multiples: Array) -> tuple[float, float]:
    """Return the exponent of the component that alone has the lowest boundary, and that boundary squared."""
    lowest = np.inf
    out = 0.0
    for k in range(multiples.size):
        one = rho * multiples[k]
        a = v + one
        # log(1 + √(a/ρ)/2α), whose second part may be beyond all numbers
        level = 0.5 * log(a / one) + goal - LOG_TWO - offsets[k]
        level = level + log1p(exp(-level)) if level > 0.0 else log1p(exp(level))
        if a * level < lowest:
            lowest = a * level
            out = level
    return out, 2.0 * lowest


@compiled
def log_mixture(total: float, v: float, rho: float, offsets: Array, multiples: Array) -> tuple[float, float]:
    """Return the logarithm of the mixture at S > 0, and its slope in S."""
    most = -np.inf
    summed = 0.0
    slope = 0.0
    for k in range(offsets.size):
        a = v + rho * multiples[k]
        exponent = total * total / (2.0 * a)
        inside = 2.0 - exp(-exponent)
        value = offsets[k] + exponent + log(inside) + 0.5 * log(rho * multiples[k] / a)
        if value > most:
            shrink = exp(most - value) if summed > 0.0 else 0.0
            summed = summed * shrink
            slope = slope * shrink
            most = value
        share = exp(value - most)
        summed += share
        slope += share * 2.0 * total / a / inside
    return most + log(summed), slope / summed


@compiled
def _reaches(total: Array, v: Array, goal: Array, rho: Array, offsets: Array, multiples: Array) -> Mask:
    out = np.zeros(v.size, dtype=np.bool_)
    for i in range(v.size):
        # No mixture is above 2·exp(S²/2V).
        if total[i] > 0.0 and total[i] * total[i] >= 2.0 * v[i] * (goal[i] - LOG_TWO):
            out[i] = log_mixture(total[i], v[i], rho[i], offsets, multiples)[0] >= goal[i]
    return out


@compiled
def _roots(v: Array, goal: Array, rho: Array, offsets: Array, multiples: Array) -> Array:
    """Return where mixtures reach their goals, never below: Newton's method, kept between two sides."""
    out = np.empty(v.size)
    for i in range(v.size):
        # One component alone reaches the goal no sooner than all of them, and hardly later.
        low, high = 0.0, sqrt(_lowest(v[i], goal[i], rho[i], offsets, multiples)[1])
        value, slope = log_mixture(high, v[i], rho[i], offsets, multiples)
        while value < goal[i]:
            low, high = high, 2.0 * high
            value, slope = log_mixture(high, v[i], rho[i], offsets, multiples)
        here = high
        for _ in range(STEPS):
            step = (value - goal[i]) / slope
            if value < goal[i]:
                low = here
            else:
                high = here
                if step <= TOLERANCE * here:
                    break
            # A hair above the root of the tangent, so that rounding leaves the last point on the upper side.
            here = here - step + 0.1 * TOLERANCE * here
            if not low < here < high:
                here = 0.5 * (low + high)
            value, slope = log_mixture(here, v[i], rho[i], offsets, multiples)
        out[i] = high
    return out
