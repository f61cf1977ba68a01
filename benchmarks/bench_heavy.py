"""Heavy tails: rounds to the declaration with clipped residuals, and how often they mislead.

``python -m benchmarks.bench_heavy`` prints both tables of docs/measured.md, in some minutes of one core;
``--quick`` has a tenth of the runs. Rounds are in units of the fixed size of a two-sided z-test with 95 %
power, told gap and variance. A run fails if the first arm, than which none is better, is ever dropped.
"""

import sys

import numpy as np
from scipy.stats import binomtest, norm

from orthobandit import AnytimeElimination, ArmSet, Asymptotic, Environment, SameShape, simulate
from orthobandit.estimate import Confidence
from orthobandit.simulation import (
    CancelBest,
    Constant,
    Gaussian,
    LogAlternating,
    Noise,
    PushLeader,
    ReactToLast,
    Sine,
    StudentT,
)

RUNS = 400
SEED = 2033
DELTA = 0.05
GAP = 0.1  # in standard deviations
LONGEST = 400_000  # rounds at which a run is given up, and counted as so long
CLIPS = (2.0, 3.0, 5.0)  # in standard deviations
SPREAD = 3**0.5  # standard deviation of Student's t with 3 degrees of freedom
# Of the search for failures.
FAILURE_RATE = 0.1
FAILURE_ROUNDS = 5_000


def print_rounds(name: str, noise: Noise, spread: float, runs: int) -> None:
    """Print the rounds of two arms with each clip, and without one."""
    size = 4.0 * ((norm.isf(DELTA / 2.0) + norm.ppf(0.95)) / GAP) ** 2
    world = Environment(ArmSet.one_hot(2), (0.0, GAP * spread), Constant(), noise)
    modes: dict[str, Confidence] = {f"clip {clip:g} σ": SameShape(clip * spread) for clip in CLIPS}
    modes["asymptotic"] = Asymptotic()
    for goal in ("identify", "earn"):
        for mode, confidence in modes.items():
            policy = AnytimeElimination(DELTA, goal=goal, confidence=confidence)
            result = simulate(
                policy, world, horizon=LONGEST, replications=runs, seed=SEED, stop_when_declared=True
            )
            times = np.where(result.stop_times < 0, LONGEST, result.stop_times) / size
            declared = np.asarray(result.decision.declared)
            wrong = int(np.count_nonzero((declared >= 0) & (declared != world.best)))
            print(
                f"{name:<10} {goal:<9} {mode:<11} {times.mean():.2f} ± {times.std() / runs**0.5:.2f}"
                f"  95 %: {np.quantile(times, 0.95):.2f}  {wrong} of {runs} wrong",
                flush=True,
            )


def print_failures(runs: int) -> None:
    """Print how often the first arm is dropped, for each level, with the smallest clip."""
    policies = {
        goal: AnytimeElimination(FAILURE_RATE, goal=goal, confidence=SameShape(CLIPS[0] * SPREAD))
        for goal in ("identify", "earn")
    }
    for degrees in (3.0, 2.2):
        for shift in (Constant(), Sine(), LogAlternating(), PushLeader(), ReactToLast(), CancelBest()):
            for goal, policy in policies.items():
                for means in ((0.0, 0.0), (0.0, -0.001, -3.0)):
                    arms = ArmSet.one_hot(len(means))
                    result = simulate(
                        policy,
                        Environment(arms, means, shift, StudentT(degrees)),
                        horizon=FAILURE_ROUNDS,
                        replications=runs,
                        seed=SEED,
                        stop_when_declared=True,
                    )
                    failed = int(np.count_nonzero(~result.decision.active[:, 0]))
                    p = binomtest(failed, runs, FAILURE_RATE, alternative="greater").pvalue
                    print(
                        f"t with {degrees:g}, {type(shift).__name__:<15} {goal:<9} {len(means)} arms:"
                        f" {failed} of {runs} failed, p = {p:.2g}",
                        flush=True,
                    )


def main(arguments: list[str] | None = None) -> None:
    """Print both tables."""
    runs = RUNS // 10 if "--quick" in (arguments or []) else RUNS
    print_rounds("Student 3", StudentT(3.0), SPREAD, runs)
    print_rounds("normal", Gaussian(1.0), 1.0, runs)
    print_failures(runs)


if __name__ == "__main__":
    main(sys.argv[1:])
