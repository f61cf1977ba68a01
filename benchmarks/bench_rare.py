"""Rare large rewards and the asymptotic mode: how often the best arm is lost, by rarity q and by δ.

``python -m benchmarks.bench_rare [RUNS [SEED]]`` takes some minutes and prints the tables of
docs/measured.md. A run fails if the best arm is dropped or a bound in its row is wrong. No mode without
declared bounds can know of an event before the first one: what is measured is how rare it may be.
"""

import sys
from collections.abc import Callable

import numpy as np

from orthobandit import AnytimeElimination, ArmSet, Tally
from orthobandit.estimate import RunningMean

RUNS = 1000
HORIZON = 3000
SEED = 7


class World:
    """Arms that each pay `high` with probability q and `low` otherwise, plus normal noise.

    Parameters
    ----------
    arms : sequence of (q, high, low, sigma)
        The first is the best arm, or as good as the best.
    """

    def __init__(self, *arms: tuple[float, float, float, float]) -> None:
        self.chance, self.high, self.low, self.sigma = np.array(arms, dtype=float).T
        self.means = self.chance * self.high + (1.0 - self.chance) * self.low

    def rewards(self, drawn: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a reward of each drawn arm."""
        is_event = rng.random(drawn.shape) < self.chance[drawn]
        noise = self.sigma[drawn] * rng.standard_normal(drawn.shape)
        return np.asarray(np.where(is_event, self.high[drawn], self.low[drawn]) + noise)


def opposite_skew(q: float, sigma: float = 0.0) -> World:
    """Return two arms of mean 0: one loses 1 and rarely wins, the other wins 1 and rarely loses."""
    rare = (1.0 - q) / q
    return World((q, rare, -1.0, sigma), (q, -rare, 1.0, sigma))


def jackpot(q: float) -> World:
    """Return a best arm that pays 1/q once in 1/q draws, else nothing, and one that is normal around 0.5."""
    return World((q, 1.0 / q, 0.0, 0.0), (0.0, 0.0, 0.5, 1.0))


def one_win(q: float) -> World:
    """Return a best arm that loses 1 and rarely wins (1 − q)/q, and one that is normal around −0.2."""
    return World((q, (1.0 - q) / q, -1.0, 0.0), (0.0, 0.0, -0.2, 1.0))


def crash(q: float, sigma: float = 0.3) -> World:
    """Return three quiet arms of mean 0 and one that pays 1 until it crashes: −0.2 on average."""
    quiet = (0.0, 0.0, 0.0, sigma)
    return World(quiet, quiet, quiet, (q, -(1.2 - q) / q, 1.0, sigma))


def failures(
    policy: AnytimeElimination, world: World, runs: int, *, horizon: int = HORIZON, seed: int = SEED
) -> int:
    """Return how many of the runs fail.

    The level is forecast by the mean of the rounds before, so that a batch of all runs is a few arrays.
    """
    rng, count = np.random.default_rng(seed), len(world.means)
    state = policy.start(ArmSet.one_hot(count), (runs,))
    gaps = world.means[0] - world.means
    failed = np.zeros(runs, dtype=bool)
    clock = np.zeros(runs, dtype=np.int64)
    level_sum = np.zeros(runs)
    while True:
        plan = policy.plan(state)
        rounds = np.minimum(plan.rounds, np.where(state.declared < 0, horizon - clock, 0))
        longest = int(rounds.max())
        if longest == 0:
            return int(np.count_nonzero(failed))
        uniform = rng.random((runs, longest, 1))
        drawn = (uniform > np.cumsum(plan.probabilities, axis=1)[:, np.newaxis, :-1]).sum(axis=-1)
        is_played = np.arange(longest) < rounds[:, np.newaxis]
        centred = world.rewards(drawn, rng) - np.take_along_axis(np.asarray(plan.values), drawn, axis=1)
        centred = np.where(is_played, centred, 0.0)
        before = level_sum[:, np.newaxis] + np.cumsum(centred, axis=1) - centred
        forecast = before / np.maximum(clock[:, np.newaxis] + np.arange(longest), 1)
        residuals = np.where(is_played, centred - forecast, 0.0)
        of_arm = [np.where(is_played & (drawn == arm), residuals, 0.0) for arm in range(count)]
        counts = [np.count_nonzero(is_played & (drawn == arm), axis=1) for arm in range(count)]
        tally = Tally(
            np.stack(counts, axis=1),
            np.stack([part.sum(axis=1) for part in of_arm], axis=1),
            np.stack([(part**2).sum(axis=1) for part in of_arm], axis=1),
            np.stack([np.abs(part).max(axis=1) for part in of_arm], axis=1),
        )
        clock += rounds
        level_sum += centred.sum(axis=1)
        state = policy.observe(state, plan, tally)
        is_wrong = np.any(gaps > policy.upper_bounds(state, of=0) + 1e-12, axis=1) | ~state.active[:, 0]
        failed |= is_wrong & (rounds > 0)


# name, how the world follows from q, and the q to try
ROWS: tuple[tuple[str, Callable[[float], World], tuple[float, ...]], ...] = (
    ("opposite skew", opposite_skew, (0.05, 0.02, 0.01, 0.005)),
    ("opposite skew, noise σ = 1", lambda q: opposite_skew(q, 1.0), (0.05, 0.01)),
    ("pays 1/q once in 1/q draws", jackpot, (0.05, 0.02)),
    ("wins (1 − q)/q, else −1", one_win, (0.05, 0.02)),
    ("pays 1 until it crashes, beside three quiet arms", crash, (0.05, 0.02)),
)


def main(runs: int = RUNS, seed: int = SEED) -> None:
    """Print the table of failures."""
    deltas, goals = (0.05, 0.01), ("identify", "earn")
    heads = [f"{goal}, δ = {delta}" for goal in goals for delta in deltas]
    print(f"failed of {runs}, seed {seed}")
    print("| world | q |", " | ".join(heads), "|")
    print("|---|---:|" + "---:|" * len(heads))
    for name, made, rarities in ROWS:
        for q in rarities:
            cells = [
                failures(
                    AnytimeElimination(delta, goal=goal, baseline=RunningMean()), made(q), runs, seed=seed
                )
                for goal in goals
                for delta in deltas
            ]
            print(f"| {name} | {q} |", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:3]))
