"""Pages from templates: escaped, printable, and an error for a name that is missing."""

import sys

import pytest
from jinja2 import UndefinedError

from inside.showing import Bar, Plot, Scale, Shape, forest
from orthobandit.errors import MissingExtraError
from orthobandit.showing.html import PageTable, make_environment, minus

LABEL = "<b>\"new\" & 'old'</b>"


def drawn(macro, value):
    text = '{% from "charts.html" import ' + macro + " %}{{ " + macro + "(value) }}"
    return make_environment("orthobandit.showing").from_string(text).render(value=value)


def test_labels_are_text_and_never_markup():
    bar = Bar(LABEL, 0.1, (-0.2, 0.3), "-0.2 to 0.3", tags=[LABEL], note=LABEL)
    plot = Plot(LABEL, Scale(0.0, 1.0), [Shape("line", d="M0,0L1,1")], [LABEL], LABEL, legend=[("c0", LABEL)])
    for macro, value in (
        ("forest", forest(LABEL, [bar])),
        ("plot", plot),
        ("table", PageTable([LABEL], [[LABEL]])),
    ):
        text = drawn(macro, value)
        assert "<b>" not in text
        assert "&lt;b&gt;&#34;new&#34; &amp; &#39;old&#39;&lt;/b&gt;" in text


def test_a_bar_alone_is_hidden_from_those_who_hear_its_words():
    bars = forest("x", [Bar("a", 0.0, (-1.0, None))])
    text = drawn("interval_bar", bars.rows[0][1])
    assert 'aria-hidden="true"' in text
    assert "style=" not in text  # the dashboard's pages allow no inline styles
    assert text.count('class="arrow"') == 1
    assert 'role="img"' in drawn("forest", bars)


def test_columns_in_which_there_is_nothing_are_left_out():
    table = PageTable.of_filled(("arm", "mean", "lift"), [("a", "", "1"), ("b", "", "")])
    assert (table.head, table.rows) == (["arm", "lift"], [["a", "1"], ["b", ""]])


def test_a_name_that_a_template_lacks_is_an_error():
    with pytest.raises(UndefinedError, match="'shwon' is undefined"):
        make_environment("orthobandit.showing").from_string("{{ shwon }}").render()


def test_without_jinja_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"a page needs jinja2.*pip install '\.\[plots\]'"):
        make_environment("orthobandit.showing")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("-0.5 to -.1", "−0.5 to −.1"),
        ("(-3)", "(−3)"),
        ("1e-05", "1e-05"),
        ("2026-11-18", "2026-11-18"),
        ("arm-7", "arm-7"),
    ],
)
def test_only_signs_of_numbers_become_minus_signs(words, shown):
    assert minus(words) == shown
