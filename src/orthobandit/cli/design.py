"""`orthobandit design`: from a table of arms to a certified design."""

import argparse
import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_delta, check_positive, check_whole
from orthobandit._foundation.files import check_folder, whole_file, write_text
from orthobandit.arms import ArmSet
from orthobandit.cli._output import guide, store_files, whole
from orthobandit.cli._progress import bar
from orthobandit.design import DESIGNS, Design
from orthobandit.design.base import MAX_ARMS_ALL_PAIRS
from orthobandit.errors import FeatureError, FileFormatError, ParameterError
from orthobandit.policy.anytime.policy import GOALS
from orthobandit.simulation import rounds_to_plan
from orthobandit.theory import error_rounds, pac_rounds

MEANT = {"label": "reference", "replications": "runs"}  # arguments and the flags that give them
# runs of the simulation, and up to how many arms it takes seconds only
SIMULATED_RUNS = 10
MAX_SIMULATED_ARMS = 40
MAX_SIMULATED_ROUNDS = 500_000  # rounds at which a simulated run is given up
MANY_ARMS = 10_000  # arms from which on all pairs take long enough to say so


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    guide(
        parser,
        "Find how often to play each arm so that differences between arms are estimated as well as possible,"
        " whatever the baseline does; with a certificate of how close to the optimum that is, and how many"
        " rounds to plan for.",
        {
            "the exact optimum for the arms of a table": "design arms.csv",
            "rounds to find an arm within 0.2 of the best, rewards of s.d. 2": (
                "design arms.csv --epsilon 0.2 --sigma 2"
            ),
            "the same while earning": "design arms.csv --epsilon 0.2 --sigma 2 --goal earn",
            "best for comparing every arm with one": "design arms.csv --method contrast --reference plain",
            "probabilities for a program": "design arms.csv --json --out design.csv",
        },
        [
            "The table has one row per arm, a column of labels (called label, arm or name, or else the first"
            " text column) and numbers. `orthobandit init` writes a sample."
        ],
    )
    parser.add_argument("arms", metavar="ARMS", help="table of arms: .csv, .tsv or .parquet, one row per arm")
    parser.add_argument("--label", metavar="COLUMN", help="column of labels (default: detected)")
    parser.add_argument(
        "--features", metavar="COLUMN", nargs="+", help="feature columns (default: all others)"
    )
    parser.add_argument(
        "--method",
        choices=DESIGNS,
        default="centred",
        help="centred: the exact optimum (default); anchor: the paper's DEO; contrast: best for the worst"
        " pair of arms; g-optimal: classical, for a baseline that does not move",
    )
    parser.add_argument("--reference", metavar="LABEL", help="arm to compare with (anchor, contrast)")
    parser.add_argument(
        "--gap",
        type=float,
        help="largest certified distance from the optimum (default 1e-6; 1e-4 for contrast)",
    )
    parser.add_argument("--epsilon", type=float, default=0.1, help="accuracy wanted (default %(default)s)")
    parser.add_argument("--delta", type=float, default=0.05, help="failure probability (default %(default)s)")
    parser.add_argument(
        "--sigma", type=float, default=1.0, help="standard deviation of a reward (default %(default)s)"
    )
    parser.add_argument(
        "--goal",
        choices=GOALS,
        default="identify",
        help="plan rounds to find the best arm soon (default), or to earn meanwhile: arms that seem worse are"
        " played less",
    )
    parser.add_argument(
        "--expect",
        type=float,
        metavar="GAP",
        help="gap between the best arm and the second that the policy is told to expect, in the units of a"
        " reward: a hint that saves rounds if it is right within a factor of two (default: none)",
    )
    parser.add_argument(
        "--runs",
        type=whole,
        metavar="N",
        help=f"simulated runs behind the rounds to plan for (default {SIMULATED_RUNS}, none above"
        f" {MAX_SIMULATED_ARMS} arms)",
    )
    parser.add_argument(
        "--bounds", action="store_true", help="also print the paper's bounds, up to their constants"
    )
    parser.add_argument("--top", type=whole, default=10, help="arms to list (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--out", metavar="FILE", help="also write the design to FILE (.json or .csv)")


def run(options: argparse.Namespace) -> None:
    """Design, print, and write."""
    check_whole("top", options.top, least=0)
    path = None if options.out is None else _checked_output(Path(options.out))
    arms = ArmSet.read(options.arms, label=options.label, features=options.features)
    if arms.dimension == 0:
        what = "is one arm" if len(arms) == 1 else f"are {len(arms)} arms with the same features"
        raise FeatureError(f"{options.arms}: there {what}; two that differ are needed to compare")
    check_positive("epsilon", options.epsilon)
    check_delta(options.delta)
    design = _compute_design(arms, options)
    bounds = _bounds(design, options.epsilon, options.delta)
    report = {
        **design.to_json(),
        "epsilon": options.epsilon,
        "delta": options.delta,
        "sigma": options.sigma,
        "goal": options.goal,
        "expect": options.expect,
        "rounds": _rounds(arms, options),
        "bounds": bounds,
    }
    files, failure = store_files(lambda: _written(path, design, report))
    if options.json:
        print(json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False))
    else:
        _print(design, report, options)
        if files:
            print(f"\nwrote {files[0]}")
    if failure is not None:
        raise failure


