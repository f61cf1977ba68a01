"""Power laws fitted to means over runs, and the exponents that SBE's own schedule has at the same points."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np

from orthobandit._types import Array
from orthobandit.study.tables import Columns, distinct, grouped, where

# The schedule, and what is left of it without the parts that make exponents in d larger than ½.
PARTS = ("the whole schedule", "without its d^{3/2} term", "and with log(dK/δ) held fixed")


@dataclass(frozen=True, eq=False)
class Fit:
    """The least-squares line through (log x, log mean y): mean y ≈ factor · x^exponent.

    Attributes
    ----------
    exponent, error : float
        The slope and its standard error, by leaving out one run at a time.
    values : (n,) array
        The fitted means.
    runs : int
        How many runs the means are over.
    """

    exponent: float
    error: float
    values: Array
    runs: int = 1

    @classmethod
    def of(cls, x: Array, y: Array) -> "Fit":
        """Fit x (n,) and positive y (n, runs).

        Examples
        --------
        >>> Fit.of(np.array([1.0, 2.0, 4.0]), np.array([[3.0, 3.0], [6.0, 6.0], [12.0, 12.0]])).exponent
        1.0
        """
        runs = y.shape[1]
        slope, intercept = _line(x, y.mean(axis=1))
        without = [
            _line(x, np.delete(y, run, axis=1).mean(axis=1))[0] for run in range(runs if runs > 1 else 0)
        ]
        error = (
            np.sqrt((runs - 1) / runs * np.sum((np.array(without) - np.mean(without)) ** 2)) if without else 0
        )
        return cls(float(slope), float(error), np.exp(intercept) * np.asarray(x, dtype=float) ** slope, runs)


def signed(fit: Fit) -> str:
    """Return an exponent with its standard error."""
    return f"{fit.exponent:.3f} ± {fit.error:.3f}".replace("-", "−")


def fits(data: Mapping[str, Columns]) -> dict[str, Fit]:
    """Return the fitted power laws."""
    return {key: Fit.of(*points(data, key)) for key in ("T", "d", "anchor", "centred")}


def points(data: Mapping[str, Columns], key: str) -> tuple[Array, Array]:
    """Return x (n,) and y (n, runs) of one check."""
    if key in {"anchor", "centred"}:
        rounds, errors = grouped(where(data["errors"], design=key), "round", "error")
        return rounds.astype(float), errors
    runs = where(data["runs"], check=key)
    if key == "plans":
        horizons, plans = grouped(runs, "horizon", "plans")
        return horizons.astype(float), plans
    if key == "T":
        places = [horizon for (horizon,) in distinct(runs, "horizon")]
        return np.array(places, dtype=float), np.array([_worst(where(runs, horizon=T)) for T in places])
    places = [dimension for (dimension,) in distinct(runs, "dimension")]
    return np.array(places, dtype=float), np.array([_per_root(where(runs, dimension=d)) for d in places])


def schedule_worst(horizon: int, dimension: int, part: str = PARTS[0]) -> float:
    """Return the worst ε_{ℓ−1}·min(T, t_ℓ) of SBE's schedule with δ = 1/T, C₂ = 1 and K = d + 1.

    An arm that is worse by ε_{ℓ−1} may survive phase ℓ, which ends after t_ℓ = n_1 + … + n_ℓ rounds. The
    lengths are those of :func:`~orthobandit.theory.theory_phase_rounds`, not rounded, or some of their parts.

    Examples
    --------
    >>> schedule_worst(2**20, 8) / schedule_worst(2**18, 8)
    2.0
    """
    d, end, worst = dimension, 0.0, 0.0
    arms = log(8 * 9 * horizon) if part == PARTS[2] else log(d * (d + 1) * horizon)
    for phase in range(1, 100):
        epsilon = 2.0**-phase
        share = log(phase * (phase + 1))
        length = d / epsilon**2 * (arms + share - log(epsilon))
        if part == PARTS[0]:
            length += d**1.5 / epsilon * (arms + share)
        end += 4 * length
        worst = max(worst, 2 * epsilon * min(float(horizon), end))
        if end >= horizon:
            break
    return worst


def schedule_exponent(data: Mapping[str, Columns], key: str, part: str = PARTS[0]) -> float:
    """Return the exponent of T or d that the schedule itself has at the points of a check."""
    runs = where(data["runs"], check=key)
    places = distinct(runs, "horizon" if key == "T" else "dimension")
    values = []
    for (place,) in places:
        here = where(runs, **{"horizon" if key == "T" else "dimension": place})
        # As the points are made: regret against T, or regret / √T averaged over T against d.
        logs = [
            log(schedule_worst(T, d, part)) - (log(T) / 2 if key == "d" else 0.0)
            for T, d in distinct(here, "horizon", "dimension")
        ]
        values.append([float(np.exp(np.mean(logs)))])
    return Fit.of(np.array(places, dtype=float)[:, 0], np.array(values)).exponent


def _worst(runs: Columns) -> Array:
    """Return the regret (runs,) at the gap where its mean is largest."""
    _, regret = grouped(runs, "gap", "regret")
    return np.asarray(regret[np.argmax(regret.mean(axis=1))])


def _per_root(runs: Columns) -> Array:
    """Return worst-case regret / √T (runs,), the geometric mean over horizons."""
    horizons = [horizon for (horizon,) in distinct(runs, "horizon")]
    ratios = [_worst(where(runs, horizon=T)) / np.sqrt(T) for T in horizons]
    return np.asarray(np.exp(np.mean(np.log(ratios), axis=0)))


def _line(x: Array, y: Array) -> tuple[float, float]:
    slope, intercept = np.polyfit(np.log(x), np.log(y), 1)
    # Rounded where double precision ends, so that exact powers come out exact.
    return float(np.round(slope, 12)), float(intercept)
