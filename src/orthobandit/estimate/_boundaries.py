"""Time-uniform boundaries for martingales: how far a sum may stray, at every time at once.

S is a martingale and V its variance process. A boundary u(V) has P(some time: S ≥ u(V)) ≤ α.
All functions take arrays of any shapes that broadcast.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc, gammaln

Array = NDArray[np.float64]

STEPS = 100  # of Newton's method, which needs about ten
TOLERANCE = 1e-9  # of the boundary; rounding of the log-mixture itself is of this order


def tightest_rho(variance: ArrayLike, alpha: ArrayLike) -> Array:
    """Return the mixture parameter ρ whose boundary is tightest near V = `variance`.

    ρ = V/(2·log(1/α) + log(1 + 2·log(1/α))), as in Howard et al. (2021, §3.5).
    """
    double = -2.0 * np.log(np.asarray(alpha, dtype=np.float64))
    return np.asarray(np.asarray(variance, dtype=np.float64) / (double + np.log1p(double)))


def normal_mixture(variance: ArrayLike, alpha: ArrayLike, rho: ArrayLike) -> Array:
    """Return the one-sided Robbins boundary u(V) = √(2(V+ρ)·log(1 + √((V+ρ)/ρ)/(2α))).

    Exact for Gaussian increments with known variance, asymptotic on an empirical V (Howard et al. 2021,
    Eq. 14; Waudby-Smith et al. 2024).
    """
    a, r = np.asarray(alpha, dtype=np.float64), np.asarray(rho, dtype=np.float64)
    total = np.asarray(variance, dtype=np.float64) + r
    return np.asarray(np.sqrt(2.0 * total * np.log1p(np.sqrt(total / r) / (2.0 * a))))


def log_gamma_mixture(total: ArrayLike, variance: ArrayLike, rho: ArrayLike) -> Array:
    """Return the logarithm of the gamma-exponential mixture at S = `total` and V = `variance`.

    For increments x around predictable centres with x − centre ≥ −1 and V = Σ (x − centre)²,
    exp(λS + (λ + log(1−λ))V) is a supermartingale for λ ∈ [0, 1) (Fan, Grama & Liu 2015), and so is its
    mixture over λ with a gamma density of parameter ρ (Howard et al. 2021, Proposition 9). By Ville's
    inequality it ever reaches 1/α with probability at most α. For another scale c divide S by c and V and
    ρ by c².
    """
    r = np.asarray(rho, dtype=np.float64)
    v = np.asarray(variance, dtype=np.float64)
    return _mixture_and_slope(np.asarray(total, dtype=np.float64), v, r)[0]


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
    while np.any(short := log_gamma_mixture(s, v, r) < goal):
        s = np.where(short, 2.0 * s, s)
    for _ in range(STEPS):
        value, slope = _mixture_and_slope(s, v, r)
        step = np.maximum(value - goal, 0.0) / slope
        s = s - step
        if np.all(step <= TOLERANCE * s):
            break
    return np.asarray(s * (1.0 + TOLERANCE))


def _mixture_and_slope(total: Array, v: Array, r: Array) -> tuple[Array, Array]:
    """Return log m and d/dS log m = 1 − a/z + density/distribution of the gamma law with shape a at z."""
    a, z = v + r, total + v + r
    log_z, log_shape, log_inside = np.log(z), gammaln(a), np.log(gammainc(a, z))
    constant = r * np.log(r) - gammaln(r) - np.log(gammainc(r, r))
    value = constant + log_shape + log_inside - a * log_z + (total + v)
    slope = 1.0 - a / z + np.exp((a - 1.0) * log_z - z - log_shape - log_inside)
    return np.asarray(value), np.asarray(slope)
