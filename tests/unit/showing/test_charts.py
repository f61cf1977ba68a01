"""Charts: marks are where their numbers are, and what is not known has none."""

from itertools import pairwise

import pytest

from orthobandit.showing.charts import Bar, Scale, Shape, band, forest, line, place_bar, stack


def test_bars_are_where_their_numbers_are():
    chart = forest("x", [Bar("low", 0.0, (-1.0, 1.0)), Bar("high", 3.0, (2.0, 4.0))], limits=[3.5])
    scale = Scale.around([-1.0, 4.0], room=0.08)
    marks = [marks for _, marks in chart.rows]
    assert [one.low for one in marks] == [scale.at(-1.0), scale.at(2.0)]
    assert [one.high for one in marks] == [scale.at(1.0), scale.at(4.0)]
    assert [one.estimate for one in marks] == [scale.at(0.0), scale.at(3.0)]
    assert [(one.zero, one.limits) for one in marks] == [(scale.at(0.0), [scale.at(3.5)])] * 2
    assert [words for _, words in chart.ticks] == ["0", "2", "4"]


@pytest.mark.parametrize("unknown", [None, float("nan"), float("inf"), -float("inf")])
def test_an_end_that_is_not_known_has_an_arrow(unknown):
    scale = Scale(-1.0, 1.0)
    left = place_bar(Bar("a", None, (unknown, 0.5)), scale)
    assert (left.low, left.high, left.has_left_arrow, left.has_right_arrow) == (0.5, 75.0, True, False)
    right = place_bar(Bar("a", None, (0.5, unknown)), scale)
    assert (right.low, right.high, right.has_left_arrow, right.has_right_arrow) == (75.0, 99.5, False, True)
    neither = place_bar(Bar("a", unknown, (unknown, unknown)), scale)
    assert neither.low is neither.high is neither.estimate is None
    assert not neither.has_left_arrow
    assert not neither.has_right_arrow


def test_an_end_beyond_the_scale_has_an_arrow_and_an_estimate_there_no_dot():
    marks = place_bar(Bar("a", 5.0, (-5.0, 0.5)), Scale(-1.0, 1.0))
    assert marks.has_left_arrow
    assert marks.estimate is None


@pytest.mark.parametrize(
    "values",
    [
        [],
        [0.0],
        [5.0, 5.0],
        [-1e-9, 1e-9],
        [1e9, 1e9 + 1],
        [-1e308, 1e308, 2.0],
        [None, float("nan")],
        [1e-300],
    ],
)
def test_scales_have_a_few_round_ticks_whatever_the_values(values):
    scale = Scale.around(values)
    assert scale.low < scale.high
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 16
    assert len({words for _, words in ticks}) == len(ticks)
    assert all(-5 <= scale.at(value) <= 105 for value, _ in ticks)


def test_lines_break_where_nothing_is_known_and_single_points_are_dots():
    scale = Scale(0.0, 1.0)
    drawn = line([0.0, 0.25, 0.5, 1.0], [0.5, None, 1.0, 0.0], scale)
    assert drawn == [Shape("line", d="M500,0L1000,1000"), Shape("line dot", d="M0,500h1")]
    assert line([0.0], [None], scale) == []
    assert len(band([0.0, 0.5, 1.0], [0.0, None, None], [1.0, None, 0.5], scale)) == 2


def test_areas_stand_on_top_of_each_other():
    assert stack([0.0, 1.0], [[0.25, 0.5], [0.75, 0.5]], ["low", "high"]) == [
        Shape("low", points="0,750 1000,500 1000,1000 0,1000"),
        Shape("high", points="0,0 1000,0 1000,500 0,750"),
    ]


@pytest.mark.parametrize(
    "ends", [(-0.003, 0.0073), (-0.01, 0.011), (-1.0, 1.0), (-1.5e6, 2e6), (-1e-9, 1e-9), (0.0, 1e7)]
)
def test_words_of_ticks_have_room_side_by_side_in_a_narrow_column(ends):
    ticks = forest("x", [Bar("a", sum(ends) / 2, ends)], unit=" %").ticks
    width = 160  # pixels, in a page of 1,280 with long names
    assert ticks
    for (left, before), (right, after) in pairwise(ticks):
        assert (right - left) * width / 100 > 7 * (len(before) + len(after)) / 2
