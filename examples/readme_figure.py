"""Draw README's picture: what a season does to ordinary bandits, and what it does not do to ours.

Run `python examples/readme_figure.py`; needs the plots extra; a minute. Four pages, one of them better by
a tenth of the noise. Demand has a season that moves all pages alike and knows nothing of the experiment. The
same season and the same noise meet all policies; the share of visitors who see the best page follows from the
regret, because the other three pages are equally far behind. The setting was chosen, of about a dozen
that were tried, because it shows the harm clearly; it is not an average case. Weaker seasons are printed too.
"""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from orthobandit import AnytimeElimination, ArmSet, Environment, simulate
from orthobandit.peers import UCB1, MABThompson
from orthobandit.policy import Policy
from orthobandit.simulation import Replay, RunResult

TARGET = Path(__file__).parents[1] / "docs" / "readme.svg"
VISITORS, STEP, GAP, RUNS = 20_000, 500, 0.1, 200
PAGES = ArmSet.one_hot(4, labels=["as it is", "short", "video", "price first"])
SEASON = np.cos(2 * np.pi * np.arange(VISITORS) / 5000)
ABOVE = {"orthobandit": 0, "Thompson sampling": -7, "UCB1": 7}  # points by which labels are moved apart
STRENGTHS = (1.0, 0.5, 0.2, 0.0)  # of the season
OURS, INK = "orthobandit", "#3c4149"
POLICIES: dict[str, tuple[Policy[Any], str]] = {
    OURS: (AnytimeElimination(goal="earn"), "#1f5fa8"),
    "Thompson sampling": (MABThompson(), "#c4562d"),
    "UCB1": (UCB1(), "#9a8c3c"),
}


def season_runs(runs: int = RUNS, season: NDArray[np.float64] = SEASON) -> dict[str, RunResult]:
    """Play every policy through the same seasons."""
    world = Environment(PAGES, [0.0, 0.0, GAP, 0.0], Replay(season))
    checkpoints = range(STEP, VISITORS + 1, STEP)
    return {
        name: simulate(
            policy, world, horizon=VISITORS, replications=runs, seed=1, checkpoints=list(checkpoints)
        )
        for name, (policy, _) in POLICIES.items()
    }


def shares(result: RunResult) -> NDArray[np.float64]:
    """Return the share of visitors who saw the best page, in every step of `STEP` visitors."""
    regret = result.regret.mean(axis=0)
    return np.asarray(1.0 - np.diff(regret, prepend=0.0) / (STEP * GAP))


def message(results: dict[str, RunResult]) -> str:
    """Return what the picture says, in one sentence."""
    ours = shares(results[OURS])[-1]
    others = max(shares(result)[-1] for name, result in results.items() if name != OURS)
    return (
        "While demand moves, ordinary bandits show the best page\n"
        f"to {others:.0%} of visitors, {OURS} to {ours:.0%}"
    )


def draw(results: dict[str, RunResult], target: Path) -> None:
    """Write the picture as SVG, the same bytes for the same numbers."""
    plt.rcParams.update({"svg.hashsalt": "orthobandit", "font.size": 10, "text.color": INK})
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(8, 5.0), sharex=True, height_ratios=[1, 3], layout="constrained"
    )
    figure.suptitle(message(results), x=0.01, ha="left", fontsize=12)
    above.plot(np.arange(0, VISITORS, 200), SEASON[::200], color="#8a9099")
    above.set_title("Demand: the same for all four pages", loc="left", fontsize=10.5)
    ends = np.arange(STEP, VISITORS + 1, STEP)
    for name, (_, colour) in POLICIES.items():
        found = shares(results[name])
        below.plot(ends, 100 * found, color=colour, linewidth=2.6 if name == OURS else 1.8)
        below.annotate(
            f"{name}, {found[-1]:.0%}",
            (VISITORS, 100 * found[-1]),
            (6, ABOVE[name]),
            textcoords="offset points",
            color=colour,
            va="center",
            fontweight="bold" if name == OURS else "normal",
        )
    below.set_title("Visitors who see the best page, %", loc="left", fontsize=10.5)
    below.set(ylim=(0, 104), xlim=(0, VISITORS))
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=INK)
    below.set_xlabel("visitors so far", color=INK)
    above.set_yticks([-1, 0, 1])
    below.set_xticks(range(0, VISITORS + 1, 5_000))
    below.xaxis.set_major_formatter("{x:,.0f}")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, format="svg", metadata={"Date": None})
    plt.close(figure)


def main(runs: int = RUNS, target: Path = TARGET) -> None:
    """Print what was found under the season, weaker ones and none, and write the picture."""
    results = season_runs(runs)
    print(
        f"best page shown to visitors {VISITORS - STEP:,} to {VISITORS:,}, and regret; means of {runs} runs"
    )
    for strength in STRENGTHS:
        found = results if strength == 1.0 else season_runs(runs, strength * SEASON)
        for name, result in found.items():
            regret = result.regret[:, -1].mean()
            print(f"season ± {strength:<4} {name:18} {shares(result)[-1]:4.0%}  regret {regret:4.0f}")
    draw(results, target)
    print(f"figure: {target}, {target.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
