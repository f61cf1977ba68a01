"""An adversary steers demand: Thompson sampling fails, exact intervals hold.

Two pages; `new` is better by 0.10. An adversary has seen the whole past and knows how visitors are about to
be split, and raises or lowers everybody's wish to buy by at most 0.25, for both pages alike: demand is low
while `new` gets more visitors than before, and high while it gets fewer. It never sees who will get which
page.

Thompson sampling attributes the adversary's moves to the pages. It abandons the better page with
confidence. The exact interval uses the same visits and the same draws. It weights each visitor by the
probabilities of the two pages at that moment, and contains the truth at every moment, whatever the adversary
does.

`python examples/attack.py` takes about 30 s, prints the counts and draws docs/gallery/attack.png.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit import ArmSet, Bounded, ContrastSequence, Plan, Tally

Array = NDArray[np.float64]

TARGET = Path(__file__).parents[1] / "docs" / "gallery" / "attack.png"
PAGES = ArmSet.one_hot(2, ["old", "new"])
CHANCE = np.array([0.40, 0.50])  # of buying, at the usual demand
GAP = float(CHANCE[1] - CHANCE[0])
LIMIT = 0.25  # how far demand can be pushed
BLOCKS, VISITS = 80, 250  # of visitors, and in a block
LEAST = 0.05  # share that every page keeps
SURE = 0.95


@dataclass
class Run:
    """What one run looked like after each block: shares of `new`, demand, and intervals of the gap."""

    shares: list[float] = field(default_factory=list)
    demand: list[float] = field(default_factory=list)
    believed: list[tuple[float, float]] = field(default_factory=list)  # by Thompson sampling
    exact: list[tuple[float, float]] = field(default_factory=list)


def thompson(counts: Array, sums: Array, random: np.random.Generator) -> tuple[float, tuple[float, float]]:
    """Return the probability that `new` is better, and the interval of the gap, by Beta posteriors."""
    drawn = random.beta(1.0 + sums, 1.0 + counts - sums, (2000, 2))
    gaps = drawn[:, 1] - drawn[:, 0]
    low, high = np.quantile(gaps, [(1 - SURE) / 2, (1 + SURE) / 2])
    return float(np.mean(gaps > 0)), (float(low), float(high))


def attacked(seed: int) -> Run:
    """Play Thompson sampling against the adversary, and follow the gap with exact intervals."""
    random, run = np.random.default_rng(seed), Run()
    counts, sums = np.zeros(2), np.zeros(2)
    sequence = ContrastSequence.start(PAGES, [[1, 0]], Bounded(0.0, 1.0), 1 - SURE)
    for block in range(BLOCKS):
        chance, believed = thompson(counts, sums, random)
        share = min(max(chance, LEAST), 1 - LEAST)
        usual = float(np.mean(run.shares)) if run.shares else 0.5
        demand = 0.0 if not run.shares else -LIMIT if share > usual else LIMIT
        plan = Plan([1 - share, share], VISITS, centre=sequence.centre(), number=block)
        shown = plan.draw(random)
        bought = (random.random(VISITS) < CHANCE[shown] + demand).astype(float)
        counts += np.bincount(shown, minlength=2)
        sums += np.bincount(shown, bought, minlength=2)
        sequence = sequence.add(plan, Tally.of(shown, plan.residuals(shown, bought), 2))
        low, high = sequence.intervals()
        run.shares.append(share)
        run.demand.append(demand)
        run.believed.append(believed)
        run.exact.append((float(low[0]), float(high[0])))
    return run


def misses(run: Run) -> tuple[bool, bool]:
    """Tell whether the truth was outside of what Thompson sampling believed at the end, of the exact ever."""
    low, high = run.believed[-1]
    is_lost = any(not low <= GAP <= high for low, high in run.exact)
    return not low <= GAP <= high, is_lost


def draw(run: Run, counts: tuple[int, int, int, int]) -> Any:
    """Return the figure of one run; counts are of runs, of those that left the better page, and of misses."""
    import matplotlib.pyplot as plt

    visits = VISITS * np.arange(1, BLOCKS + 1)
    figure, (top, bottom) = plt.subplots(2, figsize=(8, 6.2), sharex=True, layout="constrained")
    top.step(visits, run.shares, where="mid", color="#0072B2", label="share of visitors who see `new`")
    top.step(visits, np.array(run.demand) + 0.5, where="mid", color="#999999", lw=1, label="demand, pushed")
    top.set_ylim(0, 1)
    top.set_ylabel("share")
    runs, left, fooled, lost = counts
    title = f"Thompson sampling gives up the better page: here, and in {left} of {runs} runs"
    top.set_title(title, loc="left", fontsize="medium")
    for name, colour, intervals in (
        ("believed by Thompson sampling", "#D55E00", run.believed),
        ("exact, at all times at once", "#0072B2", run.exact),
    ):
        low, high = np.array(intervals).T
        bottom.fill_between(visits, low, high, color=colour, alpha=0.3, linewidth=0, label=name)
        bottom.plot(visits, (low + high) / 2, color=colour, lw=1.2)
    bottom.axhline(GAP, color="black", lw=1.2, ls="--", label="truth")
    bottom.set_ylim(-0.6, 0.6)
    bottom.set_xlabel("visitors")
    bottom.set_ylabel("gap of `new` over `old`")
    bottom.set_title(
        f"{fooled} end with a belief that excludes the truth; exact intervals ever excluded it in {lost}",
        loc="left",
        fontsize="medium",
    )
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize="small", loc="upper right")
    return figure


def main(runs: int = 100, target: Path = TARGET) -> None:
    """Count over many runs, and draw the first."""
    played = [attacked(seed) for seed in range(runs)]
    fooled, lost = (sum(found) for found in zip(*map(misses, played), strict=True))
    left = sum(run.shares[-1] < 0.5 for run in played)
    print(f"{runs} runs of {BLOCKS * VISITS:,} visitors; the true gap is {GAP:.2f}")
    print(f"Thompson sampling ends with less than half on the better page in {left}")
    print(f"its {SURE:.0%} interval excludes the truth at the end in {fooled}")
    print(f"the exact {SURE:.0%} interval excluded the truth at any moment in {lost}")
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(played[0], (runs, left, fooled, lost)).savefig(target, dpi=100)
    print(f"figure: {target}")


if __name__ == "__main__":
    main()
