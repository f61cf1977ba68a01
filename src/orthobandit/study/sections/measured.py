"""Numbers with what is known of their error: a value, its standard error and one-sided limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Any

import numpy as np
from scipy import special

from orthobandit._types import Array
from orthobandit.study.sections.fits import Fit

# Chance that one limit lies on the wrong side of the truth.
LEVEL = 1e-3


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
        over, under = np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64)
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
    def exponent(cls, fit: Fit) -> "Measured":
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
