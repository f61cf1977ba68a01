"""Comparison of plain data, as `to_json` gives it."""

import pytest


def assert_alike(one, other, rel=1e-9):
    """Compare plain data; numbers up to a relative error of `rel`."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for key in one:
            assert_alike(one[key], other[key], rel)
    elif isinstance(one, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_alike(left, right, rel)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=rel, abs=1e-9)
    else:
        assert one == other
