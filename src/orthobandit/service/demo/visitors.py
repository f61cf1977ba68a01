"""Made-up visitors of landing pages: how many come, whether they sign up, and when one hears of it."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from orthobandit._foundation.random import stream

# How much more often visitors sign up on each page than on the first one.
PAGES = {
    "as it is": 0.0,
    "short form": 0.02,
    "with video": -0.02,
    "customer stories": 0.05,
    "free month": 0.1,
}
# share that signs up; how far a day moves it; seconds of a day
LEVEL = 0.25
SEASON = 0.12
DAY = 60.0
# a newsletter goes out: how much more, how often, for how long
BURST = 0.15
EVERY = 45.0
LASTS = 6.0
SILENT = 0.1  # share of those who do not sign up of whom nothing is ever heard
# seconds until a reward is known, on average and at most
DELAY = 1.5
WINDOW = 10.0


class Heard(NamedTuple):
    """Rewards that come to be known: when (n,), in seconds; of which proposals (n,); how much (n,)."""

    at: np.ndarray
    ids: list[int]
    rewards: np.ndarray


@dataclass(frozen=True)
class Visitors:
    """Visitors whose willingness to sign up drifts: a day's season in a minute, and bursts.

    Parameters
    ----------
    rate : float
        Visitors a second, on average over a day.
    seed : int

    Examples
    --------
    >>> visitors = Visitors(rate=100)
    >>> round(visitors.baseline(15.0), 2), round(visitors.baseline(46.0), 2)
    (0.37, 0.28)
    """

    rate: float
    seed: int = 0

    def baseline(self, at: float) -> float:
        """Return the share that signs up on the first page `at` seconds after the beginning."""
        season = SEASON * np.sin(2 * np.pi * at / DAY)
        burst = BURST if at >= EVERY and at % EVERY < LASTS else 0.0
        return float(LEVEL + season + burst)

    def count(self, step: int, seconds: float) -> int:
        """Return how many visitors come in a step of so many seconds."""
        return int(stream(self.seed, "demo-visitors", step).poisson(self.rate * seconds))

    def heard(self, step: int, at: float, ids: list[int], labels: list[str]) -> Heard:
        """Return what comes to be known of visitors who were shown these pages `at` some time."""
        random = stream(self.seed, "demo-rewards", step)
        chances = self.baseline(at) + np.array([PAGES.get(label, 0.0) for label in labels])
        rewards = (random.random(len(ids)) < chances).astype(float)
        is_heard = (rewards > 0) | (random.random(len(ids)) >= SILENT)
        delays = np.minimum(random.exponential(DELAY, len(ids)), 0.8 * WINDOW)
        told = np.flatnonzero(is_heard)
        return Heard(at + delays[told], [ids[place] for place in told], rewards[told])
