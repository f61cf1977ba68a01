"""Arrays as plain lists, with what JSON has not."""

import json

import numpy as np
import pytest

from orthobandit._foundation.json_arrays import numbers_of, plain


@pytest.mark.parametrize("given", [[1.0, -np.inf, 0.1], [[np.nan, 2.0]], 3.0, np.inf, []])
def test_what_is_not_finite_is_null_and_all_else_survives_exactly(given):
    read = numbers_of(json.loads(json.dumps(plain(given), allow_nan=False)), np.nan)
    array = np.asarray(given, dtype=float)
    assert read.shape == array.shape
    assert np.array_equal(read, np.where(np.isfinite(array), array, np.nan), equal_nan=True)


def test_null_is_what_the_reader_says():
    assert numbers_of([None, 1.0], -np.inf).tolist() == [-np.inf, 1.0]
