"""Random numbers: named streams from one seed, the only functions that draw arms, and numbers inside loops.

A stream belongs to a purpose and a place in it (:func:`stream`), so that a run which is resumed, cut or
spread over processes draws what the uninterrupted one would.

A policy that randomises its plans takes one key a replication from such a stream (:func:`draw_key`); the
numbers of step t are then a function of (key, t). So a plan can be made again from its state, in any process
and in any batch, and always comes out the same. The generator is SplitMix64 (Steele, Lea & Flood 2014): the
i-th number is a mixing function of start + i·γ. Normals come in pairs by the method of Box & Muller (1958) in
single precision, with logarithm, sine and cosine as polynomials good to about 1e-7: loops over them use
vector instructions, and no library's rounding matters.
"""

import math
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import Argument, ParameterError

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
        raise ParameterError(Argument("indices", indices), " must lie in [0, 2³²)")
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


Singles = NDArray[np.float32]
# Normals are made in single precision; what they are stored in may be double.
Normals = Singles | Array

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)

BLOCK_PAIRS = 512  # pairs made at a time; their work space stays in the first-level cache
F = np.float32  # every constant must be single, or the arithmetic would be double
HALF_PI = math.pi / 2
# Taylor coefficients of sin(πx/2)/x and cos(πx/2) in x²: the first terms left out are below 1e-7 on [−1, 1].
S = tuple(F((-1) ** k * HALF_PI ** (2 * k + 1) / math.factorial(2 * k + 1)) for k in range(6))
C = tuple(F((-1) ** k * HALF_PI ** (2 * k) / math.factorial(2 * k)) for k in range(7))
# artanh(s)/s in s²; |s| ≤ 1/5 below.
A = tuple(F(1 / (2 * k + 1)) for k in range(5))
LOG_2 = F(math.log(2.0))
LOG_3_HALVES = F(math.log(1.5))
ZERO = F(0)
HALF = F(0.5)
THREE_HALVES = F(1.5)
TWO = F(2)
UNIT = F(2.0**-31)


def draw_key(seed: int, purpose: str, replication: int) -> int:
    """Return the key in [0, 2⁶³) of one purpose in one replication."""
    return int(stream(seed, purpose, replication).integers(2**63))


@compiled
def mixed(value: np.uint64) -> np.uint64:
    """Return 64 well-mixed bits, one to one."""
    value = (value ^ (value >> np.uint64(30))) * FIRST
    value = (value ^ (value >> np.uint64(27))) * SECOND
    return value ^ (value >> np.uint64(31))


@compiled
def starting_point(key: int, step: int) -> np.uint64:
    """Return where the numbers of one step begin; steps of one key start far apart."""
    return mixed(mixed(np.uint64(key)) + GAMMA * np.uint64(step))


@compiled
def uniform_at(start: np.uint64, index: int) -> float:
    """Return the index-th number of a step, uniform on the open interval (0, 1)."""
    bits = mixed(start + GAMMA * np.uint64(index + 1))
    return (float(np.int64(bits >> np.uint64(12))) + 0.5) * 2.0**-52


@compiled
def _fill_bits(start: np.uint64, upper: NDArray[np.uint32], lower: NDArray[np.int32]) -> None:
    for i in range(upper.size):
        bits = mixed(start + GAMMA * np.uint64(i + 1))
        upper[i] = np.uint32(bits >> np.uint64(32))
        lower[i] = np.int32(bits & np.uint64(0xFFFFFFFF))


@compiled
def _fill_radii(upper: NDArray[np.uint32], radii: Singles, powers: Singles) -> None:
    """Write √(−2 log u) with u = (upper + ½)/2³²; `powers` is work space."""
    for i in range(upper.size):
        radii[i] = F(upper[i]) + HALF
    raw = radii.view(np.int32)
    for i in range(upper.size):
        # 2³²u = 2^e·m with m in [1, 2): the exponent and the fraction of a single.
        powers[i] = F(np.int32((raw[i] >> 23) - (127 + 32)))
        raw[i] = (raw[i] & 0x7FFFFF) | (127 << 23)
    for i in range(upper.size):
        # log m = log 1.5 + 2 artanh s
        s = (radii[i] - THREE_HALVES) / (radii[i] + THREE_HALVES)
        q = s * s
        log = TWO * s * (A[0] + q * (A[1] + q * (A[2] + q * (A[3] + q * A[4]))))
        square = -TWO * (LOG_2 * powers[i] + (LOG_3_HALVES + log))
        radii[i] = np.sqrt(square if square > ZERO else ZERO)


@compiled
def _fill_pairs(lower: NDArray[np.int32], radii: Singles, cosines: Normals, sines: Normals) -> None:
    """Write radius·cos(πx) and radius·sin(πx), x = lower/2³¹ in [−1, 1)."""
    for i in range(lower.size):
        x = F(lower[i]) * UNIT
        y = x * x
        sine = x * (S[0] + y * (S[1] + y * (S[2] + y * (S[3] + y * (S[4] + y * S[5])))))
        high = C[3] + y * (C[4] + y * (C[5] + y * C[6]))
        cosine = C[0] + y * (C[1] + y * (C[2] + y * high))
        cosines[i] = radii[i] * (cosine * cosine - sine * sine)
        sines[i] = radii[i] * (TWO * sine * cosine)


@compiled
def fill_normals(start: np.uint64, out: Normals) -> None:
    """Fill `out` (n,) with independent standard normals; uses the numbers 0 … ⌈n/2⌉ − 1 of the step."""
    half = out.size // 2
    odd = out.size % 2
    upper, lower = np.empty(BLOCK_PAIRS, dtype=np.uint32), np.empty(BLOCK_PAIRS, dtype=np.int32)
    radii = np.empty(BLOCK_PAIRS, dtype=np.float32)
    powers = np.empty(BLOCK_PAIRS, dtype=np.float32)
    for first in range(0, half + odd, BLOCK_PAIRS):
        n = min(BLOCK_PAIRS, half + odd - first)
        _fill_bits(start + GAMMA * np.uint64(first), upper[:n], lower[:n])
        _fill_radii(upper[:n], radii[:n], powers[:n])
        pairs = min(n, half - first)
        last = half + first
        _fill_pairs(lower[:pairs], radii[:pairs], out[first : first + pairs], out[last : last + pairs])
    if odd:
        k = half % BLOCK_PAIRS
        _fill_pairs(lower[k : k + 1], radii[k : k + 1], out[2 * half :], powers[:1])


@compiled
def _gamma_from(start: np.uint64, shape: float) -> float:
    """Return a Gamma(shape) number, shape ≥ 1, from the numbers after `start` (Marsaglia & Tsang 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    normal = np.empty(1)
    index = 0
    while True:
        fill_normals(start + GAMMA * np.uint64(2 * index), normal)
        x = normal[0]
        v = (1.0 + c * x) ** 3
        u = uniform_at(start, 2 * index + 1)
        if v > 0.0 and np.log(u) < 0.5 * x * x + d - d * v + d * np.log(v):
            return float(d * v)
        index += 1


@compiled
def beta_at(start: np.uint64, index: int, a: float, b: float) -> float:
    """Return the index-th Beta(a, b) number of a step, a, b ≥ 1."""
    first = _gamma_from(mixed(start + np.uint64(2 * index + 1)), a)
    second = _gamma_from(mixed(start + np.uint64(2 * index + 2)), b)
    return first / (first + second)
