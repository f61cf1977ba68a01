"""Charts: their colours and scales, charts of HTML pages as plain data, and matplotlib figures.

Pages have two charts: intervals one below the other on a common scale (a forest plot), and lines, bands and
areas over time. ``templates/charts.html`` draws them as HTML with inline SVG: marks stretch with the page,
and words around them keep their size. The colours of pages are in ``templates/colours.css``, those of
figures are here. The dashboard's are in ``service/dashboard/static/dashboard.css``;
``templates/shared`` holds what both have in common.
"""

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from orthobandit._foundation.extras import optional_package
from orthobandit._foundation.files import whole_file
from orthobandit.showing.numbers import FINEST, LARGE, Interval, is_known, number
from orthobandit.showing.text import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FINE = 1000  # units of a picture's width and height
HUGE = 1e300  # beyond it differences overflow
# Pixels of a forest plot: its width beside many other columns, a character, and the room between ticks.
LEAST_AXIS_WIDTH = 160
CHARACTER_WIDTH = 7
TICK_ROOM = 8
Series = Sequence[float | None]

# Okabe & Ito (2008), told apart without colour vision; without yellow, which is too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P")
TONES = {"good": COLOURS[2], "bad": COLOURS[1], "open": COLOURS[0]}
FADED = "0.6"  # grey of a bar that stands back
# Colours of text and grid that a page replaces by its own.
INK = "#1b1c1f"
FAINT = "#c9ccd1"
STYLE: dict[str, Any] = {
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "font.size": 10.0,
    "grid.color": FAINT,
    "svg.fonttype": "path",
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
}


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`.

    Examples
    --------
    >>> scale = Scale.around([0.0, 4.0], room=0.0)
    >>> scale.at(1.0), [words for _, words in scale.ticks(4)]
    (25.0, ['0', '1', '2', '3', '4'])
    """

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float | None], room: float = 0.05) -> "Scale":
        """Return a scale with all values that are known, and some `room` at both ends."""
        known = [value for value in values if is_known(value) and abs(value) < HUGE] or [0.0]
        low, high = min(known), max(known)
        # Values that hardly differ would leave no width to divide by.
        if high - low <= 1e-9 * max(abs(low), abs(high)):
            low, high = low - (0.1 * abs(low) or 1.0), high + (0.1 * abs(high) or 1.0)
        more = room * (high - low)
        return cls(low - more, high + more)

    def holds(self, value: float) -> bool:
        """Whether a value is on the scale."""
        return self.low <= value <= self.high

    def at(self, value: float) -> float:
        """Return where a value is, in per cent; a little beyond the ends for all that is beyond them."""
        share = (min(max(value, -HUGE), HUGE) - self.low) / (self.high - self.low)
        return round(100.0 * min(max(share, -0.1), 1.1), 2)

    def ticks(self, count: int = 5) -> list[tuple[float, str]]:
        """Return about `count` round values with their words."""
        rough = (self.high - self.low) / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = min((power * size for size in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / rough)))
        places = max(-math.floor(math.log10(step) + 1e-9), 0)
        is_plain = places <= FINEST and max(abs(self.low), abs(self.high)) < LARGE
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        values = [place * step for place in range(first, min(last, first + 3 * count) + 1)]
        return [(value, number(value, places if is_plain else None) or "0") for value in values]


@dataclass(frozen=True)
class Bar:
    """One interval with its estimate and its words.

    Attributes
    ----------
    label : str
    estimate : float or None
    interval : (float or None, float or None)
        None, or infinite, for an end that is not known.
    words : str
        The estimate and the interval as text.
    tags : sequence of str
        Words in coloured boxes, such as a verdict.
    tone : {"good", "bad", "open"}
        The colour of the bar and, unless `tag_tone` is another, of its tags.
    tag_tone : str
    aside : str
        Shown instead of tags if there are none.
    note : str
        Small print below the label.
    cells : sequence of str
        Texts between the label and the bar, one for each of :attr:`Forest.head`.
    is_faded : bool
        Whether the row is greyed out, like that of an arm out of play.
    """

    label: str
    estimate: float | None
    interval: Interval
    words: str = ""
    tags: Sequence[str] = ()
    tone: str = "open"
    tag_tone: str = ""
    aside: str = ""
    note: str = ""
    cells: Sequence[str] = ()
    is_faded: bool = False


@dataclass(frozen=True)
class BarMarks:
    """Where the marks of one bar are, in per cent of the width; None for what is not drawn.

    An end with an arrow is not known, or far off the scale.
    """

    zero: float
    limits: Sequence[float]
    low: float | None
    high: float | None
    has_left_arrow: bool
    has_right_arrow: bool
    estimate: float | None
    tone: str


class Column(NamedTuple):
    """The head of a column: its name, and its meaning as a tooltip."""

    name: str
    meaning: str = ""


@dataclass(frozen=True)
class Forest:
    """Intervals one below the other.

    Attributes
    ----------
    caption : str
    rows : sequence of (Bar, BarMarks)
    ticks : sequence of (float, str)
        Places on the axis in per cent, and their words.
    head : sequence of Column
        Heads of the cells, and last that of the bar; empty if bars have no cells.
    first : str
        What the labels of the bars name, where there is a head.
    """

    caption: str
    rows: Sequence[tuple[Bar, BarMarks]]
    ticks: Sequence[tuple[float, str]]
    head: Sequence[Column] = ()
    first: str = "Arm"


def forest(
    caption: str,
    bars: Sequence[Bar],
    limits: Sequence[float] = (),
    head: Sequence[Column] = (),
    unit: str = "",
    first: str = "Arm",
) -> Forest:
    """Return intervals on one scale, which has 0 and all `limits` on it; `unit` follows its numbers."""
    scale = bar_scale(bars, limits)
    return Forest(
        caption,
        [(bar, place_bar(bar, scale, limits)) for bar in bars],
        _ticks_with_room(scale, unit),
        head,
        first,
    )


def _ticks_with_room(scale: Scale, unit: str) -> list[tuple[float, str]]:
    """Return places (per cent) and words of as many ticks as fit side by side beside the other columns."""
    placed: list[tuple[float, str]] = []
    for count in (4, 3, 2, 1):
        found = [(scale.at(value), f"{words}{unit}") for value, words in scale.ticks(count)]
        # Words at the very edge would stick out.
        placed = [(place, words) for place, words in found if 2 <= place <= 98]
        longest = max((len(words) for _, words in placed), default=0)
        apart = min((right - left for (left, _), (right, _) in pairwise(placed)), default=100.0)
        if apart * LEAST_AXIS_WIDTH / 100.0 >= longest * CHARACTER_WIDTH + TICK_ROOM:
            break
    return placed


def bar_scale(bars: Sequence[Bar], limits: Sequence[float] = ()) -> Scale:
    """Return the scale that bars share."""
    ends = [value for bar in bars for value in (bar.estimate, *bar.interval)]
    return Scale.around([0.0, *ends, *limits], room=0.08)


def place_bar(bar: Bar, scale: Scale, limits: Sequence[float] = ()) -> BarMarks:
    """Return where the marks of a bar are; an interval without a known end has only its estimate.

    Examples
    --------
    >>> marks = place_bar(Bar("a", 1.0, (None, 2.0)), Scale(0.0, 4.0))
    >>> marks.low, marks.has_left_arrow, marks.estimate, marks.high
    (0.5, True, 25.0, 50.0)
    """
    low, high = (end if is_known(end) and scale.holds(end) else None for end in bar.interval)
    has_range = any(map(is_known, bar.interval))
    has_estimate = is_known(bar.estimate) and scale.holds(bar.estimate)
    left = 0.5 if low is None else scale.at(low)
    right = 99.5 if high is None else scale.at(high)
    return BarMarks(
        zero=scale.at(0.0),
        limits=[scale.at(limit) for limit in limits],
        low=left if has_range else None,
        high=right if has_range else None,
        has_left_arrow=has_range and low is None,
        has_right_arrow=has_range and high is None,
        estimate=scale.at(bar.estimate) if has_estimate and bar.estimate is not None else None,
        tone=bar.tone,
    )


class Shape(NamedTuple):
    """A path (`d`) or a polygon (`points`) in a picture of FINE × FINE units, with its class."""

    kind: str
    d: str = ""
    points: str = ""


@dataclass(frozen=True)
class Plot:
    """A picture over time: shapes on a grid, with values at the left and times below.

    Attributes
    ----------
    title : str
        What it shows, for screen readers.
    scale : Scale
        Of the values.
    shapes : sequence of Shape
        What :func:`line`, :func:`band` and :func:`stack` return.
    times : sequence of str
        Words from the left end to the right, evenly spaced.
    caption : str
    is_large : bool
    legend : sequence of (str, str)
        The class of a colour, and what it stands for.
    """

    title: str
    scale: Scale
    shapes: Sequence[Shape]
    times: Sequence[str]
    caption: str = ""
    is_large: bool = False
    legend: Sequence[tuple[str, str]] = ()

    @property
    def ticks(self) -> list[tuple[float, int, bool, str]]:
        """Ticks of the values: height in per cent, y in units of the picture, whether it is 0, and words."""
        found = [(self.scale.at(value), value, words) for value, words in self.scale.ticks(4)]
        return [(at, round(FINE * (1 - at / 100)), not value, words) for at, value, words in found]


def line(places: Sequence[float], values: Series, scale: Scale, kind: str = "line") -> list[Shape]:
    """Return a line through the known ones of `values`; `places` are shares of the width."""
    runs: list[list[str]] = [[]]
    for place, value in zip(places, values, strict=True):
        if is_known(value):
            runs[-1].append(_point(place, scale.at(value)))
        elif runs[-1]:
            runs.append([])
    lines = "".join(f"M{'L'.join(run)}" for run in runs if len(run) > 1)
    # A path of one point draws nothing: it gets a length of one unit.
    dots = "".join(f"M{run[0]}h1" for run in runs if len(run) == 1)
    shapes = [Shape(kind, d=lines), Shape(f"{kind} dot", d=dots)]
    return [shape for shape in shapes if shape.d]


def band(places: Sequence[float], lows: Series, highs: Series, scale: Scale) -> list[Shape]:
    """Return the area between two lines; to the edge where one of them is not known."""
    runs: list[list[tuple[str, str]]] = [[]]
    for place, low, high in zip(places, lows, highs, strict=True):
        if is_known(low) or is_known(high):
            bottom = scale.at(low) if is_known(low) else -10.0
            top = scale.at(high) if is_known(high) else 110.0
            runs[-1].append((_point(place, bottom), _point(place, top)))
        elif runs[-1]:
            runs.append([])
    around = [[low for low, _ in run] + [high for _, high in run[::-1]] for run in runs if run]
    return [Shape("band", points=" ".join(points)) for points in around]


def stack(places: Sequence[float], shares: Sequence[Sequence[float]], kinds: Sequence[str]) -> list[Shape]:
    """Return areas on top of each other; `shares` are one sequence per area, from the bottom up."""
    floor = [0.0] * len(places)
    out = []
    for heights, kind in zip(shares, kinds, strict=True):
        ceiling = [under + height for under, height in zip(floor, heights, strict=True)]
        edge = [_point(place, 100 * height) for place, height in zip(places, ceiling, strict=True)]
        base = [_point(place, 100 * height) for place, height in zip(places, floor, strict=True)]
        out.append(Shape(kind, points=" ".join(edge + base[::-1])))
        floor = ceiling
    return out


def _point(place: float, per_cent: float) -> str:
    return f"{round(FINE * place)},{round(FINE * (1.0 - per_cent / 100.0))}"


# Figures by matplotlib.


def axes_for(axes: Any, width: float = 7.0, height: float = 4.5) -> Any:
    """Return `axes`, or the axes of a new figure of this width and height in inches."""
    if axes is not None:
        return axes
    pyplot = optional_package("matplotlib.pyplot", "plots", "a plot")
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def remove_clutter(axes: Any) -> Any:
    """Remove the top and right spines and lighten the grid; return the axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    return axes


def intervals_height(count: int) -> float:
    """Return the height in inches of a figure in which `count` intervals can be read."""
    return 1.4 + 0.35 * count


def draw_intervals(bars: Sequence[Bar], axes: Any = None) -> Any:
    """Draw intervals one below the other with a line at 0; return the axes.

    An end that is not known reaches the edge.
    """
    axes = axes_for(axes, height=intervals_height(len(bars)))
    scale = Scale.around([0.0, *(end for bar in bars for end in (bar.estimate, *bar.interval))])
    for place, bar in enumerate(reversed(bars)):
        colour = FADED if bar.is_faded else TONES[bar.tone]
        low, high = bar.interval
        if is_known(low) or is_known(high):
            ends = [
                max(low, scale.low) if is_known(low) else scale.low,
                min(high, scale.high) if is_known(high) else scale.high,
            ]
            axes.plot(ends, [place, place], color=colour, linewidth=3, solid_capstyle="butt")
        if is_known(bar.estimate) and scale.holds(bar.estimate):
            axes.plot([bar.estimate], [place], "o", color=colour)
    # A label such as "$5 off, $9 on" is no formula.
    axes.set_yticks(range(len(bars)), [printable(bar.label) for bar in reversed(bars)], parse_math=False)
    axes.set_ylim(-0.6, max(len(bars), 1) - 0.4)
    axes.set_xlim(scale.low, scale.high)
    axes.axvline(0.0, color="0.3", linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def blank_figure(width: float = 7.0, height: float = 4.5) -> "Figure":
    """Return a figure of this width and height in inches, with a layout that avoids overlaps."""
    kind = optional_package("matplotlib.figure", "plots", "a figure").Figure
    figure: Figure = kind(figsize=(width, height), layout="constrained")
    return figure


def save_figure(figure: "Figure", stem: Path) -> list[Path]:
    """Write ``stem.png`` and ``stem.svg``, the same bytes for the same figure; return their paths."""
    mpl = optional_package("matplotlib", "plots", "a figure")
    paths = [stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")]
    with mpl.rc_context({"svg.hashsalt": "orthobandit"}):
        with whole_file(paths[0]) as unfinished:
            figure.savefig(unfinished, format="png", dpi=150)
        with whole_file(paths[1]) as unfinished:
            figure.savefig(unfinished, format="svg", metadata={"Date": None})
    return paths


@contextmanager
def house_style(salt: str) -> Iterator[None]:
    """Draw with the colours of a page; ids inside the SVG derive from `salt`, so that two SVGs share none."""
    mpl = optional_package("matplotlib", "plots", "a figure")
    settings: Any = {**STYLE, "svg.hashsalt": salt}
    with mpl.rc_context(settings):
        yield


def svg_text(figure: "Figure", salt: str) -> str:
    """Return a figure as SVG to stand in a page: transparent, its text and grid in the page's colours."""
    buffer = io.StringIO()
    with house_style(salt):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for colour, variable in ((INK, "--ink"), (FAINT, "--faint"), ("#000000", "--ink")):
        text = text.replace(f": {colour}", f": var({variable})")
    # Glyphs and markers are named after fonts and shapes: make the names this figure's own.
    return text.replace('id="', f'id="{salt}-').replace('"#', f'"#{salt}-').replace("url(#", f"url(#{salt}-")
