"""Named random streams from one seed, and the only function of the package that draws arms."""

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from orthobandit._compile import compiled
from orthobandit.errors import ParameterError


def stream(seed: int, purpose: str, *indices: int) -> np.random.Generator:
    """Return the generator that belongs to one purpose and one place in it.

    Streams with different purposes or indices are independent, and each depends on nothing but its own
    name: asking for them in another order, in another process or after a restart changes no number.

    Parameters
    ----------
    seed : int
        The experiment's seed, non-negative.
    purpose : str
        What the numbers are for, e.g. ``"noise"`` or ``"arms"``.
    *indices : int
        Where in that purpose, e.g. the replication.

    Examples
    --------
    >>> a, b = stream(7, "noise", 3), stream(7, "noise", 3)
    >>> bool(a.random() == b.random())
    True
    >>> bool(stream(7, "arms", 3).random() == stream(7, "noise", 3).random())
    False
    """
    if seed < 0 or any(not 0 <= index < 2**32 for index in indices):
        raise ParameterError(f"seed={seed} must not be negative and indices={indices} must lie in [0, 2³²)")
    name = int.from_bytes(blake2b(purpose.encode(), digest_size=8).digest(), "big")
    # The name fills two 32-bit words and each index one, so no two (purpose, indices) share a key.
    key = (name >> 32, name & 0xFFFFFFFF, *indices)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


@compiled
def arm_at(cumulative: NDArray[np.float64], position: float) -> int:
    """Return the arm whose slice of [0, 1) holds `position`.

    Parameters
    ----------
    cumulative : (K,) array
        Running sums of the probabilities, ending in exactly 1.
    position : float
        A number in [0, 1).
    """
    low, high = 0, cumulative.size - 1
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > position:
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _fill_arms(
    cumulative: NDArray[np.float64], positions: NDArray[np.float64], arms: NDArray[np.int64]
) -> None:
    for i in range(positions.size):
        arms[i] = arm_at(cumulative, positions[i])


def cumulative_probabilities(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return running sums (..., K) that end in exactly 1 and never select an arm of probability zero.

    Rounding may leave the last running sum a little off 1; the correction is given to the last arm that
    can be drawn, so an arm with probability zero keeps an empty slice.
    """
    cumulative = np.cumsum(probabilities, axis=-1)
    count = probabilities.shape[-1]
    last = count - 1 - np.argmax(probabilities[..., ::-1] > 0, axis=-1)
    cumulative[np.arange(count) >= last[..., np.newaxis]] = 1.0
    return np.minimum(cumulative, 1.0)


def draw_arms(
    generator: np.random.Generator, probabilities: NDArray[np.float64], size: int
) -> NDArray[np.int64]:
    """Draw `size` arms independently from one distribution.

    Parameters
    ----------
    generator : numpy.random.Generator
        A stream made by :func:`stream`.
    probabilities : (K,) array
        The distribution in force.
    size : int
        How many arms to draw.

    Returns
    -------
    (size,) array of int64
        Arm indices.
    """
    arms = np.empty(size, dtype=np.int64)
    _fill_arms(cumulative_probabilities(probabilities), generator.random(size), arms)
    return arms
