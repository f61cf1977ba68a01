"""Time-uniform boundaries for martingales: how far a sum may stray, at every time at once.

S is a martingale and V its variance process. A boundary u(V) has P(some time: S ≥ u(V)) ≤ α.
All functions take arrays of any shapes that broadcast.

A boundary is tightest near one V, which its parameter ρ stands for, and before an experiment one knows V at
the decision only within orders of magnitude. So supermartingales are mixed over a few ρ: that costs a little
where one guess would have been right, and saves a lot where it would not. A union over boundaries costs more
everywhere, because components that are nearly as good add up in a mixture and do not in a union.

Components are, up to constant factors, 2·exp(e) − 1 for the normal mixture, e = S²/2(V+ρ), and exp(e) − 1 for
the gamma-exponential one, e = S − a·log(1 + S/a) with a = V + ρ. They bound the mixtures of Howard et al.
(2021) from below, by Φ(x) ≥ 1 − exp(−x²/2)/2 and by Chernoff's bound on the gamma law, so they reach 1/α no
sooner, and no special function of S is needed.
"""

from math import exp, expm1, lgamma, log, log1p, pi, sqrt
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from orthobandit._compile import compiled
from orthobandit._types import Array, Mask

STEPS = 200  # of Newton's method between two sides, which takes about six
TOLERANCE = 1e-10  # of a boundary


class Grid(NamedTuple):
    """Multiples of a guessed ρ, and their shares of the mixture."""

    multiples: Array
    shares: Array


# Around a ρ that is known well, as where the number of rounds is: a good guess costs log(1/0.9) in log(1/α),
# a bad one a few units and never more.
NEAR = Grid(1e3 ** np.arange(-2.0, 3.0), np.array([0.025, 0.025, 0.9, 0.025, 0.025]))
# Around a guess that may be off by orders of magnitude either way.
WIDE = Grid(np.array([1.0 / 8000.0, 1.0 / 20.0, 1.0, 20.0, 8000.0]), np.array([0.02, 0.13, 0.7, 0.13, 0.02]))


def tightest_rho(variance: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the mixture parameter ρ whose boundary is tightest near V = `variance`.

    ρ = V/(2·log(1/α) + log(1 + 2·log(1/α))), as in Howard et al. (2021, §3.5).
    """
    double = -2.0 * np.log(np.asarray(alpha, dtype=np.float64))
    return np.asarray(np.asarray(variance, dtype=np.float64) / (double + np.log1p(double)))


def normal_level(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike, grid: Grid) -> Array:
    """Return the exponent of the component that alone has the lowest boundary at V, at its share of α."""
    v, a, r = np.broadcast_arrays(*(np.asarray(one, dtype=np.float64) for one in (variance, alpha, rho)))
    multiples, shares = (one.reshape(-1, *[1] * v.ndim) for one in grid)
    levels = normal_exponent(v, shares * a, multiples * r)
    best = np.argmin((v + multiples * r) * levels, axis=0)[np.newaxis]
    return np.asarray(np.take_along_axis(levels, best, axis=0)[0])


def normal_exponent(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike) -> Array:
    """Return l = log(1 + √((V+ρ)/ρ)/(2α)), the exponent of :func:`normal_mixture`."""
    a, r = np.asarray(alpha, dtype=np.float64), np.asarray(rho, dtype=np.float64)
    total = np.asarray(variance, dtype=np.float64) + r
    return np.asarray(np.logaddexp(0.0, 0.5 * np.log(total / r) - np.log(2.0 * a)))


def normal_mixture(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike) -> Array:
    """Return the one-sided Robbins boundary u(V) = √(2(V+ρ)·l), with l of :func:`normal_exponent`.

    It holds if exp(λS − λ²V/2) is a supermartingale for every λ > 0 (Howard et al. 2021, Eq. 14).
    """
    v, r = np.asarray(variance, dtype=np.float64), np.asarray(rho, dtype=np.float64)
    return np.asarray(np.sqrt(2.0 * (v + r) * normal_exponent(v, alpha, r)))


def reaches_normal(
    total: ArrayLike, variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike, grid: Grid
) -> Mask:
    """Tell whether the mixture of normal mixtures has reached 1/α at S = `total` and V = `variance`.

    It ever does with probability at most α if exp(λS − λ²V/2) is a supermartingale for every λ > 0.
    """
    shape, (total, v, goal, rho) = _flat(total, variance, -np.log(alpha), rho)
    return _reaches(total, v, goal, rho, _offsets(rho, grid), grid.multiples, False).reshape(shape)


def normal_boundary(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike, grid: Grid) -> Array:
    """Return the u(V) at which the mixture of normal mixtures reaches 1/α."""
    shape, (v, goal, rho) = _flat(variance, -np.log(alpha), rho)
    return _roots(v, goal, rho, _offsets(rho, grid), grid.multiples, False).reshape(shape)


def reaches_gamma(
    total: ArrayLike, variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike, grid: Grid
) -> Mask:
    """Tell whether the mixture of gamma-exponential mixtures, of scale 1, has reached 1/α.

    For increments x around predictable centres with x − centre ≥ −1 and V = Σ (x − centre)²,
    exp(λS + (λ + log(1−λ))V) is a supermartingale for λ ∈ [0, 1) (Fan, Grama & Liu 2015), and so is its
    mixture over λ with a gamma density of parameter ρ (Howard et al. 2021, Proposition 9), and over ρ. By
    Ville's inequality it ever reaches 1/α with probability at most α. For another scale c divide S by c and V
    and ρ by c².
    """
    shape, (total, v, goal, rho) = _flat(total, variance, -np.log(alpha), rho)
    # Each gamma component is at most the normal one, as x − log(1 + x) ≤ x²/2 and P(ρ, ρ) ≥ ½: where those
    # have not got there, nothing more is asked.
    out = _reaches(total, v, goal, rho, _offsets(rho, grid), grid.multiples, False)
    doubt = np.flatnonzero(out)
    total, v, goal, rho = (one[doubt] for one in (total, v, goal, rho))
    out[doubt] = _reaches(total, v, goal, rho, _gamma_offsets(rho, grid), grid.multiples, True)
    return out.reshape(shape)


def gamma_boundary(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike, grid: Grid) -> Array:
    """Return the u(V) at which the mixture of gamma-exponential mixtures, of scale 1, reaches 1/α."""
    shape, (v, goal, rho) = _flat(variance, -np.log(alpha), rho)
    return _roots(v, goal, rho, _gamma_offsets(rho, grid), grid.multiples, True).reshape(shape)


def _flat(*arrays: ArrayLike) -> tuple[tuple[int, ...], list[Array]]:
    """Return the shape that arrays broadcast to, and each as one row of so many numbers."""
    shape = np.broadcast_shapes(*(np.shape(one) for one in arrays))
    return shape, [np.array(np.broadcast_to(one, shape), dtype=np.float64).ravel() for one in arrays]


def _offsets(rho: Array, grid: Grid) -> Array:
    """Return the logarithms (n, m) of what in normal components depends on neither S nor V."""
    return np.broadcast_to(np.log(grid.shares), (rho.size, len(grid.shares)))


def _gamma_offsets(rho: Array, grid: Grid) -> Array:
    """Return the same of gamma components."""
    every = rho[:, np.newaxis] * grid.multiples
    least = np.log(scipy.special.gammainc(every, every))
    return np.asarray(np.log(grid.shares) - _remainders(every) - least)


@compiled
def _remainders(values: Array) -> Array:
    out = np.empty(values.shape)
    for i, value in np.ndenumerate(values):
        out[i] = _remainder(value)
    return out


@compiled
def _remainder(a: float) -> float:
    """Return log Γ(a) − (a − ½)·log a + a − ½·log 2π: what Stirling's formula leaves."""
    if a < 20.0:
        return lgamma(a) - (a - 0.5) * log(a) + a - 0.5 * log(2.0 * pi)
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * a**2)) / a**2) / a


