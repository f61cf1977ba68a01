"""How often intervals from the log of a Thompson sampler hold the true gap, and how wide they are.

A sampler pools all rows of an arm, as most do: arm 1 is drawn with the probability that its mean is the
larger one, and the probabilities of each hour are in the log. The level of all rewards rises and falls with
the seasons. An arm that was drawn more in good times looks better than it is.

`python examples/log_coverage.py` plays 200 such experiments and prints a table in less than a minute. How bad
it gets depends on how far the sampler may go: probabilities are kept 0.01 from 0 and 1, or as far as the
argument says. Try 0.05, which is kinder to the methods that mix times.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from orthobandit import ArmSet, Asymptotic
from orthobandit.estimate.follow.buckets import Follower
from orthobandit.estimate.follow.cells import Cells, Measure
from orthobandit.logs import Question
from orthobandit.logs.effects.effects import gaps_of
from orthobandit.logs.peers import APART, MIXTURE, NAIVE, STRATIFIED, TOGETHER, WEIGHTED, compare

Array = NDArray[np.float64]
OURS, ONCE = "orthobandit, at all times", "orthobandit, for one look"
LOOK = 10  # hours from one look at the log to the next
METHODS = (NAIVE, WEIGHTED, APART, TOGETHER, STRATIFIED, ONCE, MIXTURE, OURS)


@dataclass(frozen=True)
class World:
    """Two arms with noise of standard deviation 1, a season, and a sampler.

    Attributes
    ----------
    gap : float
        Of arm 1 over arm 0.
    season : float
        Amplitude of the level, a wave of `waves` over the whole log.
    waves : float
    hours, rows : int
        Buckets, and rows in each.
    least : float
        Probabilities are kept this far from 0 and 1.
    """

    gap: float = 0.1
    season: float = 1.0
    waves: float = 2.0
    hours: int = 100
    rows: int = 100
    least: float = 0.01

    def levels(self) -> Array:
        """Return the level of every hour (hours,)."""
        return np.asarray(self.season * np.cos(2.0 * np.pi * self.waves * np.arange(self.hours) / self.hours))


def logs(world: World, count: int, seed: int) -> Iterator[Cells]:
    """Yield the cells of `count` logs of a Gaussian Thompson sampler with a flat prior."""
    random = np.random.default_rng(seed)
    shape = (count, world.hours, 2)
    counts, sums, squares, low, high = (np.zeros(shape) for _ in range(5))
    shares = np.full((count, world.hours), 0.5)
    for hour, level in enumerate(world.levels()):
        if hour:
            shares[:, hour] = _share(counts[:, :hour].sum(axis=1), sums[:, :hour].sum(axis=1), world.least)
        arm = random.random((count, world.rows)) < shares[:, hour, np.newaxis]
        reward = level + world.gap * arm + random.standard_normal(arm.shape)
        for number in (0, 1):
            mine = arm == number
            counts[:, hour, number] = mine.sum(axis=1)
            sums[:, hour, number] = np.where(mine, reward, 0.0).sum(axis=1)
            squares[:, hour, number] = np.where(mine, reward**2, 0.0).sum(axis=1)
            low[:, hour, number] = np.where(mine, reward, np.inf).min(axis=1)
            high[:, hour, number] = np.where(mine, reward, -np.inf).max(axis=1)
    for run in range(count):
        yield table_cells(shares[run], [part[run] for part in (counts, sums, squares, low, high)])


def _share(counts: Array, sums: Array, least: float) -> Array:
    """Return the probability that arm 1 has the larger mean, given all rows so far (..., 2)."""
    means, variance = sums / np.maximum(counts, 1.0), (1.0 / np.maximum(counts, 1.0)).sum(axis=-1)
    chance = norm.cdf((means[:, 1] - means[:, 0]) / np.sqrt(variance))
    return np.asarray(np.clip(chance, least, 1.0 - least))


def table_cells(shares: Array, parts: list[Array]) -> Cells:
    """Return the cells of one log.

    Parameters
    ----------
    shares : (hours,) array
        Probabilities of arm 1.
    parts : list of (hours, 2) arrays
        Counts, sums, squares, smallest and largest rewards.
    """
    bucket, arm = np.nonzero(parts[0] > 0)
    counts, sums, squares, low, high = (part[bucket, arm] for part in parts)
    nothing = np.zeros((len(bucket), 1), dtype=np.int64)
    return Cells(
        arms=ArmSet.one_hot(2),
        plans=np.column_stack([1.0 - shares, shares]),
        times=3600.0 * np.arange(len(shares), dtype=np.float64),
        width=3600.0,
        is_clock=True,
        segments=("",),
        columns=("reward",),
        offset=np.zeros(1),
        bucket=bucket,
        plan=bucket,
        arm=arm,
        segment=nothing[:, 0],
        counts=counts.astype(np.int64),
        missing=nothing,
        dropped=nothing[:, 0],
        sums=sums[:, np.newaxis],
        products=squares[:, np.newaxis, np.newaxis],
        low=low[:, np.newaxis],
        high=high[:, np.newaxis],
        capped=nothing,
    )


def ours(cells: Cells, delta: float = 0.05) -> dict[str, Array]:
    """Return intervals (looks, 2) of the gap, as an analysis has them at the end of hours: of both kinds."""
    measure = Measure(0, None, (), Asymptotic(), delta, baseline="auto", reference=0)
    kept = {one.bucket: gaps_of(one.sequence) for one in Follower(cells, measure).run().snapshots}
    looks = [kept[hour] for hour in range(LOOK - 1, int(cells.bucket[-1]) + 1, LOOK)]
    return {
        ONCE: np.array([[one.fixed_low[0], one.fixed_high[0]] for one in looks]),
        OURS: np.array([[one.low[0], one.high[0]] for one in looks]),
    }


@dataclass
class Score:
    """In how many logs the last interval, and in how many every one, had the true gap; sum of half-widths."""

    last: int = 0
    always: int = 0
    width: float = 0.0

    def add(self, intervals: Array, gap: float) -> None:
        """Add the intervals (looks, 2) of a log."""
        holds = (intervals[:, 0] <= gap) & (gap <= intervals[:, 1])
        self.last += int(holds[-1])
        self.always += int(holds.all())
        self.width += float(intervals[-1, 1] - intervals[-1, 0]) / 2.0


def measure(world: World, count: int, seed: int = 1) -> dict[str, Score]:
    """Return the score of each method on `count` logs, looked at every ten hours."""
    scores, question = {method: Score() for method in METHODS}, Question("arm", "reward", delta=0.05)
    for cells in logs(world, count, seed):
        found: dict[str, list[tuple[float, float]]] = {}
        for end in range(LOOK, world.hours + 1, LOOK):
            for rival in compare(cells.only(cells.bucket < end), question):
                low, high = rival.interval
                ends = (-np.inf if low is None else low, np.inf if high is None else high)
                found.setdefault(rival.method, []).append(ends)
        intervals = {method: np.array(ends) for method, ends in found.items()} | ours(cells)
        for method in METHODS:
            scores[method].add(intervals[method], world.gap)
    return scores


def main(least: float = 0.01) -> None:
    """Print coverage and half-width of every method."""
    count = 200
    print("| method | coverage at 95 %, at the end | at all of ten looks | mean half-width at the end |")
    print("|---|---:|---:|---:|")
    for method, score in measure(World(least=least), count).items():
        ends = f"{score.last / count:.2f} | {score.always / count:.2f}"
        print(f"| {method} | {ends} | {score.width / count:.3f} |")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
