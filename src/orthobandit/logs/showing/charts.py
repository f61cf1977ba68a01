"""Pictures as HTML with inline SVG: intervals on a common scale, and lines, bands and areas over time.

Marks are SVG that stretches with the page; words around them are HTML, which stays as large as it is.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from orthobandit.logs.results import Interval
from orthobandit.logs.showing.numbers import number
from orthobandit.logs.showing.words import printable
from orthobandit.showing.text import FINEST, LARGE, is_known

FINE = 1000  # units of a picture's width and height
HUGE = 1e300  # beyond it differences overflow
COLOURS = {"better": "good", "safe": "good", "worse": "bad", "harmed": "bad"}
Series = Sequence[float | None]


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
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        values = [place * step for place in range(first, min(last, first + 3 * count) + 1)]
        return [(value, number(value, places if is_plain else None) or "0") for value in values]


@dataclass(frozen=True)
class Bar:
    """A row of a forest plot: a label, an estimate with its interval, what to say of it, and a verdict.

    Where there is no verdict, `aside` takes its place.
    """

    label: str
    estimate: float | None
    interval: Interval
    words: str
    verdict: str = ""
    aside: str = ""


def forest(caption: str, bars: Sequence[Bar], marks: Sequence[float] = (0.0,)) -> str:
    """Return intervals one below the other, on one scale.

    Parameters
    ----------
    caption : str
        Plain text.
    bars : sequence of Bar
    marks : sequence of float
        Where vertical lines are: 0 first, then others (dashed).
    """
    ends = [value for bar in bars for value in (bar.estimate, *bar.interval)]
    scale = Scale.around([*ends, *marks], room=0.08)
    rows = "".join(
        f'<tr><th scope="row">{shown(bar.label)}</th><td class="bar">{_bar(bar, scale, marks)}</td>'
        f'<td class="words">{escape(bar.words)}</td><td class="verdict">{_verdict(bar)}</td></tr>'
        for bar in bars
    )
    inside = [(scale.at(value), words) for value, words in scale.ticks(4) if 2 <= scale.at(value) <= 98]
    ticks = "".join(f'<span style="left:{place}%">{words}</span>' for place, words in inside)
    return (
        f'<table class="forest"><caption>{shown(caption)}</caption><tbody>{rows}</tbody>'
        f'<tfoot aria-hidden="true"><tr><td></td><td class="axis">{ticks}</td><td></td><td></td></tr></tfoot>'
        "</table>"
    )


def _bar(bar: Bar, scale: Scale, marks: Sequence[float]) -> str:
    """Return one interval; an arrow where an end is not known, or out of all proportion."""
    low, high = (end if is_known(end) and scale.holds(end) else None for end in bar.interval)
    is_bare = not any(map(is_known, bar.interval))
    out = [_upright(scale.at(mark), "zero" if place == 0 else "mark") for place, mark in enumerate(marks)]
    if bar.verdict != "reference" and not is_bare:
        left, right = 0.5 if low is None else scale.at(low), 99.5 if high is None else scale.at(high)
        out.append(f'<line class="range" x1="{left}%" x2="{right}%" y1="50%" y2="50%"/>')
        out += [_arrow("0", "7,-6 0,0 7,6")] if low is None else []
        out += [_arrow("100%", "-7,-6 0,0 -7,6")] if high is None else []
    if is_known(bar.estimate) and scale.holds(bar.estimate):
        out.append(f'<circle cx="{scale.at(bar.estimate)}%" cy="50%" r="4.5"/>')
    title = f"{printable(bar.label)}: {bar.words or bar.verdict}"
    colour = COLOURS.get(bar.verdict, "open")
    return f'<svg class="{colour}" role="img"><title>{escape(title)}</title>{"".join(out)}</svg>'


def _upright(place: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{place}%" x2="{place}%" y1="0" y2="100%"/>'


def _arrow(place: str, points: str) -> str:
    return f'<svg x="{place}" y="50%" overflow="visible"><polyline class="arrow" points="{points}"/></svg>'


def _verdict(bar: Bar) -> str:
    if not bar.verdict:
        return escape(bar.aside)
    return f'<span class="tag {COLOURS.get(bar.verdict, "open")}">{escape(bar.verdict)}</span>'


def plot(title: str, scale: Scale, marks: str, times: Sequence[str], name: str = "plot") -> str:
    """Return a picture over time: `marks` on a grid, with values at the left and times below.

    Parameters
    ----------
    title : str
        What it shows, for those who cannot see it.
    scale : Scale
        Of the values.
    marks : str
        What :func:`line`, :func:`band` and :func:`stack` return.
    times : sequence of str
        Words from the left end to the right, evenly spaced.
    name : str
        Its class.
    """
    ticks = scale.ticks(4)
    grid = "".join(
        f'<line class="{"grid" if value else "zero"}" x1="0" x2="{FINE}" y1="{y}" y2="{y}"/>'
        for value, y in ((value, round(FINE * (1 - scale.at(value) / 100))) for value, _ in ticks)
    )
    values = "".join(f'<span style="bottom:{scale.at(value)}%">{words}</span>' for value, words in ticks)
    below = "".join(f"<span>{escape(words)}</span>" for words in times)
    return (
        f'<div class="{name}"><div class="values" aria-hidden="true">{values}</div>'
        f'<svg role="img" viewBox="0 0 {FINE} {FINE}" preserveAspectRatio="none">'
        f'<title>{shown(title)}</title>{grid}{marks}</svg><div class="times">{below}</div></div>'
    )


def line(places: Sequence[float], values: Series, scale: Scale, kind: str = "line") -> str:
    """Return a line through what is known of `values`; `places` are shares of the width."""
    runs: list[list[str]] = [[]]
    for place, value in zip(places, values, strict=True):
        if is_known(value):
            runs[-1].append(_point(place, scale.at(value)))
        elif runs[-1]:
            runs.append([])
    lines = "".join(f"M{'L'.join(run)}" for run in runs if len(run) > 1)
    dots = "".join(f"M{run[0]}h1" for run in runs if len(run) == 1)
    drawn = f'<path class="{kind}" d="{lines}"/>' if lines else ""
    return drawn + (f'<path class="{kind} dot" d="{dots}"/>' if dots else "")


def band(places: Sequence[float], lows: Series, highs: Series, scale: Scale) -> str:
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
    return "".join(f'<polygon class="band" points="{" ".join(points)}"/>' for points in around)


def stack(places: Sequence[float], shares: Sequence[Sequence[float]], kinds: Sequence[str]) -> str:
    """Return areas on top of each other; `shares` are one sequence an area, from the bottom up."""
    floor = [0.0] * len(places)
    out = []
    for heights, kind in zip(shares, kinds, strict=True):
        ceiling = [under + height for under, height in zip(floor, heights, strict=True)]
        edge = [_point(place, 100 * height) for place, height in zip(places, ceiling, strict=True)]
        base = [_point(place, 100 * height) for place, height in zip(places, floor, strict=True)]
        out.append(f'<polygon class="{kind}" points="{" ".join(edge + base[::-1])}"/>')
        floor = ceiling
    return "".join(out)


def shown(text: str) -> str:
    """Return text of a user for a page: nothing in it is markup."""
    return escape(printable(text))


def _point(place: float, per_cent: float) -> str:
    return f"{round(FINE * place)},{round(FINE * (1.0 - per_cent / 100.0))}"
