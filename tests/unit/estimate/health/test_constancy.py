"""The test of whether gaps drift: how its splits share α."""

import pytest

from orthobandit.estimate.health.constancy import level_of


@pytest.mark.parametrize("gaps", [1, 3])
def test_both_sides_of_both_intervals_of_all_splits_share_alpha(gaps):
    # A false alarm needs one of two intervals of a gap at a split to be wrong, to one of two sides.
    used = sum(4.0 * level_of(0.01, number, gaps).sum() for number in range(1000))
    # Σ 1/((n+1)(n+2)) over n < N is 1 − 1/(N + 1).
    assert used == pytest.approx(0.01 * (1.0 - 1.0 / 1001.0), rel=1e-12)
