"""Numbers with limits of their error, and power laws through such numbers.

Each limit lies on the wrong side of the truth with probability ``LEVEL`` at most, so that all verdicts of a
report are right together with probability 1 − ``FAMILY``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
from scipy import special

from orthobandit._foundation.types import Array

# Chance that one limit lies on the wrong side of the truth. A verdict is wrong only if one particular limit
# of its number is, so a report of up to MOST_VERDICTS has none wrong with probability 1 − FAMILY.
FAMILY = 0.05
MOST_VERDICTS = 150
LEVEL = FAMILY / MOST_VERDICTS
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Limits that rest on Student's t are computed at a part of LEVEL, since skewed data pass them more often than
# they say. How often in simulation, of 8 to 100 values: at most LEVEL (.033 %) for gamma and exponential
# values and for log-normal ones up to a coefficient of variation of ½, and for ratios and geometric means up
# to a coefficient of 1 (tests/statistical/test_report_limits.py). Means of log-normal values with a
# coefficient of 1 are the exception: .03 % with 100 values, but .15 % with 20.
CAREFUL = 0.3
CAREFUL_MEAN = 0.15
MOST_SKEWED = 1.5  # the correction for skewness widens a limit by this factor at most: beyond it is not valid


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
    Measured(value=0.0, error=None, low=0.0, high=0.0769...)
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
    def estimate(cls, value: float, error: float, freedom: int, among: int = 1) -> "Measured":
        """Return an estimate with its standard error, which has so many degrees of freedom (Student's t).

        `among`: it is the largest of so many, for which the lower limit makes allowance.
        """
        if freedom < 1:
            return cls(float(value), None, -inf, inf)
        below = _quantile(freedom, CAREFUL / among) * float(error)
        above = _quantile(freedom, CAREFUL) * float(error)
        return cls(float(value), float(error), float(value) - below, float(value) + above)

    @classmethod
    def mean(cls, values: Any, among: int = 1) -> "Measured":
        """Return the mean of independent values (n,); `among` as in :meth:`estimate`.

        Limits are the wider of Student's t and of Hall's (1992) transformation, which takes the skewness
        of the values out of the t-statistic. Means of positive values also have an upper limit on the log
        scale, and none below 0.
        """
        array = np.asarray(values, dtype=np.float64)
        mean = cls._corrected(array, among)
        if mean.error is None or not np.all(array > 0):
            return mean
        reach = _quantile(array.size - 1, CAREFUL_MEAN)
        high = max(mean.high, _exp(log(mean.value) + reach * mean.error / mean.value))
        return cls(mean.value, mean.error, max(mean.low, 0.0), high)

    @classmethod
    def _corrected(cls, values: Array, among: int = 1) -> "Measured":
        """Return the mean with limits that are corrected for skewness."""
        mean = float(values.mean())
        if values.size < 2:
            return cls(mean, None, -inf, inf)
        error = _error(values)
        skewness = _skewness(values) / sqrt(values.size)
        below, _ = _skewed(_quantile(values.size - 1, CAREFUL_MEAN / among), skewness)
        _, above = _skewed(_quantile(values.size - 1, CAREFUL_MEAN), skewness)
        return cls(mean, error, mean - below * error, mean + above * error)

    @classmethod
    def geometric(cls, values: Any) -> "Measured":
        """Return the geometric mean of independent positive values (n,)."""
        return cls._corrected(np.log(np.asarray(values, dtype=np.float64))).exponentiated()

    @classmethod
    def ratio(cls, top: Any, bottom: Any, among: int = 1) -> "Measured":
        """Return mean(top)/mean(bottom) of pairs (n,), which may depend on each other within a pair.

        `among` as in :meth:`estimate`. The error is that of the linearised logarithm. Give one pair for each
        thing that was drawn independently: means over runs on one arm set, not the runs.
        """
        over = np.asarray(top, dtype=np.float64)
        under = np.asarray(bottom, dtype=np.float64)
        logarithm = log(over.mean() / under.mean())
        parts = over / over.mean() - under / under.mean()
        return cls.estimate(logarithm, _error(parts), parts.size - 1, among).exponentiated()

    @classmethod
    def share(cls, hits: int, count: int, among: int = 1) -> "Measured":
        """Return a share of independent runs with exact limits (Clopper & Pearson 1934).

        `among`: the share is the largest of so many, for which the lower limit makes allowance.
        """
        low = float(special.betaincinv(hits, count - hits + 1, LEVEL / among)) if hits else 0.0
        high = float(special.betaincinv(hits + 1, count - hits, 1 - LEVEL)) if hits < count else 1.0
        return cls(hits / count, None, low, high)

    @classmethod
    def exponent(cls, fit: "Fit", among: int = 1) -> "Measured":
        """Return the exponent of a fitted power law; `among` as in :meth:`estimate`."""
        return cls.estimate(fit.exponent, fit.error, fit.runs - 1, among)

    @classmethod
    def largest(cls, numbers: Sequence["Measured"]) -> "Measured":
        """Return the largest of several, each computed as one `among` so many.

        Its high limit is right if the high limit of what is truly the largest is; its low limit, if all are.
        """
        worst = max(numbers, key=lambda number: number.value)
        low = max(number.low for number in numbers)
        high = max(number.high for number in numbers)
        return cls(worst.value, worst.error, low, high)

    def exponentiated(self) -> "Measured":
        """Return exp of an estimate."""
        error = None if self.error is None else exp(self.value) * self.error
        return Measured(exp(self.value), error, _exp(self.low), _exp(self.high))

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

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{short(self.value)}, computed exactly"
        digits, _, power = f"{LEVEL:.0e}".partition("e")
        level = f"{digits}·10{str(int(power)).translate(SUPERSCRIPTS)}"
        return f"{short(self.value)}, from {short(self.low)} to {short(self.high)} at level {level}"

    def to_json(self) -> dict[str, float | None]:
        """Return plain values; None for an error or a limit that is not there."""
        return {
            "value": self.value,
            "error": self.error,
            "low": self.low if np.isfinite(self.low) else None,
            "high": self.high if np.isfinite(self.high) else None,
        }


def short(number: float) -> str:
    """Return a number in three digits, or to the nearest whole one.

    Examples
    --------
    >>> short(-0.3244), short(1_881_513.94), short(float("inf"))
    ('−0.324', '1,881,514', '∞')
    """
    shown = f"{number:,.0f}" if 1000 <= abs(number) < inf else f"{number:.3g}"
    return shown.replace("-", "−").replace("inf", "∞")


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / sqrt(values.size)) if values.size > 1 else 0.0


def _skewness(values: Array) -> float:
    """Return the third central moment over the cube of the standard deviation; 0 where all are alike."""
    off = values - values.mean()
    spread = float(np.sqrt(np.mean(off**2)))
    # Rounding makes a spread of alike values tiny, not 0.
    if spread <= 1e-12 * float(np.abs(values).max(initial=0.0)):
        return 0.0
    return float(np.mean((off / spread) ** 3))


def _quantile(freedom: int, part: float) -> float:
    return float(special.stdtrit(freedom, 1 - part * LEVEL))


def _skewed(reach: float, a: float) -> tuple[float, float]:
    """Return how many standard errors the limits are below and above a mean; a is the skewness / √n."""
    low, high = _hall(reach, a)
    most = MOST_SKEWED * reach
    return min(max(reach, high), most), min(max(reach, -low), most)


def _hall(reach: float, a: float) -> tuple[float, float]:
    """Return where T + a(T²/3 + 1/6) + a²T³/27 is −reach and reach."""
    # Near 0 the formula is a difference of nearly equal numbers, and the correction below one part in 10⁶.
    if abs(a) < 1e-6:
        return -reach, reach
    low, high = (3 / a * (float(np.cbrt(1 + a * (end - a / 6))) - 1) for end in (-reach, reach))
    return low, high


def _exp(value: float) -> float:
    # exp overflows near 709.8; a limit that far out means that nothing is known on that side.
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
        values = np.exp(intercept) * np.asarray(x, dtype=float) ** slope
        if not without:
            return cls(float(slope), 0.0, values, runs)
        error = np.sqrt((runs - 1) / runs * np.sum((np.array(without) - np.mean(without)) ** 2))
        return cls(float(slope), float(error), values, runs)


def _line(x: Array, y: Array) -> tuple[float, float]:
    slope, intercept = np.polyfit(np.log(x), np.log(y), 1)
    # Rounded where double precision ends, so that exact powers come out exact.
    return float(np.round(slope, 12)), float(intercept)
