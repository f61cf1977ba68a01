"""Charts of results: regret, errors, scaling and rows of dots.

Colours are told apart without colour vision (:mod:`~orthobandit.showing.charts` has them), and lines also by
their dashes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.reproduction.measured import Measured
from orthobandit.showing.charts import COLOURS, DASHES, INK, MARKERS, blank_figure
from orthobandit.simulation import RunResult
from orthobandit.simulation.result import BAND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Curve:
    """A line with a band: `mean`, `low` and `high` (C,) after so many `rounds` (C,)."""

    name: str
    rounds: Whole
    mean: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, name: str, result: RunResult) -> "Curve":
        """Return the mean regret of a run with the quantiles of its replications at ``BAND``."""
        summary = result.summary(BAND)
        return cls(name, summary.checkpoints, summary.regret_mean, *summary.regret_quantiles)


@dataclass(frozen=True, eq=False)
class Series:
    """Points (n,) with a spread, and the fitted line behind them if there is one."""

    name: str
    x: Array
    y: Array
    spread: Array | None = None
    fit: Array | None = None


@dataclass(frozen=True)
class Dot:
    """A number of a row, and its standard error; 0 for a number without one."""

    value: float
    error: float = 0.0

    @classmethod
    def of(cls, measured: Measured) -> "Dot":
        """Return a measured number as a dot."""
        return cls(measured.value, measured.error or 0.0)


def regret_curves(curves: Sequence[Curve], *, title: str = "", note: str = "") -> "Figure":
    """Draw regret against rounds, one line a curve; the `note` says what the band is."""
    figure = blank_figure()
    axes = figure.add_subplot()
    for index, curve in enumerate(curves):
        colour = COLOURS[index % len(COLOURS)]
        dashes = DASHES[index % len(DASHES)]
        rounds, mean, low, high = (
            np.append(0, values) for values in (curve.rounds, curve.mean, curve.low, curve.high)
        )
        axes.fill_between(rounds, low, high, color=colour, alpha=0.18, linewidth=0)
        axes.plot(rounds, mean, ls=dashes, color=colour, linewidth=1.8, label=curve.name)
    axes.set_xlabel("rounds t")
    axes.set_ylabel("cumulative regret (units of reward)")
    axes.set_xlim(0, max(int(curve.rounds[-1]) for curve in curves))
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("\n".join(filter(None, (title, note))), loc="left", fontsize="medium")
    figure.legend(loc="outside lower left", ncols=min(len(curves), 3), frameon=False)
    return figure


def regret_panels(panels: Mapping[str, Sequence[Curve]]) -> "Figure":
    """Draw regret against rounds, one panel a title, one line a curve, its name below.

    A band is drawn where it can be told from the others. Curves that crowd at the bottom have an inset of
    their own.
    """
    most = max(len(curves) for curves in panels.values())
    figure, axes, below = _panels_with_legends(panels, height=3.6, entries=most)
    for axis, legend, curves in zip(axes, below, panels.values(), strict=True):
        apart = _bands_apart(curves)
        for index, curve in enumerate(curves):
            _draw_curve(axis, curve, index, has_band=apart[index])
        axis.set(xlabel="rounds t", xlim=(0, curves[0].rounds[-1]), ylim=(0, None))
        _thousands(axis)
        crowded = _crowded(curves)
        if crowded:
            # Room above the curves, whose bands are at most in the lower two thirds then.
            axis.set_ylim(0, 1.6 * max(float(curve.high.max()) for curve in curves))
            inset = axis.inset_axes((0.16, 0.62, 0.4, 0.36))
            for index in crowded:
                _draw_curve(inset, curves[index], index, has_band=False)
            inset.set(xlim=(0, curves[0].rounds[-1]), ylim=(0, None))
            inset.set_xticks([])
            inset.tick_params(labelsize=8)
            _thousands_on(inset.yaxis, 3)
        _list_below(axis, legend)
    axes[0].set_ylabel("cumulative regret (units of reward)")
    return figure


def _draw_curve(axis: "Axes", curve: Curve, index: int, *, has_band: bool) -> None:
    rounds, mean, low, high = (
        np.append(0, values) for values in (curve.rounds, curve.mean, curve.low, curve.high)
    )
    colour = COLOURS[index % len(COLOURS)]
    if has_band:
        axis.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
    axis.plot(rounds, mean, ls=DASHES[index % len(DASHES)], color=colour, lw=1.8, label=curve.name)


def _bands_apart(curves: Sequence[Curve]) -> list[bool]:
    """Tell for each curve whether its band ends apart from all others."""
    ends = [(float(curve.low[-1]), float(curve.high[-1])) for curve in curves]
    return [
        all(high < other_low or other_high < low for k, (other_low, other_high) in enumerate(ends) if k != j)
        for j, (low, high) in enumerate(ends)
    ]


def _crowded(curves: Sequence[Curve]) -> list[int]:
    """Return the curves that end in the lowest fifth of the panel, if several do and others are above."""
    ends = np.array([curve.mean[-1] for curve in curves])
    low = np.flatnonzero(ends < 0.2 * ends.max())
    return low.tolist() if low.size > 1 else []


def error_panels(panels: Mapping[str, tuple[Sequence[Series], float, str]]) -> "Figure":
    """Draw series with error bars against rounds, and a level with its name, one panel a title."""
    most = 1 + max(len(series) for series, _, _ in panels.values())
    figure, axes, below = _panels_with_legends(panels, height=3.3, entries=most)
    for axis, legend, (series, level, name) in zip(axes, below, panels.values(), strict=True):
        for index, line in enumerate(series):
            axis.errorbar(
                _beside(line.x, index, len(series)), line.y, line.spread, **_looks(index, line.name)
            )
        axis.axhline(level, color=INK, lw=1.2, ls=(0, (6, 3)), label=name)
        axis.set(xlabel="rounds t", xscale="log", ylim=(0, 1.12 * level))
        _list_below(axis, legend)
    axes[0].set_ylabel("√t · eₜ (units of reward)")
    return figure


def scaling_panels(panels: Mapping[str, tuple[Sequence[Series], str, str]]) -> "Figure":
    """Draw points and fitted lines, one panel a title, with axis labels.

    Axes are logarithmic, but for y where nothing is fitted as a power.
    """
    most = max(len(series) for series, _, _ in panels.values())
    figure, axes, below = _panels_with_legends(panels, height=3.3, entries=most)
    for axis, legend, (series, x, y) in zip(axes, below, panels.values(), strict=True):
        for index, line in enumerate(series):
            looks = _looks(index, line.name) | {"ls": "none"}
            axis.errorbar(_beside(line.x, index, len(series)), line.y, line.spread, **looks)
            if line.fit is not None:
                axis.plot(line.x, line.fit, ls=DASHES[index % len(DASHES)], color=looks["color"], lw=1.4)
        has_fit = any(line.fit is not None for line in series)
        axis.set(xlabel=x, ylabel=y, xscale="log", yscale="log" if has_fit else "linear")
        for side in (axis.xaxis, axis.yaxis)[: 1 + has_fit]:
            _plain_logarithms(side)
        _list_below(axis, legend)
    return figure


def _beside(x: Array, index: int, count: int) -> Array:
    """Return x (n,) moved a little on a logarithmic axis: error bars of several lines must not overlap."""
    return np.asarray(x * (x.max() / x.min()) ** (0.012 * (index - (count - 1) / 2)))


def dot_rows(rows: Mapping[str, Mapping[str, Dot]], label: str) -> "Figure":
    """Draw one row a name with a dot and an error bar for each of its numbers, on a logarithmic axis."""
    figure, axis, kinds = _dotted(rows, label)
    axis.set_xscale("log")
    _plain_logarithms(axis.xaxis)
    _add_legend_below(figure, len(kinds))
    return figure


def share_rows(rows: Mapping[str, Mapping[str, Dot]], label: str, limit: float, name: str) -> "Figure":
    """Draw one row a name with a dot for each of its shares, and the limit that they have to stay below."""
    figure, axis, kinds = _dotted(rows, label)
    axis.axvline(limit, color=INK, lw=1.2, ls=(0, (6, 3)), label=f"{name} = {limit:g}")
    most = max(dot.value for numbers in rows.values() for dot in numbers.values())
    axis.set_xlim(-0.02 * limit, 1.08 * max(limit, most))
    _add_legend_below(figure, len(kinds) + 1)
    return figure


def _dotted(rows: Mapping[str, Mapping[str, Dot]], label: str) -> "tuple[Figure, Axes, list[str]]":
    """Return a figure with one row a name, a dot for each of its numbers, and the kinds of numbers."""
    # Narrow, so that its words can be read on a phone.
    kinds = list(dict.fromkeys(kind for numbers in rows.values() for kind in numbers))
    figure = blank_figure(6.2, 1.5 + 0.19 * len(kinds) + max(0.42, 0.15 * len(kinds)) * len(rows))
    axis = figure.add_subplot()
    for index, kind in enumerate(kinds):
        # Dots of a row stand above each other, so that none hides another.
        lift = min(0.24, 0.8 / len(kinds)) * ((len(kinds) - 1) / 2 - index)
        points = np.array(
            [
                (numbers[kind].value, lift - row, numbers[kind].error)
                for row, numbers in enumerate(rows.values())
                if kind in numbers
            ]
        )
        # On a logarithmic axis a bar must not reach 0.
        below = np.minimum(points[:, 2], 0.9 * points[:, 0])
        bars = np.array([below, points[:, 2]])
        looks = _looks(index, kind) | {"ls": "none", "ms": 6}
        axis.errorbar(points[:, 0], points[:, 1], xerr=bars if bars.any() else None, **looks)
    axis.set(xlabel=label, ylim=(0.5 - len(rows), 0.5))
    # Where a row has several dots, it should be plain which row they are in.
    if len(kinds) > 1:
        for row in range(1, len(rows)):
            axis.axhline(0.5 - row, color=INK, lw=0.4, alpha=0.25, zorder=0)
    axis.set_yticks([-row for row in range(len(rows))], list(rows))
    axis.grid(axis="x", which="major")
    axis.set_axisbelow(True)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    return figure, axis, kinds


def _add_legend_below(figure: "Figure", entries: int) -> None:
    # Three names beside each other may be wider than a figure that is made for phones.
    figure.legend(loc="outside lower center", ncols=1 + (entries > 1), frameon=False, fontsize=9)


def _panels_with_legends(
    titles: Mapping[str, Any], height: float, entries: int
) -> "tuple[Figure, list[Axes], list[Axes]]":
    """Return a figure, a panel for each title, and below each the room in which its lines are named."""
    room = 0.1 + 0.19 * entries  # inches
    figure = blank_figure(0.6 + 4.2 * len(titles), height + room)
    grid = figure.add_gridspec(2, len(titles), height_ratios=[height, room])
    axes = [figure.add_subplot(grid[0, index]) for index in range(len(titles))]
    below = [figure.add_subplot(grid[1, index]) for index in range(len(titles))]
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, loc="left", fontsize=10.5)
        axis.grid(which="major")
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in below:
        axis.set_axis_off()
    return figure, axes, below


def _list_below(axis: "Axes", below: "Axes") -> None:
    """Name the lines of a panel one below the other, in the room below it."""
    handles, names = axis.get_legend_handles_labels()
    below.legend(
        handles, names, frameon=False, fontsize=9, loc="upper left", borderaxespad=0, labelspacing=0.3
    )


def _looks(index: int, name: str) -> dict[str, Any]:
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": MARKERS[index % len(MARKERS)],
        "ms": 4.5,
        "lw": 1.4,
        "capsize": 2.5,
        "ls": DASHES[index % len(DASHES)],
        "label": name,
    }


def _plain_logarithms(side: "Axis") -> None:
    """Label 1, 2, 5, 10, … on a short logarithmic axis; a long one keeps its powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = side.get_view_interval()
    side.set_minor_formatter(NullFormatter())
    if high / low < 300:
        side.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        side.set_major_formatter(lambda value, _: _short(value))


def _short(value: float) -> str:
    """Return 0.05, 20, 5k, 2M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def _thousands(axis: "Axes") -> None:
    for side in (axis.xaxis, axis.yaxis):
        _thousands_on(side, 5)


def _thousands_on(side: "Axis", ticks: int) -> None:
    from matplotlib.ticker import MaxNLocator

    side.set_major_locator(MaxNLocator(ticks))
    side.set_major_formatter(lambda value, _: f"{value:,.0f}")
