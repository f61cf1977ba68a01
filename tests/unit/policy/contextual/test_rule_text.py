"""Rules in words."""

import pytest

from orthobandit.errors import InputError
from orthobandit.policy.contextual import Offer
from orthobandit.policy.contextual.rule_text import parse_rule

LABELS = ["A", "B", "C, or else"]
CONTEXT = ["mobile", "hour of day"]


def shown(text, available=LABELS, **context):
    rule = parse_rule(text, LABELS, CONTEXT, "A")
    given = {"mobile": 0.0, "hour of day": 12.0, **context}
    return rule(Offer([[float(place)] for place in range(len(available))], available, given))


def test_the_first_case_that_holds_is_shown():
    text = "B if mobile >= 0.5 and hour of day < 8 else C, or else if hour of day > 20 else A"
    assert shown(text, mobile=1.0, **{"hour of day": 7.0}) == "B"
    assert shown(text, mobile=1.0, **{"hour of day": 8.0}) == "A"
    assert shown(text, mobile=0.0, **{"hour of day": 21.0}) == "C, or else"


@pytest.mark.parametrize(
    ("comparison", "holds"),
    [("<", (True, False, False)), ("<=", (True, True, False)), ("==", (False, True, False))],
)
def test_comparisons_and_their_opposites(comparison, holds):
    opposite = {"<": ">=", "<=": ">", "==": "!="}[comparison]
    for mobile, is_true in zip((0.4, 0.5, 0.6), holds, strict=True):
        assert shown(f"B if mobile {comparison} 0.5 else A", mobile=mobile) == ("B" if is_true else "A")
        assert shown(f"B if mobile {opposite} 0.5 else A", mobile=mobile) == ("A" if is_true else "B")


def test_a_label_alone_is_for_everybody_and_a_missing_arm_falls_back():
    assert shown("C, or else") == "C, or else"
    assert shown("B", available=["A", "C, or else"]) == "A"
    assert shown("B", available=["C, or else"]) == "C, or else"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be text"),
        ("D", "'D' is not an arm"),
        ("B if tablet > 0 else A", "'tablet' is not a column"),
        ("B if mobile else A", "'mobile' is not a comparison"),
        ("B if mobile > much else A", "'much' in 'mobile > much' is not a finite number"),
        ("B if mobile > inf else A", "not a finite number"),
        ("B if mobile > 0", "ends with a condition"),
        ("B else A", "has no condition before 'else'"),
    ],
)
def test_what_is_wrong_is_named(text, words):
    with pytest.raises(InputError, match=words):
        parse_rule(text, LABELS, CONTEXT, "A")
