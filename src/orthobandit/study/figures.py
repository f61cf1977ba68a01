"""Pictures of results. Colours are told apart without colour vision, and lines also by their dashes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orthobandit._files import optional_package, whole_file
from orthobandit.simulation import RunResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe & Ito (2008), without yellow, which is too pale for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1, 1, 1)))

BAND = (0.05, 0.95)  # levels of the band around a mean


@dataclass(frozen=True, eq=False)
class Curve:
    """A line with a band: `mean`, `low` and `high` (C,) after so many `rounds` (C,)."""

    name: str
    rounds: NDArray[np.int64]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def of(cls, name: str, result: RunResult) -> "Curve":
        """Return the mean regret of a run with the quantiles of its replications at ``BAND``."""
        summary = result.summary(BAND)
        return cls(name, summary.checkpoints, summary.regret_mean, *summary.regret_quantiles)


def regret_curves(curves: Sequence[Curve], *, title: str = "", note: str = "") -> "Figure":
    """Draw regret against rounds, one line a curve; the `note` says what the band is."""
    figure = blank_figure()
    axes = figure.add_subplot()
    for place, curve in enumerate(curves):
        colour = COLOURS[place % len(COLOURS)]
        dashes = DASHES[place % len(DASHES)]
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


def blank_figure(width: float = 7.0, height: float = 4.5) -> "Figure":
    """Return a figure of so many inches whose parts make room for each other."""
    kind = optional_package("matplotlib.figure", "plots", "a figure").Figure
    figure: Figure = kind(figsize=(width, height), layout="constrained")
    return figure


def save(figure: "Figure", stem: Path) -> list[Path]:
    """Write ``stem.png`` and ``stem.svg``, the same bytes for the same figure; return their paths."""
    mpl = optional_package("matplotlib", "plots", "a figure")
    paths = [stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")]
    with mpl.rc_context({"svg.hashsalt": "orthobandit"}):
        with whole_file(paths[0]) as unfinished:
            figure.savefig(unfinished, format="png", dpi=150)
        with whole_file(paths[1]) as unfinished:
            figure.savefig(unfinished, format="svg", metadata={"Date": None})
    return paths
