"""Anytime elimination with up to a million arms: seconds a re-plan, memory, rounds, and who was declared.

``python -m benchmarks.bench_large`` takes some minutes; with ``--quick`` a tenth of the runs. Each number of
arms runs in a process of its own, on one thread, so that its peak of memory is its own. Seconds are of the
processor; beside them stands what one pass over the features, X @ θ, takes in the same process. ``--live``
prints what the calls of a live experiment with 1,500 arms take instead, in a quarter of a minute.
"""

import json
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from orthobandit import AnytimeElimination, ArmSet, Asymptotic, Environment, Experiment, SubGaussian
from orthobandit.estimate import Confidence
from orthobandit.simulation import Sine
from orthobandit.simulation.player import Player

Value = TypeVar("Value")
WIDTH, GAP, DELTA = 20, 0.5, 0.05
RUNS = {10_000: 40, 100_000: 10, 1_000_000: 3}
MOST = 100_000  # rounds after which a run is given up
# Seconds a re-plan, and memory in units of the features; none were asked for in between.
TARGETS = {10_000: (0.020, None), 100_000: (None, 5.0), 1_000_000: (1.0, 5.0)}
# A live experiment: arms, features, and visitors before and after arms come and go.
LIVE, LIVE_WIDTH, VISITORS = 1_500, 10, (11_000, 5_000)
# Means under ν¹ lie within the largest of a million normal numbers, and 2 more.
MODES = {"asymptotic": Asymptotic(), "exact": SubGaussian(-7.0, 9.0)}


@dataclass(frozen=True)
class Found:
    """What the runs with one number of arms took."""

    rounds: list[int]
    right: int
    seconds: list[float]
    one_pass: float
    memory: float
    stored: tuple[float, float]


def world(count: int, seed: int) -> Environment:
    """Return normal features, a unit θ, ν¹, and a best arm that is moved along θ until it leads by ½."""
    rng = np.random.default_rng(seed)
    features, theta = rng.standard_normal((count, WIDTH)), rng.standard_normal(WIDTH)
    theta /= np.linalg.norm(theta)
    means = features @ theta
    second, best = np.argpartition(means, count - 2)[-2:]
    features[best] += (means[second] + GAP - means[best]) * theta
    features.flags.writeable = False
    return Environment(ArmSet(features), theta, Sine())


def play(
    environment: Environment, confidence: Confidence, seed: int, *, is_stored: bool = False
) -> tuple[int, bool, list[float], float]:
    """Play until an arm is declared; return rounds, if it is the best, seconds a re-plan and to store."""
    policy = AnytimeElimination(DELTA, confidence=confidence, pairs="leader")
    player = Player(environment, np.array([MOST]), seed, np.arange(1), policy.baseline)
    state, seconds, stored = policy.start(environment.arms, (1,)), list[float](), 0.0
    while state.declared[0] < 0 and state.rounds[0] < MOST:
        plan = policy.plan(state)
        tally = player.play(plan.probabilities, plan.rounds, plan.centre)
        begin, counts = time.process_time(), state.stage[0] > 0
        state = policy.observe(state, plan, tally)
        if counts:
            seconds.append(time.process_time() - begin)
        if is_stored and len(seconds) == 2:  # the longest state: all arms are in, and rounds count
            begin = time.process_time()
            policy.load(environment.arms, json.loads(json.dumps(policy.dump(state))))
            stored = time.process_time() - begin
    return int(state.rounds[0]), bool(state.declared[0] == environment.best), seconds, stored


