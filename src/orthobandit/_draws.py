"""Random numbers inside compiled loops, each fixed by a key and a place and by nothing else.

A policy that randomises its plans takes one key a replication from a named stream
(:func:`draw_key`); the numbers of step t are then a function of (key, t). So a plan can be made again from
its state, in any process and in any batch, and always comes out the same.

The generator is SplitMix64 (Steele, Lea & Flood 2014): the i-th number is a mixing function of
start + i·γ. Normals come in pairs by the method of Box & Muller (1958), with logarithm, sine and cosine as
polynomials good to 1e-11: loops over them use vector instructions, and no library's rounding matters.
"""

import math

import numpy as np
from numpy.typing import NDArray

from orthobandit._compile import compiled
from orthobandit._random import stream

Array = NDArray[np.float64]
Bits = NDArray[np.uint64]
# Normals may be stored in single precision too.
Normals = NDArray[np.float32] | NDArray[np.float64]

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)

BLOCK = 512  # pairs made at a time; their work space stays in the first-level cache
LOG_2, LOG_3_HALVES = math.log(2.0), math.log(1.5)
ONE, FRACTION = np.int64(1023 << 52), np.int64((1 << 52) - 1)
HALF = math.pi / 2
# Taylor coefficients of sin(πx/2)/x and cos(πx/2) in x²; the first terms left out are below 1e-11 on [−1, 1].
S = tuple((-1) ** k * HALF ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(9))
C = tuple((-1) ** k * HALF ** (2 * k) / math.factorial(2 * k) for k in range(10))


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
def _fill_bits(start: np.uint64, bits: Bits) -> None:
    for i in range(bits.size):
        bits[i] = mixed(start + GAMMA * np.uint64(i + 1))


@compiled
def _fill_radii(bits: Bits, radii: Array, powers: Array) -> None:
    """Write √(−2 log u) with u = (upper 32 bits + ½)/2³²; `powers` is work space."""
    for i in range(bits.size):
        radii[i] = float(np.int64(bits[i] >> np.uint64(32))) + 0.5
    raw = radii.view(np.int64)
    for i in range(bits.size):
        # 2³²u = 2^e·m with m in [1, 2): the exponent and the fraction of a float.
        powers[i] = float((raw[i] >> 52) - (1023 + 32))
        raw[i] = (raw[i] & FRACTION) | ONE
    for i in range(bits.size):
        # log m = log 1.5 + 2 artanh s
        s = (radii[i] - 1.5) / (radii[i] + 1.5)
        q = s * s
        odd = 1 / 9 + q * (1 / 11 + q * (1 / 13 + q / 15))
        log = 2 * s * (1 + q * (1 / 3 + q * (1 / 5 + q * (1 / 7 + q * odd))))
        radii[i] = np.sqrt(-2.0 * (LOG_2 * powers[i] + (LOG_3_HALVES + log)))


@compiled
def _fill_pairs(bits: Bits, radii: Array, cosines: Normals, sines: Normals) -> None:
    """Write radius·cos(πx) and radius·sin(πx), x uniform on [−1, 1) from the lower 32 bits."""
    for i in range(bits.size):
        x = float(np.int64(bits[i] & np.uint64(0xFFFFFFFF))) * 2.0**-31 - 1.0
        y = x * x
        high = S[4] + y * (S[5] + y * (S[6] + y * (S[7] + y * S[8])))
        sine = x * (S[0] + y * (S[1] + y * (S[2] + y * (S[3] + y * high))))
        high = C[5] + y * (C[6] + y * (C[7] + y * (C[8] + y * C[9])))
        cosine = C[0] + y * (C[1] + y * (C[2] + y * (C[3] + y * (C[4] + y * high))))
        cosines[i] = radii[i] * (cosine * cosine - sine * sine)
        sines[i] = radii[i] * (2.0 * sine * cosine)


@compiled
def fill_normals(start: np.uint64, out: Normals) -> None:
    """Fill `out` (n,) with independent standard normals; uses the numbers 0 … ⌈n/2⌉ − 1 of the step."""
    half = out.size // 2
    bits, radii, powers = np.empty(BLOCK, dtype=np.uint64), np.empty(BLOCK), np.empty(BLOCK)
    for first in range(0, half, BLOCK):
        n = min(BLOCK, half - first)
        _fill_bits(start + GAMMA * np.uint64(first), bits[:n])
        _fill_radii(bits[:n], radii[:n], powers[:n])
        last = half + first
        _fill_pairs(bits[:n], radii[:n], out[first : first + n], out[last : last + n])
    if out.size % 2:
        _fill_bits(start + GAMMA * np.uint64(half), bits[:1])
        _fill_radii(bits[:1], radii[:1], powers[:1])
        _fill_pairs(bits[:1], radii[:1], out[out.size - 1 :], powers[:1])


@compiled
def _gamma_from(start: np.uint64, shape: float) -> float:
    """Return a Gamma(shape) number, shape ≥ 1, from the numbers after `start` (Marsaglia & Tsang 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    normal, index = np.empty(1), 0
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
