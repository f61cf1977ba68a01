"""`orthobandit simulate`: policies on an instance whose baseline moves."""

import argparse
import json
import math
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit._foundation.checks import MAX_DELTA, advise_on_delta, check_whole
from orthobandit._foundation.files import check_folder, write_text
from orthobandit._foundation.frames import write_columns
from orthobandit._foundation.registry import maker_of, parse_named, settings_of
from orthobandit.arms import ArmSet
from orthobandit.cli._durations import LONGEST_HOURS, MANY_ROUNDS, expected_seconds, time_in_words
from orthobandit.cli._output import from_here, guide, offer, store_files, whole
from orthobandit.cli._progress import bar
from orthobandit.errors import Argument, InputError, InputWarning, ParameterError
from orthobandit.peers import POLICIES, named_policy, needs_horizon, policy_settings, range_settings
from orthobandit.policy import FOREVER, Policy
from orthobandit.reproduction import charts
from orthobandit.showing.charts import blank_figure, save_figure
from orthobandit.simulation import (
    INSTANCES,
    NOISES,
    SHIFTS,
    Environment,
    RunResult,
    compare,
    comparison_table,
    named_instance,
    named_noise,
    named_shift,
    simulate,
    within,
)
from orthobandit.simulation.runner import MAX_REPLICATIONS, seconds_a_round