def _compute_design(arms: ArmSet, options: argparse.Namespace) -> Design:
    """Return the design that the options ask for, with a progress bar while it is computed."""
    settings: dict[str, Any] = {} if options.gap is None else {"gap": options.gap}
    if options.reference is not None:
        if options.method not in {"anchor", "contrast"}:
            raise ParameterError(f"--reference has no meaning for --method {options.method}; leave it out")
        settings["reference"] = arms.index(options.reference)
    elif options.method == "contrast" and len(arms) > MANY_ARMS:
        print(f"comparing all pairs of {len(arms):,} arms may take minutes", file=sys.stderr)
    with bar(f"{options.method} design") as progress:
        return DESIGNS[options.method](arms, progress=progress, **settings)


def _rounds(arms: ArmSet, options: argparse.Namespace) -> dict[str, Any] | None:
    """Return the rounds to plan for: quantiles of simulated runs, None where runs were given up."""
    runs = (
        options.runs if options.runs is not None else SIMULATED_RUNS if len(arms) <= MAX_SIMULATED_ARMS else 0
    )
    if not check_whole("runs", runs, least=0):
        return None
    with bar("rounds to plan for") as progress:
        needed = rounds_to_plan(
            arms,
            epsilon=options.epsilon,
            delta=options.delta,
            goal=options.goal,
            sigma=options.sigma,
            expect=options.expect,
            runs=runs,
            limit=MAX_SIMULATED_ROUNDS,
            progress=progress,
        )
    levels = {"least": 0.0, "median": 0.5, "most": 1.0}
    found = {name: np.quantile(needed, level, method="higher") for name, level in levels.items()}
    return {name: int(value) if np.isfinite(value) else None for name, value in found.items()} | {
        "runs": runs,
        "limit": MAX_SIMULATED_ROUNDS,
    }


def _print(design: Design, report: dict[str, Any], options: argparse.Namespace) -> None:
    """Print the design and the rounds to plan for."""
    print(design.describe(options.top))
    rounds = report["rounds"]
    wanted = f"ε = {options.epsilon:g}, δ = {options.delta:g} and rewards of s.d. {options.sigma:g}"
    hint = "" if options.expect is None else f", expecting a gap of {options.expect:g}"
    print(f"rounds to plan for, to {options.goal} with {wanted}{hint}")
    if rounds is None:
        limit = "" if options.runs == 0 else f" for more than {MAX_SIMULATED_ARMS} arms"
        print(f"  not simulated{limit}; --runs 5 does")
    elif rounds["median"] is None:
        print(
            f"  more than {MAX_SIMULATED_ROUNDS:,}, where the simulation was given up;"
            " they grow as (s.d. / ε)²"
        )
    else:
        most = f"more than {MAX_SIMULATED_ROUNDS:,}" if rounds["most"] is None else f"{rounds['most']:,}"
        print(f"  {rounds['median']:,}   (median of {rounds['runs']} runs, {rounds['least']:,} to {most})")
        print("  anytime elimination, simulated in the hard case: no arm better than another")
        if rounds["most"] is not None:
            # Of n + 1 runs alike, each is as likely as any other to be the longest.
            alike = rounds["runs"] + 1
            print(f"  one run in {alike} takes longer still, fewer if an arm leads by ε/2 or more")
    if options.bounds:
        print("the paper's bounds, which leave their constants open: for comparison only")
        for name, value in report["bounds"].items():
            print(f"  {name:<42}{'never' if value is None else format(value, ','):>14}")


def _bounds(design: Design, epsilon: float, delta: float) -> dict[str, int | None]:
    arms = design.arms
    r = max(arms.dimension, 1)
    count = len(arms)
    pairs = design.contrast_norm if count <= MAX_ARMS_ALL_PAIRS else 2 * design.centred_norm
    return {
        "Theorem 4 with this design, C₁ = 1": error_rounds(
            epsilon, pairs**2, design.centred_norm**2, delta / count, r
        ),
        "Corollary 5 (anchor design), C₂ = 1": pac_rounds(epsilon, delta, r, count),
        "its form without K, C₃ = 1": pac_rounds(epsilon, delta, r),
    }


def _checked_output(path: Path) -> Path:
    """Check before a long computation that the design can be written."""
    if path.suffix not in {".json", ".csv"}:
        raise FileFormatError(f"--out {path} ends in {path.suffix!r}; write to .json or .csv")
    try:
        check_folder("out", path.parent)
    except ParameterError as error:
        _, *reason = error.words  # without the argument that they begin with
        raise ParameterError(f"--out {path} cannot be written: {str(path.parent)!r}", *reason) from None
    if path.is_dir():
        raise FileFormatError(f"--out {path} is a folder; name a file in it")
    return path


def _written(path: Path | None, design: Design, report: dict[str, Any]) -> Iterator[Path]:
    if path is None:
        return
    if path.suffix == ".json":
        write_text(path, json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    else:
        lines = io.StringIO(newline="")
        writer = csv.writer(lines)
        writer.writerow(["label", "probability"])
        for i in design.support:
            writer.writerow([design.arms.labels[i], repr(float(design.probabilities[i]))])
        with whole_file(path) as unfinished:
            unfinished.write_bytes(lines.getvalue().encode())
    yield path
