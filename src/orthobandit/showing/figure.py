"""Axes to draw on: the caller's, or new ones of matplotlib."""

from typing import Any

from orthobandit._foundation.files import optional_package

# Okabe & Ito (2008), told apart without colour vision; without yellow, which is too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")


def axes_for(axes: Any, width: float = 7.0, height: float = 4.5) -> Any:
    """Return `axes`, or the axes of a new figure of so many inches."""
    if axes is not None:
        return axes
    pyplot = optional_package("matplotlib.pyplot", "plots", "a plot")
    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def bare(axes: Any) -> Any:
    """Take away the lines that nobody reads, and return the axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    axes.set_axisbelow(True)
    return axes
