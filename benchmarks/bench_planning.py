"""How experiments compare with the rounds that they were planned with, over worlds and goals.

``python -m benchmarks.bench_planning [RUNS]`` prints the table of docs/measured.md, two minutes on one core.
Rounds are planned as `rounds_to_plan` does it: ten runs in which no arm is better than another. Twenty such
ranges are set beside RUNS further runs (default 100) of each world, each run beside each range.
"""

import sys
from collections.abc import Callable

import numpy as np

from orthobandit import AnytimeElimination, ArmSet, Environment, simulate
from orthobandit.simulation import Constant, Gaussian, Shift, Sine

RANGES = 20
PLANNED = 10  # runs of a range
LONGEST = 500_000  # rounds at which a run is given up
SIZES = ((2, 0.2), (4, 0.3), (8, 0.4))  # arms and ε
# What the arms are better by than the worst, in units of ε; the last arm is the best.
LEADS: dict[str, Callable[[int], np.ndarray]] = {
    "none": lambda count: np.zeros(count),
    "one arm leads by ε/2": lambda count: 0.5 * (np.arange(count) == count - 1),
    "one arm leads by ε": lambda count: 1.0 * (np.arange(count) == count - 1),
    "evenly from 0 to ε": lambda count: np.linspace(0.0, 1.0, count),
}


def play(leads: np.ndarray, epsilon: float, goal: str, shift: Shift, runs: int, seed: int) -> np.ndarray:
    """Return the rounds (R,) to the declaration."""
    world = Environment(ArmSet.one_hot(len(leads)), epsilon * leads, shift, Gaussian(1.0))
    result = simulate(
        AnytimeElimination(0.05, epsilon=epsilon, goal=goal),
        world,
        horizon=LONGEST,
        replications=runs,
        seed=seed,
        checkpoints=[LONGEST],
        stop_when_declared=True,
    )
    return np.where(result.stop_times < 0, np.inf, result.stop_times)


def main(runs: int = 100) -> None:
    """Print a row a world, as Markdown: shares of runs above, in and below the range, for each size."""
    heads = [f"{count} arms, ε = {epsilon:g}" for count, epsilon in SIZES]
    print("| goal | arms differ by | shift |", " | ".join(heads), "|")
    print("|---|---|---|" + "---:|" * len(heads))
    for goal in ("identify", "earn"):
        planned = {
            count: play(np.zeros(count), epsilon, goal, Constant(), PLANNED * RANGES, 11).reshape(RANGES, -1)
            for count, epsilon in SIZES
        }
        for name, leads in LEADS.items():
            for title, shift in (("none", Constant()), ("ν¹", Sine())):
                cells = []
                for count, epsilon in SIZES:
                    took = play(leads(count), epsilon, goal, shift, runs, 22)
                    low, high = planned[count].min(axis=1), planned[count].max(axis=1)
                    above = float(np.mean(took > high[:, np.newaxis]))
                    below = float(np.mean(took < low[:, np.newaxis]))
                    cells.append(f"{above:.2f}, {1.0 - above - below:.2f}, {below:.2f}")
                print(f"| {goal} | {name} | {title} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
