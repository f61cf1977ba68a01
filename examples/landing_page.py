"""A landing page with weekly seasons: what a forecast of demand saves, and what it cannot spoil.

Four landing pages; what a visitor is worth goes up and down with the hour of the day, and falls at
weekends. No page has a part in that. Intervals are right whatever demand does; a forecast only makes them
narrower, so that fewer days are needed. A wrong forecast helps little and spoils nothing: the last one
believes in a season of five days.

`python examples/landing_page.py` takes about 30 s and draws docs/gallery/landing_page.png.
"""

from pathlib import Path
from typing import Any

import numpy as np

from orthobandit import AnytimeElimination, ArmSet, Environment, RunResult, simulate
from orthobandit.estimate import NoBaseline, RunningMean, SeasonalRegression
from orthobandit.simulation import Seasonal

TARGET = Path(__file__).parents[1] / "docs" / "gallery" / "landing_page.png"
PAGES = ArmSet.one_hot(4, ["as it is", "short", "video", "short + video"])
WORTH = [0.0, 0.05, 0.02, 0.19]  # in euros a visitor, beside what demand adds
LEAD = WORTH[3] - WORTH[1]  # of the best page
DAY = 600  # visitors
DEMAND = Seasonal(day=DAY, amplitude=1.5, weekend=-1.5)
FORECASTS = {
    "none": NoBaseline(),
    "mean so far": RunningMean(),
    "the season, day and week": SeasonalRegression((DAY, 7 * DAY)),
    "a wrong season, 5 days": SeasonalRegression((5 * DAY,)),
}


def days(replications: int = 60, weeks: int = 8) -> dict[str, RunResult]:
    """Run the test until a page is declared best, with each forecast, against the same demand."""
    shop = Environment(PAGES, WORTH, DEMAND)
    return {
        name: simulate(
            AnytimeElimination(baseline=baseline),
            shop,
            horizon=weeks * 7 * DAY,
            replications=replications,
            seed=1,
            stop_when_declared=True,
        )
        for name, baseline in FORECASTS.items()
    }


def draw(results: dict[str, RunResult]) -> Any:
    """Return the figure: demand in a week, and how long the test takes with each forecast."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    visitors = np.arange(7 * DAY)
    left.plot(visitors / DAY, DEMAND.values(0, 7 * DAY), color="#0072B2")
    left.axhspan(0, LEAD, color="#D55E00", alpha=0.4, lw=0, label="lead of the best page")
    left.set(xlabel="day of the week", ylabel="demand (euros a visitor)", xlim=(0, 7))
    left.set_title("demand moves by far more than the best page leads", loc="left", fontsize="medium")
    left.legend(frameon=False, fontsize="small", loc="lower left")
    for place, result in enumerate(results.values()):
        stops = np.where(result.stop_times < 0, np.inf, result.stop_times) / DAY
        scatter = np.random.default_rng(place).uniform(-0.22, 0.22, len(stops))
        right.plot(stops, place + scatter, "o", ms=3, alpha=0.5, color="#0072B2")
        median = np.quantile(stops, 0.5, method="higher")
        right.plot([median] * 2, [place - 0.32, place + 0.32], color="#D55E00", lw=2.5)
    right.set_yticks(range(len(results)), list(results))
    right.invert_yaxis()
    right.set(xlabel="days until a page is declared best", xlim=(0, None))
    wrong = sum(int(np.sum((result.declared >= 0) & ~result.correct)) for result in results.values())
    runs = sum(result.replications.size for result in results.values())
    right.set_title(
        f"a dot a run, the median in orange; {wrong} of {runs} wrong", loc="left", fontsize="medium"
    )
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    return figure


def main(replications: int = 60, target: Path = TARGET) -> None:
    """Print how long the test takes, and draw it."""
    results = days(replications)
    print(f"{'forecast of demand':<26}{'median days':>12}{'declared':>10}{'wrong':>7}")
    for name, result in results.items():
        summary = result.summary()
        median = summary.stop_quantiles[2] / DAY
        print(f"{name:<26}{median:>12.1f}{summary.declared:>10.0%}{summary.wrong:>7.0%}")
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(results).savefig(target, dpi=100)
    print(f"figure: {target}")


if __name__ == "__main__":
    main()
