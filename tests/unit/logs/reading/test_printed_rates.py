"""Counts behind rates that were printed with a few digits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orthobandit.logs.reading.printed_rates import Ones, Printed, half_unit, never_falling, ones_of_rates


def printed_rates(ones, n, digits, ddof=1):
    rates = ones / n
    variances = (rates * (1.0 - rates) * n / (n - ddof)).round(digits)
    half = 0.5 * 10.0**-digits
    return rates.round(digits), variances, Printed(half, np.full(len(n), half))


@given(st.integers(2, 4), st.integers(0, 1), st.data())
def test_counts_of_few_rows_are_restored(digits, ddof, data):
    size = st.integers(10, 10**digits - 1)
    n = np.array(data.draw(st.lists(size, min_size=1, max_size=8)), dtype=float)
    share = np.array(data.draw(st.lists(st.floats(0.2, 0.8), min_size=len(n), max_size=len(n))))
    ones = np.rint(share * n)
    found = ones_of_rates(n, *printed_rates(ones, n, digits, ddof))
    if found is not None:  # two digits may leave too much open
        assert found.counts.tolist() == ones.tolist()
        assert not found.rounding.any()
    assert digits == 2 or found is not None


def test_counts_of_many_rows_are_off_by_what_is_said():
    rng = np.random.default_rng(0)
    n = rng.integers(50_000, 60_000, 4000).astype(float)
    ones = rng.binomial(n.astype(int), 0.3).astype(float)
    found = ones_of_rates(n, *printed_rates(ones, n, 4))
    off = (found.counts - ones) ** 2
    assert off.mean() == pytest.approx(found.rounding.mean(), rel=0.1)
    assert np.sqrt(off.max()) <= np.sqrt(3.0 * found.rounding.max()) + 0.5


@pytest.mark.parametrize(
    ("mean", "variance"),
    [(0.2, 0.08), (0.2, 0.2), (-0.1, 0.09), (1.2, 0.16), (0.2031, 0.1619)],
)
def test_other_figures_are_no_rates(mean, variance):
    n = np.array([100.0])
    assert ones_of_rates(n, np.array([mean]), np.array([variance]), Printed(5e-5, np.array([5e-5]))) is None


def test_rates_of_whole_counts_were_not_rounded():
    n, means = np.array([10_000.0, 10_000.0]), np.array([0.1, 0.12])
    found = ones_of_rates(n, means, means * (1.0 - means), Printed(0.005, np.zeros(2)))
    assert found.counts.tolist() == [1000.0, 1200.0]
    assert not found.rounding.any()


def test_the_last_digit_is_that_of_the_longest_value():
    assert half_unit(np.array([1.0, 3.0])) == 0.5
    assert half_unit(np.array([1.0, 3.25])) == 0.005
    assert half_unit(np.array([np.pi])) == 0.0


def test_counts_that_fall_by_more_than_digits_allow_stay():
    ones = Ones(np.array([50.0, 20.0, 60.0]), np.full(3, 3.0))
    assert never_falling(ones, np.array([1e4, 2e4, 3e4])).tolist() == [50.0, 20.0, 60.0]
