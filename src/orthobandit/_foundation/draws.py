"""Random numbers inside compiled loops, each fixed by a key and a place and by nothing else.

A policy that randomises its plans takes one key a replication from a named stream
(:func:`draw_key`); the numbers of step t are then a function of (key, t). So a plan can be made again from
its state, in any process and in any batch, and always comes out the same.

The generator is SplitMix64 (Steele, Lea & Flood 2014): the i-th number is a mixing function of
start + i·γ. Normals come in pairs by the method of Box & Muller (1958) in single precision, with logarithm,
sine and cosine as polynomials good to about 1e-7: loops over them use vector instructions, and no library's
rounding matters.
"""

import math

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.random import stream
from orthobandit._foundation.types import Array

Singles = NDArray[np.float32]
# Normals are made in single precision; what they are stored in may be double.
Normals = Singles | Array

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)

BLOCK = 512  # pairs made at a time; their work space stays in the first-level cache
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
    upper, lower = np.empty(BLOCK, dtype=np.uint32), np.empty(BLOCK, dtype=np.int32)
    radii = np.empty(BLOCK, dtype=np.float32)
    powers = np.empty(BLOCK, dtype=np.float32)
    for first in range(0, half + odd, BLOCK):
        n = min(BLOCK, half + odd - first)
        _fill_bits(start + GAMMA * np.uint64(first), upper[:n], lower[:n])
        _fill_radii(upper[:n], radii[:n], powers[:n])
        pairs = min(n, half - first)
        last = half + first
        _fill_pairs(lower[:pairs], radii[:pairs], out[first : first + pairs], out[last : last + pairs])
    if odd:
        k = half % BLOCK
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
