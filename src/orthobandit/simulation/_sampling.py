"""Compiled samplers on the package's xoshiro streams: Gaussian, gamma, and the tally of Gaussian noise."""

import numpy as np

from orthobandit._compile import compiled
from orthobandit._random import Words, next_position
from orthobandit._types import Array


@compiled
def next_normal(state: Words) -> float:
    """Return a standard Gaussian number (Marsaglia's polar method)."""
    while True:
        x = 2 * next_position(state) - 1
        y = 2 * next_position(state) - 1
        length = x * x + y * y  # squared, of a point in the square: kept if it lies in the disc
        if 0 < length < 1:
            return float(x * np.sqrt(-2 * np.log(length) / length))


@compiled
def next_gamma(state: Words, shape: float) -> float:
    """Return a gamma number with scale 1 and any shape > 0 (Marsaglia & Tsang 2000)."""
    # Their letters: d·v is proposed, with v = (1 + c·x)³ and x normal; d = shape − ⅓ and c = 1/√(9d).
    boost = 1.0
    if shape < 1:
        boost = (1 - next_position(state)) ** (1 / shape)
        shape += 1
    d = shape - 1 / 3
    c = 1 / np.sqrt(9 * d)
    while True:
        x = next_normal(state)
        v = (1 + c * x) ** 3
        if v > 0 and np.log(1 - next_position(state)) < 0.5 * x * x + d - d * v + d * np.log(v):
            return float(boost * d * v)


@compiled
def add_gaussian(state: Words, mean: float, sigma: float, sums: Array) -> None:
    """Turn (n, Σν, Σν²) of one arm's rounds into (n, Σr, Σr²) with r = mean + ν + N(0, σ²), in place.

    Exact in law with three random numbers: the mean reward is Gaussian; of the scatter around it, the part
    along the centred ν is a Gaussian number w more than that of ν alone, and the rest is σ² times a
    chi-square number with n − 2 degrees of freedom, independent of both.
    """
    n, total, squares = sums[0], sums[1], sums[2]
    if n == 0:
        return
    level = mean + total / n + sigma * next_normal(state) / np.sqrt(n)
    scatter = 0.0
    if n > 1:
        along = np.sqrt(max(squares - total * total / n, 0.0)) + sigma * next_normal(state)
        scatter = along * along
    if n > 2:
        scatter += 2 * sigma * sigma * next_gamma(state, (n - 2) / 2)
    sums[1] = n * level
    sums[2] = n * level * level + scatter
