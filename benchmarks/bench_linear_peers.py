"""Peers for the best arm with linear rewards: rounds to the declaration and errors, with ν¹ and without.

``python -m benchmarks.bench_linear_peers`` prints the tables of docs/peers.md, in some hours; parts can be
named, as in ``bench_linear_peers many-arms trend``, and rows, as in ``--only lazy RAGE``. ``--quick`` has a
fifth of the runs. With ``--keep FILE`` cells that are finished are kept there, and taken from there next time
unless their code has changed since: an interrupted run goes on where it was. Every policy plays the same
instances with the same seeds. A run that has not declared an arm after the cap of its instance, or of its
row, counts with the cap, and is listed as open. The part ``budget`` has the policies that play a fixed number
of rounds: how many runs err.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit import AnytimeElimination, ArmSet, Environment, simulate
from orthobandit._foundation.fingerprint import fingerprint
from orthobandit.peers import (
    GBAI,
    LUCB,
    P1RAGE,
    RAGE,
    SPBAI,
    ActionElimination,
    AdjacentBAI,
    BudgetedSPBAI,
    FrankWolfeSampling,
    LazyTrackAndStop,
    LinGame,
    LinGapE,
    LinLUCB,
    ODLinBAI,
    P1Peace,
    Peace,
    PooledTrackAndStop,
    StratifiedMeans,
    XYAdaptive,
    XYStatic,
)
from orthobandit.policy import FixedBudget, Policy
from orthobandit.simulation import Constant, Gaussian, Noise, Shift, Sine, Trend, near_degenerate, one_hot
from orthobandit.theory import identification_limit

SEED = 320


@dataclass(frozen=True)
class Case:
    """Arms, θ, δ, how many rounds to wait for, how many runs, and what to call them."""

    name: str
    arms: ArmSet
    theta: NDArray[np.float64]
    delta: float
    cap: int
    runs: int


def near_parallel(width: int, angle: float) -> tuple[ArmSet, NDArray[np.float64]]:
    """Return e_1, …, e_d, (cos ω, sin ω, 0, …) and θ = 2e_1 (Soare et al. 2014)."""
    extra = np.zeros(width)
    extra[:2] = np.cos(angle), np.sin(angle)
    return ArmSet(np.vstack([np.eye(width), extra])), 2 * np.eye(width)[0]


def many_arms(count: int) -> tuple[ArmSet, NDArray[np.float64]]:
    """Return arms on an arc around π/4, e_1 and (−.707, .707), and θ = e_1 (Fiez et al. 2019)."""
    angles = 0.78 + 0.1 * np.random.default_rng(43).random(count - 2)
    arc = np.column_stack([np.cos(angles), np.sin(angles)])
    return ArmSet(np.vstack([[1.0, 0.0], [-0.707, 0.707], arc])), np.array([1.0, 0.0])


def cases() -> dict[str, Case]:
    """Return the instances, by the name of their part."""
    small = near_degenerate()
    setting = "LinGapE's setting, d = 5, angle .1, δ = .05"
    return {
        "angle": Case(setting, *near_parallel(5, 0.1), 0.05, 1_000_000, 50),
        "many-arms": Case("many arms, K = 100, d = 2, δ = .05", *many_arms(100), 0.05, 10_000, 50),
        "small-gap": Case("small gap, d = 10, angle .2, δ = .1", small.arms, small.theta, 0.1, 300_000, 20),
    }


PEERS: dict[str, Callable[[float], Policy[Any]]] = {
    "LinGapE, released constants": lambda delta: LinGapE(delta),
    "LinGapE, paper's constants": lambda delta: LinGapE(delta, constants="paper"),
    "LinGapE, heuristic": lambda delta: LinGapE(delta, constants="heuristic"),
    "LinGapE, heuristic, eliminates": lambda delta: LinGapE(delta, constants="heuristic", eliminates=True),
    "XY-static, paper": lambda delta: XYStatic(delta),
    "XY-static, released": lambda delta: XYStatic(delta, constants="released"),
    "XY-adaptive, paper": lambda delta: XYAdaptive(delta),
    "XY-adaptive, released": lambda delta: XYAdaptive(delta, constants="released"),
    "RAGE, released": lambda delta: RAGE(delta, constants="released"),
    "lazy track-and-stop, paper": lambda delta: LazyTrackAndStop(delta),
    "lazy track-and-stop, heuristic": lambda delta: LazyTrackAndStop(delta, threshold="heuristic"),
    "LinGame, paper": lambda delta: LinGame(delta, norm=2.0),
    "LinGame, heuristic": lambda delta: LinGame(delta, threshold="heuristic"),
    "Frank–Wolfe sampling, heuristic": lambda delta: FrankWolfeSampling(delta, threshold="heuristic"),
    "LUCB, no features": lambda delta: LUCB(delta),
    "action elimination, no features": lambda delta: ActionElimination(delta),
    "lazy track-and-stop, drawn, σ² = 2.5": lambda delta: LazyTrackAndStop(
        delta, noise=2.5**0.5, threshold="heuristic", draw=True
    ),
    "SP-BAI": lambda delta: SPBAI(delta),
    "**AnytimeElimination**": lambda delta: AnytimeElimination(delta),
}
# Runs and their most rounds of rows that are waited for longer, or not as long, as the others of their part.
WAITS = {
    "angle": {
        "LUCB, no features": (50, 100_000_000),
        "action elimination, no features": (10, 100_000_000),
    },
    "many-arms": {
        "LUCB, no features": (50, 10_000_000),
        "action elimination, no features": (50, 10_000_000),
        # Every round solves a game with up to a hundred rows.
        "Frank–Wolfe sampling, heuristic": (10, 2_000),
    },
    "small-gap": {
        "LUCB, no features": (20, 10_000_000),
        "action elimination, no features": (20, 10_000_000),
    },
}
# It would play tens of millions of slow rounds.
LONG = {"angle": ("lazy track-and-stop, drawn, σ² = 2.5",)}


@dataclass(frozen=True)
class Cells:
    """Cells of the tables, computed or taken from a file of finished ones."""

    file: Path | None = None
    only: tuple[str, ...] = ()

    def wants(self, name: str) -> bool:
        """Tell whether the row of this policy is asked for."""
        return not self.only or any(part in name for part in self.only)

    def wrong(self, policy: Policy[Any], worlds: list[Environment], runs: int, budget: int) -> str:
        """Return the share of runs, as many in each world, that end with a wrong arm ± standard error."""
        each = runs // len(worlds)
        found = [self._kept("budget", _play_budget, policy, world, each, budget, SEED) for world in worlds]
        wrong = sum(map(int, found)) / (each * len(worlds))
        # Runs in one world may be all alike, so that only those within each count for the error.
        shares = np.array([int(count) / each for count in found])
        error = float(np.sqrt(np.sum(shares * (1 - shares) / each))) / len(worlds)
        return f"{wrong:.1%} ± {100 * error:.1f}"

    def cell(
        self, policy: Policy[Any], environment: Environment, runs: int, cap: int, seed: int = SEED
    ) -> str:
        """Return mean rounds ± standard error, wrong and open runs, as the cells of a table."""
        return self._kept("cap", _play, policy, environment, runs, cap, seed)

    def _kept(self, kind: str, play: Callable[..., str], *what: Any) -> str:
        """Return a cell from the file, or play it and put it there."""
        key = fingerprint((kind, *what), "orthobandit.simulation:simulate")
        kept = json.loads(self.file.read_text()) if self.file is not None and self.file.exists() else {}
        if key not in kept:
            kept[key] = play(*what)
            if self.file is not None:
                self.file.write_text(json.dumps(kept, ensure_ascii=False, indent=1))
        return str(kept[key])


def _play_budget(policy: Policy[Any], environment: Environment, runs: int, budget: int, seed: int) -> str:
    """Return how many runs declare a wrong arm, as text to be kept."""
    result = simulate(policy, environment, horizon=budget, replications=runs, seed=seed, batch=runs)
    # A policy that declares nothing is asked for the arm that it would choose.
    chosen = np.where(result.decision.declared < 0, result.decision.leader, result.decision.declared)
    return str(np.count_nonzero(environment.gaps[chosen] > 0))


def _play(policy: Policy[Any], environment: Environment, runs: int, cap: int, seed: int) -> str:
    result = simulate(
        policy, environment, horizon=cap, replications=runs, seed=seed, stop_when_declared=True, batch=runs
    )
    is_open = result.stop_times < 0
    times = np.where(is_open, cap, result.stop_times)
    wrong = int(np.count_nonzero(~is_open & (result.decision.declared != environment.best)))
    error = float(np.std(times, ddof=1)) / np.sqrt(runs)
    note = f" ({np.count_nonzero(is_open)} open)" if is_open.any() else ""
    return f"{np.mean(times):,.0f} ± {error:,.0f}{note} | {wrong / runs:.0%}"


def print_case(part: str, share: int, found: Cells) -> None:
    """Print the table of one instance."""
    case = cases()[part]
    runs = case.runs // share
    shifted = Environment(case.arms, case.theta, Sine())
    still = Environment(case.arms, case.theta, Constant(0.0))
    limit = identification_limit(case.arms, shifted.means, case.delta)
    print(f"\n{case.name}, {runs} runs of at most {case.cap:,} rounds")
    print(f"least mean rounds of any method that is right under all shifts: {limit:,.0f}\n", flush=True)
    print("| policy | rounds, ν = 0 | wrong | rounds, ν¹ | wrong |\n|---|---:|---:|---:|---:|", flush=True)
    for name, make in PEERS.items():
        if name in LONG.get(part, ()) or not found.wants(name):
            continue
        policy = make(case.delta)
        most, cap = WAITS[part].get(name, (case.runs, case.cap))
        note = "" if (most, cap) == (case.runs, case.cap) else f" ({most // share} runs, at most {cap:,})"
        cells = [found.cell(policy, environment, most // share, cap) for environment in (still, shifted)]
        print(f"| {name}{note} | {cells[0]} | {cells[1]} |", flush=True)


def print_smallest_angle(share: int, found: Cells) -> None:
    """Print LinGapE's own experiment: angle .01 and ε = the gap."""
    runs = 10 // share
    arms, theta = near_parallel(5, 0.01)
    gap = 2 * (1 - np.cos(0.01))
    still = Environment(arms, theta, Constant(0.0))
    shifted = Environment(arms, theta, Sine())
    print(f"\nLinGapE's setting, d = 5, angle .01, δ = .05, ε = the gap {gap:.1e}; {runs} runs\n")
    print("| policy | rounds, ν = 0 | wrong | rounds, ν¹ | wrong |\n|---|---:|---:|---:|---:|")
    for name in ("released", "paper"):
        if not found.wants(f"LinGapE, {name}"):
            continue
        policy = LinGapE(0.05, constants=name, epsilon=gap)
        cells = [found.cell(policy, environment, runs, 2_000_000) for environment in (still, shifted)]
        print(f"| LinGapE, {name} | {cells[0]} | {cells[1]} |", flush=True)


