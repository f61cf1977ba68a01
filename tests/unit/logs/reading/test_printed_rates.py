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
        assert not found.error.any()
    assert digits == 2 or found is not None


def test_counts_of_many_rows_are_off_by_what_is_said():
    rng = np.random.default_rng(0)
    n = rng.integers(50_000, 60_000, 4000).astype(float)
    ones = rng.binomial(n.astype(int), 0.3).astype(float)
    found = ones_of_rates(n, *printed_rates(ones, n, 4))
    off = np.abs(found.counts - ones)
    # An even number of counts has no middle one, so that a little more is said.
    assert 0.75 * found.variance.mean() <= np.mean(off**2) <= found.variance.mean()
    assert np.all(off <= found.error)
    assert found.error.max() <= 3.0


@pytest.mark.parametrize(
    ("mean", "variance"),
    [(0.2, 0.08), (0.2, 0.2), (-0.1, 0.09), (1.2, 0.16), (0.2031, 0.1619)],
)
def test_other_figures_are_no_rates(mean, variance):
    n = np.array([100.0])
    assert ones_of_rates(n, np.array([mean]), np.array([variance]), Printed(5e-5, np.array([5e-5]))) is None


def test_variances_with_all_digits_tell_the_counts_of_rounded_means():
    n, ones = np.array([10_000.0, 10_000.0]), np.array([1000.0, 1234.0])
    rates = ones / n
    variances = rates * (1.0 - rates) * n / (n - 1.0)
    found = ones_of_rates(n, rates.round(2), variances, Printed(0.005, np.zeros(2)))
    assert found.counts.tolist() == ones.tolist()
    assert not found.error.any()


def test_whole_products_prove_nothing_where_every_printed_rate_has_one():
    # 100,000 times any number of four digits is whole, so that 21,234 of 100,000 look like 21,230.
    n, ones = np.array([100_000.0]), np.array([21_234.0])
    found = ones_of_rates(n, *printed_rates(ones, n, 4))
    assert abs(found.counts[0] - ones[0]) <= found.error[0] <= 5.0


@given(st.integers(2, 5), st.integers(0, 1), st.integers(10, 10**6), st.floats(0.0, 1.0))
def test_the_true_count_is_never_further_off_than_is_said(digits, ddof, rows, share):
    n = np.array([float(rows), float(rows)])
    ones = np.array([np.rint(share * rows), np.rint(0.3 * rows)])
    found = ones_of_rates(n, *printed_rates(ones, n, digits, ddof))
    assert found is None or np.all(np.abs(found.counts - ones) <= found.error)


@given(st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_cumulative_counts_are_never_further_off_than_is_said(digits, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, 3000, size=12)
    n, ones = np.cumsum(rows).astype(float), np.cumsum(rng.binomial(rows, 0.3)).astype(float)
    found = ones_of_rates(n, *printed_rates(ones, n, digits))
    if found is None:
        return
    climbing = never_falling(found, n)
    assert np.all(np.abs(climbing.counts - ones) <= climbing.error)
    assert np.all(np.diff(climbing.counts) >= 0)
    assert np.all(np.diff(climbing.counts) <= np.diff(n))


def test_the_last_digit_is_that_of_the_longest_value():
    assert half_unit(np.array([1.0, 3.0])) == 0.5
    assert half_unit(np.array([1.0, 3.25])) == 0.005
    assert half_unit(np.array([np.pi])) == 0.0


def test_counts_that_fall_by_more_than_digits_allow_stay():
    ones = Ones(np.array([50.0, 20.0, 60.0]), np.full(3, 3.0))
    assert never_falling(ones, np.array([1e4, 2e4, 3e4])).counts.tolist() == [50.0, 20.0, 60.0]
