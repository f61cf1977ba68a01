"""Named random streams from one seed, and the only functions of the package that draw arms."""

from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import ParameterError

Words = NDArray[np.uint64]


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
    return np.random.Generator(np.random.PCG64(_sequence(seed, purpose, *indices)))


def compiled_stream(seed: int, purpose: str, *indices: int) -> Words:
    """Return the state (4,) of a xoshiro256++ generator, named as in :func:`stream`.

    Compiled code draws from it with :func:`next_position`; many states stack into one array, so that a batch
    of replications is played in one call.
    """
    return np.asarray(_sequence(seed, purpose, *indices).generate_state(4, np.uint64), dtype=np.uint64)


def _sequence(seed: int, purpose: str, *indices: int) -> np.random.SeedSequence:
    check_whole("seed", seed, least=0)
    if any(not 0 <= index < 2**32 for index in indices):
        raise ParameterError(f"indices={indices} must lie in [0, 2³²)")
    name = int.from_bytes(blake2b(purpose.encode(), digest_size=8).digest(), "big")
    # The name fills two 32-bit words and each index one, so no two (purpose, indices) share a key.
    key = (name >> 32, name & 0xFFFFFFFF, *indices)
    return np.random.SeedSequence(seed, spawn_key=key)


@compiled
def next_bits(state: Words) -> np.uint64:
    """Return 64 random bits and move `state` (4,) on: xoshiro256++ (Blackman & Vigna 2021)."""
    a = state[0]
    b = state[1]
    c = state[2]
    d = state[3]
    total = a + d
    bits = ((total << np.uint64(23)) | (total >> np.uint64(41))) + a
    shifted = b << np.uint64(17)
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    state[0] = a
    state[1] = b
    state[2] = c
    state[3] = (d << np.uint64(45)) | (d >> np.uint64(19))
    return np.uint64(bits)


@compiled
def next_position(state: Words) -> float:
    """Return a number in [0, 1), a multiple of 2⁻⁵³, and move `state` (4,) on."""
    return np.float64(next_bits(state) >> np.uint64(11)) * 2.0**-53


@compiled
def arm_at(cumulative: Array, position: float) -> int:
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
def _fill_arms(cumulative: Array, positions: Array, arms: Whole) -> None:
    for i in range(positions.size):
        arms[i] = arm_at(cumulative, positions[i])


def cumulative_probabilities(probabilities: Array) -> Array:
    """Return running sums (..., K) that end in exactly 1 and never select an arm of probability zero.

    Rounding may leave the last running sum a little off 1; the correction is given to the last arm that
    can be drawn, so an arm with probability zero keeps an empty slice.
    """
    cumulative = np.cumsum(probabilities, axis=-1)
    count = probabilities.shape[-1]
    last = count - 1 - np.argmax(probabilities[..., ::-1] > 0, axis=-1)
    cumulative[np.arange(count) >= last[..., np.newaxis]] = 1.0
    return np.minimum(cumulative, 1.0)


def draw_arms(generator: np.random.Generator, probabilities: Array, size: int) -> Whole:
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
    return arms_at(cumulative_probabilities(probabilities), generator.random(size))


def arms_at(cumulative: Array, positions: Array) -> Whole:
    """Return the arm at each of the positions (n,); see :func:`arm_at`."""
    arms = np.empty(len(positions), dtype=np.int64)
    _fill_arms(cumulative, positions, arms)
    return arms


class DrawTable(NamedTuple):
    """Alias tables (Walker 1977; Vose 1991) of a batch of distributions: one number draws one arm.

    The columns of a row are the arms that can be drawn, so an arm of probability zero never is.

    Attributes
    ----------
    columns : (R,) array of int
        How many columns each row uses.
    threshold : (R, K) array
        A column keeps the part of its unit slice below this.
    arms : (R, 2K) array of int
        The arm of each column below and from its threshold on, in turn.
    """

    columns: Whole
    threshold: Array
    arms: Whole

    @classmethod
    def of(cls, probabilities: Array) -> "DrawTable":
        """Tabulate distributions (R, K)."""
        rows, count = probabilities.shape
        table = cls(
            np.zeros(rows, dtype=np.int64),
            np.ones((rows, count)),
            np.zeros((rows, 2 * count), dtype=np.int64),
        )
        fill_table(probabilities, *table)
        return table


@compiled
def fill_table(
    probabilities: Array,
    columns: Whole,
    threshold: Array,
    arms: Whole,
) -> None:
    rows, count = probabilities.shape
    short = np.empty(count, np.int64)
    long = np.empty(count, np.int64)
    for r in range(rows):
        size = 0
        for arm in range(count):
            if probabilities[r, arm] > 0:
                arms[r, 2 * size] = arms[r, 2 * size + 1] = arm
                size += 1
        columns[r] = size
        shorts = 0
        longs = 0
        for c in range(size):
            threshold[r, c] = probabilities[r, arms[r, 2 * c]] * size
            if threshold[r, c] < 1:
                short[shorts] = c
                shorts += 1
            else:
                long[longs] = c
                longs += 1
        while shorts and longs:
            shorts -= 1
            c = short[shorts]
            giver = long[longs - 1]
            arms[r, 2 * c + 1] = arms[r, 2 * giver]
            threshold[r, giver] -= 1 - threshold[r, c]
            if threshold[r, giver] < 1:
                longs -= 1
                short[shorts] = giver
                shorts += 1
        # What is left over is a whole column but for rounding; both its halves are its own arm.


@compiled
def table_arm(table: DrawTable, row: int, position: float) -> int:
    """Return the arm that `position` in [0, 1) selects from one row of a table."""
    scaled = position * table.columns[row]
    column = int(scaled)
    return int(table.arms[row, 2 * column + (scaled - column >= table.threshold[row, column])])


@compiled
def tally_draws(table: DrawTable, row: int, state: Words, values: Array, sums: Array) -> None:
    """Draw an arm for every value and add (1, value, value²) to that arm's row of `sums` (K, ≥ 3)."""
    for value in values:
        arm = table_arm(table, row, next_position(state))
        sums[arm, 0] += 1
        sums[arm, 1] += value
        sums[arm, 2] += value * value
