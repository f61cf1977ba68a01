"""Numbers have digits that mean something, the same ones wherever they are shown."""

import pytest

from orthobandit.showing.numbers import (
    half_width,
    lift_words,
    more_words,
    number,
    places_of,
    rows_words,
    share_words,
    span_words,
    time_words,
)


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((0.0101, 0.0503), "+0.010 to +0.050"),
        ((-1234.5, 99.0), "-1,234 to +99"),
        ((None, 0.5), "−∞ to +0.50"),
        ((0.5, None), "+0.50 to ∞"),
        ((float("-inf"), 2.0), "−∞ to +2.0"),
        ((float("nan"), None), "not known yet"),
        ((1e-12, 3e-12), "+1e-12 to +3e-12"),
        ((-3e14, 1e14), "-3e+14 to +1e+14"),
        ((1000.10, 1000.11), "+1,000.100 to +1,000.110"),
        ((-0.0004, 0.05), "-0.0004 to +0.0500"),
        ((0.0, 0.0), "0 to 0"),
    ],
)
def test_intervals_have_digits_that_mean_something(interval, words):
    assert span_words(interval) == words


def test_words_for_what_is_not_there():
    assert number(None) == number(float("inf")) == ""
    assert half_width((None, 1.0)) == lift_words((None, None)) == more_words(None) == ""
    assert share_words(float("nan")) == ""
    assert places_of([]) == 0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (0.0, "1.0"),
        (7.31, "7.3"),
        (99.6, "100"),
        (996.0, "1.0k"),
        (1.24e6, "1.2M"),
        (3e9, "3.0G"),
        (4e15, "4.0e15"),
    ],
)
def test_numbers_of_rows_are_short(rows, words):
    assert rows_words(rows) == words


def test_times_are_dates_where_they_are_times_of_a_clock():
    assert time_words(61.0, 600.0, True) == "00:01:01"
    assert time_words(0.0, 7200.0, True) == "1 Jan 00:00"
    assert time_words(0.0, 1e8, True) == "1 Jan 1970"
    assert time_words(1234567.0, 1e8, False) == "1,234,567"
    assert time_words(1e300, 1e8, True) == "1e+300"


@pytest.mark.parametrize("value", [0.0, -0.0, 0.004, -0.004])
def test_what_is_rounded_to_zero_has_no_sign(value):
    assert number(value, 2, "+") == number(value, 2) == "0.00"
