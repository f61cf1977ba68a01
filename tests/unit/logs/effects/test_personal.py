"""Rules and effects by context as results: text, JSON, page, frames."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from orthobandit import analyse
from orthobandit.errors import CertificateError, InputError, ParameterError
from rule_worlds import RULES, gained, make

WORLD = make(11, "who comes", "own", rows=600, noise=0.02)
ASKED = {
    "arm": "page",
    "reward": "bought",
    "time": "t",
    "probabilities": ["p:A", "p:B", "p:C"],
    "context": ["mobile", "hour"],
    "rules": RULES,
}


@pytest.fixture(scope="module")
def log():
    return pa.table(WORLD.columns())


@pytest.fixture(scope="module")
def found(log):
    return analyse(log, **ASKED)


def test_rules_are_each_arm_for_all_and_those_asked_for(found):
    rules = found.personal.rules
    assert [rule.name for rule in rules] == ["A for all", "B for all", "C for all", *RULES]
    assert rules[0].estimate == 0.0
    assert rules[3].text == RULES["B on telephones"]
    truth = gained(WORLD).mean(axis=0)
    for rule, gain in zip(rules, truth, strict=True):
        low, high = rule.interval
        assert low - 1e-9 <= gain <= high + 1e-9
    assert rules[3].changed == int(WORLD.context[:, 0].sum())


def test_effects_of_arms_are_what_they_earn_when_shown_to_all(found):
    effects = {one.arm: one for one in found.metrics[0].effects}
    rules = {one.text: one for one in found.personal.rules}
    assert effects["B"].estimate == rules["B"].estimate
    assert effects["B"].interval == rules["B"].interval
    assert effects["A"].verdict == "reference"
    assert found.metrics[0].history[-1].estimates[1] == pytest.approx(effects["B"].estimate)


def test_the_sentence_and_the_tables_say_the_same(found):
    text = str(found)
    best = found.personal.best
    assert best == "B on telephones"
    assert text.startswith("The rule 'B on telephones' earns most of the 5 rules that are judged")
    assert "proven best" in text
    assert "B, per unit of mobile" in text
    assert "mobile = 1" in text


def test_another_reference_turns_gains_around(log, found):
    other = analyse(log, **ASKED | {"reference": "B"})
    assert other.personal.rules[0].name == "B for all"
    one = next(rule for rule in other.personal.rules if rule.name == "A for all")
    same = next(rule for rule in found.personal.rules if rule.name == "B for all")
    assert one.estimate == pytest.approx(-same.estimate, rel=1e-9)
    assert one.interval[0] == pytest.approx(-same.interval[1], rel=1e-6)


def test_json_page_and_frames_have_rules(found):
    data = json.loads(json.dumps(found.to_json()))
    assert data["personal"]["best"] == "B on telephones"
    assert len(data["personal"]["effects"]) == 6
    page = found.html("log.csv")
    for words in ("Rules", "B if mobile &gt;= 0.5 else A", "proven best", "Who should get what"):
        assert words in page
    rules = found.to_frame("rules", library="pyarrow")
    assert rules["rule"].to_pylist() == [rule.name for rule in found.personal.rules]
    assert len(found.to_frame("context", library="pyarrow")) == 6


def test_declared_bounds_make_intervals_exact(log):
    exact = analyse(log, **ASKED, bounds=(-1, 2))
    assert exact.metrics[0].mode.startswith("exact for values from -1 to 2")
    low, high = exact.personal.rules[3].interval
    assert low < gained(WORLD)[:, 3].mean() < high < 0.5
    with pytest.raises(InputError, match="do not hold column 'bought'"):
        analyse(log, **ASKED, bounds=(0, 0.5))


def test_one_look_has_ordinary_intervals(log):
    once = analyse(log, **{name: value for name, value in ASKED.items() if name != "time"})
    fixed = analyse(log, **ASKED, fixed=True)
    assert once.metrics[0].mode.startswith("ordinary fixed-sample intervals")
    assert [one.interval for one in once.personal.rules] == [one.fixed for one in once.personal.rules]
    # Slopes of the context are taken within buckets where there are any: all else is the same.
    assert once.personal.rules[3].estimate == pytest.approx(fixed.personal.rules[3].estimate, rel=0.02)
    assert any("no time column was named" in note for note in once.notes)


def test_intervals_at_all_times_are_wider_than_those_of_one_look(found):
    for rule in found.personal.rules[1:]:
        assert rule.interval[0] < rule.fixed[0] < rule.fixed[1] < rule.interval[1]


def test_draws_that_do_not_follow_the_probabilities_raise_an_alarm(log):
    names = ASKED["probabilities"]
    moved = log
    for name, other in zip(names, [*names[1:], names[0]], strict=True):
        moved = moved.set_column(moved.column_names.index(name), name, log[other])
    found = analyse(moved, **ASKED)
    assert [one.name for one in found.alarms] == ["sample ratio"]
    assert found.sentence.startswith("Do not act on these effects yet")


def test_too_short_a_log_says_so(log):
    short = analyse(log.slice(0, 600), **ASKED)
    assert short.sentence == "Nothing can be said of any rule yet: too few rows count."
    assert [rule.interval for rule in short.personal.rules[1:]] == [(None, None)] * 4


def test_context_without_rules_judges_arms_and_effects(log):
    found = analyse(log, **ASKED | {"rules": None})
    assert [rule.name for rule in found.personal.rules] == ["A for all", "B for all", "C for all"]
    assert np.all([one.estimate is not None for one in found.personal.effects])


def test_what_rules_do_not_offer_is_refused(log):
    for name, value in {"compare": True, "value": {"A": 1.0}, "cells": True}.items():
        with pytest.raises(ParameterError, match=f"context= and {name}="):
            analyse(log, **ASKED, **{name: value})
    with pytest.raises(CertificateError, match="certified in live experiments only"):
        analyse(log, **ASKED).save("certificate.json")


def test_who_should_get_what_waits_until_effects_have_intervals():
    # Large values come too rarely for an asymptotic interval of any effect by context.
    rng = np.random.default_rng(1)
    rows = 3000
    arms = rng.integers(0, 2, rows)
    paid = (np.arange(rows) % 500 == 7) * 100.0
    table = pa.table(
        {
            "page": np.array(["A", "B"])[arms],
            "paid": paid,
            "t": np.arange(rows) // 100,
            "mobile": rng.random(rows) < 0.5,
        }
    )
    asked = {"arm": "page", "reward": "paid", "time": "t", "split": "equal", "context": ["mobile"]}
    found = analyse(table, **asked)
    assert all(one.interval == (None, None) for one in found.personal.effects)
    assert found.personal.audiences == ()
    assert "Who should get what" not in str(found)
    # Within a declared range something is known from the start, however little.
    assert analyse(table, **asked, bounds=(0, 100)).personal.audiences


def test_a_reward_of_zeros_and_ones_names_the_option_for_exact_intervals():
    rng = np.random.default_rng(1)
    rows = 600
    columns = {
        "page": np.array(["A", "B"])[rng.integers(0, 2, rows)],
        "paid": (rng.random(rows) < 0.3).astype(float),
        "t": np.arange(rows) // 20,
        "mobile": rng.random(rows) < 0.5,
    }
    asked = {"arm": "page", "reward": "paid", "time": "t", "split": "equal", "context": ["mobile"]}
    words = "'paid' has held only 0 and 1 so far, but nobody said that no other value can come"
    (note,) = [one for one in analyse(pa.table(columns), **asked).notes if words in one]
    assert "--bounds 0 1" in note
    silent = (
        ({"bounds": (0, 1)}, columns["paid"]),
        ({"asymptotic": True}, columns["paid"]),
        ({}, columns["paid"] > 0.5),  # booleans
        ({}, np.where(np.arange(rows) == 3, 0.5, columns["paid"])),
    )
    for options, paid in silent:
        found = analyse(pa.table(columns | {"paid": paid}), **asked, **options)
        assert not any(words in one for one in found.notes)


def test_the_page_has_what_a_rule_says_below_its_name(found):
    page = found.html()
    table = page[page.index("What each rule would have earned") :]
    table = table[: table.index("</table>")]
    assert '<th scope="col">Rule</th>' in table
    # Rules of one arm say all with their name; a column of long rules made the table wider than the page.
    assert '<th scope="row">B for all</th>' in table
    text = RULES["B on telephones"].replace(">", "&gt;").replace("<", "&lt;")
    assert f"B on telephones<small>{text}</small>" in table


def test_numbers_in_the_headline_of_a_page_have_a_minus_sign(found):
    headline = 'No rule is the best for sure yet: 2 of 2 may be. "x" looks best, +0.002 (-0.005 to +0.010).'
    assert "(−0.005 to +0.010)" in replace(found, sentence=headline).html()
