"""Draw the figure of docs/why.md: one experiment whose level falls, and what two estimates make of many such.

Run `python examples/why_figure.py`; needs the plots extra. Two pages; red is better by ½ at every moment.
Half-way most visitors are sent to red, while the level falls for both.
"""

from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from orthobandit import ArmSet, OrthogonalRegression, Plan, Tally

Array = NDArray[np.float64]

TARGET = Path(__file__).parents[1] / "docs" / "why.png"
PAGES, GAP, HALF, REPEATS = ArmSet([[0.0], [1.0]], labels=["plain", "red"]), 0.5, 500, 400
PLANS = (Plan([0.5, 0.5], HALF), Plan([0.1, 0.9], HALF))
LEVEL = 5.0 - 3.0 * np.arange(2 * HALF) / (2 * HALF)
KINDS = {"plain means": "#8a9099", "orthogonalised": "#8db9e8", "…, level forecast": "#1f5fa8"}
COLOURS, INK = ("#8a9099", "#c4562d"), "#3c4149"


def experiment(seed: int) -> tuple[NDArray[np.int64], Array]:
    """Return which page every visitor saw, and what came of it."""
    random = np.random.default_rng(seed)
    shown = np.concatenate([plan.draw(random, HALF) for plan in PLANS])
    return shown, LEVEL + GAP * shown + random.standard_normal(2 * HALF)


def forecast(rewards: Array, window: int = 50) -> Array:
    """Return the mean of the last rewards, as it was before each visitor came."""
    sums = np.concatenate([[0.0], np.cumsum(rewards)])
    now = np.arange(len(rewards))
    begin = np.maximum(now - window, 0)
    return np.asarray((sums[now] - sums[begin]) / np.maximum(now - begin, 1))


def estimates(seed: int) -> tuple[float, float, float]:
    """Return the lead of red: by plain means, orthogonalised, and that with the level forecast."""
    shown, rewards = experiment(seed)
    halves = (slice(0, HALF), slice(HALF, 2 * HALF))
    means = [rewards[shown == page].mean() for page in range(2)]
    leads = [float(means[1] - means[0])]
    for values in (rewards, rewards - forecast(rewards)):
        tallies = [Tally.of(shown[half], values[half], 2) for half in halves]
        gaps = OrthogonalRegression(ridge=0.01).fit(PAGES, list(zip(PLANS, tallies, strict=True))).gaps
        leads.append(float(gaps[0] - gaps[1]))
    return leads[0], leads[1], leads[2]


def draw(found: Array, target: Path) -> None:
    """Write the figure: visitors on the left, estimates on the right."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
    shown, rewards = experiment(0)
    for page, label in enumerate(PAGES.labels):
        at = np.flatnonzero(shown == page)
        left.scatter(at, rewards[at], s=5, color=COLOURS[page], alpha=0.55, linewidths=0)
        left.plot(LEVEL + GAP * page, color=COLOURS[page], linewidth=2, label=label)
        left.axhline(rewards[at].mean(), color=COLOURS[page], linestyle=":", linewidth=1.5)
    left.legend(frameon=False, loc="upper right")
    left.set(title="one experiment; dotted: the plain means", xlabel="visitor", ylabel="reward")
    bins = list(np.linspace(-0.6, 1.6, 56))
    for column, (name, colour) in zip(found.T, KINDS.items(), strict=True):
        right.hist(column, bins, color=colour, alpha=0.75, label=name)
    right.axvline(GAP, color=INK, linewidth=1.5)
    right.legend(frameon=False, loc="upper right", fontsize=9)
    right.set(title=f"estimated lead of red, {len(found)} experiments; line: truth", xlabel="lead", yticks=[])
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.title.set_fontsize(10)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)
    plt.close(figure)


def main(repeats: int = REPEATS, target: Path = TARGET) -> None:
    """Print the mean and spread of both estimates, and write the figure."""
    found = np.array([estimates(seed) for seed in range(repeats)])
    for name, column in zip(KINDS, found.T, strict=True):
        print(f"{name:17} {column.mean():+.2f} ± {column.std(ddof=1):.2f} in {repeats} experiments")
    print(f"{'truth':17} {GAP:+.2f}")
    draw(found, target)
    print(f"figure: {target}, {target.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
