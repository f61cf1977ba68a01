"""Two ways to go wrong when rewards come late or never, beside what `Experiment` says of the same visits.

First trap: dropping the silent. 10 % of visitors buy on page A and 12 % on page B, a gap of .020. Everybody
who buys is heard of; of the others, 15 % say that they will not, and the rest say nothing. Leave out the
silent, and the difference grows with the share of buyers among those who are left.

Second trap: counting on arrival. 26 % buy on either page, a gap of 0, but after three days in the mean on
page A and after one on page B. Who does not buy is heard of at once. Compare what has arrived after a week,
and page B looks better because its buyers are faster.

`python examples/delay_traps.py` prints the table of docs/live.md in less than a minute.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orthobandit import ArmSet, Experiment
from orthobandit.policy import UniformAllocation

VISITS = 2_000_000
HOURS = 7 * 24  # that visitors come for
WINDOW = 28 * 24  # hours that rewards may take


@dataclass(frozen=True)
class World:
    """What visitors do: chance of buying and mean hours until then, by page, and who says that he won't."""

    chance: tuple[float, float]
    hours: tuple[float, float]
    outspoken: float

    def answers(
        self, pages: NDArray[np.int64], random: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return rewards and after how many hours they are heard of, +inf where never."""
        buys = random.random(len(pages)) < np.array(self.chance)[pages]
        later = np.minimum(random.exponential(np.array(self.hours)[pages]), WINDOW - 1)
        never = random.random(len(pages)) >= self.outspoken
        return buys.astype(float), np.where(buys, later, np.where(never, np.inf, 0.0))


def estimates(world: World, visits: int = VISITS, seed: int = 1) -> tuple[float, float, float]:
    """Return what the trap says after a week, then the settled gap and half the width of its interval."""
    random, now = np.random.default_rng(seed), [0.0]
    live = Experiment.memory(
        ArmSet.one_hot(2, labels=["A", "B"]),
        UniformAllocation(),
        rewards=(0, 1),
        window=WINDOW * 3600,
        silence="zero",
        clock=lambda: now[0] * 3600,
        key=f"{seed:032x}",
    )
    awaited = np.zeros((3, 0))  # ids, rewards and when they are heard of
    trap = Trap()
    for hour in range(HOURS + WINDOW + 1):
        now[0] = float(hour)
        if hour < HOURS:
            asked = live.ask_many(visits // HOURS)
            pages, ids = (np.array([getattr(one, name) for one in asked]) for name in ("arm", "id"))
            rewards, later = world.answers(pages, random)
            heard = np.array([ids, rewards, hour + later])
            awaited = np.hstack([awaited, heard[:, later < np.inf]])
            trap.see(pages, rewards, hour + later <= HOURS)
        here = awaited[2] <= hour
        if here.any():
            live.tell_many(awaited[0][here].astype(int), awaited[1][here])
            awaited = awaited[:, ~here]
    live.tick()
    gap, low, high = live.report().metrics[0].gaps[1]
    if gap is None or low is None or high is None:
        raise RuntimeError("nothing is settled; more visits are needed")
    return trap.difference, gap, (high - low) / 2.0


class Trap:
    """The difference of the means of what had arrived when the week was over."""

    def __init__(self) -> None:
        self._counts, self._sums = np.zeros(2), np.zeros(2)

    def see(self, pages: NDArray[np.int64], rewards: NDArray[np.float64], is_here: NDArray[np.bool_]) -> None:
        """Count the visits that had been heard of."""
        self._counts += np.bincount(pages[is_here], minlength=2)
        self._sums += np.bincount(pages[is_here], rewards[is_here], minlength=2)

    @property
    def difference(self) -> float:
        """Page B less page A."""
        return float(np.diff(self._sums / self._counts)[0])


def main() -> None:
    """Print the table."""
    print("| trap | true gap | estimate of the trap | `Experiment` |")
    print("|---|---:|---:|---:|")
    for name, world, truth in (
        ("dropping the silent", World((0.10, 0.12), (1.0, 1.0), 0.15), 0.020),
        ("counting on arrival", World((0.26, 0.26), (72.0, 24.0), 1.0), 0.0),
    ):
        trap, gap, width = estimates(world)
        print(f"| {name} | {truth:.3f} | {trap:.3f} | {round(gap, 3) + 0.0:.3f} ± {width:.3f} |")


if __name__ == "__main__":
    main()
