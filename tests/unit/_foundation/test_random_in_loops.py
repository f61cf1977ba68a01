"""Keyed random numbers: the published generator, the right laws, nothing shared between places."""

import numpy as np
import pytest
from scipy import stats

from inside._foundation import GAMMA, beta_at, draw_key, fill_normals, mixed, starting_point, uniform_at


def place(key, step):
    """Return the starting point as what it is in compiled code."""
    return np.uint64(starting_point(key, step))


def test_the_mixing_function_is_splitmix64():
    # First outputs of the reference implementation from seed 0.
    assert [int(mixed(np.uint64((i * int(GAMMA)) % 2**64))) for i in (1, 2, 3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]


def test_keys_belong_to_seed_purpose_and_replication():
    keys = {draw_key(s, p, r) for s in (0, 1) for p in ("a", "b") for r in (0, 1)}
    assert len(keys) == 8
    assert draw_key(3, "a", 7) == draw_key(3, "a", 7)
    assert all(0 <= key < 2**63 for key in keys)


def test_steps_start_at_different_places():
    places = {int(starting_point(key, step)) for key in range(50) for step in range(50)}
    assert len(places) == 2500


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [200_000, 200_001])
def test_normals_are_normal(size, dtype):
    out = np.empty(size, dtype=dtype)
    fill_normals(place(1, 2), out)
    # Seeded, so these hold for ever; 1e-6 is how rarely a right generator would have failed at first.
    assert stats.kstest(out.astype(np.float64), "norm").pvalue > 1e-6
    half = size // 2
    assert abs(np.corrcoef(out[:half], out[half : 2 * half])[0, 1]) < 5 / np.sqrt(half)
    assert abs(np.corrcoef(out[:-1], out[1:])[0, 1]) < 5 / np.sqrt(size)


@pytest.mark.parametrize("size", [1, 2, 3, 1024, 1025, 2500])
def test_normals_are_those_of_box_and_muller(size):
    start = place(4, 5)
    out = np.empty(size)
    fill_normals(start, out)
    bits = [
        int(mixed(np.uint64((int(start) + (i + 1) * int(GAMMA)) % 2**64))) for i in range((size + 1) // 2)
    ]
    u = (np.array([b >> 32 for b in bits]) + 0.5) / 2**32
    low = np.array([b & 0xFFFFFFFF for b in bits])
    x = (low - 2**32 * (low >= 2**31)) / 2**31
    radius = np.sqrt(-2 * np.log(u))
    half = size // 2
    assert out[:half] == pytest.approx((radius * np.cos(np.pi * x))[:half], abs=3e-6)
    assert out[half : 2 * half] == pytest.approx((radius * np.sin(np.pi * x))[:half], abs=3e-6)
    if size % 2:
        assert out[-1] == pytest.approx(radius[-1] * np.cos(np.pi * x[-1]), abs=3e-6)


def test_uniforms_are_uniform_and_inside():
    values = np.array([uniform_at(place(9, 9), i) for i in range(20_000)])
    assert 0 < values.min() < values.max() < 1
    assert stats.kstest(values, "uniform").pvalue > 1e-6


@pytest.mark.parametrize(("a", "b"), [(1.0, 1.0), (2.5, 1.0), (40.0, 3.5)])
def test_beta_numbers_have_the_beta_law(a, b):
    values = [beta_at(place(6, step), arm, a, b) for step in range(2000) for arm in range(5)]
    assert stats.kstest(values, "beta", args=(a, b)).pvalue > 1e-6
