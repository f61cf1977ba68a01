"""An analysis as a page: whole, safe, small, and the same anywhere."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from tests.unit.logs.made_up_analyses import NOTHING, START, effect, everything, found, metric

from inside.logs import unknown_effect
from orthobandit.logs.results import Value
from orthobandit.logs.showing.page import CHART_POINTS, thinned

EMPTY = {"meta", "br"}  # tags that are never closed
MARKUP = '<script>alert("1")</script> & \'"'


class Reader(HTMLParser):
    """Reads a page, and complains of tags that are not closed in order."""

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())

    def named(self, tag, name=""):
        return [own for one, own in self.tags if one == tag and name in ["", *own.get("class", "").split()]]


def read(analysis):
    return Reader(analysis.html())


def test_all_parts_are_on_the_page_in_their_order():
    words = read(everything()).words
    order = [
        "Do not act",
        "Alarm",
        "must not be believed",
        "Lift over control",
        "Over time",
        "Level of clicked",
    ]
    order += ["Share of rows", "By segment", "Other methods", "Other probabilities", "Diagnostics", "Notes"]
    # The title comes first, in the head and above the sentence.
    places = [words.index(part, words.index("Do not act")) for part in order]
    assert places == sorted(places)
    for said in (
        "+0.030 (+0.010 to +0.050)",
        "seasonal 41 % (used), covariates 12 %",
        "± 0.25",
        "inverse weights assumes",
        "12k to ∞",
        "in at least 95 % of logs all gaps of this metric lie in their intervals",
        "level of control: 0.090 to 0.110",
    ):
        assert said in words
    assert 'class="forest with-cells"' in everything().html()  # which the style sheet asks for
    assert "Can be dropped" not in words  # there is an alarm
    assert "Segments differ" not in words
    calm = replace(everything(), diagnostics=everything().diagnostics[1:])
    assert "Can be dropped, proven worse: control, green." in read(calm).words
    assert "Segments differ in the gap of 'blue'" in read(calm).words


def test_parts_that_are_not_there_leave_no_heading():
    words = read(found()).words
    for part in ("Alarm", "By segment", "Other methods", "Other probabilities", "Notes", "Against the best"):
        assert part not in words


def test_nothing_comes_from_elsewhere_and_nothing_runs():
    page = everything().html()
    assert not re.search(r"https?:|//|url\(|@import|javascript:", page)
    reader = Reader(page)
    tags = {tag for tag, _ in reader.tags}
    assert tags.isdisjoint({"script", "link", "img", "iframe", "object", "image", "use"})
    assert not any(name in ("src", "href") or name.startswith("on") for _, own in reader.tags for name in own)


def test_labels_are_text_wherever_they_are_shown():
    labels = (f"a {MARKUP}", f"b {MARKUP}", f"c {MARKUP}")
    analysis = everything(labels)
    marked = replace(
        analysis,
        sentence=MARKUP,
        bucket=MARKUP,
        notes=(MARKUP,),
        metrics=tuple(
            replace(one, name=MARKUP, mode=MARKUP, baseline=MARKUP, saved={MARKUP: 0.1})
            for one in analysis.metrics
        ),
        diagnostics=tuple(replace(one, name=MARKUP, words=MARKUP) for one in analysis.diagnostics),
        segments=tuple(replace(one, segment=MARKUP) for one in analysis.segments),
        rivals=tuple(replace(one, method=MARKUP, assumes=MARKUP) for one in analysis.rivals),
        value=Value(0.1, (0.0, 0.2), MARKUP),
    )
    page = marked.html()
    assert "<script" not in page
    plain = {name for _, own in read(everything()).tags for name in own}
    assert {name for _, own in Reader(page).tags for name in own} == plain
    assert page.count("&lt;script&gt;") > 50


def test_every_picture_has_a_name():
    reader = read(everything())
    pictures = [own for tag, own in reader.tags if tag == "svg" and own.get("role") == "img"]
    titles = [tag for tag, _ in reader.tags if tag == "title"]
    assert len(titles) == len(pictures) + 1  # and that of the page
    hidden = [own for own in reader.named("svg") if own.get("aria-hidden") == "true"]
    nested = [own for own in reader.named("svg") if own.get("overflow") == "visible"]
    assert len(reader.named("svg")) == len(pictures) + len(hidden) + len(nested)
    assert "gap of blue to control over time; at the end +0.030 (+0.010 to +0.050)" in reader.words


@pytest.mark.parametrize(("arms", "moments", "most"), [(2, 3, 30e3), (2, 9000, 80e3), (50, 400, 450e3)])
def test_pages_are_of_bounded_size(arms, moments, most):
    page = found(tuple(f"arm {place}" for place in range(arms)), moments).html()
    assert len(page) < most
    Reader(page)
    assert max(len(own["d"].split("L")) for own in Reader(page).named("path")) <= CHART_POINTS


def test_a_long_history_is_averaged_and_said_to_be():
    assert "Means of about 5 buckets each" in read(found(moments=2000)).words
    assert "Means of about" not in read(found(moments=50)).words
    runs = thinned(tuple(range(9000)))
    assert len(runs) == CHART_POINTS
    assert [one for run in runs for one in run] == list(range(9000))
    assert [len(run) for run in thinned(tuple(range(3)))] == [1, 1, 1]
    assert thinned(()) == []


def test_many_arms_are_folded_and_share_an_area():
    words = read(found(tuple(f"arm {place}" for place in range(50)))).words
    assert "37 more arms" in words
    few = read(found(tuple(f"arm {place}" for place in range(14)))).words
    assert "1 more arm" in few
    assert "1 more arms" not in few
    assert "a scale of its own" in words
    assert "a scale of its own" not in read(found()).words
    assert "43 other arms" in words
    assert "other arms" not in read(found(tuple("abcdefgh"))).words


@pytest.mark.parametrize("moments", [0, 1])
def test_without_time_there_are_no_pictures_over_time(moments):
    words = read(found(moments=moments)).words
    assert "Over time" not in words
    assert "+0.030" in words


def test_times_need_not_differ_nor_be_of_a_clock():
    one = metric(("a", "b"), moments=3)
    same = replace(one, history=tuple(replace(moment, time=START) for moment in one.history))
    assert "first bucket last bucket" in read(found(("a", "b"), metrics=(same,))).words
    counted = replace(
        one, history=tuple(replace(moment, time=10.0 * n) for n, moment in enumerate(one.history))
    )
    words = read(found(("a", "b"), metrics=(counted,), is_clock=False)).words
    assert "0 10 20" in words
    assert "1970" not in words


def awkward():
    """Return a metric of which little is known, in all the ways in which little can be known."""
    labels = ("a", "b", "c", "d", "e")
    one = metric(labels, moments=8)
    infinite, nothing = float("inf"), float("nan")
    effects = (
        effect("a", "a", 0, 0),
        unknown_effect("b", "a"),
        replace(effect("c", "a", 0.1, 0.2), interval=(None, 0.3), lift=(None, 2.0)),
        replace(effect("d", "a", 0.1, 0.2), interval=(-infinite, infinite), estimate=nothing),
        replace(effect("e", "a", 0.1, 0.2), interval=(-1e308, 1e308), estimate=1e308),
    )
    blank = tuple([None] * 5)
    dark = replace(
        one.history[0], estimates=blank, lows=blank, highs=blank, level=None, forecast=None, rows=0
    )
    odd = replace(
        dark,
        lows=(None, None, -1.0, None, -infinite),
        highs=(None, 1.0, None, nothing, infinite),
        level=nothing,
    )
    history = (dark, odd, one.history[3], odd, one.history[4], dark, odd, dark)
    times = tuple(replace(moment, time=float(n)) for n, moment in enumerate(history))
    return found(
        labels, metrics=(replace(one, effects=effects, against_best=effects, level=NOTHING, history=times),)
    )


def test_what_is_not_known_is_drawn_to_the_edge_and_never_as_a_number():
    page = awkward().html()
    reader = Reader(page)
    shown = page[page.index("<body>") :]
    assert not re.search(r"nan|inf\b|None", shown)
    assert "not known yet" in reader.words
    assert "−∞ to +0.30" in reader.words
    assert len(reader.named("polyline", "arrow")) >= 3
    for own in reader.named("polygon", "band"):
        numbers = [float(word) for word in re.split("[ ,]", own["points"])]
        assert min(numbers) >= -100
        assert max(numbers) <= 1100


def test_a_log_that_says_nothing_is_still_a_page():
    blank = replace(
        metric(("a", "b"), moments=0), effects=(), against_best=(), droppable=(), summaries=(), saved={}
    )
    words = read(found(("a", "b"), metrics=(blank,), diagnostics=(), rows=0, buckets=0)).words
    assert "no baseline was tried" in words


def test_a_guardrail_shows_its_margin_as_a_second_line():
    guard = found(metrics=(metric(("control", "blue"), kind="guardrail"),))
    assert len(read(guard).named("line", "limit")) == 2
    assert read(found()).named("line", "limit") == []


def test_verdicts_have_colours_and_words():
    reader = read(everything())
    assert {"tag good", "tag bad", "tag open"} <= {own["class"] for own in reader.named("span", "tag")}
    harmed = found(
        metrics=(replace(metric(("a", "b")), effects=(effect("b", "a", 0, 1, "harmed"),), kind="guardrail"),)
    )
    assert read(harmed).named("span", "bad")


def test_the_figure_has_effects_and_their_history():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    for analysis, count in ((everything(("a", "$b$", "c_1^{")), 2), (found(moments=1), 1), (awkward(), 2)):
        figure = analysis.figure()
        assert len(figure.axes) == count
        figure.canvas.draw()
        pyplot.close(figure)
    labels = [text.get_text() for text in everything().figure().axes[0].get_yticklabels()]
    assert labels == ["green", "blue"]
    pyplot.close("all")
