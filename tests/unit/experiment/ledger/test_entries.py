"""Entries of the log check themselves and cannot be changed."""

import numpy as np
import pytest

from orthobandit.errors import ParameterError, RewardError
from orthobandit.experiment.ledger.entries import Asked, Noted, Told, encode_entry


def asked(**changes):
    values = {
        "at": 5.0,
        "first": 1,
        "plan": 1,
        "distribution": 2,
        "arms": [0, 3],
        "forecasts": [[0.1, 0.2]],
        "units": ("ann", None),
        "held": [False, True],
        "covariates": ({"age": 3}, {}),
    }
    return Asked(**(values | changes))


def test_an_entry_keeps_a_copy_that_cannot_be_written_to():
    arms = np.array([0, 3])
    entry = asked(arms=arms)
    arms[0] = 2
    assert entry.arms.tolist() == [0, 3]
    for array in (entry.arms, entry.forecasts, entry.held):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    told = Told(5.0, "signup", [1], [1])
    assert (told.values.dtype, told.proposals.dtype) == (np.float64, np.int64)
    assert not told.values.flags.writeable


def test_negative_zeros_become_zeros():
    assert not np.signbit(Told(-0.0, "signup", [1], [-0.0]).values).any()
    assert not np.signbit(asked(forecasts=[[-0.0, 1.0]]).forecasts).any()


def test_units_that_are_all_none_are_no_units():
    assert asked(units=(None, None)).units == ()


def test_data_are_kept_as_json_gives_them_back():
    data = {"number": 3, "pair": (1, 2), "deep": {"0.1": 0.1}}
    note = Noted(1, "plan", data)
    assert note.data == {"number": 3, "pair": [1, 2], "deep": {"0.1": 0.1}}
    data["deep"]["0.1"] = 7
    assert note.data["deep"] == {"0.1": 0.1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arms": []}, r"arms has shape \(0,\); give a list of at least one"),
        ({"arms": [[1]]}, r"arms has shape \(1, 1\)"),
        ({"arms": [0.5, 1.0]}, "arms of type float64 cannot be taken as int64"),
        ({"arms": [-1, 0]}, "must be at least 0 and 1"),
        ({"first": 0}, "first=0 must be at least 0 and 1"),
        ({"forecasts": [0.1, 0.2]}, r"forecasts have shape \(2,\); give \(metrics, 2\)"),
        ({"forecasts": [[0.1, float("nan")]]}, "must be finite; the running mean can stand in"),
        ({"held": [True]}, r"held has shape \(1,\); give one for each of the 2 arms"),
        ({"units": ("ann",)}, "there are 1 units for 2 arms"),
        ({"units": (1, None)}, "unit 1 must be text without null characters"),
        ({"units": ("a\0b", None)}, "null characters"),
        ({"units": ("\ud800", None)}, "must be text"),
        ({"covariates": ({},)}, "there are covariates for 1 of 2 arms"),
        ({"covariates": ({}, {"age": float("inf")})}, "covariate 'age'=inf must be a finite number"),
        ({"at": float("nan")}, "at=nan must be a finite number of seconds"),
    ],
)
def test_a_wrong_question_is_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        asked(**changes)


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ((1.0, "", [1], [1.0]), ParameterError, "metric='' must be a name"),
        ((1.0, "signup", [0], [1.0]), ParameterError, "must be numbers of proposals, from 1"),
        ((1.0, "signup", [1], [1.0, 2.0]), ParameterError, r"values have shape \(2,\), proposals \(1,\)"),
        ((1.0, "signup", [1], [float("nan")]), RewardError, "must be finite numbers"),
        ((1.0, "signup", [1], ["x"]), ParameterError, "cannot be taken as float64"),
    ],
)
def test_a_wrong_reward_is_refused(values, error, message):
    with pytest.raises(error, match=message):
        Told(*values)


@pytest.mark.parametrize(
    ("kind", "data", "message"),
    [
        ("asked", {}, "other than 'asked' and 'told'"),
        ("pause", {"x": float("nan")}, "data of kind 'pause' cannot be kept as JSON"),
        ("pause", {"x": np.int64(3)}, "not JSON serializable"),
        ("pause", [1], "must be a dict"),
        ("plan", {}, "data of kind 'plan' must have a whole 'number'"),
    ],
)
def test_a_wrong_note_is_refused(kind, data, message):
    with pytest.raises(ParameterError, match=message):
        Noted(1.0, kind, data)


def test_encodings_are_equal_for_the_same_entry_only():
    changes = [
        {},
        {"at": 6.0},
        {"first": 2},
        {"plan": 2},
        {"distribution": 1},
        {"arms": [3, 0]},
        {"forecasts": [[0.1, np.nextafter(0.2, 1)]]},
        {"forecasts": [[0.1, 0.2], [0.1, 0.2]]},
        {"units": ("ann", "bob")},
        {"units": ()},
        {"held": [True, False]},
        {"covariates": ({"age": 3}, {"age": 3})},
        {"covariates": ()},
    ]
    entries = [asked(**change) for change in changes]
    entries += [Told(5.0, "a", [1], [1.0]), Told(5.0, "b", [1], [1.0]), Told(5.0, "a", [2], [1.0])]
    entries += [Noted(5.0, "a", {}), Noted(5.0, "b", {}), Noted(5.0, "a", {"x": 1})]
    assert len({encode_entry(entry) for entry in entries}) == len(entries)
    assert encode_entry(asked()) == encode_entry(asked(arms=np.array([0, 3], np.int8)))
