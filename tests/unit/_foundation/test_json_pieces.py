"""JSON that is written and read in pieces is what ``json`` itself writes and reads."""

import json
import math

import numpy as np
import pytest

from inside._foundation import json_copy, json_text, pack_lists, unpack_lists

TABLE = np.random.default_rng(5).normal(size=(300, 4)).tolist()
VALUES = [
    {},
    {"features": TABLE, "labels": ["é", 'a "quoted" one'], "deep": {"b": 1, "a": [None, True, (1, 2)]}},
    {1: "a key that is no text", "rows": 2},
    [[1, 2]] * 200,
    [[0.5], ["text"]] * 100,
    [],
    math.inf,
]


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("options", [{}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_text_is_that_of_json(value, options):
    assert json_text(value, **options) == json.dumps(value, **options)


def test_keys_are_sorted_at_every_depth():
    options = {"sort_keys": True, "separators": (",", ":")}
    assert json_text(VALUES[1], **options) == json.dumps(VALUES[1], **options)


@pytest.mark.parametrize("value", VALUES[:-1])
def test_a_copy_is_what_json_reads(value):
    found = json_copy(value, allow_nan=False)
    assert found == json.loads(json.dumps(value))
    assert found is not value


def test_what_is_no_json_is_refused():
    for value in ([[math.nan]] * 200, {"a": {"b": math.inf}}, {"a": object()}):
        with pytest.raises((TypeError, ValueError)):
            json_copy(value, allow_nan=False)


@pytest.mark.parametrize(
    "long",
    [
        TABLE,
        list(range(2_000)),
        [True, False] * 1_000,
        [[1.0] * 1_000, [math.inf] * 1_000],
        [[1.0] * 2_000, [2.0]],
        [None] * 2_000,
        [2**70] * 2_000,
    ],
)
def test_long_lists_come_back_as_they_were(long):
    state = {"state": {"long": long, "short": [1.5, 2]}, "notes": [{"long": long}, "text"]}
    found = unpack_lists(json.loads(json.dumps(pack_lists(state))))
    assert found == state
    assert repr(found) == repr(state)
