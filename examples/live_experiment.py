"""Three sign-up pages on a small website: a report every night, and an end as soon as one is proven best.

`begin`, `visit` and `signed_up` are all that the website needs. The rest of this file is a world to run it
in: visitors who sign up hours later or never, and are in another mood from one day to the next.
"""

import tempfile
from collections.abc import Callable
from heapq import heappop, heappush
from pathlib import Path

import numpy as np

from orthobandit import ArmSet, Experiment

PAGES = ["as it is", "with video", "short form"]


def begin(file: Path, clock: Callable[[], float]) -> Experiment:
    """Begin the experiment, or go on with it after a restart; a real website leaves the clock out."""
    arms = ArmSet.one_hot(len(PAGES), labels=PAGES)
    return Experiment.open_or_create(file, arms, rewards=(0, 1), window="1d", silence="zero", clock=clock)


def visit(pages: Experiment, visitor: str) -> tuple[int, str]:
    """Return the page to show a visitor, and the number to remember it by: in a cookie, say."""
    proposal = pages.ask(unit=visitor)
    return proposal.id, proposal.label


def signed_up(pages: Experiment, number: int) -> None:
    """Take in that a visitor has signed up; nobody tells anything of those who do not."""
    pages.tell(number, 1.0)


# The world

HOUR, DAY = 3600.0, 86400.0
VISITORS = 100  # a day
CHANCE = {"as it is": 0.15, "with video": 0.25, "short form": 0.65}
PATIENCE = {"as it is": 3.0, "with video": 8.0, "short form": 5.0}  # hours until a sign-up, at most 20


class World:
    """Visitors, and a clock that runs as fast as they are served."""

    def __init__(self, seed: int = 1) -> None:
        self.now, self._chance = 0.0, np.random.default_rng(seed)
        self._thinking: list[tuple[float, int]] = []  # when somebody will sign up, and what to tell it by

    def day(self, pages: Experiment, day: int) -> None:
        """Serve the visitors of one day; many sign up while others come, some the day after."""
        mood = self._chance.uniform(-0.12, 0.12)
        for k, at in enumerate(day * DAY + np.sort(self._chance.uniform(0.0, DAY, VISITORS))):
            self._sign_up(pages, at)
            self.now = at
            number, page = visit(pages, f"visitor {day}-{k}")
            if self._chance.random() < CHANCE[page] + mood:
                hours = min(self._chance.exponential(PATIENCE[page]), 20.0)
                heappush(self._thinking, (at + hours * HOUR, number))
        self._sign_up(pages, (day + 1) * DAY)
        self.now = (day + 1) * DAY

    def _sign_up(self, pages: Experiment, until: float) -> None:
        while self._thinking and self._thinking[0][0] <= until:
            self.now, number = heappop(self._thinking)
            signed_up(pages, number)


def main() -> None:
    """Run until a page is declared; every night the website is switched off and on again."""
    with tempfile.TemporaryDirectory() as folder:
        file, world, day = Path(folder) / "pages.db", World(), 0
        while True:
            with begin(file, lambda: world.now) as pages:
                world.day(pages, day)
                report = pages.report()
            day += 1
            print(f"day {day}: {report.settled} of {report.proposals} settled. {report.advice}")
            if report.declared:
                print(f"\n{report}")
                return


if __name__ == "__main__":
    main()
