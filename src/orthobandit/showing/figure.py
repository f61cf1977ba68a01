"""Figures by matplotlib: axes to draw on, intervals, and files that are the same every time."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orthobandit._foundation.files import optional_package, whole_file
from orthobandit.showing.charts import Bar, Scale
from orthobandit.showing.numbers import is_known
from orthobandit.showing.words import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def axes_for(axes: Any, width: float = 7.0, height: float = 4.5) -> Any:
    """Return `axes`, or the axes of a new figure of this width and height in inches."""
    if axes is not None:
        return axes
    pyplot = optional_package("matplotlib.pyplot", "plots", "a plot")
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def remove_clutter(axes: Any) -> Any:
    """Take away the lines that nobody reads, and return the axes."""
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
    """Draw with the colours of a page; names inside an SVG begin with `salt`, so that two share none."""
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
