"""Random numbers inside compiled loops, each fixed by a key and a place and by nothing else.

A policy that randomises its plans takes one key a replication from a named stream
(:func:`draw_key`); the numbers of round t are then a function of (key, t). So a plan can be made again from
its state, in any process and in any batch, and always comes out the same.

The generator is SplitMix64 (Steele, Lea & Flood 2014): the i-th number is a mixing function of
start + i·γ. Normals come in pairs by the method of Box & Muller (1958).
"""

import numpy as np
from numpy.typing import NDArray

from orthobandit._compile import compiled
from orthobandit._random import stream

Array = NDArray[np.float64]

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
UNIT = 2.0**-53


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
    return (float(bits >> np.uint64(12)) + 0.5) * (2.0 * UNIT)


@compiled
def fill_normals(start: np.uint64, out: Array) -> None:
    """Fill `out` (n,) with independent standard normals."""
    size = out.size
    for i in range(0, size, 2):
        radius = np.sqrt(-2.0 * np.log(uniform_at(start, i)))
        angle = 2.0 * np.pi * uniform_at(start, i + 1)
        out[i] = radius * np.cos(angle)
        if i + 1 < size:
            out[i + 1] = radius * np.sin(angle)
