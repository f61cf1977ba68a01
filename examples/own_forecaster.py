"""Your own forecaster: a shop that knows on which days its newsletter goes out.

Demand is three euros a visitor higher on newsletter days, and wanders besides. No built-in forecaster knows
the calendar; this one keeps a level for days with and days without, each following its latest residuals. A
forecaster is a class with three methods, asked before each draw and told after each reward;
`orthobandit.testing.check_forecaster` checks every clause of its contract. It may be as wrong as it likes:
intervals get wider, never wrong.

`python examples/own_forecaster.py` takes a minute and draws docs/gallery/own_forecaster.png.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit import AnytimeElimination, ArmSet, Environment, RunResult, simulate
from orthobandit.estimate import AutoRegression, Baseline, Forecast, NoBaseline
from orthobandit.estimate.forecast.contract import NumberedForecaster
from orthobandit.simulation import Replay
from orthobandit.testing import check_forecaster

TARGET = Path(__file__).parents[1] / "docs" / "gallery" / "own_forecaster.png"
OFFERS = ArmSet.one_hot(3, ["as it is", "free delivery", "5 % off"])
WORTH = [0.0, 0.1, 0.45]
DAY, DAYS = 100, 40  # visitors in a day
LETTERS = (2, 3, 7, 11, 12, 18, 20, 21, 26, 30, 31, 35, 38)  # days on which a newsletter goes out


@dataclass(frozen=True)
class Calendar:
    """Forecast each visitor's level by the latest levels of days of the same kind.

    Parameters
    ----------
    letters : tuple of int
        Days with a newsletter, from 0.
    day : int
        Visitors in a day.
    rate : float
        How fast a level follows its latest residuals.
    """

    letters: tuple[int, ...]
    day: int
    rate: float = 0.05

    def forecaster(self, memory: Mapping[str, Any] | None = None) -> "CalendarForecaster":
        """Return a forecaster that has seen nothing, or one that goes on from its memory."""
        return CalendarForecaster(self, memory)


class CalendarForecaster(NumberedForecaster):
    """Two levels: of days with a newsletter, and of days without."""

    def __init__(self, calendar: Calendar, memory: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        self._calendar, self._levels = calendar, [0.0, 0.0]
        if memory is not None:
            self._levels = list(memory["levels"])
            self._restore(memory)

    def forecast(self, round: int, covariates: Mapping[str, float] | None = None) -> Forecast:  # noqa: A002, ARG002
        """Return the level of this kind of day."""
        kind = int(round // self._calendar.day in self._calendar.letters)
        return Forecast(self._levels[kind], round, number=self._number())

    def learn(self, forecast: Forecast, residual: float) -> None:
        """Let the level of that kind of day follow."""
        self._settle(forecast, residual)
        kind = int(forecast.round // self._calendar.day in self._calendar.letters)
        self._levels[kind] += self._calendar.rate * (residual - self._levels[kind])

    def to_json(self) -> Any:
        """Return the levels, and which forecasts are still open."""
        return {"levels": self._levels, **self._numbers()}


def demand() -> Replay:
    """Return the level of every visitor: newsletters, and a slow walk."""
    walk = np.cumsum(np.random.default_rng(5).normal(scale=0.15, size=DAYS))
    days = walk + 3.0 * np.isin(np.arange(DAYS), LETTERS)
    return Replay(np.repeat(days, DAY))


def compared(replications: int = 20) -> dict[str, RunResult]:
    """Run the test with three forecasters against the same demand."""
    shop = Environment(OFFERS, WORTH, demand())
    forecasters: dict[str, Baseline] = {
        "none": NoBaseline(),
        "autoregressive": AutoRegression(),
        "own": Calendar(LETTERS, DAY),
    }
    return {
        name: simulate(
            AnytimeElimination(baseline=baseline),
            shop,
            horizon=DAYS * DAY,
            replications=replications,
            seed=2,
            stop_when_declared=True,
        )
        for name, baseline in forecasters.items()
    }


def draw(results: dict[str, RunResult]) -> Any:
    """Return the figure: demand with what the own forecaster would have said of it, and days to the end."""
    import matplotlib.pyplot as plt

    levels = demand().values(0, DAYS * DAY)
    forecaster, said = Calendar(LETTERS, DAY).forecaster(), []
    noise = np.random.default_rng(6).normal(size=levels.size)
    for visitor, level in enumerate(levels):
        forecast = forecaster.forecast(visitor)
        said.append(forecast.value)
        forecaster.learn(forecast, float(level + noise[visitor]))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
    days = np.arange(levels.size) / DAY
    left.plot(days, levels, color="black", lw=1.2, label="demand")
    left.plot(days, said, color="#D55E00", lw=1, label="forecast before each visitor")
    left.set(xlabel="day", ylabel="euros a visitor", xlim=(0, DAYS))
    left.set_title("newsletter days are known beforehand", loc="left", fontsize="medium")
    left.legend(frameon=False, fontsize="small")
    for place, result in enumerate(results.values()):
        stops = np.where(result.stop_times < 0, DAYS * DAY, result.stop_times) / DAY
        right.plot(stops, np.full(len(stops), place), "o", ms=5, alpha=0.4, color="#0072B2")
        median = np.quantile(stops, 0.5, method="higher")
        right.plot([median] * 2, [place - 0.3, place + 0.3], color="#D55E00", lw=2.5)
    right.set_yticks(range(len(results)), [f"forecast: {name}" for name in results])
    right.set_ylim(len(results) - 0.5, -0.5)
    right.set(xlabel="days until an offer is declared best", xlim=(0, DAYS))
    right.set_title("a dot a run, the median in orange", loc="left", fontsize="medium")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3)
    return figure


def main(replications: int = 20, target: Path = TARGET) -> None:
    """Check the contract, compare, and draw."""
    check_forecaster(Calendar(LETTERS, DAY))
    print("the forecaster keeps its contract")
    results = compared(replications)
    for name, result in results.items():
        summary = result.summary()
        days = summary.stop_quantiles[2] / DAY
        print(f"forecast {name:<15} median {days:5.1f} days, {summary.wrong:.0%} wrong")
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(results).savefig(target, dpi=100)
    print(f"figure: {target}")


if __name__ == "__main__":
    main()
