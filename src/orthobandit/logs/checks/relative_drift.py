"""Do ratios and lifts drift? Intervals before and after dyadic splits, over the same rounds for both arms."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orthobandit.estimate.health.constancy import FIRST, level_of
from orthobandit.logs.cells import Cells
from orthobandit.logs.checks.drift import ALPHA
from orthobandit.logs.effects.joint import Joint, JointSums, PairPath, series_of
from orthobandit.logs.effects.lifts import gap_and_level, lift_at_all_times
from orthobandit.logs.effects.ratios import RatioScores, difference_of_ratios
from orthobandit.logs.follow import MOST_PAIRED, Follower
from orthobandit.logs.results import Diagnostic, Interval
from orthobandit.logs.when import when

SIDES = 2
Measured = Callable[[JointSums, float], Interval]


@dataclass(frozen=True)
class Change:
    """Something that was not the same before and after: its intervals, and the last step before the split."""

    step: int
    before: tuple[float, float]
    after: tuple[float, float]

    @property
    def size(self) -> float:
        """How far the intervals are apart."""
        return max(self.after[0] - self.before[1], self.before[0] - self.after[1])


def find_change(joint: Joint, path: PairPath, ends: Measured, arms: int) -> tuple[Change | None, int]:
    """Return the largest change of something between two arms, and how many splits could be judged.

    After 64 rows and each time that their number has doubled, the interval so far is compared with that of
    all rows after it. Both hold at all times at once; all splits share ALPHA as those of gaps do.

    Parameters
    ----------
    joint : Joint
    path : PairPath
    ends : callable
        Returns the interval of what is looked at, from sums and a δ.
    arms : int
        How many arms are looked at so.
    """
    found: Change | None = None
    judged = 0
    for number, step in enumerate(split_steps(joint)):
        delta = SIDES * float(level_of(ALPHA, number, arms)[0])
        parts = path.at(step), path.since(step)
        if min(float(part.weights) for part in parts) <= 0:
            continue
        (low, high), (later_low, later_high) = (ends(part, delta) for part in parts)
        if low is None or high is None or later_low is None or later_high is None:
            continue
        judged += 1
        change = Change(step, (low, high), (later_low, later_high))
        if change.size > (0.0 if found is None else found.size):
            found = change
    return found, judged


def split_steps(joint: Joint) -> list[int]:
    """Return the steps at whose ends a log is split; the last has nothing after it."""
    out = list[int]()
    enough = FIRST
    for step, rows in enumerate(joint.rows[:-1].tolist()):
        if rows >= enough:
            out.append(step)
            enough = 2 * rows
    return out


def constant_ratios(name: str, scores: RatioScores) -> Diagnostic:
    """Tell whether the difference of a ratio between arms drifts; see `find_change`."""
    cells = scores.cells
    reference = scores.measure.reference
    joint = scores.joint
    reason = f"cannot be told from {cells.rows:,} rows"
    if len(cells.arms) > MOST_PAIRED:
        reason = f"is not checked with more than {MOST_PAIRED} arms"
    words = f"Whether differences of {name!r} drift {reason}."
    unknown = Diagnostic("constant ratios", "note", words, details={"metric": name})
    if joint is None or len(cells.arms) > MOST_PAIRED:
        return unknown
    others = [arm for arm in range(len(cells.arms)) if arm != reference]

    def ends(sums: JointSums, delta: float) -> Interval:
        return difference_of_ratios(scores.region(sums, delta, once=False))

    splits = 0
    for arm in others:
        change, judged = find_change(joint, joint.pair(arm, reference), ends, len(others))
        splits = max(splits, judged)
        if change is not None:
            what = f"the difference of {name!r}, {_over(cells, arm, reference)}, was"
            return _alarm("constant ratios", cells, joint, change, what, "{:.4g}")
    if not splits:
        return unknown
    words = (
        f"No difference of {name!r} drifts as far as {cells.rows:,} rows tell: before and after {splits}"
        " points in time, intervals overlap."
    )
    return Diagnostic("constant ratios", "fine", words, details={"metric": name, "splits": splits})


def constant_lift(follower: Follower, label: str) -> Diagnostic | None:
    """Tell whether the lift of an arm drifts, for one whose gap does; None if that cannot be judged.

    A lift that moves because the level does, while the gap is constant, is no sign of anything: this is asked
    only where the gap itself has changed.
    """
    cells = follower.cells
    reference = follower.measure.reference
    has_features = cells.arms.dimension < len(cells.arms) - 1
    if has_features or not follower.centres:
        return None
    arm = cells.arms.index(label)
    joint = Joint(cells, series_of(follower))
    path = joint.pair(arm, reference).mapped(gap_and_level(joint))
    change, judged = find_change(joint, path, lift_at_all_times, len(cells.arms) - 1)
    if change is not None:
        what = f"the lift of {_over(cells, arm, reference)} was"
        return _alarm("constant lifts", cells, joint, change, what, "{:+.1%}")
    if not judged:
        return None
    words = (
        f"The lift of {_over(cells, arm, reference)} does not drift as far as {cells.rows:,} rows tell,"
        " although its gap does: the arm may multiply rewards, and one lift then stands for all times."
    )
    return Diagnostic("constant lifts", "note", words, details={"arm": label, "splits": judged})


def _over(cells: Cells, arm: int, reference: int) -> str:
    return f"{cells.arms.labels[arm]!r} over {cells.arms.labels[reference]!r}"


def _alarm(name: str, cells: Cells, joint: Joint, change: Change, what: str, form: str) -> Diagnostic:
    """Return the alarm of a change."""
    split = float(cells.times[joint.buckets[change.step]]) + cells.width
    (low, high), (later_low, later_high) = (
        tuple(form.format(end) for end in ends) for ends in (change.before, change.after)
    )
    words = (
        f"Effects change with time: {what} between {low} and {high} until {when(cells, split)}, and between"
        f" {later_low} and {later_high} after it. What is shown is the average over all rows, and need not"
        " stand for either."
    )
    details = {
        "before": list(change.before),
        "after": list(change.after),
        "split": split,
        "rows_before": int(joint.rows[change.step]),
        "rows": int(np.sum(joint.rounds)),
    }
    return Diagnostic(name, "alarm", words, details=details)
