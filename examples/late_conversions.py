"""A shop with late conversions: a dashboard that counts orders so far picks the wrong checkout.

On the old checkout 10 % of visitors order, most within hours; on the new one 12 % do, after three days in
the mean, since it lets them pay by invoice. Counting orders so far compares quick buyers with slow
ones, so the newest visitors always count against the new checkout. `Experiment` is told
that an order may take ten days, settles visitors in the order in which they came, and calls silence what it
then is: no order. Its interval begins late, and is right from then on, however often one looks.

`python examples/late_conversions.py` takes about 30 s and draws docs/gallery/late_conversions.png.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit import ArmSet, Experiment
from orthobandit.policy import UniformAllocation

TARGET = Path(__file__).parents[1] / "docs" / "gallery" / "late_conversions.png"
CHANCE = np.array([0.10, 0.12])  # that a visitor orders
DELAY = np.array([0.2, 3.0])  # days until then, in the mean
WINDOW, DAYS, VISITS = 10, 28, 3000  # days that an order may take; days, and visitors in a day
TRUTH = float(CHANCE[1] - CHANCE[0])


@dataclass
class Seen:
    """What was known at the end of each day: the dashboard's difference, and the experiment's interval."""

    dashboard: list[float] = field(default_factory=list)
    gaps: list[tuple[float, float, float]] = field(default_factory=list)  # estimate and ends, NaN if none


def followed(seed: int = 3, days: int = DAYS, visits: int = VISITS) -> Seen:
    """Run the shop, and look every day."""
    random, now = np.random.default_rng(seed), [0.0]
    shop = Experiment.memory(
        ArmSet.one_hot(2, ["old", "new"]),
        UniformAllocation(),
        rewards=(0, 1),
        window=f"{WINDOW}d",
        silence="zero",
        clock=lambda: now[0] * 86_400,
        key=f"{seed:032x}",
    )
    seen, counts, orders = Seen(), np.zeros(2), np.zeros(2)
    awaited = np.zeros((3, 0))  # numbers of visitors, what they saw, and the day on which they order
    for day in range(days):
        now[0] = float(day)
        asked = shop.ask_many(visits)
        shown, numbers = (np.array([getattr(one, name) for one in asked]) for name in ("arm", "id"))
        buys = random.random(visits) < CHANCE[shown]
        later = day + np.minimum(random.exponential(DELAY[shown]), WINDOW - 0.1)
        awaited = np.hstack([awaited, np.array([numbers, shown, later])[:, buys]])
        counts += np.bincount(shown, minlength=2)
        now[0] = day + 0.999
        here = awaited[2] <= now[0]
        shop.tell_many(awaited[0][here].astype(int), np.ones(int(here.sum())))
        orders += np.bincount(awaited[1][here].astype(int), minlength=2)
        awaited = awaited[:, ~here]
        seen.dashboard.append(float(np.diff(orders / counts)[0]))
        shop.tick()
        gap = shop.report().metrics[0].gaps[1]
        seen.gaps.append(known(gap))
    return seen


def known(gap: tuple[float | None, float | None, float | None]) -> tuple[float, float, float]:
    """Return an estimate and its ends; NaN while a handful of visitors is settled and nothing is known."""
    middle, low, high = gap
    if middle is None or low is None or high is None or high - low > 0.5:
        return np.nan, np.nan, np.nan
    return middle, low, high


def draw(seen: Seen) -> Any:
    """Return the figure."""
    import matplotlib.pyplot as plt

    days = np.arange(1, len(seen.dashboard) + 1)
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    estimate, low, high = np.array(seen.gaps).T
    axes.fill_between(days, low, high, color="#0072B2", alpha=0.25, lw=0, label="exact, at all times at once")
    axes.plot(days, estimate, color="#0072B2", label="settled visitors")
    axes.plot(days, seen.dashboard, color="#D55E00", label="dashboard: orders so far")
    axes.axhline(TRUTH, color="black", ls="--", lw=1.2, label="truth")
    axes.axhline(0, color="0.4", lw=0.8)
    axes.axvline(WINDOW, color="0.6", lw=0.8, ls=":")
    axes.set_ylim(-0.08, 0.12)
    axes.set(xlabel="day", ylabel="orders a visitor, new minus old", xlim=(1, days[-1]))
    axes.set_title("buyers on the new checkout take their time", loc="left", fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize="small", loc="upper right")
    return figure


def main(target: Path = TARGET, **size: int) -> None:
    """Look every day, print some of them, and draw."""
    seen = followed(**size)
    print(f"{'day':>4}{'dashboard':>11}{'settled':>9}   interval (truth {TRUTH:.3f})")
    for day in range(3, len(seen.dashboard), 4):
        gap, low, high = seen.gaps[day]
        words = f"{gap:>9.3f}   {low:+.3f} to {high:+.3f}" if np.isfinite(gap) else f"{'–':>9}   nothing yet"
        print(f"{day + 1:>4}{seen.dashboard[day]:>11.3f}{words}")
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(seen).savefig(target, dpi=100)
    print(f"figure: {target}")


if __name__ == "__main__":
    main()
