"""Draw three designs of the same arms: the figure of docs/designs.md, and the table of what designs cost.

Run `python examples/plot_designs.py`; needs the plots extra. The ellipse around each design's mean is
{x : ‖x − μ‖ ≤ maxᵢ ‖xᵢ − μ‖} in the norm of Σ⁻¹: the smaller, the better the worst arm is known.
"""

from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from orthobandit import ArmSet, anchor_design, centred_design, contrast_design
from orthobandit.design import Design

Array = NDArray[np.float64]

TARGET = Path(__file__).parents[1] / "docs" / "designs.png"
INSTANCES, ARMS, FEATURES = 10, 30, 20
PLAIN, PLAYED, HULL = "#b8bcc2", "#1f5fa8", "#d9822b"


def cloud() -> ArmSet:
    """Return forty arms with two features, in a crescent with a few outliers."""
    rng = np.random.default_rng(3)
    angle = rng.uniform(-0.3, 2.2, 40)
    radius = 1.0 + 0.25 * rng.standard_normal(40)
    return ArmSet(np.column_stack([1.6 * radius * np.cos(angle), radius * np.sin(angle)]))


def ellipse(design: Design) -> Array:
    """Return points (n, 2) on the ellipse through the worst arm."""
    turn = np.linspace(0, 2 * np.pi, 300)
    circle = np.column_stack([np.cos(turn), np.sin(turn)])
    return np.asarray(design.mean + design.centred_norm * circle @ np.linalg.cholesky(design.covariance).T)


def draw(axes: Axes, design: Design, title: str) -> None:
    """Draw arms, probabilities as areas, the mean and the ellipse."""
    x, p = design.arms.features, design.probabilities
    outline = ellipse(design)
    axes.plot(outline[:, 0], outline[:, 1], color=HULL, linewidth=1.5)
    axes.scatter(x[:, 0], x[:, 1], s=12, color=PLAIN)
    axes.scatter(
        x[design.support, 0], x[design.support, 1], s=1100 * p[design.support], color=PLAYED, alpha=0.75
    )
    axes.plot(*design.mean, marker="+", color=HULL, markersize=9, markeredgewidth=1.8)
    norms = f"from the mean {design.centred_norm:.2f}, between arms {design.contrast_norm:.2f}"
    axes.set_title(f"{title}\n{norms}", fontsize=9.5)
    axes.margins(0.09)
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])


def figure() -> None:
    """Write the figure."""
    arms = cloud()
    reference = int(np.argmin(np.linalg.norm(arms.features, axis=1)))
    panels, axes = plt.subplots(1, 3, figsize=(10.5, 2.75), sharex=True, sharey=True, layout="constrained")
    draw(axes[0], anchor_design(arms, reference), "anchor (the paper's DEO)")
    draw(axes[1], centred_design(arms), "centred (exact optimum)")
    draw(axes[2], contrast_design(arms), "contrast (all pairs)")
    panels.savefig(TARGET, dpi=110, bbox_inches="tight")
    print(f"figure: {TARGET}, {TARGET.stat().st_size / 1e3:.0f} kB")


def costs() -> None:
    """Print the norms of each design over √r, and the rounds it needs relative to the anchor design."""
    norms: dict[str, list[tuple[float, float]]] = {}
    for seed in range(INSTANCES):
        arms = ArmSet(np.random.default_rng(seed).standard_normal((ARMS, FEATURES)))
        uniform = Design(arms, np.full(ARMS, 1 / ARMS), "uniform", 0, np.inf)
        for design in (anchor_design(arms), centred_design(arms), contrast_design(arms), uniform):
            pair = (design.centred_norm, design.contrast_norm)
            norms.setdefault(design.method, []).append(pair)
    paper = np.mean(np.square(norms["anchor"])[:, 1])
    print(f"{'design':10} from the mean  between arms  rounds")
    for method, found in norms.items():
        centred, pairs = np.mean(found, axis=0) / np.sqrt(FEATURES)
        print(f"{method:10} {centred:13.2f} {pairs:13.2f} {np.mean(np.square(found)[:, 1]) / paper:7.2f}")


if __name__ == "__main__":
    figure()
    costs()
