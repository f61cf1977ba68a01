"""How often FixedBudget is wrong beside its p-value, over families of instances.

``python -m benchmarks.bench_budget [RUNS]`` prints the table of docs/measured.md, some minutes on one core
(default 500 runs a row). Columns: share of runs that declare a wrong arm, and that of SP-BAI with the same
budget; mean of the p-value; then for each range of p-values, the wrong runs in it of all runs in it. A
p-value promises that "wrong, and p ≤ α" has probability α at most: the wrong of the first ranges together
are at most α·RUNS, but for chance.
"""

import sys
from itertools import pairwise

import numpy as np

from orthobandit import Environment, FixedBudget
from orthobandit.peers import BudgetedSPBAI
from orthobandit.simulation import Sine, exact_gap, near_degenerate, one_hot, simulate
from orthobandit.simulation.player import Player

SEED = 15
SHIFT = Sine()
FAR = [0.0] * 8
EDGES = (-1.0, 0.01, 0.05, 0.2, 0.5, 1.0)  # of the ranges of p-values
FAMILIES: dict[str, tuple[Environment, int]] = {
    "two arms 0.02 apart, eight 1 behind": (one_hot([1.02, 1.0, *FAR], shift=SHIFT), 1000),
    "two arms 0.1 apart, eight 1 behind": (one_hot([1.1, 1.0, *FAR], shift=SHIFT), 1000),
    "two arms 0.03 apart, eight 5 behind": (one_hot([5.03, 5.0, *FAR], shift=SHIFT), 1000),
    "two arms 0.1 apart": (one_hot([0.1, 0.0], shift=SHIFT), 400),
    "pairs of ties: 1, 1, ½, ½, 0, 0": (one_hot([1.001, 1.0, 0.5, 0.5, 0.0, 0.0], shift=SHIFT), 600),
    "pairs of ties: 6, 6, 4, 4, 2, 2, 0, 0": (
        one_hot([6.001, 6.0, 4.0, 4.0, 2.0, 2.0, 0.0, 0.0], shift=SHIFT),
        800,
    ),
    "three ties, five 0.3 behind": (one_hot([0.301, 0.3, 0.3, *[0.0] * 5], shift=SHIFT), 1000),
    "two arms 0.01 apart": (one_hot([0.01, 0.0], shift=SHIFT), 400),
    "ten arms, evenly from 0 to 1": (one_hot(np.linspace(0.0, 1.0, 10), shift=SHIFT), 1000),
    "one of ten arms leads by 0.5": (one_hot([0.5] + [0.0] * 9, shift=SHIFT), 1500),
    "one of ten arms leads by 0.3": (one_hot([0.3] + [0.0] * 9, shift=SHIFT), 1500),
    "ten arms that are all but equal": (one_hot([0.001] + [0.0] * 9, shift=SHIFT), 1000),
    "one of forty leads others of 0 to 0.3 by 0.2": (
        one_hot([0.5, *np.linspace(0.0, 0.3, 39)], shift=SHIFT),
        3000,
    ),
    "(5, 10), gap ½": (exact_gap(5, 10, 0.5, seed=0, shift=SHIFT), 300),
    "(20, 30), gap ½": (exact_gap(20, 30, 0.5, seed=0, shift=SHIFT), 1200),
    "small gap, d = 10": (near_degenerate(10, 0.2, shift=SHIFT), 5000),
    "small gap, d = 10, longer": (near_degenerate(10, 0.2, shift=SHIFT), 20_000),
}


def play(environment: Environment, budget: int, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which runs (R,) declare a wrong arm, and the p-values (R,)."""
    policy = FixedBudget(budget)
    player = Player(environment, np.array([budget]), SEED, np.arange(runs), policy.baseline)
    state = policy.start(environment.arms, (runs,))
    while np.any(state.declared < 0):
        plan = policy.plan(state)
        rounds = np.minimum(plan.rounds, budget)
        state = policy.observe(state, plan, player.play(plan.probabilities, rounds, plan.centre))
    return state.declared != environment.best, policy.p_value(state)


def share_wrong_of_spbai(environment: Environment, budget: int, runs: int) -> float:
    """Return the share of runs in which SP-BAI with this budget declares a wrong arm."""
    policy = BudgetedSPBAI(budget, delta=0.1, variant="released")
    result = simulate(policy, environment, horizon=budget, replications=runs, seed=SEED, checkpoints=[budget])
    return float(np.mean(result.declared != environment.best))


def main(runs: int = 500) -> None:
    """Print a row a family, as Markdown."""
    ranges = list(pairwise(EDGES))
    heads = [f"wrong of p ≤ {high:g}" for _, high in ranges]
    print("| instance | budget | wrong | SP-BAI wrong | mean p |", " | ".join(heads), "|")
    print("|---|---:|---:|---:|---:|" + "---:|" * len(heads))
    for name, (environment, budget) in FAMILIES.items():
        is_wrong, p = play(environment, budget, runs)
        cells = []
        for low, high in ranges:
            is_in = (p > low) & (p <= high)
            cells.append(f"{int(np.sum(is_in & is_wrong))} of {int(is_in.sum())}")
        beside = share_wrong_of_spbai(environment, budget, runs)
        print(
            f"| {name} | {budget:,} | {is_wrong.mean():.3f} | {beside:.3f} | {p.mean():.3f} |",
            " | ".join(cells),
            "|",
            flush=True,
        )


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:2]))
