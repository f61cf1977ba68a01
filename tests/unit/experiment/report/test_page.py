"""A report as text, page, notebook and figure: the same arms, numbers and words in each."""

import re
from dataclasses import replace

import pytest

from orthobandit.experiment.report.report import ArmReport, MetricReport, Report

GAPS = ((0.0, 0.0, 0.0), (0.0776, 0.0312, 0.1241), (None, None, 0.5), (-1234.5, -2000.0, -500.0))


def made(**changes):
    """Return a report of four arms: the reference, the leader, one that was dropped and one retired."""
    states = (
        ("old", True, False),
        ("$new$", True, False),
        ("<b>bad</b>", False, False),
        ("gone", False, True),
    )
    arms = tuple(
        ArmReport(label, 12345 + place, place, 0.25, is_active, is_retired, *gap)
        for place, ((label, is_active, is_retired), gap) in enumerate(zip(states, GAPS, strict=True))
    )
    report = Report(
        advice="Go on: '$new$' leads.",
        status="open",
        proposals=54321,
        settled=50000,
        awaited=4321,
        leader="$new$",
        declared=None,
        epsilon=None,
        certainty=0.95,
        mode="bounded rewards",
        joint=0.95,
        reference="old",
        arms=arms,
        metrics=(
            MetricReport("sales", "bounded rewards", 0.95, GAPS, 0, 0),
            MetricReport("seconds", "bounded rewards", 0.99, GAPS, 0, 0),
        ),
        holdout=(("sales", 1200, 0.25), ("seconds", 0, None)),
        warnings=("ALARM: arms were not drawn as the plans say", "claims are asymptotic"),
    )
    return replace(report, **changes)


def words_of(page):
    text = re.sub(r"<(style|title)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_text_has_separators_digits_and_the_words_for_arms_out_of_play():
    rows = [" ".join(line.split()) for line in str(made()).splitlines()]
    assert "54,321 proposals, 50,000 settled, 4,321 awaited; gaps to 'old', at all times at once:" in rows
    assert "old 12,345 0 25 % reference" in rows
    assert "$new$ 12,346 1 25 % +0.078 +0.031 to +0.124 leads" in rows
    assert "<b>bad</b> 12,347 2 25 % −∞ to +0.50 dropped" in rows
    assert "gone 12,348 3 25 % -1,234 -2,000 to -500 retired" in rows
    assert "holdout: mean sales 0.25 over 1,200" in rows


def test_the_page_says_what_the_text_says():
    page = made().to_html()
    words = words_of(page)
    assert "54,321 proposals, 50,000 settled, 4,321 awaited." in words
    assert "$new$ 12,346 settled, share 25 % +0.078 (+0.031 to +0.124) leads" in words
    assert "−1,234 (−2,000 to −500) retired" in words
    assert "−∞ to +0.50 dropped" in words
    assert "Holdout: mean sales 0.25 over 1,200 proposals." in words
    assert words.index("Alarm Arms were not drawn") < words.index("Gap to old")
    assert "Notes Claims are asymptotic." in words
    assert "<b>bad" not in page
    assert not re.search(r"https?:|//|url\(|@import|<script|None|nan", page)


def test_only_the_objective_is_coloured_by_its_sign():
    tones = re.findall(r'<svg class="interval (\w+)"', made().to_html())
    assert tones == ["open", "good", "open", "bad"] + ["open"] * 4


def test_a_winner_is_called_so():
    assert "winner" in words_of(made(declared="$new$").to_html())
    assert "leads" not in str(made(declared="$new$")).split("\n", 2)[2]
    # Nobody leads before anything is settled.
    assert "leads" not in str(made(settled=0)).split("\n", 2)[2]


def test_a_notebook_needs_no_templates(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    words = words_of(made()._repr_html_())
    assert "12,346 25 % +0.078 +0.031 to +0.124 leads" in words
    assert "dropped" in str(made())


def test_the_figure_has_a_bar_an_arm_and_labels_are_no_formulas():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    axes = made().plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["gone", "<b>bad</b>", "$new$"]
    assert not any(text.get_parse_math() for text in axes.get_yticklabels())
    axes.figure.canvas.draw()
    pyplot.close("all")