def print_trend(share: int, found: Cells) -> None:
    """Print policies without features beside ours, on a level that stands still and one that rises."""
    runs = 200 // share
    print(f"\nfour arms with means .3, .2, .1 and 0, σ = ½, δ = .1, {runs} runs of at most 20,000 rounds\n")
    print("| policy | rounds, ν = 0 | wrong | rounds, +.3 in 1,000 | wrong |\n|---|---:|---:|---:|---:|")
    peers: dict[str, Policy[Any]] = {
        "LUCB": LUCB(0.1, 0.5),
        "action elimination": ActionElimination(0.1, 0.5),
        "pooled track-and-stop": PooledTrackAndStop(period=100, delta=0.1),
        "stratified means": StratifiedMeans(epoch=100, delta=0.1),
        "**AnytimeElimination**": AnytimeElimination(0.1),
    }
    for name, policy in peers.items():
        if not found.wants(name):
            continue
        cells = []
        for shift in (Constant(0.0), Trend(0.3 / 1000)):
            environment = one_hot([0.3, 0.2, 0.1, 0.0], shift=shift, noise=Gaussian(0.5))
            cells.append(found.cell(policy, environment, runs, 20_000, seed=5))
        print(f"| {name} | {cells[0]} | {cells[1]} |", flush=True)


