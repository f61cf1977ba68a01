"""Speed and memory of the simulator, as ratios to a plain textbook loop timed in the same run."""

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit import ArmSet, Plan, Tally
from orthobandit.policy import FOREVER, Decision, Policy
from orthobandit.simulation import (
    Environment,
    PushLeader,
    RunResult,
    Sine,
    near_degenerate,
    simulate,
)


@dataclass(frozen=True)
class UniformDesign:
    """Plays all arms alike for ever: nothing but the simulator is timed."""

    def start(
        self,
        arms: ArmSet,
        batch: tuple[int, ...] = (),
        *,
        seed: int = 0,  # noqa: ARG002
        replications: Any = None,  # noqa: ARG002
    ) -> Tally:
        """Return the tally of no rounds."""
        return Tally.zeros(len(arms), batch)

    def plan(self, state: Tally) -> Plan:
        """Return the uniform distribution."""
        return Plan(np.full(state.counts.shape, 1 / state.count), FOREVER)

    def observe(self, state: Tally, plan: Plan, tally: Tally) -> Tally:  # noqa: ARG002
        """Add the rounds."""
        return state + tally

    def decide(self, state: Tally) -> Decision:
        """Claim nothing."""
        batch = state.rounds.shape
        every, none = np.ones(state.counts.shape, dtype=bool), np.full(batch, -1)
        return Decision(every, np.zeros(batch, dtype=np.int64), none, np.full(batch, np.inf), 0.0, "none")

    def dump(self, state: Tally) -> dict[str, Any]:
        """Return the tally."""
        return state.to_json()

    def load(self, arms: ArmSet, data: dict[str, Any]) -> Tally:  # noqa: ARG002
        """Invert :meth:`dump`."""
        return Tally.from_json(data)


# An angle so small that no policy declares an arm: all rounds are really played.
UNDECIDED = 1e-4

# What is run in all benchmarks; any policy may stand here.
POLICY: Callable[[], Policy[Any]] = UniformDesign


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
    """Print each measurement beside its target."""
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
    print(f"simulation, (d, K) = (10, 11), {type(POLICY()).__name__}; the yardstick is a textbook loop")
    for name, value, target in (
        ("yardstick", yardstick, ""),
        ("blocks, ν¹, 100 × 10⁶ rounds", blocks, f"{blocks / yardstick:,.0f}× (≥ 400×)"),
        ("adaptive shift, 256 × 20 000 rounds", rounds, f"{rounds / yardstick:,.0f}× (≥ 20×)"),
    ):
        print(f"  {name:36} {value:12,.0f} rounds/s  {target}")
    print(f"  10⁹ rounds, one replication          {long:12.1f} s         (< 60 s)")
    print(f"  peak memory, 10⁶ and 10⁸ rounds      {peaks[0]:12.2f} and {peaks[1]:.2f} MB (the same)")


if __name__ == "__main__":
    main()
