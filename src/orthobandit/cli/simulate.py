"""`orthobandit simulate`: policies on an instance whose baseline moves."""

import argparse
import json
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.files import check_folder, write_text
from orthobandit._foundation.frames import write_columns
from orthobandit._foundation.registry import parse_named
from orthobandit.cli._instances import add_instance_options, chosen_environment
from orthobandit.cli._progress import bar
from orthobandit.cli._words import from_here, guide, offer, stored, whole
from orthobandit.errors import InputError, InputWarning, ParameterError
from orthobandit.policy import (
    FOREVER,
    POLICIES,
    Policy,
    named_policy,
    needs_horizon,
    policy_settings,
    range_settings,
)
from orthobandit.reproduction import charts
from orthobandit.showing.figure import blank_figure, save_figure
from orthobandit.simulation import Environment, RunResult, compare, comparison_table, simulate
from orthobandit.simulation.runner import seconds_a_round

FLAGS = ("delta", "schedule", "scale", "design")  # settings that a flag gives to every policy that has them
# Arguments of the library and the flags that give them.
MEANT = {"count": "arms", "limit": "bound", "seed": "instance_seed"}
MARKS = 200  # points of a curve
STEPS = 20  # parts of a run: how often the bar moves and what an interruption can lose


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Play policies against a simulated environment whose baseline moves, on the same noise, and set them"
        " side by side: regret, how often an arm was declared best and how often a wrong one, and when.",
        {
            "the paper's policy on its kind of instance": (
                "simulate --policy sbe --dimension 20 --arms 30 --gap 0.5 --shift sine"
            ),
            "two policies, one of them twice": (
                "simulate --policy sbe sbe:scale=4 anytime --shift random-walk"
            ),
            "arms of your own": (
                "simulate --arms-file arms.csv --theta 0.1 0.08 -0.04 --noise gaussian:sigma=0.2"
            ),
            "your own policy, in mine.py here": "simulate --policy anytime mine:Greedy --shift daily",
            "keep everything, in tidy Parquet files": "simulate --out results --replications 1000 --jobs 4",
        },
        [
            "Policies, instances, shifts and noise take settings after a colon: sbe:scale=4,delta=0.1,"
            " exact-gap:gap=0.3, trend:slope=1e-4. module:Name stands for your own class."
        ],
    )
    group = parser.add_argument_group("policies")
    policies = group.add_argument(
        "--policy", nargs="+", action="extend", metavar="NAME", help=f"{', '.join(POLICIES)} (default sbe)"
    )
    offer(policies, POLICIES)
    group.add_argument("--delta", type=float, help="failure probability (default: each policy's own)")
    group.add_argument("--schedule", help="phase lengths: experiments, theory or adaptive")
    group.add_argument("--scale", type=float, help="factor on the phase lengths of the experiments")
    group.add_argument("--design", help="how to explore: anchor, centred or contrast")
    add_instance_options(parser)
    group = parser.add_argument_group("run")
    group.add_argument("--horizon", type=whole, default=20_000, help="rounds (default %(default)s)")
    group.add_argument("--replications", type=whole, default=100, help="runs (default %(default)s)")
    group.add_argument("--seed", type=whole, default=0, help="random seed (default %(default)s)")
    group.add_argument("--jobs", type=whole, default=1, help="processes (default %(default)s)")
    group.add_argument(
        "--stop-when-declared", action="store_true", help="end a run when an arm is declared best"
    )
    group.add_argument("--resume", metavar="DIR", help="cache finished parts in DIR, and continue from them")
    group = parser.add_argument_group("output")
    group.add_argument("--out", metavar="DIR", help="write Parquet, JSON and a plot (PNG, SVG) to DIR")
    group.add_argument(
        "--parquet", metavar="FILE", help="write a tidy table: one row per policy, replication and round"
    )
    group.add_argument("--json", action="store_true", help="print everything as JSON")