@dataclass(frozen=True)
class BudgetCase:
    """Arms, parameters θ that are played equally often, noise, rounds, runs, and what to call them."""

    name: str
    arms: ArmSet
    thetas: tuple[NDArray[np.float64], ...]
    noise: Noise
    budget: int
    runs: int


def both_ways(width: int, angle: float) -> tuple[ArmSet, tuple[NDArray[np.float64], ...]]:
    """Return nearly parallel arms, with one or the other of the two as the best.

    A method that a shift always drives to one of them would look perfect on half of these, or fooled.
    """
    arms, theta = near_parallel(width, angle)
    return arms, (theta, 2 * arms.features[-1])


def budget_cases() -> tuple[BudgetCase, ...]:
    """Return the instances of fixed budgets."""
    normal = Gaussian(1.0)
    arc, theta = many_arms(100)
    means = np.array([0.3, 0.2, 0.1, 0.0])
    return (
        BudgetCase("nearly parallel, d = 10, angle .1", *both_ways(10, 0.1), normal, 1010, 1000),
        BudgetCase("small gap, d = 10, angle .2", *both_ways(10, 0.2), normal, 10_000, 400),
        BudgetCase("many arms, K = 100, d = 2", arc, (theta,), normal, 500, 100),
        BudgetCase("four arms, σ = ½", ArmSet.one_hot(4), (means,), Gaussian(0.5), 1000, 1000),
    )


