"""A report as text, page, notebook and figure: the same arms, numbers and words in each."""

import re
from dataclasses import replace

import pytest

from inside.experiment import Alarm, Conclusion, Standing
from orthobandit.experiment.report.report import ArmReport, MetricReport, Report

GAPS = ((0.0, 0.0, 0.0), (0.0776, 0.0312, 0.1241), (None, None, 0.5), (-1234.5, -2000.0, -500.0))

RATES = ((0.1, 0.08, 0.12), (0.1776, 0.1512, 0.2041), (None, None, None), (0.05, None, None))
LIFTS = ((0.0, 0.0, 0.0), (0.776, 0.3, 1.2), (None, None, None), (-0.5, -0.9, -0.1))


def made(**changes):
    """Return a report of four arms: the reference, the leader, one that was dropped and one retired."""
    states = (
        ("old", True, False),
        ("$new$", True, False),
        ("<b>bad</b>", False, False),
        ("gone", False, True),
    )
    arms = tuple(
        ArmReport(label, 12345 + place, place, 0.25, is_active, is_retired, *gap, *rate, *lift)
        for place, ((label, is_active, is_retired), gap, rate, lift) in enumerate(
            zip(states, GAPS, RATES, LIFTS, strict=True)
        )
    )
    report = Report(
        advice="Go on: '$new$' leads.",
        status="open",
        proposals=54321,
        settled=50000,
        awaited=4321,
        leader="$new$",
        epsilon=None,
        certainty=0.95,
        mode="bounded rewards",
        joint=0.95,
        reference="old",
        conclusion=Conclusion(Standing.ALARM, (Alarm("sample-ratio", "'old' was drawn less often"),)),
        arms=arms,
        metrics=(
            MetricReport("sales", "bounded rewards", 0.95, GAPS, 0, 0, True, RATES, LIFTS),
            MetricReport("seconds", "bounded rewards", 0.99, GAPS, 0, 0),
        ),
        holdout=(("sales", 1200, 0.25), ("seconds", 0, None)),
        notes=("claims are asymptotic",),
    )
    return replace(report, **changes)


def words_of(page):
    text = re.sub(r"<(style|title)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_text_has_separators_digits_and_the_words_for_arms_out_of_play():
    rows = [" ".join(line.split()) for line in str(made()).splitlines()]
    counts = "54,321 proposals, 50,000 settled, 4,321 awaited"
    assert f"{counts}; gaps and lifts to 'old', at all times at once:" in rows
    assert "old 12,345 0 25 % 10.0 % (8.0 to 12.0 %) reference" in rows
    lead = "17.8 % (15.1 to 20.4 %) +30 to +120 % +0.078 +0.031 to +0.124 leads"
    assert f"$new$ 12,346 1 25 % {lead}" in rows
    assert "<b>bad</b> 12,347 2 25 % −∞ to +0.50 dropped" in rows
    assert "gone 12,348 3 25 % 5 % -90 to -10 % -1,234 -2,000 to -500 retired" in rows
    assert "holdout: mean sales 25 % over 1,200 visitors who always got 'old'" in rows


def test_the_page_begins_with_what_a_manager_asks():
    page = made(
        outlook="It may end after 40 more visitors, and may take far longer.", name="spring", at=86400.0 * 365
    ).to_html()
    words = words_of(page)
    assert words.startswith("spring · 1 January 1971, 00:00 UTC Go on: &#39;$new$&#39; leads. It may end")
    assert "<title>spring · 1 January 1971, 00:00 UTC</title>" in page
    assert "$new$ 12,346 17.8 % (15.1 to 20.4 %) +78 % (+30 to +120 %) leads" in words
    assert "gone 12,348 5 % −50 % (−90 to −10 %) retired" in words
    assert words.index("+78 %") < words.index("+0.078 +0.031 to +0.124") < words.index("seconds")


def test_without_lifts_bars_are_of_gaps():
    arms = tuple(replace(arm, lift=None, lift_low=None, lift_high=None) for arm in made().arms)
    words = words_of(made(arms=arms).to_html())
    assert "Difference to old" in words
    assert "$new$ 12,346 17.8 % (15.1 to 20.4 %) +0.078 (+0.031 to +0.124) leads" in words


@pytest.mark.parametrize(("highest", "is_shown"), [(4.2, True), (4.4, False)])
def test_lifts_that_say_next_to_nothing_give_way_to_gaps(highest, is_shown):
    old, new, *rest = made().arms
    report = made(arms=(old, replace(new, lift_low=0.3, lift_high=highest), *rest))
    assert ("Lift over old" in words_of(report.to_html())) == is_shown
    assert (f"+30 to +{100 * highest:.0f} %" in str(report)) == is_shown


def test_the_page_says_what_the_text_says():
    page = made().to_html()
    words = words_of(page)
    assert "54,321 proposals, 50,000 settled, 4,321 awaited." in words
    assert "−1,234 −2,000 to −500" in words
    assert "−∞ to +0.50" in words
    assert "Holdout: mean sales 25 % over 1,200 visitors who always got &#39;old&#39;." in words
    assert words.index("Alarm &#39;old&#39; was drawn less often.") < words.index("Lift over old")
    assert "Notes Claims are asymptotic." in words
    assert "<b>bad" not in page
    assert not re.search(r"https?:|//|url\(|@import|<script|None|nan", page)


def test_only_the_objective_is_coloured_by_its_sign():
    tones = re.findall(r'<svg class="interval (\w+)"', made().to_html())
    assert tones == ["open", "good", "open", "bad"] + ["open"] * 4


def test_a_winner_is_called_so():
    won = made(conclusion=Conclusion(Standing.WON, leader="$new$", declared="$new$"))
    assert "winner" in words_of(won.to_html())
    assert "leads" not in str(won).split("\n", 2)[2]
    # Nobody leads before anything is settled.
    assert "leads" not in str(made(leader=None, is_early=True)).split("\n", 2)[2]


def test_a_notebook_needs_no_templates(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    words = words_of(made()._repr_html_())
    assert "12,346 25 % 17.8 % (15.1 to 20.4 %) +30 to +120 % +0.078 +0.031 to +0.124 leads" in words
    assert "dropped" in str(made())


def test_the_figure_has_a_bar_an_arm_and_labels_are_no_formulas():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    axes = made().plot()
    assert [text.get_text() for text in axes.get_yticklabels()] == ["gone", "<b>bad</b>", "$new$"]
    assert not any(text.get_parse_math() for text in axes.get_yticklabels())
    axes.figure.canvas.draw()
    pyplot.close("all")
