"""Certificates cannot be bent: whatever field is changed, what is valid claims the same."""

import pytest

from mutants import KINDS, mutants, survivors

FAST = ("bounded", "sub-Gaussian", "exact log", "asymptotic log")


@pytest.mark.parametrize("name", FAST)
def test_no_mutant_that_claims_something_else_is_valid(name):
    found, refused = survivors(KINDS[name](), 50, seed=11)
    assert not found
    assert refused >= 35  # most changes matter, so the test tests something


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_none_of_two_thousand_mutants_is_valid_and_claims_something_else(name):
    found, refused = survivors(KINDS[name](), 270, seed=12)  # 2,160 in all
    assert not found
    assert refused >= 200


@pytest.mark.parametrize("name", FAST)
def test_every_kind_of_field_is_among_the_mutants(name):
    changed = {path[0] for path, _ in mutants(KINDS[name](), 120, seed=13)}
    assert changed == {"settings", "entries", "claim"}