# LinLUCB's epochs are 5 % of the budget.
BUDGETS: dict[str, Callable[[int], Policy[Any]]] = {
    "OD-LinBAI": ODLinBAI,
    "G-BAI": GBAI,
    "Peace": Peace,
    "P1-Peace": P1Peace,
    "Adjacent-BAI": AdjacentBAI,
    "LinLUCB, no features": lambda budget: LinLUCB(budget, max(budget // 20, 2)),
    "P1-RAGE, lifted": P1RAGE,
    "SP-BAI, cut": BudgetedSPBAI,
    "**FixedBudget**": FixedBudget,
    "**AnytimeElimination**, its leader": lambda _: AnytimeElimination(0.1),
}


def print_budget(share: int, found: Cells) -> None:
    """Print how often policies with a fixed budget err, under three levels."""
    levels: dict[str, Shift] = {"ν = 0": Constant(0.0), "ν¹": Sine(), "+.3 in 1,000": Trend(0.3 / 1000)}
    for case in budget_cases():
        runs = case.runs // share
        print(f"\n{case.name}: wrong after {case.budget:,} rounds, {runs} runs\n")
        print(f"| policy | {' | '.join(levels)} |\n|---|{'---:|' * len(levels)}", flush=True)
        for name, make in BUDGETS.items():
            if not found.wants(name):
                continue
            policy = make(case.budget)
            cells = []
            for level in levels.values():
                worlds = [Environment(case.arms, theta, level, case.noise) for theta in case.thetas]
                cells.append(found.wrong(policy, worlds, runs, case.budget))
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def print_instance(part: str) -> Callable[[int, Cells], None]:
    """Return what prints the table of one instance."""
    return lambda share, found: print_case(part, share, found)


PARTS: dict[str, Callable[[int, Cells], None]] = {
    "angle": print_instance("angle"),
    "smallest-angle": print_smallest_angle,
    "many-arms": print_instance("many-arms"),
    "small-gap": print_instance("small-gap"),
    "trend": print_trend,
    "budget": print_budget,
}


def main(arguments: list[str] | None = None) -> None:
    """Print the tables that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="a fifth of the runs")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="JSON file of finished cells")
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="TEXT", help="rows whose name has one of these"
    )
    options = parser.parse_args(arguments or [])
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    start = time.process_time()
    for part in options.parts or PARTS:
        PARTS[part](5 if options.quick else 1, Cells(options.keep, tuple(options.only)))
    print(f"\nseed {SEED}; {time.process_time() - start:.0f} s of CPU")


if __name__ == "__main__":
    main(sys.argv[1:])
