"""Speed of policies that plan every round, as ratios to plain one-replication numpy loops."""

import math
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from orthobandit import ArmSet
from orthobandit._foundation.random import compiled_stream, next_position
from orthobandit.peers import BOSE, UCB1, ActionCentredTS, FarthestPair, LinTS, LinUCB, SemiparametricTS
from orthobandit.policy.every_round import Packed, Steps
from orthobandit.simulation import Environment, PushLeader, simulate
from orthobandit.simulation.noise import next_normal

Array = NDArray[np.float64]


@numba.njit(nogil=True)
def play(
    plan_into: Any, observe: Any, settings: Any, packed: Packed, means: Array, rounds: int, streams: Any
) -> None:
    """Draw from the plan, reward with a sine shift and Gaussian noise, observe and plan again."""
    for i in range(packed.rounds.size):
        row = packed.probabilities[i]
        for t in range(rounds):
            position, arm = next_position(streams[i]), 0
            reached = row[0]
            while reached <= position and arm < row.size - 1:
                arm += 1
                reached += row[arm]
            if packed.rounds[i] == 1:
                reward = means[arm] + 1.0 + math.sin(2.0 * t) + next_normal(streams[i])
                observe(settings, packed.memory, i, row, arm, reward)
                packed.rounds[i] = plan_into(settings, packed.memory, i, row)


def instance(width: int, count: int) -> tuple[ArmSet, Array]:
    """Return arms on the sphere and their means, too close to be told apart in so few rounds."""
    rng = np.random.default_rng(1)
    features = rng.standard_normal((count, width))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    return ArmSet(features), 0.1 * features[:, 0]


def rate(policy: Any, arms: ArmSet, means: Array, replications: int, rounds: int) -> float:
    """Return replication-rounds per processor second of the compiled steps."""
    steps: Steps = policy.compiled(arms)
    streams = np.array([compiled_stream(0, "bench", i) for i in range(replications)])
    best = math.inf
    for repeat in range(4):
        packed = policy.pack(policy.start(arms, (replications,), seed=1))
        length = 2 if repeat == 0 else rounds  # the first call compiles
        start = time.process_time()
        play(steps.plan_into, steps.observe, steps.settings, packed, means, length, streams)
        elapsed = time.process_time() - start
        assert np.all(packed.rounds == 1), "a replication settled; nothing is left to time"
        if repeat:
            best = min(best, elapsed)
    return replications * rounds / best


def plain_rate(loop: Callable[[int], None], rounds: int) -> float:
    """Return rounds per processor second of a plain loop."""
    loop(10)
    times = []
    for _ in range(3):
        start = time.process_time()
        loop(rounds)
        times.append(time.process_time() - start)
    return rounds / min(times)


def plain_ball(points: Array) -> Array:
    """Find the distribution of the smallest enclosing ball with numpy: an active set on the points."""
    first = int(np.argmax(np.sum((points - points[0]) ** 2, axis=1)))
    second = int(np.argmax(np.sum((points - points[first]) ** 2, axis=1)))
    support, weights = [first, second], np.array([0.5, 0.5])
    while True:
        while True:
            edges = points[support[1:]] - points[support[0]]
            gram = edges @ edges.T
            inner = np.linalg.lstsq(gram, np.diagonal(gram) / 2, rcond=None)[0]
            wanted = np.concatenate([[1 - inner.sum()], inner])
            if np.all(wanted > 0):
                weights = wanted
                break
            shares = np.where(wanted <= 0, weights / np.maximum(weights - wanted, 1e-300), np.inf)
            leaving = int(np.argmin(shares))
            weights = weights + shares[leaving] * (wanted - weights)
            support.pop(leaving)
            weights = np.delete(weights, leaving)
            weights = weights / weights.sum()
        centre = weights @ points[support]
        squares = np.sum((points - centre) ** 2, axis=1)
        farthest = int(np.argmax(squares))
        if farthest in support or squares[farthest] <= squares[support[0]] * (1 + 1e-9):
            p = np.zeros(len(points))
            p[support] = weights
            return np.asarray(p / p.sum())
        if len(support) <= points.shape[1]:
            support.append(farthest)
            weights = np.append(weights, 0.0)
            continue
        # The support spans everything: the new point takes over from it until another has nothing left.
        edges = points[support[1:]] - points[support[0]]
        inner = np.linalg.lstsq(edges.T, points[farthest] - points[support[0]], rcond=None)[0]
        mixture = np.concatenate([[1 - inner.sum()], inner])
        shares = np.where(mixture > 0, weights / np.where(mixture > 0, mixture, 1.0), np.inf)
        leaving = int(np.argmin(shares))
        weights = weights - shares[leaving] * mixture
        support[leaving], weights[leaving] = farthest, shares[leaving]


def plain_bose(arms: ArmSet, means: Array, policy: BOSE) -> Callable[[int], None]:
    """Return BOSE as a plain loop."""
    X, width, ridge = arms.features, policy.filter_width(arms), policy.regression_ridge(arms)
    differences = X[:, None] - X[None]

    def loop(rounds: int) -> None:
        rng = np.random.default_rng(0)
        V, b = ridge * np.eye(X.shape[1]), np.zeros(X.shape[1])
        for t in range(rounds):
            inverse = np.linalg.inv(V)
            scores = X @ (inverse @ b)
            norms = np.sqrt(np.einsum("ijk,ijk->ij", differences @ inverse, differences))
            alive = ~np.any(scores[None] - scores[:, None] > width * norms, axis=1)
            white = np.linalg.solve(np.linalg.cholesky(V), X.T).T
            p = np.zeros(len(X))
            p[alive] = plain_ball(white[alive])
            arm = rng.choice(len(X), p=p)
            reward = means[arm] + 1 + math.sin(2 * t) + rng.standard_normal()
            centred = X[arm] - p @ X
            V += np.outer(centred, centred)
            b += centred * reward

    return loop


