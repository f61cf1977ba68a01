"""Is a log what an analysis takes it for? Checks that are made before any effect is shown."""

from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.estimate.augmented import Pulls
from orthobandit.logs.cells import Cells
from orthobandit.logs.checks.balance import missing_values, sample_ratios
from orthobandit.logs.checks.drift import DriftFound, find_drift
from orthobandit.logs.follow import Follower
from orthobandit.logs.question import Question
from orthobandit.logs.results import Diagnostic
from orthobandit.logs.when import when

BLIND = 0.1  # share of rows that cannot tell two arms apart, from which on it is worth a note
CAPPED = 0.01  # the same for rows that a cap has changed
BLOCK = 2_000_000  # numbers that are tabulated at a time
# shares of units in several arms: worth a note, and an alarm
SEVERAL = 0.001
MANY = 0.01


def diagnose(
    cells: Cells, question: Question, follower: Follower, units: Any = None
) -> tuple[Diagnostic, ...]:
    """Check a log before effects are shown; each check has one sentence, a status and the numbers behind it.

    - Sample ratio: do arms come up as often as the probabilities say, overall and in each segment?
    - Missing: are values missing from some arms more than from others?
    - Constant gaps: does a gap between arms change with time? Everything rests on gaps that do not.
    - Blind buckets: how many rows could not tell an arm from the reference arm?
    - Capped: how many values were cut, by arm; for metrics with a cap.
    - Units: how many were seen in several arms; if `units` are given.

    Parameters
    ----------
    cells : Cells
    question : Question
        Its `caps` are used.
    follower : Follower
        Of the reward.
    units : object, optional
        With `units`, `rows` and `in_several_arms`: how many there are, and units that were in several arms.
    """
    found = [*sample_ratios(cells), *missing_values(cells)]
    found += [constant_gaps(cells, follower), blind_buckets(cells, follower.measure.reference)]
    found += _capped(cells, question)
    if units is not None:
        found.append(_units(int(units.units), int(units.rows), int(units.in_several_arms)))
    return tuple(found)


def constant_gaps(cells: Cells, follower: Follower) -> Diagnostic:
    """Tell whether gaps of a metric that was followed drift over the reference arm."""
    name = "constant gaps"
    reference = follower.measure.reference
    if len(cells.times) < 2:
        return Diagnostic(name, "note", "Whether gaps drift cannot be checked: all rows are in one bucket.")
    others = [arm for arm in range(len(cells.arms)) if arm != reference]
    found, splits = find_drift(follower.snapshots, others, reference)
    if found is not None:
        return _drifted(cells, found)
    if not splits:
        return Diagnostic(name, "note", f"Whether gaps drift cannot be told from {cells.rows:,} rows.")
    words = (
        f"No gap drifts as far as {cells.rows:,} rows tell: before and after {splits} points in time,"
        " intervals overlap."
    )
    return Diagnostic(name, "fine", words, details={"splits": splits})


def _drifted(cells: Cells, found: DriftFound) -> Diagnostic:
    drift = found.drift
    labels = cells.arms.labels
    split, seen = (float(cells.times[bucket]) + cells.width for bucket in (found.split, found.seen))
    (low, high), (later_low, later_high) = drift.before, drift.after
    words = (
        f"The model is violated: the gap of {labels[drift.arm]!r} over {labels[drift.reference]!r} was"
        f" between {low:.4g} and {high:.4g} until {when(cells, split)}, and between {later_low:.4g} and"
        f" {later_high:.4g} after it, as seen at {when(cells, seen)}. One number cannot stand for both."
    )
    details = {
        "arm": labels[drift.arm],
        "over": labels[drift.reference],
        "before": list(drift.before),
        "after": list(drift.after),
        "split": split,
        "found": seen,
        "rows_before": drift.split,
        "rows": drift.found,
    }
    return Diagnostic("constant gaps", "alarm", words, details=details)


