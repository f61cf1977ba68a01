"""Rates that were printed with a few digits: the whole counts behind them, as far as the digits tell.

A rate k/n that was rounded to d digits lies within half of 10⁻ᵈ of what is printed. If n·10⁻ᵈ < 1, a single
whole number k does, and rounding has lost nothing. Otherwise k is off by about a uniform variable of variance
(n·10⁻ᵈ)²/12, which intervals have to allow for.
"""

from typing import NamedTuple

import numpy as np

from orthobandit._foundation.types import Array

MAX_DIGITS = 12  # after the point, up to which figures are taken to be rounded
WHOLE = 1e-6  # how far n·mean may be from a whole number by the rounding of floats
# Room that digits leave for variances, as a share of those of zeros and ones, from which they prove nothing.
MAX_ROOM = 0.1


class Printed(NamedTuple):
    """What printing has moved figures by at most.

    Attributes
    ----------
    means : float
        Half a unit of the last digit of the means; 0 if they have all digits.
    variances : (G,) array
        The same for each variance.
    """

    means: float
    variances: Array


class Ones(NamedTuple):
    """How many of the values of each row (G,) are 1, and the variance that rounding adds to that (G,)."""

    counts: Array
    rounding: Array


def half_unit(values: Array) -> float:
    """Return half a unit of the last digit that values (n,) were printed with; 0 if they have all digits.

    Examples
    --------
    >>> half_unit(np.array([0.25, 0.1234])), half_unit(np.array([1.0 / 3.0]))
    (5e-05, 0.0)
    """
    for digits in range(MAX_DIGITS):
        if np.array_equal(np.round(values, digits), values):
            return float(0.5 * 10.0**-digits)
    return 0.0


def ones_of_rates(n: Array, means: Array, variances: Array, printed: Printed) -> Ones | None:
    """Return the counts behind rates (G,); None if the figures cannot be those of zeros and ones.

    Parameters
    ----------
    n, means, variances : (G,) arrays
        Values of each row, and their mean and sample variance as printed. Variances divided by n instead of
        n − 1 are known as well.
    printed : Printed

    Examples
    --------
    >>> n, rates = np.array([1026.0, 976.0]), np.array([0.2027, 0.1957])
    >>> ones = ones_of_rates(n, rates, np.array([0.1618, 0.1576]), Printed(5e-5, np.full(2, 5e-5)))
    >>> ones.counts.tolist(), ones.rounding.tolist()
    ([208.0, 191.0], [0.0, 0.0])
    """
    counts = np.rint(n * means)
    rates = counts / n
    slack = printed.means + WHOLE / n
    if np.any((rates < 0) | (rates > 1) | (np.abs(rates - means) > slack)):
        return None
    # The true rate is within twice the half unit of this one, and its variance within the slope times that.
    largest = rates * (1.0 - rates)
    room = printed.variances + 2.0 * np.abs(1.0 - 2.0 * rates) * printed.means + 4.0 * printed.means**2
    sample = largest * n / np.maximum(n - 1.0, 1.0)
    fits = (variances >= largest - room - WHOLE * largest) & (variances <= sample + room + WHOLE * largest)
    if not np.all(fits | (n == 1)) or n @ room > MAX_ROOM * (n @ largest):
        return None
    step = 2.0 * printed.means * n
    # Rates of which each is that of a whole number were not rounded: 12 % of 10,000.
    are_whole = np.all(np.abs(n * means - counts) <= WHOLE)
    return Ones(counts, np.where(are_whole | (step < 1.0), 0.0, step**2 / 12.0))


def never_falling(ones: Ones, n: Array) -> Array:
    """Return cumulative counts (S,) that neither fall nor outgrow their rows, where digits leave a choice.

    Examples
    --------
    >>> ones = Ones(np.array([50.0, 48.0, 60.0]), np.full(3, 3.0))
    >>> never_falling(ones, np.array([20_000.0, 21_000.0, 22_000.0])).tolist()
    [50.0, 50.0, 60.0]
    """
    out = ones.counts.copy()
    room = np.sqrt(3.0 * ones.rounding)
    for place in range(1, len(out)):
        lowest = out[place - 1]
        highest = lowest + max(n[place] - n[place - 1], 0.0)
        wanted = min(max(out[place], lowest), highest)
        if abs(wanted - out[place]) <= room[place] + room[place - 1]:
            out[place] = wanted
    return out
