"""Rounds to the declaration with this version and with an earlier one, on the same seeds.

``python -m benchmarks.bench_power --before PATH`` prints the table of docs/measured.md; PATH is a checkout of
the earlier version (``git worktree add PATH COMMIT``). Without it only this version is measured. Each version
runs in a process of its own, by this file, so that only names that both have are used. A ratio's standard
error counts what runs of the same number have in common: their noise comes from the same streams.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve()
RUNS = 400
SEED = 4242
SMALL_GAP_DELTA = 0.1
AB_DELTA = 0.05
RATES = (0.05, 0.055)
LONGEST = 2_000_000  # rounds at which a run is given up, and counted as so long


def measure(runs: int, seed: int) -> dict[str, Any]:
    """Return the version that is imported and, for each case, the rounds (R,) and the wrong declarations."""
    import orthobandit
    from orthobandit import AnytimeElimination, ArmSet, Asymptotic, Bounded, Environment, SubGaussian
    from orthobandit.simulation import Bernoulli, Constant, Sine, near_degenerate, simulate

    small_gap = near_degenerate(shift=Sine())
    pages = Environment(ArmSet.one_hot(2), RATES, Constant(), Bernoulli())
    # Means of the small gap lie in [0, 4] under ν¹.
    cases = {
        "small gap, ν¹, δ = 0.1, asymptotic": (small_gap, SMALL_GAP_DELTA, Asymptotic()),
        "the same, sub-Gaussian exact": (small_gap, SMALL_GAP_DELTA, SubGaussian(0.0, 4.0)),
        "5 % and 5.5 %, δ = 0.05, asymptotic": (pages, AB_DELTA, Asymptotic()),
        "the same, exact": (pages, AB_DELTA, Bounded(0.0, 1.0)),
    }
    found = {}
    for name, (world, delta, confidence) in cases.items():
        result = simulate(
            AnytimeElimination(delta, confidence=confidence),
            world,
            horizon=LONGEST,
            replications=runs,
            seed=seed,
            stop_when_declared=True,
        )
        declared = np.asarray(result.decision.declared)
        found[name] = {
            "rounds": np.where(result.stop_times < 0, LONGEST, result.stop_times).tolist(),
            "wrong": int(np.count_nonzero((declared >= 0) & (declared != world.best))),
        }
    return {"version": orthobandit.__version__, "cases": found}


def measure_tree(tree: Path, runs: int, seed: int) -> dict[str, Any]:
    """Measure the package in a checkout, in a process that imports it from there."""
    source = tree / "src"
    if not (source / "orthobandit").is_dir():
        raise SystemExit(f"--before {tree} has no src/orthobandit; give a checkout of an earlier version")
    command = [sys.executable, str(HERE), "--measure", "--runs", str(runs), "--seed", str(seed)]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    answer = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(answer.stdout))


def ratio_of_means(after: np.ndarray, before: np.ndarray) -> tuple[float, float]:
    """Return mean(after)/mean(before) and its standard error, for runs (R,) that come in pairs.

    To first order the ratio ρ scatters like the mean of after − ρ·before, over mean(before).
    """
    ratio = float(after.mean() / before.mean())
    scatter = float(np.std(after - ratio * before, ddof=1))
    return ratio, scatter / np.sqrt(after.size) / float(before.mean())


def mean_words(case: dict[str, Any]) -> str:
    """Return the mean, its standard error and the wrong declarations of a case."""
    rounds = np.array(case["rounds"], dtype=np.float64)
    error = rounds.std(ddof=1) / np.sqrt(rounds.size)
    return f"{rounds.mean():,.0f} ± {error:,.0f}, {case['wrong']} wrong"


def main(arguments: list[str] | None = None) -> None:
    """Print a row for each case, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", type=Path, metavar="PATH", help="checkout of an earlier version")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each case")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments or [])
    if options.measure:
        json.dump(measure(options.runs, options.seed), sys.stdout)
        return
    trees = [HERE.parents[1]] if options.before is None else [options.before, HERE.parents[1]]
    measured = [measure_tree(tree.resolve(), options.runs, options.seed) for tree in trees]
    names = ["before", "now"][-len(measured) :]  # an unreleased tree still has the last release's version
    heads = [f"{name} ({one['version']})" for name, one in zip(names, measured, strict=True)]
    if options.before:
        heads.append("now / before")
    print(f"mean rounds ± s.e., {options.runs} runs, seed {options.seed}")
    print("| case |", " | ".join(heads), "|")
    print("|---|" + "---:|" * len(heads))
    for name in measured[-1]["cases"]:
        cases = [one["cases"][name] for one in measured]
        cells = [mean_words(case) for case in cases]
        if options.before:
            before, after = (np.array(case["rounds"], dtype=np.float64) for case in cases)
            ratio, error = ratio_of_means(after, before)
            cells.append(f"{ratio:.3f} ± {error:.3f}")
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
