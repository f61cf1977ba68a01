"""Plain A/B tests: rounds to the declaration beside the fixed sample size that a z-test would need.

`make bench NAMES=ab` takes some minutes on one core; ``python -m benchmarks.bench_ab --quick`` has a
fifth of the runs, ``--rates 0.2 0.23`` plays arms with these success rates instead, and ``--seed`` draws
other runs. Every row is a set of arms, a goal and a mode, with nothing tuned. The fixed size is that of a
two-sided z-test of the best against the second at level δ/(K − 1) with 95 % power and equal shares, told the
gap and the variance. The standard error of the 95 % quantile is that of resampled runs. Targets: mean ≤
fixed size, 95 % quantile ≤ twice that, no run ten times as long.
"""

import argparse
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from orthobandit import AnytimeElimination, ArmSet, Environment, SameShape, simulate
from orthobandit.simulation import Bernoulli, Constant, Gaussian, Noise, StudentT

RUNS = 200
DELTA = 0.05
POWER = 0.95
LONGEST = 20  # times the fixed size at which runs are given up
SEED = 29
RESAMPLED = 2000  # samples of the runs, with replacement, that the error of a quantile is taken from


@dataclass(frozen=True)
class Comparison:
    """Arms with these means; `variance` is that of a reward, as the z-test is told."""

    name: str
    means: tuple[float, ...]
    noise: Noise
    variance: float

    @property
    def fixed_size(self) -> float:
        """Return the rounds of the z-test, all arms together."""
        ordered, count = np.sort(self.means), len(self.means)
        z = norm.isf(DELTA / 2.0 / (count - 1)) + norm.ppf(POWER)
        return float(count * 2.0 * self.variance * (z / (ordered[-1] - ordered[-2])) ** 2)


def coins(name: str, *means: float) -> Comparison:
    """Return a test of success rates."""
    best, second = sorted(means)[-1], sorted(means)[-2]
    variance = (best * (1.0 - best) + second * (1.0 - second)) / 2.0
    return Comparison(name, means, Bernoulli(), variance)


TESTS = (
    coins("0.2 % and 0.3 %", 0.002, 0.003),
    coins("1 % and 1.2 %", 0.01, 0.012),
    coins("5 % and 5.5 %", 0.05, 0.055),
    coins("20 % and 22 %", 0.2, 0.22),
    coins("50 % and 55 %", 0.5, 0.55),
    coins("five: 5 %, one 6 %", *[0.05] * 4, 0.06),
    coins("ten: 2 %, one 3 %", *[0.02] * 9, 0.03),
    Comparison("normal, 0.1 σ", (0.0, 0.1), Gaussian(1.0), 1.0),
    Comparison("Student 3, 0.1 σ", (0.0, 0.1 * 3**0.5), StudentT(3.0), 3.0),
)


def quantile_with_error(times: np.ndarray) -> tuple[float, float]:
    """Return the 95 % quantile of the times (R,), and its standard error over resampled runs."""
    rng = np.random.default_rng(0)
    resampled = np.quantile(rng.choice(times, (RESAMPLED, len(times))), 0.95, axis=1)
    return float(np.quantile(times, 0.95)), float(resampled.std())


def report(test: Comparison, goal: str, settings: dict[str, Any], mode: str, runs: int, seed: int) -> None:
    """Print one row."""
    world = Environment(ArmSet.one_hot(len(test.means)), test.means, Constant(), test.noise)
    cap = int(LONGEST * test.fixed_size)
    policy = AnytimeElimination(DELTA, goal=goal, **settings)
    result = simulate(policy, world, horizon=cap, replications=runs, seed=seed, stop_when_declared=True)
    times = np.where(result.stop_times < 0, cap, result.stop_times) / test.fixed_size
    wrong = int(np.count_nonzero((result.decision.declared >= 0) & (result.decision.declared != world.best)))
    late, error = quantile_with_error(times)
    met = times.mean() <= 1 and late <= 2
    print(
        f"{test.name:<20} {goal:<9} {mode:<11} {test.fixed_size:>9,.0f}  {times.mean():>5.2f} ±"
        f" {times.std() / runs**0.5:.2f}  {late:>5.2f} ± {error:.2f}  {times.max():>5.1f}  {wrong:>3} wrong"
        f"  {'met' if met else 'MISSED'}",
        flush=True,
    )


def tests_of(options: argparse.Namespace, parser: argparse.ArgumentParser) -> tuple[Comparison, ...]:
    """Return the test of the given rates, or all tests."""
    rates = options.rates
    if rates is None:
        return TESTS
    if len(rates) < 2 or not all(0.0 < rate < 1.0 for rate in rates) or np.ptp(np.sort(rates)[-2:]) == 0:
        parser.error(f"--rates {rates}: give two or more between 0 and 1, of which one is the largest")
    return (coins(", ".join(f"{100 * rate:g} %" for rate in rates), *rates),)


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the runs")
    parser.add_argument("--rates", type=float, nargs="+", metavar="RATE", help="success rates, one per arm")
    parser.add_argument("--seed", type=int, default=SEED, help=f"{SEED} by default")
    options = parser.parse_args(arguments or [])
    runs = RUNS // 5 if options.quick else RUNS
    tests = tests_of(options, parser)
    head = f"{'arms':<20} {'goal':<9} {'mode':<11} {'fixed':>9}  mean / fixed  95 %"
    print(f"{head}        most ({runs} runs a row)")
    for test in tests:
        for goal in ("identify", "earn"):
            report(test, goal, {}, "asymptotic", runs, options.seed)
            if isinstance(test.noise, Bernoulli):
                report(test, goal, {"rewards": (0, 1)}, "exact", runs, options.seed)
            if isinstance(test.noise, StudentT):
                clip = 2.0 * test.variance**0.5  # two standard deviations, as its docstring advises
                report(test, goal, {"confidence": SameShape(clip)}, "same shape", runs, options.seed)


if __name__ == "__main__":
    main(sys.argv[1:])
