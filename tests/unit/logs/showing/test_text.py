"""What a terminal shows of an analysis."""

import json
from dataclasses import replace

from tests.unit.logs.made_up_analyses import effect, everything, found, metric

from inside.logs import unknown_effect
from orthobandit.logs.results import Diagnostic
from orthobandit.logs.showing.text import text_of
from orthobandit.logs.showing.words import interval_words


def row_of(text, *words):
    """Return the first line that has all these words, in its parts."""
    return next(line.split() for line in text.splitlines() if all(word in line.split() for word in words))


def test_the_sentence_is_first_and_analyses_print_as_text():
    analysis = found()
    assert text_of(analysis).splitlines()[0] == analysis.sentence
    assert str(analysis) == text_of(analysis)


def test_a_row_has_all_that_is_known_of_an_arm():
    shown = row_of(text_of(found()), "blue", "better")
    assert " ".join(shown) == "blue 12,345 50 % 50 % 0.1034 +0.030 +0.010 to +0.050 +10 to +50 % better"
    assert row_of(text_of(found()), "control", "reference")[-1] == "reference"


def test_alarms_come_before_effects_and_notes_after_alarms():
    text = text_of(everything())
    places = [text.index(word) for word in ("ALARM", "must not be believed", "check missing", "gaps to")]
    assert places == sorted(places)
    assert "sample ratio in mobile" in text
    assert "p = 1e-09" in text


def test_an_alarm_is_told_once():
    words = "Arms were drawn otherwise than planned."
    alarmed = replace(everything(), sentence=f"Do not act on these effects yet: {words}")
    text = text_of(alarmed)
    assert text.splitlines()[0] == "Do not act on these effects yet."
    for shown in (text, alarmed.html()):
        assert shown.count(words) == 1
    assert words in alarmed.to_json()["sentence"]


def test_levels_have_three_digits_and_still_hold():
    third = replace(metric(("a", "b")), delta=0.05 / 3)
    text = text_of(found(("a", "b"), metrics=(third,)))
    assert "in at least 98.33 % of logs" in " ".join(text.split())


def test_a_log_without_trouble_raises_no_voice():
    text = text_of(found())
    assert "ALARM" not in text
    assert "believed" not in text
    assert "fine: sample ratio" in text


def test_undecided_arms_say_how_many_rows_would_decide():
    assert "12k to ∞" in text_of(everything())
    assert "more rows" not in text_of(found())


def test_arms_are_held_against_the_best_where_there_are_more_than_two():
    text = text_of(everything())
    assert "against 'blue'" in text
    assert "can be dropped" not in text  # there is an alarm
    calm = replace(everything(), diagnostics=everything().diagnostics[1:])
    assert "can be dropped, proven worse: control, green" in text_of(calm)
    assert "segments differ" not in text
    assert "against" not in text_of(found())
    none = found(("a", "b", "c"), metrics=(replace(metric(("a", "b", "c")), droppable=()),))
    assert "no arm can be dropped yet" in text_of(none)


def test_a_guardrail_chooses_no_arm():
    labels = ("a", "b", "c")
    assert "dropped" in text_of(found(labels))
    assert "dropped" not in text_of(found(labels, metrics=(metric(labels, kind="guardrail"),)))


def test_rows_are_told_once_where_metrics_have_the_same():
    assert text_of(everything()).count("  planned") == 1
    first, *others = everything().metrics
    fewer = replace(others[0], summaries=tuple(replace(one, rows=7) for one in others[0].summaries))
    assert text_of(replace(everything(), metrics=(first, fewer))).count("  planned") == 2


def test_all_other_parts_are_there():
    calm = replace(everything(), diagnostics=())
    text = " ".join(text_of(calm).split())
    for words in (
        "latency (guardrail: may rise by 0.01)",
        "revenue/click (ratio)",
        "seasonal 41 % (used), covariates 12 %",
        "asymptotic intervals that hold at all times at once; in at least 95 % of logs",
        "segments differ in the gap of 'blue' to 'control' (p = 0.004 for one look): desktop and mobile",
        "no segments are proven to differ in the gap of 'green'",
        "changed the mean reward of a row by +0.012 (+0.001 to +0.024); exact intervals",
        "note: 2 units were seen in several arms",
    ):
        assert words in text


def test_other_methods_stand_beside_this_one_with_half_widths():
    text = text_of(everything())
    assert row_of(text, "analysis", "blue")[-1] == "0.020"
    assert row_of(text, "MAD", "blue")[-1] == "0.25"
    assert "inverse weights: inverse weights assumes" in text


def test_lines_are_narrow():
    assert max(map(len, text_of(everything()).splitlines())) <= 100
    many = found(tuple(f"arm {place}" for place in range(50)))
    assert max(map(len, text_of(many).splitlines())) <= 100


def test_a_log_that_can_tell_nothing_says_so():
    bare = replace(
        metric(("a", "b"), moments=0),
        effects=(effect("a", "a", 0, 0), unknown_effect("b", "a")),
        summaries=(),
        saved={},
    )
    text = text_of(found(("a", "b"), metrics=(bare,), diagnostics=(), rows=0, buckets=1, bucket=""))
    assert "not known yet" in text
    assert "0 rows in 1 bucket\n" in text
    assert "saved" not in text


def test_capped_and_missing_values_are_told_by_arm():
    plain = metric(("a", "b"))
    cut = replace(
        plain, summaries=(replace(plain.summaries[0], capped=0.01, missing=0.2), plain.summaries[1])
    )
    text = text_of(found(("a", "b"), metrics=(cut,)))
    assert "capped: a 1 %, b 0 %; missing: a 20 %, b 0 %" in text
    assert "capped" not in text_of(found())


def test_labels_move_no_cursor():
    text = text_of(found(("a\nb", "\x1b[31mred")))
    assert "\x1b" not in text
    assert "a�b" in text


def test_an_arm_has_no_gap_to_itself():
    assert interval_words(effect("a", "a", 0, 0)) == ""


def test_json_has_no_number_that_json_has_not():
    analysis = replace(
        everything(), diagnostics=(Diagnostic("units", "fine", "", None, None, {"most": float("nan")}),)
    )
    data = json.loads(json.dumps(analysis.to_json(), allow_nan=False))
    assert data["metrics"][0]["effects"][2]["more_rows"] == [41_000.0, 12_000.0, None]
    assert data["diagnostics"][0]["details"] == {"most": None}
    assert data["metrics"][0]["history"][0]["lows"] == [None, None, None]
