"""Numbers with what is known of their error, and power laws fitted to such numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
from scipy import special

from orthobandit._foundation.types import Array
from orthobandit.study.tables import Columns, distinct, grouped, where

# Chance that one limit lies on the wrong side of the truth.
LEVEL = 1e-3
# The schedule, and what is left of it without the parts that make exponents in d larger than ½.
PARTS = ("the whole schedule", "without its d^{3/2} term", "and with log(dK/δ) held fixed")


@dataclass(frozen=True)
class Measured:
    """An estimate between two limits, each of which the truth passes with probability `LEVEL` at most.

    Attributes
    ----------
    value : float
        The estimate.
    error : float or None
        Its standard error; None where the limits are exact and have none.
    low, high : float
        Both equal to the value where nothing is left to chance; ±inf where one run says nothing.

    Examples
    --------
    >>> Measured.share(0, 100)
    Measured(value=0.0, error=None, low=0.0, high=0.066...)
    """

    value: float
    error: float | None
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> "Measured":
        """Return a number that is computed, not sampled."""
        return cls(float(value), 0.0, float(value), float(value))

    @classmethod
    def estimate(cls, value: float, error: float, freedom: int) -> "Measured":
        """Return an estimate with its standard error, which has so many degrees of freedom (Student's t)."""
        if freedom < 1:
            return cls(float(value), None, -inf, inf)
        reach = float(special.stdtrit(freedom, 1 - LEVEL)) * float(error)
        return cls(float(value), float(error), float(value) - reach, float(value) + reach)

    @classmethod
    def mean(cls, values: Any) -> "Measured":
        """Return the mean of independent values (n,)."""
        found = np.asarray(values, dtype=np.float64)
        return cls.estimate(found.mean(), _error(found), found.size - 1)

    @classmethod
    def geometric(cls, values: Any) -> "Measured":
        """Return the geometric mean of independent positive values (n,)."""
        return cls.mean(np.log(np.asarray(values, dtype=np.float64))).exponentiated()

    @classmethod
    def ratio(cls, top: Any, bottom: Any) -> "Measured":
        """Return mean(top)/mean(bottom) of pairs (n,), which may depend on each other within a pair.

        The error is that of the linearised logarithm. Give one pair for each thing that was drawn
        independently: means over runs on one arm set, not the runs.
        """
        over = np.asarray(top, dtype=np.float64)
        under = np.asarray(bottom, dtype=np.float64)
        logarithm = log(over.mean() / under.mean())
        parts = over / over.mean() - under / under.mean()
        return cls.estimate(logarithm, _error(parts), parts.size - 1).exponentiated()

    @classmethod
    def share(cls, hits: int, count: int, among: int = 1) -> "Measured":
        """Return a share of independent runs with exact limits (Clopper & Pearson 1934).

        `among`: the share is the largest of so many, for which the lower limit makes allowance.
        """
        low = float(special.betaincinv(hits, count - hits + 1, LEVEL / among)) if hits else 0.0
        high = float(special.betaincinv(hits + 1, count - hits, 1 - LEVEL)) if hits < count else 1.0
        return cls(hits / count, None, low, high)

    @classmethod
    def exponent(cls, fit: "Fit") -> "Measured":
        """Return the exponent of a fitted power law."""
        return cls.estimate(fit.exponent, fit.error, fit.runs - 1)

    @classmethod
    def largest(cls, found: Sequence["Measured"]) -> "Measured":
        """Return the largest of several; its high limit is right if each one's is."""
        worst = max(found, key=lambda one: one.value)
        return cls(worst.value, worst.error, max(one.low for one in found), max(one.high for one in found))

    def exponentiated(self) -> "Measured":
        """Return exp of an estimate."""
        error = None if self.error is None else exp(self.value) * self.error
        return Measured(exp(self.value), error, _exp(self.low), _exp(self.high))

    def minus(self, number: float) -> "Measured":
        """Return the estimate less a known number."""
        return Measured(self.value - number, self.error, self.low - number, self.high - number)

    def factor_from(self, number: float) -> "Measured":
        """Return by which factor, at least 1, a positive estimate is away from a known positive number.

        To seven digits, since numbers are published with few: equal ones should come out as 1.

        Examples
        --------
        >>> Measured.exactly(387_106).factor_from(387_106.00).high
        1.0
        """
        ends = [log(number / end) if end > 0 else inf for end in (self.low, self.high)]
        near = max(0.0, -ends[0], ends[1])
        away = abs(log(self.value / number))
        far = max(abs(ends[0]), abs(ends[1]))
        error = None if self.error is None else self.error / self.value * exp(away)
        return Measured(round(exp(away), 7), error, round(exp(near), 7), round(_exp(far), 7))

    def to_json(self) -> dict[str, float | None]:
        """Return plain values; None for an error or a limit that is not there."""
        return {
            "value": self.value,
            "error": self.error,
            "low": self.low if np.isfinite(self.low) else None,
            "high": self.high if np.isfinite(self.high) else None,
        }


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / sqrt(values.size)) if values.size > 1 else 0.0


def _exp(value: float) -> float:
    return exp(value) if value < 700 else inf


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


def signed(fit: "Fit") -> str:
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
    d = dimension
    end = 0.0
    worst = 0.0
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
