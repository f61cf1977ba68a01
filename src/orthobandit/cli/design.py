"""`orthobandit design`: from a table of arms to a certified design."""

import argparse
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orthobandit.arms import ArmSet
from orthobandit.cli._bars import counter
from orthobandit.design import (
    Design,
    anchor_design,
    centred_design,
    contrast_design,
    g_optimal_design,
)
from orthobandit.design.base import PAIRS_SHOWN
from orthobandit.errors import FileFormatError, ParameterError
from orthobandit.theory import error_rounds, pac_rounds

METHODS: dict[str, Callable[..., Design]] = {
    "centred": centred_design,
    "anchor": anchor_design,
    "contrast": contrast_design,
    "g-optimal": g_optimal_design,
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.description = (
        "Find how often to play each arm so that differences between arms are estimated as well as"
        " possible, whatever the baseline does."
    )
    parser.epilog = "example: orthobandit design arms.csv --method centred --epsilon 0.1 --delta 0.05"
    parser.add_argument("arms", metavar="ARMS", help="table of arms: .csv, .tsv or .parquet, one row an arm")
    parser.add_argument("--label", metavar="COLUMN", help="column of labels (found by itself by default)")
    parser.add_argument(
        "--features", metavar="COLUMN", nargs="+", help="feature columns (default: all others)"
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        default="centred",
        help="centred: the exact optimum (default); anchor: the paper's DEO; contrast: best for the worst"
        " pair of arms; g-optimal: classical, for a baseline that does not move",
    )
    parser.add_argument("--reference", metavar="LABEL", help="arm to compare with (anchor, contrast)")
    parser.add_argument("--gap", type=float, help="certified tolerance (default 1e-6; 1e-4 for contrast)")
    parser.add_argument("--epsilon", type=float, default=0.1, help="accuracy wanted (default %(default)s)")
    parser.add_argument("--delta", type=float, default=0.05, help="failure probability (default %(default)s)")
    parser.add_argument("--top", type=int, default=10, help="arms to list (default %(default)s)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument("--out", metavar="FILE", help="also write the design to FILE (.json or .csv)")


def run(options: argparse.Namespace) -> None:
    """Design, print, and write."""
    arms = ArmSet.read(options.arms, label=options.label, features=options.features)
    settings: dict[str, Any] = {} if options.gap is None else {"gap": options.gap}
    if options.reference is not None:
        if options.method not in {"anchor", "contrast"}:
            raise ParameterError(f"--reference has no meaning for --method {options.method}; leave it out")
        settings["reference"] = arms.index(options.reference)
    with counter("pass", "gap") as progress:
        design = METHODS[options.method](arms, progress=progress, **settings)
    rounds = _rounds(design, options.epsilon, options.delta)
    report = {**design.to_json(), "epsilon": options.epsilon, "delta": options.delta, "rounds": rounds}
    if options.out is not None:
        _write(Path(options.out), design, report)
    if options.json:
        print(json.dumps(report, indent=2, allow_nan=False, ensure_ascii=False))
        return
    print(design.describe(options.top))
    print(f"rounds by the paper's bounds, for ε = {options.epsilon:g} and δ = {options.delta:g}")
    for name, value in rounds.items():
        print(f"  {name:<42}{'never' if value is None else format(value, ','):>14}")
    print("  (the paper leaves its constants open: these sizes are for comparison)")


def _rounds(design: Design, epsilon: float, delta: float) -> dict[str, int | None]:
    arms = design.arms
    r, count = max(arms.dimension, 1), len(arms)
    pairs = design.contrast_norm if count <= PAIRS_SHOWN else 2 * design.centred_norm
    return {
        "Theorem 4 with this design, C₁ = 1": error_rounds(
            epsilon, pairs**2, design.centred_norm**2, delta / count, r
        ),
        "Corollary 5 (anchor design), C₂ = 1": pac_rounds(epsilon, delta, r, count),
        "its form without K, C₃ = 1": pac_rounds(epsilon, delta, r),
    }


def _write(path: Path, design: Design, report: dict[str, Any]) -> None:
    if path.suffix == ".json":
        path.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as lines:
            writer = csv.writer(lines)
            writer.writerow(["label", "probability"])
            for i in design.support:
                writer.writerow([design.arms.labels[i], repr(float(design.probabilities[i]))])
    else:
        raise FileFormatError(f"{path} ends in {path.suffix!r}; write to .json or .csv")
