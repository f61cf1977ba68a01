"""Does a suggestion to walk raise steps, under a baseline that moves many times as much? HeartSteps V1.

In this micro-randomised trial (Klasnja et al. 2019) 37 people carried a telephone for six weeks. Five times a
day, if they were available, a suggestion was sent with probability 0.6. `python examples/heartsteps.py`
prints the results of several methods, and draws the figure of docs/heartsteps.md (needs the plots extra).

The data (klasnja/HeartStepsV1, CC BY 4.0) are read from ../shared/data beside the repository, or from where
the environment variable HEARTSTEPS says.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from pyarrow import csv
from scipy.stats import norm, t

from orthobandit.logs import analyse

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("HEARTSTEPS", ROOT.parent / "shared" / "data" / "heartsteps_v1.csv"))
FIGURE = ROOT / "docs" / "heartsteps.png"
SPLIT = {"none": 0.4, "sent": 0.6}
NONE, SENT, PLAIN = "#8a8f98", "#1f5fa8", "#b8bcc2"


@dataclass(frozen=True)
class Answer:
    """What a method says: the gap, and half-widths for one look and at all times (None if it has none)."""

    method: str
    gap: float
    once: float
    always: float | None = None


def decisions(path: Path = DATA) -> pyarrow.Table:
    """Return the decision points at which somebody was available, one row per draw, in the order of time."""
    rows = csv.read_csv(path)
    rows = rows.filter(rows["avail"]).sort_by("sugg.select.utime")
    sent = rows["send"].to_numpy(zero_copy_only=False)
    return pyarrow.table(
        {
            "time": rows["sugg.select.utime"],
            "user": rows["user"],
            "slot": rows["sugg.select.slot"],
            "suggestion": np.where(sent, "sent", "none"),
            "steps": rows["jbsteps30.log"],  # log of steps in the 30 minutes after, plus a half
            "before": rows["jbsteps30pre.log"],  # the same of the 30 minutes before
        }
    )


def difference(rows: pyarrow.Table) -> Answer:
    """Return the plain difference in means, with Welch's interval."""
    parts = [_steps(rows)[_sent(rows) == arm] for arm in (True, False)]
    errors = [float(part.var(ddof=1)) / len(part) for part in parts]
    freedom = sum(errors) ** 2 / sum(e**2 / (len(p) - 1) for e, p in zip(errors, parts, strict=True))
    gap = float(parts[0].mean() - parts[1].mean())
    return Answer("difference in means", gap, float(t.isf(0.025, freedom)) * sum(errors) ** 0.5)


def stratified(rows: pyarrow.Table, columns: list[str]) -> Answer:
    """Return differences within strata, weighted by n·n′/(n + n′); one variance for all of them."""
    keys = np.column_stack([rows[name].to_numpy() for name in columns])
    place: Whole = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    sent, steps = _sent(rows), _steps(rows)
    counts, sums = (
        [np.bincount(place, np.where(sent == arm, part, 0.0)) for arm in (True, False)]
        for part in (np.ones(len(steps)), steps)
    )
    weights = counts[0] * counts[1] / np.maximum(counts[0] + counts[1], 1.0)
    means = [total / np.maximum(count, 1.0) for count, total in zip(counts, sums, strict=True)]
    left = steps - np.where(sent, means[0][place], means[1][place])
    freedom = len(steps) - sum(int((count > 0).sum()) for count in counts)
    variance = float(left @ left) / freedom
    gap = float(weights @ (means[0] - means[1]) / weights.sum())
    half = float(norm.isf(0.025)) * (variance / weights.sum()) ** 0.5
    return Answer(f"stratified by {' and '.join(columns)}", gap, half)


