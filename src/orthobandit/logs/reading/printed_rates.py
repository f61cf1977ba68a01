"""Rates that were printed with a few digits: the whole counts behind them, as far as the digits tell.

A rate k/n that was rounded to d digits lies within h, half of 10⁻ᵈ, of what is printed, and so does its
variance, a function of k and n as well. Both leave few whole numbers k, mostly one: then rounding has lost
nothing. Where they leave more, what is lost is known too: k is off by no more than the farthest of them.
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
    """How many of the values of each row (G,) are 1, and by how much that may be off at most (G,)."""

    counts: Array
    error: Array

    @property
    def variance(self) -> Array:
        """The variance (G,) of the error, if all counts that digits leave open are as likely."""
        return self.error * (self.error + 1.0) / 3.0


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
    >>> ones.counts.tolist(), ones.error.tolist()
    ([208.0, 191.0], [0.0, 0.0])
    """
    rates = np.rint(n * means) / n
    largest = rates * (1.0 - rates)
    # The true rate is within twice the half unit of this one, and its variance within the slope times that.
    room = printed.variances + 2.0 * np.abs(1.0 - 2.0 * rates) * printed.means + 4.0 * printed.means**2
    if n @ room > MAX_ROOM * (n @ largest):
        return None
    ranges = [_possible(n, means, variances, printed, ddof) for ddof in (0.0, 1.0)]
    known = [ends for ends in ranges if ends is not None]
    if not known:
        return None
    lowest = np.min([low for low, _ in known], axis=0)
    highest = np.max([high for _, high in known], axis=0)
    counts = np.clip(np.rint(n * means), lowest, highest)
    return Ones(counts, np.maximum(highest - counts, counts - lowest))


def _possible(
    n: Array, means: Array, variances: Array, printed: Printed, ddof: float
) -> tuple[Array, Array] | None:
    """Return the smallest and the largest count (G,) with such a mean and variance; None if a row has none.

    The variance k(n − k)/(n(n − ddof)) grows with k up to n/2 and falls after it, so that counts with
    variances in a range lie in two ranges, on either side of n/2. Those between the two may be named as well.
    """
    low = np.maximum(np.ceil(n * (means - printed.means) - WHOLE), 0.0)
    high = np.minimum(np.floor(n * (means + printed.means) + WHOLE), n)
    per_variance = n * (n - ddof)
    room = printed.variances + WHOLE * np.abs(variances)
    is_single = n == 1  # it has no variance
    least = np.where(is_single, 0.0, (variances - room) * per_variance)
    most = np.where(is_single, n**2, (variances + room) * per_variance)
    # k(n − k) is between these where |k − n/2| is between:
    square = 0.25 * n**2
    if np.any(least > square * (1.0 + WHOLE)):
        return None
    near = np.sqrt(np.maximum(square - most, 0.0))
    far = np.sqrt(np.maximum(square - least, 0.0))
    sides = []
    for first, last in ((0.5 * n - far, 0.5 * n - near), (0.5 * n + near, 0.5 * n + far)):
        first, last = np.maximum(low, np.ceil(first - WHOLE)), np.minimum(high, np.floor(last + WHOLE))
        sides.append((np.where(first <= last, first, np.inf), np.where(first <= last, last, -np.inf)))
    (first, last), (other_first, other_last) = sides
    lowest, highest = np.minimum(first, other_first), np.maximum(last, other_last)
    return (lowest, highest) if np.all(lowest <= highest) else None


def never_falling(ones: Ones, n: Array) -> Ones:
    """Return cumulative counts (S,) that neither fall nor outgrow their rows, where digits leave a choice.

    Each count is bounded by those before and after it, which may leave fewer choices. Counts that fall by
    more than digits allow are returned as they are.

    Examples
    --------
    >>> ones = Ones(np.array([50.0, 48.0, 60.0]), np.full(3, 3.0))
    >>> never_falling(ones, np.array([20_000.0, 21_000.0, 22_000.0])).counts.tolist()
    [50.0, 50.0, 60.0]
    """
    low, high = ones.counts - ones.error, ones.counts + ones.error
    added = np.maximum(np.diff(n), 0.0)
    low = np.maximum(low, 0.0)
    high = np.minimum(high, n)
    for at in range(1, len(n)):
        low[at] = max(low[at], low[at - 1])
        high[at] = min(high[at], high[at - 1] + added[at - 1])
    for at in range(len(n) - 2, -1, -1):
        low[at] = max(low[at], low[at + 1] - added[at])
        high[at] = min(high[at], high[at + 1])
    if np.any(low > high):
        return ones
    counts = np.clip(ones.counts, low, high)
    for at in range(1, len(n)):
        counts[at] = np.clip(counts[at], counts[at - 1], counts[at - 1] + added[at - 1])
    return Ones(counts, np.maximum(high - counts, counts - low))