def plain_semiparametric(arms: ArmSet, means: Array, policy: SemiparametricTS) -> Callable[[int], None]:
    """Return semiparametric Thompson sampling as a plain loop."""
    X, v, M = arms.features, policy.spread(arms), policy.draws

    def loop(rounds: int) -> None:
        rng = np.random.default_rng(0)
        B, y = np.eye(X.shape[1]), np.zeros(X.shape[1])
        for t in range(rounds):
            inverse = np.linalg.inv(B)
            factor = np.linalg.cholesky(inverse)
            drawn = inverse @ y + v * rng.standard_normal((M, X.shape[1])) @ factor.T
            p = np.bincount(np.argmax(drawn @ X.T, axis=1), minlength=len(X)) / M
            arm = rng.choice(len(X), p=p)
            reward = means[arm] + 1 + math.sin(2 * t) + rng.standard_normal()
            centred = X - p @ X
            B += np.outer(centred[arm], centred[arm]) + (centred * p[:, None]).T @ centred
            y += 2 * centred[arm] * reward

    return loop


def plain_linucb(arms: ArmSet, means: Array) -> Callable[[int], None]:
    """Return LinUCB as a plain loop, with rank-one updates of the inverse."""
    X = arms.features

    def loop(rounds: int) -> None:
        rng = np.random.default_rng(0)
        inverse, b, growth = np.eye(X.shape[1]), np.zeros(X.shape[1]), 0.0
        for t in range(rounds):
            pulled = X @ inverse
            width = math.sqrt(2 * math.log(20) + growth) + 1
            arm = int(np.argmax(pulled @ b + width * np.sqrt(np.einsum("ij,ij->i", pulled, X))))
            reward = means[arm] + 1 + math.sin(2 * t) + rng.standard_normal()
            grown = 1 + pulled[arm] @ X[arm]
            inverse -= np.outer(pulled[arm], pulled[arm]) / grown
            growth += math.log(grown)
            b += X[arm] * reward

    return loop


def main() -> None:
    """Print each measurement beside its target."""
    large, large_means = instance(20, 30)
    small, small_means = instance(5, 10)
    bose, thompson = BOSE(horizon=10_000), SemiparametricTS(horizon=10_000)
    yardsticks = {
        "BOSE": plain_rate(plain_bose(large, large_means, bose), 300),
        "SemiparametricTS": plain_rate(plain_semiparametric(large, large_means, thompson), 300),
        "LinUCB": plain_rate(plain_linucb(small, small_means), 5000),
    }
    print("policies that plan every round, compiled steps; replication-rounds per second and core")
    for name, policy, arms, means, replications, rounds, target in (
        ("BOSE", bose, large, large_means, 64, 500, "≥ 20×"),
        ("BOSE uniform", BOSE(10_000, distribution="uniform"), large, large_means, 64, 500, ""),
        ("FarthestPair", FarthestPair(10_000), large, large_means, 64, 500, ""),
        ("SemiparametricTS", thompson, large, large_means, 64, 60, "≥ 10×"),
        ("LinUCB", LinUCB(), small, small_means, 256, 2000, "≥ 1 000 000/s"),
        ("LinTS", LinTS(), small, small_means, 256, 1000, ""),
        ("UCB1", UCB1(), small, small_means, 256, 2000, ""),
    ):
        speed = rate(policy, arms, means, replications, rounds)
        size = f"({arms.features.shape[1]}, {len(arms)})"
        line = f"  {name:17} {size:9} {replications:4} replications {speed:12,.0f}/s"
        if name in yardsticks:
            plain = yardsticks[name]
            line += f"  plain loop {plain:9,.0f}/s  {speed / plain:6.1f}×"
        print(f"{line}  {target}")
    print_adversary(large, bose, thompson)


class Protocol:
    """A policy without its compiled steps: planned and observed in Python, round by round."""

    baseline = None

    def __init__(self, policy: Any) -> None:
        self.start, self.plan = policy.start, policy.plan
        self.observe, self.decide = policy.observe, policy.decide


def adversary_rate(policy: Any, environment: Environment, replications: int, rounds: int) -> float:
    """Return replication-rounds per processor second of whole simulations."""
    simulate(policy, environment, horizon=2, replications=replications, seed=0)
    best = math.inf
    for _ in range(3):
        start = time.process_time()
        simulate(policy, environment, horizon=rounds, replications=replications, seed=0)
        best = min(best, time.process_time() - start)
    return replications * rounds / best


def print_adversary(arms: ArmSet, *policies: Any) -> None:
    """Print what whole simulations make of a shift that is asked every round, and through the protocol."""
    environment = Environment(arms, 0.1 * np.eye(arms.features.shape[1])[0], PushLeader())
    print("simulations against an adversary, PushLeader; compiled, and planned in Python every round")
    for policy in (*policies, LinUCB(), LinTS(), ActionCentredTS(), UCB1()):
        replications, rounds = 64, 30 if isinstance(policy, SemiparametricTS) else 300
        fast = adversary_rate(policy, environment, replications, rounds)
        slow = adversary_rate(Protocol(policy), environment, replications, rounds)
        name, size = type(policy).__name__, f"({arms.features.shape[1]}, {len(arms)})"
        print(
            f"  {name:17} {size:9} {replications:4} replications {fast:12,.0f}/s"
            f"  in Python {slow:10,.0f}/s  {fast / slow:6.1f}×"
        )


if __name__ == "__main__":
    main()
