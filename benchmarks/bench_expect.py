"""Rounds to the declaration if a gap is expected, rightly or wrongly, beside those without a hint.

``python -m benchmarks.bench_expect`` takes some minutes of one core, ``--quick`` a tenth. Rows are hints as
multiples of the true gap. A/B tests are in units of the fixed size of a two-sided z-test with 95 % power that
is told gap and variance; the small gap is in rounds.
"""

import sys
from typing import Any

import numpy as np
from scipy.stats import norm

from orthobandit import AnytimeElimination, ArmSet, Asymptotic, Bounded, Environment, SubGaussian, simulate
from orthobandit.estimate import Confidence
from orthobandit.simulation import Bernoulli, Constant, Sine, near_degenerate

RUNS = 200
SEEDS = (4242, 11)
HINTS = (None, 0.1, 0.5, 1.0, 2.0, 10.0)
LONGEST = 2_000_000  # rounds at which a run is given up, and counted as so long


def fixed_size(low: float, high: float) -> float:
    """Return the rounds of a z-test of two rates at a level of 5 % with 95 % power."""
    variance = (low * (1.0 - low) + high * (1.0 - high)) / 2.0
    z = norm.isf(0.025) + norm.ppf(0.95)
    return float(4.0 * variance * (z / (high - low)) ** 2)


def report(
    name: str,
    world: Environment,
    policy: dict[str, Any],
    unit: float,
    hints: tuple[float | None, ...],
    runs: int,
) -> None:
    """Print a row for each hint."""
    best, second = np.sort(world.means)[::-1][:2]
    for hint in hints:
        expect = None if hint is None else hint * float(best - second)
        times = np.empty(0)
        wrong = 0
        for seed in SEEDS:
            result = simulate(
                AnytimeElimination(expect=expect, **policy),
                world,
                horizon=LONGEST,
                replications=runs,
                seed=seed,
                stop_when_declared=True,
            )
            stops = np.where(result.stop_times < 0, LONGEST, result.stop_times)
            times = np.append(times, stops / unit)
            declared = np.asarray(result.decision.declared)
            wrong += int(np.count_nonzero((declared >= 0) & (declared != world.best)))
        said = "nothing" if hint is None else f"{hint:g} × the gap"
        print(
            f"{name:<32} {said:<14} {times.mean():>10.4g} ± {times.std() / times.size**0.5:.2g}"
            f"  95 %: {np.quantile(times, 0.95):.4g}  {wrong} of {times.size} wrong",
            flush=True,
        )


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    runs = RUNS // 10 if "--quick" in (arguments or []) else RUNS
    modes: tuple[tuple[str, Confidence], ...] = (("exact", Bounded(0.0, 1.0)), ("asymptotic", Asymptotic()))
    for rates, hints in (((0.2, 0.23), HINTS), ((0.05, 0.055), (None, 1.0))):
        world = Environment(ArmSet.one_hot(2), rates, Constant(), Bernoulli())
        for mode, confidence in modes:
            name = f"{100 * rates[0]:g} against {100 * rates[1]:g} %, {mode}"
            report(name, world, {"confidence": confidence}, fixed_size(*rates), hints, runs)
    small = near_degenerate(shift=Sine())
    # Means of the small gap lie in [0, 4] under ν¹.
    for mode, confidence in (("exact", SubGaussian(0.0, 4.0)), ("asymptotic", Asymptotic())):
        policy = {"delta": 0.1, "confidence": confidence}
        report(f"small gap, {mode}", small, policy, 1.0, (None, 1.0), runs)


if __name__ == "__main__":
    main(sys.argv[1:])