def orthogonalised(rows: pyarrow.Table, bucket: str, covariates: tuple[str, ...] = ()) -> Answer:
    """Return what an analysis says, with forecasts from earlier buckets."""
    metric = analysed(rows, bucket, covariates).metrics[0]
    effect = next(one for one in metric.effects if one.arm == "sent")
    ends = [end for pair in (effect.fixed, effect.interval) for end in pair if end is not None]
    if effect.estimate is None or len(ends) < 4:
        raise ValueError("the log has too few rows")
    known = ", with steps before" if covariates else ""
    method = f"orthogonalised by {bucket}{known}"
    return Answer(method, effect.estimate, (ends[1] - ends[0]) / 2.0, (ends[3] - ends[2]) / 2.0)


def analysed(rows: pyarrow.Table, bucket: str = "hour", covariates: tuple[str, ...] = ()) -> Any:
    """Return the analysis: draws are of decision points, so that rows are the rounds."""
    return analyse(
        rows,
        arm="suggestion",
        reward="steps",
        time="time",
        split=SPLIT,
        bucket=bucket,
        covariates=covariates,
    )


def answers(rows: pyarrow.Table) -> list[Answer]:
    """Return what every method says."""
    return [
        difference(rows),
        stratified(rows, ["slot"]),
        stratified(rows, ["user", "slot"]),
        *(orthogonalised(rows, bucket) for bucket in ("hour", "day")),
        *(orthogonalised(rows, bucket, ("before",)) for bucket in ("hour", "day")),
    ]


def table(found: list[Answer]) -> str:
    """Return the answers as the table of docs/heartsteps.md."""
    lines = ["| method | gap | ± for one look | ± at all times |", "|---|---:|---:|---:|"]
    for one in found:
        always = "" if one.always is None else f"{one.always:.3f}"
        lines.append(f"| {one.method} | {one.gap:.3f} | {one.once:.3f} | {always} |")
    return "\n".join(lines)


def figure(rows: pyarrow.Table, found: list[Answer], path: Path = FIGURE) -> None:
    """Draw the level by slot of the day, and all intervals."""
    from matplotlib.figure import Figure

    panels = Figure(figsize=(9.5, 3.3), layout="constrained")
    left, right = panels.subplots(1, 2, width_ratios=(1.0, 1.9))
    slots = rows["slot"].to_numpy()
    for name, colour, arm in (("no suggestion", NONE, False), ("suggestion sent", SENT, True)):
        means = [_steps(rows)[(slots == slot) & (_sent(rows) == arm)].mean() for slot in range(1, 6)]
        left.plot(range(1, 6), means, marker="o", color=colour, label=name)
    left.set(xlabel="decision point of the day", ylabel="mean log steps, next 30 minutes", xticks=range(1, 6))
    left.legend(frameon=False, fontsize=9)
    for place, one in enumerate(reversed(found)):
        if one.always is not None:
            right.plot([one.gap - one.always, one.gap + one.always], [place] * 2, color=SENT, linewidth=1.3)
        right.plot([one.gap - one.once, one.gap + one.once], [place] * 2, color=SENT, linewidth=5, alpha=0.45)
        right.plot(one.gap, place, marker="o", color=SENT, markersize=5)
    right.axvline(0.0, color=PLAIN, linewidth=1.0, zorder=0)
    right.set_yticks(range(len(found)), [one.method for one in reversed(found)])
    right.set_xlabel("gap in log steps (thick: for one look, thin: at all times)")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    panels.savefig(path, dpi=110)


def _sent(rows: pyarrow.Table) -> NDArray[np.bool_]:
    return np.asarray(rows["suggestion"].to_numpy() == "sent")


def _steps(rows: pyarrow.Table) -> Array:
    return np.asarray(rows["steps"].to_numpy(), dtype=np.float64)


def main() -> None:
    """Print the table and draw the figure."""
    if not DATA.exists():
        print(f"{DATA} is not there: set HEARTSTEPS to the path of heartsteps_v1.csv")
        return
    rows = decisions()
    found = answers(rows)
    print(table(found))
    figure(rows, found)
    print(f"figure: {FIGURE}")


if __name__ == "__main__":
    main()
