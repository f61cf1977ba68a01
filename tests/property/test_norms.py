"""The norm on the range of a matrix is the limit of vanishing ridge: finite exactly inside the range."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from inside._foundation import RangeFactor, solve_ridge

SMALL = st.integers(-3, 3).map(float)


@st.composite
def matrices(draw, width=None):
    """BᵀB for small whole numbers B with at most 4 columns: positive semidefinite, often singular."""
    width = draw(st.integers(1, 4)) if width is None else width
    root = draw(arrays(np.float64, (draw(st.integers(0, width)), width), elements=SMALL))
    return root.T @ root


def ridged(matrix, z, ridge):
    return float(z @ solve_ridge(matrix, z, ridge))


def null_part(matrix, z):
    """Length of the part of z outside the range, from a singular value decomposition."""
    left, values, _ = np.linalg.svd(matrix)
    return float(np.linalg.norm(left[:, values < 1e-9].T @ z))


@given(matrices(), st.data())
def test_inside_the_range_it_is_the_limit_of_vanishing_ridge(matrix, data):
    weights = data.draw(arrays(np.float64, len(matrix), elements=SMALL))
    z = matrix @ weights
    # z = A w, so zᵀA⁻¹z = wᵀA w.
    norm = float(RangeFactor.of(matrix).norm_squared(z))
    assert np.isclose(norm, weights @ matrix @ weights, rtol=1e-9, atol=1e-9)
    approach = [ridged(matrix, z, ridge) for ridge in (1e-2, 1e-4, 1e-6)]
    assert all(value <= norm * (1 + 1e-9) + 1e-9 for value in approach)
    assert np.isclose(approach[-1], norm, rtol=1e-3, atol=1e-9)


@given(matrices(), st.data())
def test_outside_the_range_it_is_infinite(matrix, data):
    z = data.draw(arrays(np.float64, len(matrix), elements=SMALL))
    outside = null_part(matrix, z)
    norm = float(RangeFactor.of(matrix).norm_squared(z))
    assert np.isinf(norm) == (outside > 1e-6)
    if outside > 1e-6:
        # The ridge solution grows without bound, as |part outside|² / ridge.
        assert ridged(matrix, z, 1e-6) >= 0.99 * outside**2 / 1e-6


@given(matrices(), st.data())
def test_the_norm_does_not_depend_on_units(matrix, data):
    z = data.draw(arrays(np.float64, len(matrix), elements=SMALL))
    powers = data.draw(arrays(np.float64, len(matrix), elements=st.integers(-12, 12).map(float)))
    units = 10.0**powers
    scaled = RangeFactor.of(matrix * np.outer(units, units))
    plain = RangeFactor.of(matrix)
    assert int(scaled.rank) == int(plain.rank)
    assert np.isclose(scaled.norm_squared(z * units), plain.norm_squared(z), rtol=1e-9)


@given(st.integers(1, 4), st.data())
def test_a_batch_is_its_members_one_by_one(width, data):
    batch = np.stack(data.draw(st.lists(matrices(width), min_size=1, max_size=4)))
    z = data.draw(arrays(np.float64, (len(batch), width), elements=SMALL))
    together = RangeFactor.of(batch)
    for i, matrix in enumerate(batch):
        alone = RangeFactor.of(matrix)
        assert int(together.rank[i]) == int(alone.rank)
        assert np.isclose(together.norm_squared(z)[i], alone.norm_squared(z[i]), rtol=1e-12)