def blind_buckets(cells: Cells, reference: int) -> Diagnostic:
    """Tell how many rows are from plans that cannot tell some arm from the reference arm."""
    rows = np.bincount(cells.plan, cells.counts, minlength=len(cells.plans)).astype(np.float64)
    blind = ~_known(cells, reference)
    total = max(float(rows.sum()), 1.0)
    shares = rows @ blind / total
    share = float(rows @ np.asarray(blind.any(axis=1))) / total
    some = np.asarray(blind.any(axis=1))
    by_cell = some[cells.plan] & (cells.counts > 0)
    buckets = len(np.unique(cells.bucket[by_cell]))
    of = len(np.unique(cells.bucket))
    others = [label for arm, label in enumerate(cells.arms.labels) if arm != reference]
    never = [label for label, one in zip(others, shares, strict=True) if one >= 1.0]
    over = cells.arms.labels[reference]
    details = {"share": share, "buckets": buckets, "by_arm": dict(zip(others, shares.tolist(), strict=True))}
    if never:
        words = (
            f"The log says nothing of {', '.join(map(repr, never))}: no row was drawn from probabilities that"
            f" can tell {'it' if len(never) == 1 else 'them'} from {over!r}."
        )
        return Diagnostic("blind buckets", "alarm", words, details=details)
    if not share:
        return Diagnostic(
            "blind buckets", "fine", f"Every row can tell all arms from {over!r}.", details=details
        )
    worst = int(np.argmax(shares))
    words = (
        f"{share:.1%} of rows, in {buckets:,} of {of:,} buckets, were drawn from probabilities that cannot"
        f" tell some arm from {over!r}; most often {others[worst]!r} ({shares[worst]:.1%}). They say nothing"
        " of its gap."
    )
    return Diagnostic("blind buckets", "note" if share > BLIND else "fine", words, details=details)


def _known(cells: Cells, reference: int) -> Mask:
    """Tell which plans can tell which arms from the reference arm (P, K − 1)."""
    others = [arm for arm in range(len(cells.arms)) if arm != reference]
    if cells.arms.dimension == len(cells.arms) - 1:  # arms have nothing in common
        return np.asarray((cells.plans[:, others] > 0) & (cells.plans[:, [reference]] > 0))
    contrasts = np.eye(len(cells.arms))[others] - np.eye(len(cells.arms))[reference]
    size = max(BLOCK // (len(cells.arms) * len(others)), 1)
    blocks = [
        Pulls.of(cells.arms.positions, contrasts, cells.plans[start : start + size]).known
        for start in range(0, len(cells.plans), size)
    ]
    return np.concatenate(blocks)


def _capped(cells: Cells, question: Question) -> list[Diagnostic]:
    found = []
    for name, cap in (question.caps or {}).items():
        if name not in cells.columns:
            continue
        cut = cells.capped[:, cells.columns.index(name)]
        shares = _shares(cells, cut)
        share = float(cut.sum()) / max(cells.rows, 1)
        by_arm = dict(zip(cells.arms.labels, shares.tolist(), strict=True))
        low, high = (f"{shares[arm]:.2%} with {cells.arms.labels[arm]!r}" for arm in _extremes(shares))
        words = f"{share:.2%} of the values of {name!r} were cut to {cap:g}: from {low} to {high}."
        if share > CAPPED:
            words += " Effects are on the metric as it was cut."
        status = "note" if share > CAPPED else "fine"
        found.append(
            Diagnostic("capped", status, words, details={"column": name, "cap": cap, "share": by_arm})
        )
    return found


def _shares(cells: Cells, values: Whole) -> Array:
    count = len(cells.arms)
    rows = np.bincount(cells.arm, cells.counts, minlength=count)
    return np.asarray(np.bincount(cells.arm, values, minlength=count) / np.maximum(rows, 1))


def _extremes(shares: Array) -> tuple[int, int]:
    return int(np.argmin(shares)), int(np.argmax(shares))


def _units(units: int, rows: int, several: int) -> Diagnostic:
    share = several / max(units, 1)
    details = {"units": units, "rows": rows, "several": several}
    seen = f"{several:,} of {units:,} units ({share:.2%}) were seen in several arms"
    if share > MANY:
        words = f"{seen}. Each counts for the arm it saw first, which dilutes gaps: find out why they move."
        return Diagnostic("units", "alarm", words, details=details)
    if share > SEVERAL:
        words = f"{seen}; each counts for the arm it saw first."
        return Diagnostic("units", "note", words, details=details)
    words = f"{units:,} units have {rows:,} rows; {several:,} of them were seen in several arms."
    return Diagnostic("units", "fine", words, details=details)