def run(options: argparse.Namespace) -> None:
    """Simulate, print, and write."""
    from_here()
    check_whole("horizon", options.horizon, most=FOREVER - 1)
    environment = chosen_environment(options)
    policies = _policies(options, environment)
    if environment.arms.dimension == 0:
        warnings.warn(
            "no arm differs from another, so that there is nothing to find", InputWarning, stacklevel=1
        )
    if options.out is not None:
        _check_output(options.out)
    if options.parquet is not None:
        check_folder("parquet", Path(options.parquet).parent)
        RunResult.check_path(Path(options.parquet))
    results = _results(options, environment, policies)
    rows = compare(results)
    report = {
        "environment": environment.describe(),
        "horizon": options.horizon,
        "replications": options.replications,
        "seed": options.seed,
        "policies": rows,
    }
    files, failure = stored(
        lambda: chain(_written(options.out, results, report), _tidied(options.parquet, results))
    )
    if options.json:
        print(json.dumps(report | {"files": files}, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        print(f"{_title(environment)}; {options.horizon:,} rounds, {options.replications:,} replications\n")
        print(comparison_table(rows))
        if any(row["clipped_rounds"] for row in rows):
            print("\nrewards were clipped in some rounds, where the model does not hold exactly: see --json")
        if files:
            print("\nwrote " + "\n      ".join(files))
    if failure is not None:
        raise failure


def _policies(options: argparse.Namespace, environment: Environment) -> dict[str, Policy[Any]]:
    """Return the policies by what they were called; a flag must mean something to one of them."""
    wanted = options.policy or ["sbe"]
    given = {flag: getattr(options, flag) for flag in FLAGS if getattr(options, flag) is not None}
    policies = {}
    unused = set(given)
    for text in wanted:
        if text in policies:
            raise ParameterError(f"--policy {text} is given twice")
        name, own = parse_named(text)
        shared = {flag: value for flag, value in given.items() if flag in policy_settings(name)}
        unused -= set(shared)
        if needs_horizon(name):
            shared["horizon"] = options.horizon
        known = range_settings(name, shared | own, environment.noise.rewards)
        try:
            policies[text] = named_policy(name, **(shared | own | known))
        except InputError as error:
            if own:
                raise ParameterError(f"--policy {text}: {error}") from None
            raise
    if unused:
        raise ParameterError(f"--{min(unused)} has no meaning for {', '.join(wanted)}; leave it out")
    return policies


def _results(
    options: argparse.Namespace, environment: Environment, policies: Mapping[str, Policy[Any]]
) -> dict[str, RunResult]:
    results: dict[str, RunResult] = {}
    marks = np.linspace(0, max(options.horizon, 1), MARKS + 1)[1:]
    # Policies that plan every round take a thousand times as long as others.
    costs = {name: 0.05 + options.horizon * seconds_a_round(policy) for name, policy in policies.items()}
    try:
        with bar() as show:
            show(0.0, sum(costs.values()), next(iter(policies)))
            for name, policy in policies.items():

                def progress(done: float, total: float, name: str = name) -> None:
                    before = sum(costs[finished] for finished in results)
                    show(before + costs[name] * done / total, sum(costs.values()), name)

                results[name] = simulate(
                    policy,
                    environment,
                    horizon=options.horizon,
                    replications=options.replications,
                    seed=options.seed,
                    checkpoints=np.unique(np.ceil(marks).astype(np.int64)),
                    jobs=options.jobs,
                    stop_when_declared=options.stop_when_declared,
                    progress=progress,
                    resume=options.resume,
                    batch=_batch(options),
                )
    except KeyboardInterrupt:
        advice = (
            "run the same command again to go on" if options.resume else "--resume DIR keeps what is done"
        )
        print(f"stopped on the way; {advice}", file=sys.stderr)
        raise
    return results


def _batch(options: argparse.Namespace) -> int:
    size: int = options.replications // (STEPS * max(options.jobs, 1))
    return min(64, max(1, size))


def _title(environment: Environment) -> str:
    arms = environment.arms
    gaps = np.sort(environment.gaps)
    lead = f", gap {gaps[1]:.3g}" if len(gaps) > 1 else ""
    many = "s" if len(arms) > 1 else ""
    return (
        f"{len(arms)} arm{many} of dimension {arms.dimension}{lead}\n"
        f"shift {environment.shift!r}, noise {environment.noise!r}"
    )


def _check_output(folder: str) -> None:
    """Find out before a long run whether its results can be written."""
    check_folder("out", folder)
    RunResult.check_path(Path(folder) / "x.parquet")
    blank_figure()


def _tidied(path: str | None, results: Mapping[str, RunResult]) -> Iterator[Path]:
    """Write the curves of all policies below each other."""
    if path is None:
        return
    tables = {name: result.tables()["curves"] for name, result in results.items()}
    policies = [name for name, table in tables.items() for _ in table["round"]]
    columns = {
        name: [value for table in tables.values() for value in table[name]]
        for name in next(iter(tables.values()))
    }
    write_columns(path, {"policy": policies, **columns})
    yield Path(path)


def _written(out: str | None, results: Mapping[str, RunResult], report: dict[str, Any]) -> Iterator[Path]:
    """Write one Parquet file a policy, the summary and the plot; yield the paths as they are written."""
    if out is None:
        return
    folder = Path(out)
    for name, result in results.items():
        path = folder / (re.sub(r"[^\w.=-]+", "-", name) + ".parquet")
        result.write(path)
        yield path
    write_text(
        folder / "summary.json", json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    )
    yield folder / "summary.json"
    curves = [charts.Curve.of(name, result) for name, result in results.items()]
    title = "{arms} arms of dimension {dimension}, shift {shift}".format(**report["environment"])
    note = f"line: mean of {report['replications']:,} replications; band: 5 % to 95 % of them"
    yield from save_figure(charts.regret_curves(curves, title=title, note=note), folder / "regret")
