"""A design as a picture: how often each arm is played."""

from typing import TYPE_CHECKING, Any

import numpy as np

from orthobandit._plots import COLOURS, axes_for, bare

if TYPE_CHECKING:
    from orthobandit.design.base import Design

NAMED = 40  # arms up to which each has a bar with its label
LETTERS = 30  # of a label


def draw_design(design: "Design", axes: Any = None) -> Any:
    """Draw a bar an arm that is played, the most likely first; without labels if there are very many."""
    order = np.argsort(-design.probabilities, kind="stable")[: len(design.support)]
    shares = design.probabilities[order]
    has_names = len(order) <= NAMED
    drawn = axes_for(axes, height=max(2.2, 1.0 + 0.25 * len(order)) if has_names else 4.0)
    bare(drawn)
    if has_names:
        labels = [_short(design.arms.labels[i]) for i in order]
        drawn.barh(range(len(order)), shares, color=COLOURS[0], height=0.7)
        drawn.set_yticks(range(len(order)), labels, parse_math=False)
        drawn.set_ylim(len(order) - 0.4, -0.6)
        drawn.set_xlabel("probability")
        drawn.grid(visible=False, axis="y")
    else:
        drawn.step(range(1, len(order) + 1), shares, where="mid", color=COLOURS[0], linewidth=1.5)
        drawn.set_ylim(bottom=0)
        drawn.set_xlabel("arms that are played, the most likely first")
        drawn.set_ylabel("probability")
    played = f"{len(order):,} of {len(design.arms):,} arms are played"
    drawn.set_title(f"{design.method} design: {played}", loc="left", fontsize="medium")
    return drawn


def _short(label: str) -> str:
    return label if len(label) <= LETTERS else label[: LETTERS - 1] + "…"
