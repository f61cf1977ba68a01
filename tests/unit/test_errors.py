"""Errors: one root, caught by those who know nothing of the package."""

import inspect
import pickle

import pytest

from orthobandit import errors

ALL = [
    member
    for _, member in inspect.getmembers(errors, inspect.isclass)
    if member.__module__ == errors.__name__ and issubclass(member, BaseException)
]


@pytest.mark.parametrize("error", ALL)
def test_every_error_and_every_warning_has_the_same_root(error):
    root = errors.OrthobanditWarning if issubclass(error, Warning) else errors.OrthobanditError
    assert issubclass(error, root)


@pytest.mark.parametrize("error", [error for error in ALL if issubclass(error, errors.InputError)])
def test_errors_about_an_argument_are_value_errors(error):
    with pytest.raises(ValueError, match="argument=3"):
        raise error("argument=3")


def test_a_design_error_carries_how_close_it_came():
    error = errors.DesignError("not certified", gap=1e-3, tolerance=1e-6)
    assert (error.gap, error.tolerance, str(error)) == (1e-3, 1e-6, "not certified")
    assert not isinstance(error, ValueError)


def test_a_design_error_survives_the_way_back_from_another_process():
    error = pickle.loads(pickle.dumps(errors.DesignError("not certified", gap=1e-3, tolerance=1e-6)))
    assert (error.gap, error.tolerance, str(error)) == (1e-3, 1e-6, "not certified")


def test_an_error_is_about_the_argument_that_its_message_begins_with():
    words = errors.Argument("window", 5.0), " needs a time column; name it with ", errors.Argument("time")
    error = errors.ParameterError(*words)
    assert str(error) == "window=5.0 needs a time column; name it with time="
    assert error.field == "window"
    assert errors.ParameterError("choose ", errors.Argument("missing", "zero")).field == ""
    assert errors.ParameterError("plan and plans belong together", field="plans").field == "plans"


def test_an_error_keeps_its_field_and_words_on_the_way_back_from_another_process():
    error = errors.ParameterError(errors.Argument("policy", lambda: None), " cannot be used")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.field) == (str(error), "policy")
    assert copy.words[0].python == error.words[0].python
