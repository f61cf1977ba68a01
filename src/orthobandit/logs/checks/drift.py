"""Do gaps, ratios or lifts drift? Intervals before and after points in time that do not overlap say so.

Gaps are tested as in live experiments (:mod:`orthobandit.estimate.health.constancy`), on what was known at
the ends of buckets; ratios and lifts over the same rounds for both arms. A log is split after 64 rows and
each time that their number has doubled, and all splits share one chance of a false alarm.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.estimate import ContrastSequence
from orthobandit.estimate.confidence.boundaries import tightest_rho
from orthobandit.estimate.confidence.evidence import SUMMED, Evidence, events
from orthobandit.estimate.confidence.sequence import MOST_PAIRED
from orthobandit.estimate.follow.buckets import Follower, Snapshot
from orthobandit.estimate.follow.cells import Cells
from orthobandit.estimate.health.constancy import FIRST, Drift, ends_of, evidence_since, level_of
from orthobandit.logs.effects.effects import gap_and_level, lift_at_all_times
from orthobandit.logs.effects.joint import Joint, JointSums, PairPath, series_of
from orthobandit.logs.effects.ratios import RatioScores, difference_of_ratios
from orthobandit.logs.results import Diagnostic, Interval

ALPHA = 1e-3  # chance of a false alarm
SIDES = 2
Measured = Callable[[JointSums, float], Interval]


@dataclass(frozen=True)
class DriftFound:
    """A drift, with the last bucket before the split and the one at whose end it was found."""

    drift: Drift
    split: int
    seen: int


def find_drift(
    snapshots: Sequence[Snapshot], others: Sequence[int], reference: int, alpha: float = ALPHA
) -> tuple[DriftFound | None, int]:
    """Return the first drift of a gap that the log shows, if any, and how many splits were tried.

    As :class:`~orthobandit.estimate.health.constancy.Constancy`: after 64 rounds and each time that their
    number has doubled, at a snapshot, the intervals so far are compared with those of what follows, at every
    later snapshot, all at once; the largest residual is that of the whole log.

    Parameters
    ----------
    snapshots : sequence of Snapshot
    others : sequence of int
        The arms whose gaps come first in the sequence.
    reference : int
        The arm they are compared with.
    alpha : float
        Chance of a false alarm.
    """
    splits = _splits(snapshots)
    found: tuple[int, float, DriftFound] | None = None
    whole = _Whole.of(snapshots, len(others)) if splits else None
    for number, place in enumerate(splits):
        if whole is None:
            break
        level = level_of(alpha, number, len(others))
        low, high = whole.before(place, level)
        after_low, after_high = whole.after(place, level)
        apart = np.maximum(after_low - high, low - after_high)
        hits = np.flatnonzero((apart > 0).any(axis=1))
        if not len(hits):
            continue
        look = int(hits[0])
        later = place + 1 + look
        arm = int(np.argmax(apart[look]))
        size = float(apart[look, arm])
        # The earliest sighting counts, as somebody who looks after every bucket would have seen it.
        if found is None or (later, -size) < (found[0], -found[1]):
            before, after = snapshots[place], snapshots[later]
            drift = Drift(
                others[arm],
                reference,
                before.rows,
                after.rows,
                (float(low[arm]), float(high[arm])),
                (float(after_low[look, arm]), float(after_high[look, arm])),
            )
            found = later, size, DriftFound(drift, before.bucket, after.bucket)
    return (None if found is None else found[2]), len(splits)


def _splits(snapshots: Sequence[Snapshot]) -> list[int]:
    """Return the snapshots whose intervals are compared with what follows; the last has nothing after it."""
    out = list[int]()
    enough = FIRST
    # Doubling keeps the number of splits that share α logarithmic in the rows.
    for place, one in enumerate(snapshots[:-1]):
        if one.rows >= enough:
            out.append(place)
            enough = 2 * one.rows
    return out


@dataclass(frozen=True, eq=False)
class _Whole:
    """The evidence (S, m) at all snapshots, their scatter and largest residual (S,), and the mode."""

    evidence: Evidence
    scattered: Array
    largest: Array
    sequence: ContrastSequence

    @classmethod
    def of(cls, snapshots: Sequence[Snapshot], gaps: int) -> "_Whole":
        sequences = [one.sequence for one in snapshots]
        shape = sequences[0].evidence.totals.shape
        parts = {
            part.name: np.stack(
                [np.broadcast_to(getattr(one.evidence, part.name), shape)[:gaps] for one in sequences]
            )
            for part in fields(Evidence)
        }
        scattered, largest = (
            np.array([getattr(one.seen.sizes, name) for one in sequences])
            for name in ("scattered", "largest")
        )
        return cls(Evidence(**parts), scattered, largest, sequences[0])

    def before(self, place: int, level: Array) -> tuple[Array, Array]:
        """Return the ends (m,) up to a snapshot."""
        rho = self.sequence.tuning.rho[: len(level)]
        return ends_of(self.sequence, self.evidence.at(place), level, rho)

    def after(self, place: int, level: Array) -> tuple[Array, Array]:
        """Return the ends (S − place − 1, m) from a snapshot up to each later one."""
        split = self.evidence.at(place)
        later = self.evidence.at(slice(place + 1, None))
        seen = events(self.scattered[place + 1 :] - self.scattered[place], self.largest[place + 1 :])
        since = evidence_since(later, {name: getattr(split, name) for name in SUMMED}, seen)
        return ends_of(self.sequence, since, level, tightest_rho(split.variances, level))


@dataclass(frozen=True)
class Change:
    """A quantity that changed: its intervals before and after, and the last step before the split."""

    step: int
    before: tuple[float, float]
    after: tuple[float, float]

    @property
    def size(self) -> float:
        """How far the intervals are apart."""
        return max(self.after[0] - self.before[1], self.before[0] - self.after[1])


def find_change(joint: Joint, path: PairPath, ends: Measured, arms: int) -> tuple[Change | None, int]:
    """Return the largest change of a quantity of two arms, and how many splits could be judged.

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
        # level_of is for one side of an interval; these regions take both.
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
    """Check whether the lift of an arm drifts, given that its gap does; None if that cannot be judged.

    A lift that moves because the level does, while the gap is constant, is no sign of anything: this is asked
    only where the gap itself has changed.
    """
    cells = follower.cells
    reference = follower.measure.reference
    has_features = cells.arms.dimension < len(cells.arms) - 1
    # With features a gap is estimated from rows of other arms too, and there are no two arms alone to
    # compare.
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
        f"Effects change with time: {what} between {low} and {high} until {cells.time_words(split)}, and"
        f" between {later_low} and {later_high} after it. What is shown is the average over all rows, and"
        " need not stand for either."
    )
    details = {
        "before": list(change.before),
        "after": list(change.after),
        "split": split,
        "rows_before": int(joint.rows[change.step]),
        "rows": int(np.sum(joint.rounds)),
    }
    return Diagnostic(name, "alarm", words, details=details)