@compiled
def _component(total: float, a: float, rho: float, is_gamma: bool) -> tuple[float, float]:
    """Return the logarithm of one component at S > 0 without its offset, and its slope in S."""
    if is_gamma:
        # x − log(1 + x) loses its digits for small x, where its series has them.
        x = total / a
        few = x * x * (0.5 - x * (1.0 / 3.0 - x * (0.25 - x * 0.2)))
        exponent = a * (few if x < 1e-3 else x - log1p(x))
        inside = -expm1(-exponent)
        value = exponent + log(inside) + 0.5 * log(rho / a) + _remainder(a)
        return value, total / (a + total) / inside
    exponent = total * total / (2.0 * a)
    inside = 2.0 - exp(-exponent)
    return exponent + log(inside) + 0.5 * log(rho / a), 2.0 * total / a / inside


@compiled
def _mixture(
    total: float, v: float, rho: float, offsets: Array, multiples: Array, is_gamma: bool
) -> tuple[float, float]:
    """Return the logarithm of the mixture at S > 0, and its slope in S."""
    most, summed, slope = -np.inf, 0.0, 0.0
    for k in range(offsets.size):
        one = rho * multiples[k]
        value, steep = _component(total, v + one, one, is_gamma)
        value += offsets[k]
        if value > most:
            shrink = exp(most - value) if summed > 0.0 else 0.0
            summed, slope, most = summed * shrink, slope * shrink, value
        share = exp(value - most)
        summed += share
        slope += share * steep
    return most + log(summed), slope / summed


@compiled
def _reaches(
    total: Array, v: Array, goal: Array, rho: Array, offsets: Array, multiples: Array, is_gamma: bool
) -> Mask:
    out = np.zeros(v.size, dtype=np.bool_)
    for i in range(v.size):
        if total[i] > 0.0:
            out[i] = _mixture(total[i], v[i], rho[i], offsets[i], multiples, is_gamma)[0] >= goal[i]
    return out


@compiled
def _roots(v: Array, goal: Array, rho: Array, offsets: Array, multiples: Array, is_gamma: bool) -> Array:
    """Return where mixtures reach their goals, never below: Newton's method, kept between two sides."""
    out = np.empty(v.size)
    for i in range(v.size):
        low, high = 0.0, sqrt(2.0 * (v[i] + rho[i]) * (goal[i] + 1.0)) + goal[i]
        while _mixture(high, v[i], rho[i], offsets[i], multiples, is_gamma)[0] < goal[i]:
            low, high = high, 2.0 * high
        here = high
        for _ in range(STEPS):
            value, slope = _mixture(here, v[i], rho[i], offsets[i], multiples, is_gamma)
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
        out[i] = high
    return out
