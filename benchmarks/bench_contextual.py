"""Personalised rounds: regret beside peers, a level that depends on who comes, and rounds per second.

``python -m benchmarks.bench_contextual`` takes about a quarter of an hour on one core;
``python -m benchmarks.bench_contextual regret|visitors|speed [policy] [seeds]`` runs one part of it, or the
policies whose names contain a word.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from time import process_time

import numpy as np
from numpy.typing import NDArray

from orthobandit.estimate import CovariateRegression, KernelRegression, RunningMean, SubGaussian
from orthobandit.peers import (
    CentredThompson,
    ContextualBOSE,
    ContextualLinTS,
    ContextualLinUCB,
    ContextualSemiparametricTS,
)
from orthobandit.policy.contextual import AdditiveNoise, InformationDirected, Interactions
from orthobandit.policy.contextual.base import CompiledContextual
from orthobandit.simulation import Gaussian, Oblivious, Sine
from orthobandit.simulation.contextual import (
    AgainstTheBest,
    AgainstThePlan,
    ContextualEnvironment,
    ContextualShift,
    InteractionOffers,
    Offers,
    SphereOffers,
    WhoComes,
    simulate_offers,
)

Array = NDArray[np.float64]

ARMS, ROUNDS, NOISE, SEEDS = 10, 20_000, 0.5, 24
SHIFTS: dict[str, Oblivious | ContextualShift | None] = {
    "none": None,
    "1 + sin 2t": Sine(),
    "−max xᵀθ": AgainstTheBest(),
    "−μ_pᵀθ": AgainstThePlan(),
}
DECLARED = SubGaussian(-3.0, 3.0, NOISE)  # holds the means of every setting of the table
POLICIES: dict[str, CompiledContextual] = {
    "LinUCB with intercept": ContextualLinUCB(),
    "LinTS with intercept": ContextualLinTS(),
    "BOSE (ball)": ContextualBOSE(),
    "semiparametric TS": ContextualSemiparametricTS(),
    "centred TS": CentredThompson(),
    "ours": InformationDirected(),
    "ours, trusting the level": InformationDirected(trusts_level=True),
    "ours, exact intervals": InformationDirected(confidence=DECLARED),
    "ours, guaranteed, range": InformationDirected(confidence=DECLARED, size=1.0, play="guaranteed"),
    "ours, guaranteed, additive": InformationDirected(
        confidence=AdditiveNoise(), size=1.0, play="guaranteed"
    ),
}


def unit_vectors(dimension: int, count: int) -> Array:
    """Return θ (n, d) of length 1, one for every seed."""
    drawn = np.random.default_rng([dimension, 31]).normal(size=(count, dimension))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def mean_regret(
    policy: CompiledContextual,
    offers: Offers,
    thetas: Array,
    shift: Oblivious | ContextualShift | None,
) -> tuple[float, float]:
    """Return the mean regret over one run for every θ, and its standard error."""
    found = [
        simulate_offers(
            policy,
            ContextualEnvironment(offers, theta, shift, Gaussian(NOISE)),
            horizon=ROUNDS,
            replications=1,
            seed=seed,
        ).regret[0]
        for seed, theta in enumerate(thetas)
    ]
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found)))


def print_regret(seeds: int, wanted: str) -> None:
    """Print regret by policy, number of features and shift."""
    print(f"regret, K = {ARMS}, T = {ROUNDS:,}, noise {NOISE}, {seeds} seeds; shifts {' / '.join(SHIFTS)}")
    sizes = (5, 10, 20)
    print(f"{'':<26}" + "".join(f"{f'd = {size}':>28}" for size in sizes))
    for name, policy in POLICIES.items():
        if wanted not in name:
            continue
        cells = []
        for size in sizes:
            thetas = unit_vectors(size, seeds)
            offers = SphereOffers(ARMS, size)
            means = (mean_regret(policy, offers, thetas, shift)[0] for shift in SHIFTS.values())
            cells.append("/".join(f"{mean:.0f}" for mean in means))
        print(f"{name:<26}" + "".join(f"{cell:>28}" for cell in cells), flush=True)


CONTEXT = ("z1", "z2", "z3")
VISITORS: dict[str, Callable[[Array], Array] | None] = {
    "none": None,
    "2·z1": lambda context: 2.0 * context[:, 0],
    "2·sin(2·z1) + z2²": lambda context: 2.0 * np.sin(2.0 * context[:, 0]) + context[:, 1] ** 2,
}


def print_visitors(seeds: int, wanted: str) -> None:
    """Print regret where effects and the level depend on who comes: 4 arms, a context of 3."""
    pages = Interactions(["A", "B", "C", "D"], context=CONTEXT)
    offers = InteractionOffers(pages)
    thetas = unit_vectors(pages.dimension, seeds)
    directed = InformationDirected()
    policies: dict[str, CompiledContextual] = {
        "LinUCB with intercept": ContextualLinUCB(),
        "BOSE (ball)": ContextualBOSE(),
        "ours, running mean": replace(directed, baseline=RunningMean()),
        "ours, autoregression": directed,
        "ours, linear in context": replace(directed, baseline=CovariateRegression(CONTEXT)),
        "ours, smooth in context": replace(directed, baseline=KernelRegression(CONTEXT)),
    }
    print(f"regret, 4 arms × a context of 3 (d = {pages.dimension}), T = {ROUNDS:,}, {seeds} seeds, by level")
    print(f"{'':<26}" + "".join(f"{name:>22}" for name in VISITORS))
    for name, policy in policies.items():
        if wanted not in name:
            continue
        cells = []
        for level in VISITORS.values():
            mean, error = mean_regret(policy, offers, thetas, None if level is None else WhoComes(level))
            cells.append(f"{mean:.0f} ± {error:.0f}")
        print(f"{name:<26}" + "".join(f"{cell:>22}" for cell in cells), flush=True)


class Sampled(SphereOffers):
    """Offers that were drawn beforehand, so that only the policy is timed."""

    def __init__(self, arms: int, dimension: int, count: int) -> None:
        super().__init__(arms, dimension)
        kept = SphereOffers(arms, dimension).sample(np.random.default_rng(0), count)
        object.__setattr__(self, "_kept", kept)

    def sample(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:  # noqa: ARG002
        """Return the first so many of them."""
        features, context = self.__dict__["_kept"]
        return features[:count], context[:count]


def print_speed(repeats: int, wanted: str) -> None:
    """Print rounds per second of CPU time, on one core, at d = 10, K = 10; the best of several runs."""
    rounds = 40_000  # a block of features in memory
    world = ContextualEnvironment(Sampled(ARMS, 10, rounds), unit_vectors(10, 1)[0], None, Gaussian(NOISE))
    print(
        f"rounds per second of CPU time, K = {ARMS}, d = 10, features sampled beforehand, best of {repeats}"
    )
    for name, policy in POLICIES.items():
        if wanted not in name:
            continue
        simulate_offers(policy, world, horizon=1_000, replications=1)  # compiles
        taken = []
        for seed in range(repeats):
            start = process_time()
            simulate_offers(policy, world, horizon=rounds, replications=1, seed=seed)
            taken.append(process_time() - start)
        print(f"{name:<26}{rounds / min(taken):>14,.0f}", flush=True)


PARTS = {"regret": print_regret, "visitors": print_visitors, "speed": print_speed}


def main(arguments: list[str] | None = None) -> None:
    """Print the tables that are asked for, or all."""
    given = list(arguments or [])
    seeds = int(given.pop()) if given and given[-1].isdigit() else SEEDS
    wanted = given.pop() if given and given[-1] not in PARTS else ""
    for name in given or PARTS:
        PARTS[name](seeds, wanted)


if __name__ == "__main__":
    main(sys.argv[1:])
