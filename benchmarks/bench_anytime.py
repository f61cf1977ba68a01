"""Anytime elimination against its targets: samples, regret and widths on the same seeds for all policies.

`make bench NAMES=anytime` takes several minutes; parts can be named, as in ``python -m
benchmarks.bench_anytime small-gap earning``, ``--quick`` has a tenth of the runs, and ``--ablation`` prints
what single settings are worth. A row is what was measured, the target, and whether it is met.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit import (
    AnytimeElimination,
    Asymptotic,
    ContrastSequence,
    Environment,
    Plan,
    SubGaussian,
    centred_design,
    simulate,
)
from orthobandit.estimate import AutoRegression, Centre, Evidence, Tuning
from orthobandit.peers import RAGE
from orthobandit.policy import SBE, Policy
from orthobandit.simulation import (
    Constant,
    LogAlternating,
    Sine,
    exact_gap,
    near_degenerate,
    successor_sphere,
    uniform_sphere,
)
from orthobandit.simulation.player import Player
from orthobandit.theory import identification_limit, regret_limit

RUNS = 100
INSTANCES = 10
SEED = 101
BATCHES = 5  # of replications that are timed
ALONE = 20  # runs that are timed one by one
SEEDS = range(201, 211)  # of the small gap, so that no lucky one decides
CAP = 5_000_000
SHIFTS = {"ν¹": Sine(), "ν²": LogAlternating()}
# Means of the small-gap instance lie in [0, 4] under ν¹, those of unit arms under ν¹ and ν² in [−3, 3].
SMALL, UNIT = SubGaussian(0.0, 4.0), SubGaussian(-3.0, 3.0)


@dataclass(frozen=True)
class Samples:
    """Rounds to the declaration, and how many declarations were wrong."""

    times: np.ndarray
    wrong: int


def samples(
    policy: Policy[Any], environment: Environment, runs: int, first: int = 0, seed: int = SEED
) -> Samples:
    """Run until every replication has declared an arm, or the cap."""
    result = simulate(
        policy,
        environment,
        horizon=CAP,
        replications=runs,
        seed=seed,
        stop_when_declared=True,
        first=first,
        batch=runs,
    )
    times = np.where(result.stop_times < 0, CAP, result.stop_times)
    return Samples(times, int(np.count_nonzero(result.decision.declared != environment.best)))


def report(name: str, value: float, target: float, note: str = "") -> None:
    """Print one row."""
    verdict = "met" if value <= target else "MISSED"
    print(f"{name:<58} {value:>12.4g}   ≤ {target:<8g} {verdict}  {note}", flush=True)


def small_gap(runs: int) -> None:
    """Mean samples on the near-degenerate instance, d = 10, δ = .1, with and without a right hint.

    Twice so many runs for each of ten seeds.
    """
    environment = near_degenerate(shift=Sine())
    best, second = np.sort(environment.means)[::-1][:2]
    limit = identification_limit(environment.arms, environment.means, 0.1)
    gap = float(best - second)
    for hint, expect, targets in (("", None, (16_700, 18_600)), (", told the gap", gap, (15_500, 16_500))):
        for name, confidence, target in zip(
            ("asymptotic", "exact"), (Asymptotic(), SMALL), targets, strict=True
        ):
            policy = AnytimeElimination(0.1, confidence=confidence, expect=expect)
            found = [samples(policy, environment, 2 * runs, seed=seed) for seed in SEEDS]
            times = np.concatenate([one.times for one in found])
            wrong = sum(one.wrong for one in found)
            error = times.std() / np.sqrt(times.size)
            note = f"± {error:.0f}, {times.mean() / limit:.2f} × the limit, {wrong} of {times.size} wrong"
            report(f"small gap d=10, ν¹, δ=.1: samples, {name}{hint}", times.mean(), target, note)


def ablation(runs: int) -> None:
    """Print mean samples on the small gap, and regret on (20, 30), with other settings than the default."""
    environment = near_degenerate(shift=Sine())
    cases: tuple[dict[str, Any], ...] = (
        *({"growth": growth} for growth in (0.1, 0.05, 0.02, 0.01)),
        {"pilot": 2000},
        {"mixing": 0.005},
    )
    for settings in cases:
        for mode, confidence, count in (("asymptotic", Asymptotic(), runs), ("exact", SMALL, runs // 2)):
            found = samples(AnytimeElimination(0.1, confidence=confidence, **settings), environment, count)
            error = found.times.std() / np.sqrt(count)
            print(f"{settings}, {mode}: {found.times.mean():,.0f} ± {error:,.0f} samples", flush=True)
    for growth in (0.1, 0.03, 0.01):
        for mode, confidence, count in (("asymptotic", Asymptotic(), 10), ("exact", UNIT, 4)):
            policy = AnytimeElimination(0.05, goal="earn", growth=growth, confidence=confidence)
            regret = [
                simulate(
                    policy,
                    exact_gap(20, 30, 0.5, seed=seed, shift=Sine()),
                    horizon=20_000,
                    replications=count,
                    seed=SEED + seed,
                )
                .regret[:, -1]
                .mean()
                for seed in range(INSTANCES)
            ]
            print(f"growth {growth}, {mode}: regret {np.mean(regret):,.0f}", flush=True)


def sphere(runs: int) -> None:
    """Mean samples over instances with K = 100 arms, SP-BAI's author's and ours, one run each.

    The mean hangs on a few instances whose gap is a hundredth of the others'; the geometric mean does not.
    """
    policy = AnytimeElimination(0.1)
    for name, make in (("the author's", successor_sphere), ("ours", uniform_sphere)):
        worlds = [make(10, 100, seed=seed, shift=Sine()) for seed in range(runs)]
        found = [samples(policy, world, 1, first=seed) for seed, world in enumerate(worlds)]
        times = np.concatenate([one.times for one in found])
        limits = [identification_limit(world.arms, world.means, 0.1) for world in worlds]
        note = (
            f"{np.exp(np.mean(np.log(times / limits))):.2f} × the limit,"
            f" median {np.median(times):.0f}, geometric mean {np.exp(np.log(times).mean()):.0f},"
            f" most {times.max()}, {sum(one.wrong for one in found)} wrong or undeclared"
        )
        report(f"sphere K=100, d=10, δ=.1, {runs} instances, {name}: mean", times.mean(), 60_000, note)


def earning(runs: int) -> None:
    """Regret at T = 20 000 on ten instances (20, 30), Δ = ½, over that of SBE with c = 1."""
    for name, shift in SHIFTS.items():
        reference, wrong, limit = 0.0, 0, 0.0
        regret = {"asymptotic": 0.0, "exact": 0.0}
        for seed in range(INSTANCES):
            environment = exact_gap(20, 30, 0.5, seed=seed, shift=shift)
            limit += regret_limit(environment.arms, environment.means, 0.05) / INSTANCES
            common: dict[str, Any] = {
                "horizon": 20_000,
                "replications": max(runs // INSTANCES, 1),
                "seed": SEED + seed,
            }
            reference += simulate(SBE(delta=0.05), environment, **common).regret[:, -1].sum()
            for mode, confidence in (("asymptotic", Asymptotic()), ("exact", UNIT)):
                policy = AnytimeElimination(0.05, goal="earn", confidence=confidence)
                result = simulate(policy, environment, **common)
                regret[mode] += float(result.regret[:, -1].sum())
                wrong += int(np.count_nonzero((result.decision.declared >= 0) & ~_best(result, environment)))
        for mode, target in (("asymptotic", 0.125 if name == "ν¹" else 0.11), ("exact", 0.33)):
            note = (
                f"{regret[mode] / runs / limit:.2f} × the limit; SBE c=1: {reference / runs:.0f};"
                f" {wrong} wrong in both modes"
            )
            report(
                f"(20,30), Δ=½, {name}: regret against SBE c=1, {mode}",
                regret[mode] / reference,
                target,
                note,
            )


def small_earning(runs: int) -> None:
    """Regret at T = 20 000 on ten instances (5, 10), Δ = ½."""
    policy = AnytimeElimination(0.05, goal="earn")
    for (name, shift), target in zip(SHIFTS.items(), (240.0, 285.0), strict=True):
        regret = [
            simulate(
                policy,
                exact_gap(5, 10, 0.5, seed=seed, shift=shift),
                horizon=20_000,
                replications=max(runs // INSTANCES, 1),
                seed=SEED + seed,
            ).regret[:, -1]
            for seed in range(INSTANCES)
        ]
        every = np.concatenate(regret)
        note = f"± {every.std() / np.sqrt(every.size):.1f}"
        report(f"(5,10), Δ=½, {name}: regret, asymptotic", float(every.mean()), target, note)


def _best(result: Any, environment: Environment) -> np.ndarray:
    return np.asarray(result.decision.declared == environment.best)


def robustness(runs: int) -> None:
    """Compare samples without any shift with RAGE as released, which relies on that and knows the noise."""
    for name, environment, target in (
        ("(20,30), Δ=½", exact_gap(20, 30, 0.5, seed=0, shift=Constant(0.0)), 0.5),
        ("small gap d=10", near_degenerate(shift=Constant(0.0)), 9.0),
    ):
        ours = samples(AnytimeElimination(0.05), environment, runs)
        theirs = samples(RAGE(delta=0.05, constants="released"), environment, runs)
        proof = samples(RAGE(delta=0.05), environment, max(runs // 10, 1))
        note = (
            f"{ours.times.mean():.0f} against {theirs.times.mean():.0f}, with the constants of its proof"
            f" {proof.times.mean():.0f}; wrong {ours.wrong}, {theirs.wrong} and {proof.wrong}"
        )
        ratio = float(ours.times.mean() / theirs.times.mean())
        report(f"{name}, ν=0: samples against RAGE as released", ratio, target, note)


def widths() -> None:
    """Widths of all pairs on (5, 10) after 10⁴ rounds of the exact centred design, exact over asymptotic."""
    pairs = np.column_stack(np.triu_indices(10, 1))
    worst, median = 0.0, 0.0
    # Means of unit arms lie within ±1 of the shift: [−1, 3] under ν¹, [−3, 3] under ν².
    for shift, confidence in ((SHIFTS["ν¹"], SubGaussian(-1.0, 3.0)), (SHIFTS["ν²"], UNIT)):
        environment = exact_gap(5, 10, 0.5, seed=0, shift=shift)
        p = centred_design(environment.arms).probabilities
        player = Player(environment, np.array([10_000]), SEED, np.arange(1), AutoRegression())
        starts = [
            ContrastSequence.start(environment.arms, pairs, mode, 0.05 / len(pairs), rounds=10_000)
            for mode in (confidence, Asymptotic())
        ]
        centre = starts[0].centre()
        tally = player.play(p[np.newaxis], np.array([10_000]), _for_one(centre))
        ends = [start.add(Plan(p, 10_000, centre), tally[0]).intervals() for start in starts]
        ratio = np.divide(*(high - low for low, high in ends))
        worst, median = max(worst, ratio.max()), max(median, float(np.median(ratio)))
    note = f"worst pair of both shifts; {median:.2f} in the median"
    report("(5,10), 10⁴ samples: exact width over asymptotic", worst, 1.6, note)


def _for_one(centre: Centre) -> Centre:
    """Return the centre of a batch of one replication."""
    return Centre(
        centre.values[np.newaxis],
        np.atleast_1d(centre.low),
        np.atleast_1d(centre.high),
        centre.limit,
        centre.rewards,
    )


def speed() -> None:
    """Milliseconds for the intervals of all pairs of 100 arms."""
    rng, shape = np.random.default_rng(0), (100, 100)
    evidence = Evidence(
        rng.normal(0, 50, shape), np.full(shape, 1e3), rng.uniform(1e2, 1e4, shape), np.zeros(shape)
    )
    tuning = Tuning(np.full(shape, 1e-3), np.full(shape, 100.0), np.full(shape, 3.0))
    for name, mode in (("asymptotic", Asymptotic()), ("exact", UNIT)):
        mode.width(evidence, tuning)
        start = time.perf_counter()
        for _ in range(10):
            mode.width(evidence, tuning)
        elapsed = 100.0 * (time.perf_counter() - start)
        report(f"all pairs of 100 arms: milliseconds, {name}", elapsed, 100.0)


def planning(runs: int) -> None:
    """Milliseconds of processor time a run, in batches of `runs` replications and alone.

    The yardstick is the play itself, compiled: as many rounds of the same environment under one plan.
    """
    cases: tuple[tuple[str, Environment, AnytimeElimination, int, float], ...] = (
        ("small gap, δ=.1", near_degenerate(shift=Sine()), AnytimeElimination(0.1), CAP, 21.2),
        (
            "(20,30), Δ=½, earn",
            exact_gap(20, 30, 0.5, seed=0, shift=Sine()),
            AnytimeElimination(0.05, goal="earn"),
            20_000,
            20.0,
        ),
    )
    for name, environment, policy, horizon, target in cases:
        simulate(policy, environment, horizon=horizon, replications=2, seed=SEED, stop_when_declared=True)
        for how, size, repeats in (("in batches", runs, BATCHES), ("alone", 1, ALONE)):
            spent = np.empty(repeats)
            rounds = 0
            for number in range(repeats):
                start = time.process_time()
                result = simulate(
                    policy,
                    environment,
                    horizon=horizon,
                    replications=size,
                    seed=SEED,
                    first=number * size,
                    batch=size,
                    stop_when_declared=True,
                )
                spent[number] = 1e3 * (time.process_time() - start) / size
                rounds += int(np.where(result.stop_times < 0, horizon, result.stop_times).sum())
            play = _play_alone(environment, policy, rounds // (repeats * size))
            error = spent.std(ddof=1) / np.sqrt(repeats)
            note = f"± {error:.1f}, {repeats} × {size} runs; the play itself: {play:.1f}"
            report(f"{name}: milliseconds of CPU a run, {how}", spent.mean(), target, note)


def _play_alone(environment: Environment, policy: AnytimeElimination, rounds: int) -> float:
    """Return the milliseconds of processor time that so many rounds take under one plan."""
    player = Player(environment, np.array([rounds]), SEED, np.arange(1), policy.baseline)
    p = np.full((1, len(environment.arms)), 1.0 / len(environment.arms))
    centre = policy.confidence.centre(np.zeros_like(p), p > 0)
    start = time.process_time()
    player.play(p, np.array([rounds]), centre)
    return 1e3 * (time.process_time() - start)


PARTS: dict[str, Callable[[int], None]] = {
    "speed": lambda _: speed(),
    "planning": planning,
    "widths": lambda _: widths(),
    "small-gap": small_gap,
    "small-earning": small_earning,
    "earning": earning,
    "robustness": robustness,
    "sphere": sphere,
}


def main(arguments: list[str] | None = None) -> None:
    """Print the table, or the parts of it that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    parser.add_argument("--ablation", action="store_true", help="what single settings are worth")
    options = parser.parse_args(arguments or [])
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    runs = RUNS // 10 if options.quick else RUNS
    if options.ablation:
        ablation(3 * runs)
        return
    for part in options.parts or PARTS:
        PARTS[part](runs)


if __name__ == "__main__":
    main(sys.argv[1:])
