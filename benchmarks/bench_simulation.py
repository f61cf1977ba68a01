"""Speed and memory of the simulator, as ratios to a plain textbook loop timed in the same run."""

import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit import SBE
from orthobandit.policy import Policy
from orthobandit.simulation import (
    Environment,
    PushLeader,
    RunResult,
    Sine,
    near_degenerate,
    simulate,
)

# An angle so small that no policy declares an arm: all rounds are really played.
UNDECIDED = 1e-4

# What is run in all benchmarks; any policy may stand here.
POLICY: Callable[[], Policy[Any]] = SBE


def textbook_loop(environment: Environment, rounds: int) -> NDArray[np.float64]:
    """Play a uniform design as a textbook would: draw, reward, two outer products, one sum a round."""
    generator = np.random.default_rng(0)
    features, theta = environment.arms.features, environment.theta
    count, width = features.shape
    cumulative = np.cumsum(np.full(count, 1 / count))
    mean = features.mean(axis=0)
    gram, centred_gram, moment = np.zeros((width, width)), np.zeros((width, width)), np.zeros(width)
    for t in range(1, rounds + 1):
        x = features[min(np.searchsorted(cumulative, generator.random(), side="right"), count - 1)]
        reward = x @ theta + 1 + np.sin(2 * t) + generator.standard_normal()
        gram += np.outer(x, x)
        centred_gram += np.outer(x - mean, x - mean)
        moment += reward * (x - mean)
    return moment


def seconds(work: Callable[[], Any], repeats: int = 3) -> float:
    """Return the least processor time of a few runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def rate(environment: Environment, horizon: int, replications: int, repeats: int = 3) -> float:
    """Return rounds per second over all replications; rounds after a declaration are not counted."""
    results: list[RunResult] = []

    def work() -> None:
        results.append(simulate(POLICY(), environment, horizon=horizon, replications=replications, seed=1))

    elapsed = seconds(work, repeats)
    stops = results[-1].stop_times
    return float(np.where(stops < 0, horizon, stops).sum()) / elapsed


def peak_memory(environment: Environment, horizon: int) -> float:
    """Return the most megabytes that Python and numpy hold during a run."""
    tracemalloc.start()
    simulate(POLICY(), environment, horizon=horizon, replications=1, seed=1, checkpoints=[horizon])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def main() -> None:
    """Print each measurement beside its target; exit with 1 if one is missed."""
    paths = near_degenerate(angle=UNDECIDED, shift=Sine())
    adaptive = paths.moved(PushLeader())
    for environment in (paths, adaptive):
        simulate(POLICY(), environment, horizon=100, replications=2, seed=0)  # compile
    yardstick = 20_000 / seconds(lambda: textbook_loop(paths, 20_000))
    blocks = rate(paths, 10**6, 100)
    rounds = rate(adaptive, 20_000, 256)
    start = time.perf_counter()
    simulate(POLICY(), paths, horizon=10**9, replications=1, seed=1)
    long = time.perf_counter() - start
    peaks = peak_memory(paths, 10**6), peak_memory(paths, 10**8)
    targets = [
        (f"blocks, ν¹, 100 × 10⁶ rounds: {_speed(blocks, yardstick)}", "≥ 400×", blocks >= 400 * yardstick),
        (f"adversary, 256 × 20 000 rounds: {_speed(rounds, yardstick)}", "≥ 20×", rounds >= 20 * yardstick),
        (f"10⁹ rounds, one replication: {long:.1f} s", "< 60 s", long < 60),
        (f"most memory, 10⁶ and 10⁸ rounds: {peaks[0]:.2f} and {peaks[1]:.2f} MB", "equal", _alike(*peaks)),
    ]
    print(
        f"simulation, (d, K) = (10, 11), {type(POLICY()).__name__}; textbook loop {yardstick:,.0f} rounds/s"
    )
    for measured, target, is_met in targets:
        print(f"  {'pass' if is_met else 'FAIL'}  {measured} ({target})")
    if not all(is_met for _, _, is_met in targets):
        raise SystemExit(1)


def _speed(value: float, yardstick: float) -> str:
    return f"{value:,.0f} rounds/s, {value / yardstick:,.0f}×"


def _alike(first: float, second: float) -> bool:
    return abs(first - second) <= 0.2 * max(first, second)


if __name__ == "__main__":
    main()