FLAGS = (
    "delta",
    "expect",
    "schedule",
    "scale",
    "design",
)  # settings that a flag gives to every policy that has them
# Arguments of the library and the flags that give them.
MEANT = {"count": "arms", "limit": "bound", "seed": "instance_seed"}
CURVE_POINTS = 200
RUN_PARTS = 20  # parts of a run: the bar moves so often, and an interruption loses at most one of them


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
    group.add_argument("--expect", type=float, metavar="GAP", help="gap to the second-best arm to count on")
    group.add_argument("--schedule", help="phase lengths: experiments, theory, adaptive or successor")
    group.add_argument("--scale", type=float, help="factor on the phase lengths of --schedule experiments")
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
    group.add_argument(
        "--yes", action="store_true", help=f"run even if it takes more than {LONGEST_HOURS:g} hours"
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
    # Before the time is estimated: a number that cannot be run is a slip, whatever it would take.
    check_whole("replications", options.replications, most=MAX_REPLICATIONS)
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
    if options.horizon * options.replications > MANY_ROUNDS and not options.yes:
        _refuse_to_take_for_ever(options, environment, policies)
    results = _results(options, environment, policies)
    rows = compare(results)
    report = {
        "environment": environment.describe(),
        "horizon": options.horizon,
        "replications": options.replications,
        "seed": options.seed,
        "policies": rows,
    }
    files, failure = store_files(
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
    """Return the policies by the text that named them; raise if a flag applies to none of them."""
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
            # What stands after the colon wins over a flag for all policies.
            policies[text] = named_policy(name, **(shared | own | known))
        except InputError as error:
            if own:
                raise ParameterError(f"--policy {text}: {error}") from None
            raise
        delta = getattr(policies[text], "delta", None)
        if name in POLICIES and delta is not None and delta > MAX_DELTA:
            warnings.warn(f"delta {delta:g} of {text} {advise_on_delta(delta)}", InputWarning, stacklevel=1)
    if unused:
        raise ParameterError(f"--{min(unused)} has no meaning for {', '.join(wanted)}; leave it out")
    return policies


def _refuse_to_take_for_ever(
    options: argparse.Namespace, environment: Environment, policies: Mapping[str, Policy[Any]]
) -> None:
    for name, policy in policies.items():
        seconds = expected_seconds(policy, environment, options.horizon)
        hours = seconds * options.replications / max(options.jobs, 1) / 3600
        if hours > LONGEST_HOURS:
            raise ParameterError(
                f"--horizon {options.horizon:,} with {options.replications:,} replications would take {name}"
                f" about {time_in_words(hours)}; lower one of them, or add --yes"
            )


def _results(
    options: argparse.Namespace, environment: Environment, policies: Mapping[str, Policy[Any]]
) -> dict[str, RunResult]:
    """Simulate all policies, in batches so that the progress bar moves; return results by policy."""
    results: dict[str, RunResult] = {}
    marks = np.linspace(0, max(options.horizon, 1), CURVE_POINTS + 1)[1:]
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
                    batch=_batch_size(options),
                )
    except KeyboardInterrupt:
        advice = (
            "run the same command again to go on" if options.resume else "--resume DIR keeps what is done"
        )
        print(f"stopped on the way; {advice}", file=sys.stderr)
        raise
    return results


def _batch_size(options: argparse.Namespace) -> int:
    """Return how many replications run side by side, so that there are parts to resume from."""
    size: int = options.replications // (RUN_PARTS * max(options.jobs, 1))
    # 64 as in the library: more side by side bring no speed.
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
    """Check before a long run that its results can be written."""
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
    """Write one Parquet file per policy, the summary and the plot; yield the paths as they are written."""
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


# What is simulated: arms and θ, the shift of the baseline, the noise.

# Options, and the setting of an instance that each gives.
OPTIONS = {"dimension": "dimension", "arms": "count", "gap": "gap", "angle": "angle", "means": "means"}


def add_instance_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that :func:`chosen_environment` reads."""
    group = parser.add_argument_group("instance")
    instance = group.add_argument(
        "--instance", help=f"arms and θ: {', '.join(INSTANCES)} (default exact-gap)"
    )
    group.add_argument("--dimension", type=whole, metavar="D", help="number of features")
    group.add_argument("--arms", type=whole, metavar="K", help="number of arms")
    group.add_argument("--gap", type=float, help="lead of the best arm (exact-gap, one-hot)")
    group.add_argument("--angle", type=float, help="angle to the second-best arm (near-degenerate)")
    group.add_argument("--means", type=float, nargs="+", metavar="MEAN", help="one per arm (one-hot)")
    group.add_argument(
        "--instance-seed", type=whole, metavar="SEED", help="random seed of the arms (default: --seed)"
    )
    group.add_argument("--arms-file", metavar="FILE", help="table of arms (.csv, .tsv, .parquet) instead")
    group.add_argument("--theta", type=float, nargs="+", metavar="NUMBER", help="θ for --arms-file")
    shift = group.add_argument(
        "--shift", default="none", help=f"baseline: {', '.join(SHIFTS)} (default none)"
    )
    group.add_argument(
        "--bound",
        type=float,
        nargs="?",
        const=1.0,
        metavar="LIMIT",
        help="limit the shift to |ν| ≤ LIMIT (1 if not given), as the guarantees require",
    )
    noise = group.add_argument("--noise", default="gaussian", help=f"{', '.join(NOISES)} (default gaussian)")
    for action, names in ((instance, INSTANCES), (shift, SHIFTS), (noise, NOISES)):
        offer(action, names)


def chosen_environment(options: argparse.Namespace) -> Environment:
    """Return the environment that the options describe."""
    shift_name, shift_settings = parse_named(options.shift)
    shift = named_shift(shift_name, **shift_settings)
    if options.bound is not None:
        shift = within(shift, options.bound)
    noise_name, noise_settings = parse_named(options.noise)
    noise = named_noise(noise_name, **noise_settings)
    return _arms_and_theta(options).moved(shift, noise)


def _arms_and_theta(options: argparse.Namespace) -> Environment:
    given = {option: value for option in OPTIONS if (value := getattr(options, option)) is not None}
    if options.arms_file is not None:
        for option in ("instance", *given):
            if getattr(options, option) is not None:
                raise ParameterError(f"--{option} has no meaning beside --arms-file; leave it out")
        if options.theta is None:
            raise ParameterError("--arms-file says nothing about rewards; give --theta, a number per feature")
        arms = ArmSet.read(options.arms_file)
        if len(options.theta) != arms.features.shape[1]:
            raise ParameterError(
                f"--theta has {len(options.theta)} numbers for {arms.features.shape[1]} features of"
                f" {options.arms_file}; give a number per feature, in the order of the columns"
            )
        return Environment(arms, options.theta)
    if options.theta is not None:
        raise ParameterError("--theta is for --arms-file; the built-in instances have their own θ")
    name, own = parse_named(options.instance or "exact-gap")
    valid = settings_of(maker_of("instance", INSTANCES, name))
    if name == "one-hot":
        return named_instance(name, **({"means": _means(given)} | own))
    settings: dict[str, Any] = {}
    for option, value in given.items():
        if OPTIONS[option] not in valid:
            raise ParameterError(f"--{option} has no meaning for --instance {name}; leave it out")
        settings[OPTIONS[option]] = value
    if "seed" in valid:
        settings["seed"] = options.seed if options.instance_seed is None else options.instance_seed
    return named_instance(name, **(settings | own))


def _means(given: dict[str, Any]) -> list[float]:
    """Return the means of one-hot arms: as listed, or `gap` for the first arm and 0 for the others."""
    listed = "means" in given
    for option in given:
        if option in {"dimension", "angle"} or (listed and option != "means"):
            beside = " beside --means" if listed else ""
            raise ParameterError(f"--{option} has no meaning for --instance one-hot{beside}; leave it out")
    if listed:
        return list(given["means"])
    count = given.get("arms", 10)
    gap = given.get("gap", 0.5)
    if not math.isfinite(gap):
        raise ParameterError(Argument("gap", gap), " must be finite")
    check_whole("count", count)
    return [gap] + [0.0] * (count - 1)
