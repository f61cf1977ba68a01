"""Lower limits on the rounds and the regret of every method that finds the best arm under any shift."""

import math

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_fraction, check_positive
from orthobandit._foundation.linalg import whitened
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import Design, contrast_design, earning_design
from orthobandit.errors import Argument, ParameterError

FREE = 1e-9  # what the best arm costs, as part of the smallest gap: the solver needs positive costs


def identification_limit(
    arms: ArmSet,
    means: ArrayLike,
    delta: float,
    *,
    error: float | None = None,
    sigma: float = 1.0,
    gap: float = 1e-4,
) -> float:
    """Return a lower limit on the mean rounds of every method that errs with probability at most δ.

    2σ²·[(1 − e)·log((1 − e)/δ) + e·log(e/δ)]·min_p max_j ‖x* − x_j‖²_{Σ_p⁻¹}/Δ_j² for Gaussian noise of
    variance σ² and a method that is wrong with probability at most δ on every instance, e on this one.

    Why: move θ to where j ties with the best arm. A method that keeps δ on all instances near the tie
    declares that arm with probability at most δ there, and another with at most δ, and runs for ever
    otherwise; here it declares the best with probability 1 − e and another with e. By data processing it
    must have seen at least the bracket of Kullback–Leibler information. The cheapest shift makes up for the
    mean of the difference of rewards, so a round drawn from p tells (θ − θ′)ᵀΣ_p(θ − θ′)/(2σ²), and the
    nearest tie has Δ_j²/(2σ²‖x* − x_j‖²). Σ_p is concave in p, so that plans which change tell no more
    than their average.
    docs/derivations.md gives the proof.

    Parameters
    ----------
    arms : ArmSet
    means : array-like (K,)
        x_aᵀθ, up to a common level; one is the largest.
    delta : float
        δ < ½, the error rate that the method keeps on every instance.
    error : float, optional
        e, its error rate on this instance: at most δ, which is the default and gives the lowest limit.
        Measure a method against its own error rate.
    sigma : float
        Standard deviation of the noise.
    gap : float
        Relative tolerance of the design; what is returned is below the limit by no more.

    Examples
    --------
    >>> round(identification_limit(ArmSet.one_hot(2), [0.5, 0.0], 0.05))
    90
    >>> round(identification_limit(ArmSet.one_hot(2), [0.5, 0.0], 0.05, error=0.0))
    96
    """
    best, gaps = _gaps(arms, means)
    level = _level(delta, error, sigma)
    others = np.flatnonzero(np.arange(len(arms)) != best)
    pairs = np.column_stack([np.full(len(others), best), others])
    design = contrast_design(arms, pairs, gaps[others] ** -2.0, gap)
    # The design is optimal up to 1 + gap: divided by that, what is returned is below the true minimum.
    return level * _worst(arms, design, pairs, gaps) / (1.0 + gap)


def regret_limit(
    arms: ArmSet,
    means: ArrayLike,
    delta: float,
    *,
    error: float | None = None,
    sigma: float = 1.0,
    gap: float = 1e-3,
) -> float:
    """Return a lower limit on the mean regret of every method that errs with probability at most δ.

    2σ²·[(1 − e)·log((1 − e)/δ) + e·log(e/δ)]·min_p (Σ_a p_a·Δ_a)·max_j ‖x* − x_j‖²_{Σ_p⁻¹}/Δ_j²: what the
    rounds of :func:`identification_limit` tell, at the least cost. Parameters are the same.

    Examples
    --------
    >>> round(regret_limit(ArmSet.one_hot(2), [0.5, 0.0], 0.05), 1)
    11.2
    """
    best, gaps = _gaps(arms, means)
    level = _level(delta, error, sigma)
    others = np.flatnonzero(np.arange(len(arms)) != best)
    pairs = np.column_stack([np.full(len(others), best), others])
    # If the best arm cost nothing, the infimum would be reached only by playing it nearly always. With this
    # cost the optimum is within about √FREE of it, far less than `gap`, by which the result is lowered.
    costs = np.maximum(gaps, FREE * gaps[others].min())
    design = earning_design(arms, pairs, gaps[others] ** -2.0, costs, gap)
    return level * float(design.probabilities @ gaps) * _worst(arms, design, pairs, gaps) / (1.0 + gap)


def _gaps(arms: ArmSet, means: ArrayLike) -> tuple[int, Array]:
    """Return the best arm and the gaps (K,) to it."""
    given = np.asarray(means, dtype=np.float64)
    if given.shape != (len(arms),) or len(arms) < 2 or not np.all(np.isfinite(given)):
        raise ParameterError(
            f"means have shape {given.shape}; {len(arms)} finite numbers, at least 2, are needed"
        )
    best = int(np.argmax(given))
    gaps = given[best] - given
    if np.count_nonzero(gaps == 0) > 1:
        raise ParameterError(
            "two arms share the largest mean; no number of rounds tells which of two equal arms is best"
        )
    return best, gaps


def _level(delta: float, error: float | None, sigma: float) -> float:
    """Return 2σ²·[(1 − e)·log((1 − e)/δ) + e·log(e/δ)], e = δ by default."""
    check_fraction("delta", delta)
    check_positive("sigma", sigma)
    if delta >= 0.5:
        raise ParameterError(Argument("delta", delta), " must be below 1/2: a guess would do")
    e = delta if error is None else error
    if not 0.0 <= e <= delta:
        raise ParameterError(
            Argument("error", error),
            f" must lie between 0 and delta={delta}: a method that keeps δ on every instance"
            " keeps it on this one",
        )
    wrong = e * math.log(e / delta) if e > 0 else 0.0
    return 2.0 * sigma**2 * ((1.0 - e) * math.log((1.0 - e) / delta) + wrong)


def _worst(arms: ArmSet, design: Design, pairs: Whole, gaps: Array) -> float:
    """Return max_j ‖x* − x_j‖²_{Σ_p⁻¹}/Δ_j²."""
    white, _ = whitened(arms.positions, design.probabilities)
    apart = white[pairs[:, 0]] - white[pairs[:, 1]]
    return float(np.max(np.sum(apart**2, axis=1) / gaps[pairs[:, 1]] ** 2))
