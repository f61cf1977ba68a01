"""Power laws fitted to means over runs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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


def _line(x: Array, y: Array) -> tuple[float, float]:
    slope, intercept = np.polyfit(np.log(x), np.log(y), 1)
    # Rounded where double precision ends, so that exact powers come out exact.
    return float(np.round(slope, 12)), float(intercept)
