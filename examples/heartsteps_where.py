"""Does the effect of a suggestion to walk depend on where a person is? HeartSteps V1, by `analyse` alone.

The cleaned table has one column about places, `travel`, and it is false in every row: **the question cannot
be answered from it**. What the table knows before a draw is when, and how much somebody walked in the half
hour before. `python examples/heartsteps_where.py` counts the rows, then asks whether the effect depends on
these, and what sending at some times only would have gained. Decision points at which nobody was available
are kept: only one arm could be drawn there, which the analysis says and counts as such.

The data (klasnja/HeartStepsV1, CC BY 4.0) are read from ../shared/data beside the repository, or from where
the environment variable HEARTSTEPS says.
"""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from orthobandit.logs import Analysis, analyse

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("HEARTSTEPS", ROOT.parent / "shared" / "data" / "heartsteps_v1.csv"))
SENT = 0.6  # probability of a suggestion where somebody was available
RULES = {
    "in the day": "sent if slot <= 3 else none",
    "in the first fortnight": "sent if day < 14 else none",
    "after sitting": "sent if before < 2 else none",
}


def decisions(path: Path = DATA) -> pa.Table:
    """Return all decision points, with the probabilities of both arms."""
    rows = csv.read_csv(path)
    available = rows["avail"].to_numpy(zero_copy_only=False)
    p = np.where(available, SENT, 0.0)
    return pa.table(
        {
            "at": rows["sugg.select.utime"],
            "arm": np.where(rows["send"].to_numpy(zero_copy_only=False), "sent", "none"),
            "steps": rows["jbsteps30.log"],
            "p:none": 1.0 - p,
            "p:sent": p,
            "travel": rows["travel"],
            "slot": rows["sugg.select.slot"],
            "day": rows["study.day.nogap"],
            "before": rows["jbsteps30pre.log"],
        }
    )


def judge(rows: pa.Table) -> Analysis:
    """Return what the log says of rules, and of effects by context."""
    return analyse(
        rows,
        arm="arm",
        reward="steps",
        time="at",
        bucket="day",
        probabilities=["p:none", "p:sent"],
        context=["slot", "day", "before"],
        rules=RULES,
    )


def main() -> None:
    """Print how many travelled, and both tables."""
    if not DATA.exists():
        print(f"{DATA} is not there: set HEARTSTEPS to the path of heartsteps_v1.csv")
        return
    rows = decisions()
    travelled = int(np.sum(rows["travel"].to_numpy(zero_copy_only=False)))
    print(f"travelling in {travelled} of {len(rows):,} decision points")
    personal = judge(rows).personal
    if personal is None:
        raise AssertionError("a context was given")
    print(f"one arm only in {personal.one_arm_rows:,}\n")
    print("| send | gain over never, log steps | at all times | decision points |")
    print("|---|---:|---|---:|")
    for rule in personal.rules[1:]:
        low, high = rule.interval
        print(f"| {rule.name} | {rule.estimate:.3f} | {low:.3f} to {high:.3f} | {rule.changed:,} |")
    print("\n| effect of sending | log steps | at all times |")
    print("|---|---:|---|")
    for one in personal.effects:
        low, high = one.interval
        name = "all columns 0" if one.column is None else f"per unit of {one.column}"
        print(f"| {name} | {one.estimate:.3f} | {low:.3f} to {high:.3f} |")


if __name__ == "__main__":
    main()