def measure(count: int, mode: str, runs: int) -> Found:
    """Run one number of arms; the storing is left to the last run, after the memory was looked at."""
    play(world(1000, 0), MODES[mode], 0)  # compiles
    before = _peak()
    rounds, right, seconds, one_pass, memory, stored = [], 0, [], 0.0, 0.0, 0.0
    for seed in range(runs):
        environment = world(count, seed)
        found = play(environment, MODES[mode], seed, is_stored=seed == runs - 1 > 0)
        memory = memory or _peak() - before
        rounds.append(found[0])
        right += found[1]
        seconds += found[2]
        stored = found[3]
        one_pass = _seconds_of_a_pass(environment)
    nbytes = environment.arms.features.nbytes
    return Found(rounds, right, seconds, one_pass, memory / nbytes, (stored, nbytes / 2**20))


def _seconds_of_a_pass(environment: Environment) -> float:
    times = []
    for _ in range(5):
        begin = time.process_time()
        environment.arms.features @ environment.theta
        times.append(time.process_time() - begin)
    return float(np.median(times))


def _peak() -> float:
    """Return the largest memory that this process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def report(count: int, mode: str, found: Found) -> None:
    """Print the rows of one number of arms."""
    mean, error = np.mean(found.rounds), np.std(found.rounds) / np.sqrt(len(found.rounds))
    wrong = len(found.rounds) - found.right
    slowest, most = TARGETS[count]
    name = f"K = {count:,}, {mode}"
    print(f"{name}: {mean:,.0f} ± {error:,.0f} rounds, {wrong} of {len(found.rounds)} wrong or undeclared")
    usual, long, longest = np.quantile(found.seconds, [0.5, 0.95, 1.0])
    print(
        f"    re-plan: {1e3 * long:,.0f} ms in the 95 % quantile {_verdict(long, slowest)},"
        f" median {1e3 * usual:,.0f}, longest {1e3 * longest:,.0f};"
        f" {long / found.one_pass:,.0f} passes X @ θ of {1e3 * found.one_pass:.2f} ms"
    )
    print(
        f"    memory: {found.memory:.2f} times the features' {found.stored[1]:,.0f} MiB"
        f" {_verdict(found.memory, most)}; to JSON and back {found.stored[0]:.1f} s",
        flush=True,
    )


def _verdict(value: float, target: float | None) -> str:
    return "" if target is None else f"(≤ {target:g}: {'met' if value <= target else 'MISSED'})"


def live() -> None:
    """Print the seconds of the processor that each call of a live experiment takes."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((LIVE + 3, LIVE_WIDTH))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    means = 0.5 + 0.3 * points[:, 0]

    def timed(name: str, call: Callable[[], Value]) -> Value:
        start = time.process_time()
        out = call()
        print(f"{name:<28} {time.process_time() - start:6.2f} s", flush=True)
        return out

    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "page.db"
        arms = ArmSet(points[:LIVE])
        page = timed("create", lambda: Experiment.create(where, arms, rewards=(0, 1)))

        def visit(count: int) -> None:
            for _ in range(count // 1_000):
                shown = page.ask_many(1_000)
                rewards = rng.random(1_000) < means[[one.arm for one in shown]]
                page.tell_many([one.id for one in shown], rewards.astype(float))

        timed(f"{VISITORS[0]:,} visitors", lambda: visit(VISITORS[0]))
        leader = timed("report", page.report).leader
        timed("retire the leader", lambda: page.retire(leader or 0))
        timed("add three arms", lambda: page.extend(ArmSet(points)))
        timed(f"{VISITORS[1]:,} visitors", lambda: visit(VISITORS[1]))
        timed("report", page.report)
        found = timed("certificate, and verify it", page.certificate)
        timed("replay", page.replay)
        page.close()
        timed("open", lambda: Experiment.open(where)).close()
        print(found.verdict)


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    if "--live" in (arguments or []):
        live()
        return
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # read by the processes that are started below
    context = multiprocessing.get_context("spawn")
    for mode in MODES:
        for count, runs in RUNS.items():
            few = max(runs // 10, 1) if "--quick" in (arguments or []) else runs
            with context.Pool(1) as pool:
                report(count, mode, pool.apply(measure, (count, mode, few)))


if __name__ == "__main__":
    main(sys.argv[1:])
