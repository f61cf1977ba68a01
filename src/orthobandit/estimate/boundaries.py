"""Time-uniform boundaries for martingales: how far a sum may stray, at every time at once.

S is a martingale and V its variance process. A boundary u(V) has P(some time: S ≥ u(V)) ≤ α.
All functions take arrays of any shapes that broadcast.
"""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from orthobandit._types import Array

STEPS = 100  # of Newton's method, which needs about ten
TOLERANCE = 1e-9  # of the boundary; rounding of the log-mixture itself is of this order
GRID = 1e3 ** np.arange(-2.0, 3.0)  # multiples of the guessed ρ
SHARE = np.where(GRID == 1.0, 0.9, 0.025)  # of the mixture


def tightest_rho(variance: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the mixture parameter ρ whose boundary is tightest near V = `variance`.

    ρ = V/(2·log(1/α) + log(1 + 2·log(1/α))), as in Howard et al. (2021, §3.5).
    """
    double = -2.0 * np.log(np.asarray(alpha, dtype=np.float64))
    return np.asarray(np.asarray(variance, dtype=np.float64) / (double + np.log1p(double)))


def chosen(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike) -> tuple[Array, Array]:
    """Return the α and ρ whose boundary is lowest at V, of a grid of ρ around the guess that share α.

    A boundary is tightest near one V, which ρ stands for, and the guess may be wrong by orders of magnitude.
    Each ρ of the grid has its own boundary and its own share of α, so by a union any of them may be used at
    any time. A good guess costs log(1/0.9) in log(1/α), a bad one a few units and never more.
    """
    v, a, r = (np.asarray(one, dtype=np.float64) for one in (variance, alpha, rho))
    grid, share = (one.reshape(-1, *[1] * np.broadcast(v, a, r).ndim) for one in (GRID, SHARE))
    best = np.argmin((v + grid * r) * normal_exponent(v, share * a, grid * r), axis=0)
    return np.asarray(SHARE[best] * a), np.asarray(GRID[best] * r)


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


def log_gamma_mixture(total: ArrayLike, variance: ArrayLike, rho: ArrayLike) -> Array:
    """Return the logarithm of the gamma-exponential mixture at S = `total` and V = `variance`.

    For increments x around predictable centres with x − centre ≥ −1 and V = Σ (x − centre)²,
    exp(λS + (λ + log(1−λ))V) is a supermartingale for λ ∈ [0, 1) (Fan, Grama & Liu 2015), and so is its
    mixture over λ with a gamma density of parameter ρ (Howard et al. 2021, Proposition 9). By Ville's
    inequality it ever reaches 1/α with probability at most α. For another scale c divide S by c and V and
    ρ by c².
    """
    parts = (np.asarray(one, dtype=np.float64) for one in (total, variance, rho))
    return _log_mixture(*parts)[0]


def gamma_mixture(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike) -> Array:
    """Return the u(V) at which :func:`log_gamma_mixture` reaches log(1/α).

    The log-mixture is convex and increasing in S ≥ 0, so Newton's method started above the root falls
    towards it and stays above.
    """
    v, r, goal = np.broadcast_arrays(
        np.asarray(variance, dtype=np.float64),
        np.asarray(rho, dtype=np.float64),
        -np.log(np.asarray(alpha, dtype=np.float64)),
    )
    s = normal_mixture(v, np.exp(-goal), r) + goal
    while np.any(short := _mixture_and_slope(s, v, r)[0] < goal):
        s = np.where(short, 2.0 * s, s)
    found = np.zeros(s.shape, dtype=np.bool_)
    for _ in range(STEPS):
        value, slope = _mixture_and_slope(s, v, r)
        step = np.maximum(value - goal, 0.0) / slope
        # Each entry by itself: what others still need must not change its digits.
        s = np.where(found, s, s - step)
        found |= step <= TOLERANCE * s
        if found.all():
            break
    return np.asarray(s * (1.0 + TOLERANCE))


def _mixture_and_slope(total: Array, v: Array, r: Array) -> tuple[Array, Array]:
    """Return log m and d/dS log m = 1 − a/z + density/distribution of the gamma law with shape a at z."""
    value, far, remainder, log_inside = _log_mixture(total, v, r)
    a = v + r
    z = a + total
    log_density = 0.5 * np.log(a / (2.0 * np.pi)) - np.log(z) - far - remainder
    return value, np.asarray(total / z + np.exp(log_density - log_inside))


def _log_mixture(total: Array, v: Array, r: Array) -> tuple[Array, Array, Array, Array]:
    """Return log m in a form that keeps its digits, and three parts of it.

    With a = V + ρ, z = a + S and Stirling's remainder δ, log m = S − a·log(1 + S/a) + log(ρ/a)/2 + δ(a)
    − δ(ρ) + log P(a, z) − log P(ρ, ρ): nothing of the size of V is added and taken away again. The parts are
    S − a·log(1 + S/a), δ(a) and log P(a, z).
    """
    a = v + r
    far = total - a * np.log1p(total / a)
    log_inside = np.log(scipy.special.gammainc(a, a + total))
    log_least = np.log(scipy.special.gammainc(r, r))
    remainder = _stirling(a)
    value = far + 0.5 * np.log(r / a) + remainder - _stirling(r) + log_inside - log_least
    return np.asarray(value), far, remainder, log_inside


def _stirling(a: Array) -> Array:
    """Return log Γ(a) − (a − ½)·log a + a − ½·log 2π."""
    small = np.minimum(a, 20.0)
    exact = scipy.special.gammaln(small) - (small - 0.5) * np.log(small) + small - 0.5 * np.log(2.0 * np.pi)
    large = np.maximum(a, 20.0)
    series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * large**2)) / large**2) / large
    return np.asarray(np.where(a < 20.0, exact, series))
