"""Long arrays inside JSON."""

import json

import numpy as np
import pytest

from inside._foundation import COMPRESS_FROM_BYTES, packed, sparse, unpacked, unsparse
from orthobandit.errors import ParameterError


def test_arrays_survive_json_bit_by_bit():
    array = np.array([[0.1, -0.0, 1e-310], [np.pi, 1e300, 2.0**-1074]])
    back = unpacked("a", json.loads(json.dumps(packed(array))), np.float64, (2, None))
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable
    whole = np.arange(5)
    assert unpacked("n", packed(whole), np.int64, (5,)).tolist() == [0, 1, 2, 3, 4]
    assert unpacked("none", packed(np.zeros((0, 3))), np.float64, (None, 3)).shape == (0, 3)


@pytest.mark.parametrize(
    "array",
    [
        np.array([[0.1, -0.0, np.inf], [np.nan, 5e-324, -1e300]]),
        np.arange(-3, 4) * 2**50,
        np.array([True, False] * 5000),
        np.zeros((2, 0)),
        np.linspace(0, 1, 5000).reshape(50, 100)[:, ::2],
    ],
)
def test_what_is_compressed_survives_too(array):
    data = json.loads(json.dumps(packed(array, compressed=True)))
    assert ("zlib" in data) == (array.nbytes >= COMPRESS_FROM_BYTES)
    back = unpacked("a", data, array.dtype, (None,) * array.ndim)
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()


def test_sparse_vectors_are_short():
    vector = np.zeros(100_000)
    vector[[3, 99_999]] = 0.25, -1.0
    text = json.dumps(sparse(vector))
    assert len(text) < 400
    assert np.array_equal(unsparse("p", json.loads(text), np.float64, 100_000), vector)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([1.0], "is not a packed array"),
        ({"type": "<f8", "shape": [2], "bytes": "?"}, "is not a packed array"),
        ({"type": "<f8", "shape": [3], "bytes": packed(np.zeros(2))["bytes"]}, "is not a packed array"),
        ({"type": "<f8", "shape": [2], "zlib": packed(np.zeros(2))["bytes"]}, "is not a packed array"),
        ("f 2", "is not a packed array"),
        ("x 2 AAAA", "is not a packed array"),
        (packed(np.zeros(3)), r"shape \(3,\) but float64 and \(2,\)"),
        (packed(np.zeros(2, dtype=np.int64)), "has type int64"),
    ],
)
def test_what_is_not_the_array_is_refused_by_name(data, message):
    with pytest.raises(ParameterError, match=message) as error:
        unpacked("rho", data, np.float64, (2,))
    assert "data['rho']" in str(error.value)


def test_a_vector_of_other_arms_is_refused():
    with pytest.raises(ParameterError, match="not a vector of 4"):
        unsparse("p", sparse(np.ones(3)), np.float64, 4)
    broken = {**sparse(np.ones(3)), "length": 2}
    with pytest.raises(ParameterError, match="outside 0 to 1"):
        unsparse("p", broken, np.float64, 2)
