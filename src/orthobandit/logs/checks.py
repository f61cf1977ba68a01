"""Checks of a log, made before any effect is shown: whether the assumptions of an analysis hold.

Sample ratio, missing values, rows without information, caps, units; and whether gaps, ratios or lifts drift.
A quantity drifts if its intervals before and after a point in time do not overlap. Gaps are tested as in live
experiments (:mod:`orthobandit.estimate.health.constancy`), at the ends of buckets. Ratios and lifts are
tested over the same rounds for both arms. A log is split after 64 rows and each time that their number has
doubled, and all splits share one chance of a false alarm.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import chdtrc

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.estimate import ContrastSequence
from orthobandit.estimate.augmented import Pulls
from orthobandit.estimate.confidence.boundaries import tightest_rho
from orthobandit.estimate.confidence.evidence import SUMMED, Evidence, events
from orthobandit.estimate.confidence.sequence import MOST_PAIRED
from orthobandit.estimate.follow import row_sums
from orthobandit.estimate.follow.buckets import Follower, Snapshot
from orthobandit.estimate.follow.cells import Cells
from orthobandit.estimate.health.constancy import FIRST, Drift, ends_of, evidence_since, level_of
from orthobandit.estimate.health.missing import Missing, missing_p_value
from orthobandit.estimate.health.sample_ratio import (
    ALARM,
    SampleRatio,
    chi_squared_p_value,
    ratio_p_value,
)
from orthobandit.logs.effects.effects import gap_and_level, lift_at_all_times
from orthobandit.logs.effects.joint import Joint, JointSums, PairPath, joint_of
from orthobandit.logs.effects.ratios import RatioScores, difference_of_ratios
from orthobandit.logs.question import OBSERVED, Question
from orthobandit.logs.reading.plans import alike_labels
from orthobandit.logs.results import Diagnostic, Interval
from orthobandit.showing.numbers import chance_number

BLIND_SHARE = 0.1  # share of rows that cannot tell two arms apart, from which on it is worth a note
CAPPED_SHARE = 0.01  # the same for rows that a cap has changed
MAX_TABULATED_NUMBERS = 2_000_000  # numbers that are tabulated at a time
# Shares of units in several arms that are worth a note, and an alarm.
SEVERAL_ARMS_NOTE = 0.001
SEVERAL_ARMS_ALARM = 0.01
# First buckets that are stretches of time by themselves; for all segments together, ten times that.
SINGLE_BUCKETS = 500
FEWEST_SINGLE_BUCKETS = 25  # the same for each of many segments
MAX_TESTED_SEGMENTS = 200  # the largest ones are tested
NAMED_SEGMENTS = 5  # of those whose rows are too few
# Rows an arm in a stratum, below which silence is compared with the plan and not with the draws.
SPARSE_ROWS = 5
LEAST_EXPECTED = 5.0  # rows of each arm in a stratum, for a chi-squared test to be right
# Where arms came up too seldom or too often: parts of the log that are looked at, the share of the difference
# that a stretch has to explain, and the share of the log that it may take.
LEAST_PARTS = 10
MOST_PARTS = 200
MOST_SHARE = 0.7
SHORT_SHARE = 0.5
DRIFT_ALPHA = 1e-3  # chance of a false alarm of drift
SIDES = 2
Measured = Callable[[JointSums, float], Interval]


@dataclass(frozen=True)
class DriftFound:
    """A drift, with the last bucket before the split and the one at whose end it was found."""

    drift: Drift
    split: int
    seen: int


def diagnose(
    cells: Cells, question: Question, follower: Follower, units: Any = None
) -> tuple[Diagnostic, ...]:
    """Check a log before effects are shown; each check has one sentence, a status and the numbers behind it.

    - Sample ratio: do arms come up as often as the probabilities say, overall and in each segment?
    - Missing: are values missing from some arms more than from others?
    - Constant gaps: does a gap between arms change with time? The analysis assumes that none does.
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
    found = [_no_ratio(cells)] if question.split == OBSERVED else sample_ratios(cells)
    found += missing_values(cells)
    found += [constant_gaps(cells, follower), blind_buckets(cells, follower.measure.reference)]
    found += _capped(cells, question)
    if units is not None:
        found.append(units_found(int(units.units), int(units.rows), int(units.in_several_arms)))
    return tuple(found)


def _no_ratio(cells: Cells) -> Diagnostic:
    """Say that the sample ratio cannot be checked, and whether shares were alike in all periods."""
    words = (
        "Whether arms came up as often as they should cannot be checked: nobody declared the split that they"
        " were drawn with, and the shares that were counted in each period are taken for it. Declare it"
        " (split=, --split)."
    )
    counts = np.zeros(cells.plans.shape)
    np.add.at(counts, (cells.plan, cells.arm), cells.counts)
    p_value, tested = alike_shares(counts)
    if p_value is None:
        return Diagnostic("sample ratio", "note", words)
    shares = counts[tested] / counts[tested].sum(axis=1, keepdims=True)
    arm = int(np.argmax(np.ptp(shares, axis=0)))
    low, high = float(shares[:, arm].min()), float(shares[:, arm].max())
    seen = (
        f" {cells.arms.labels[arm]!r} had {low:.1%} to {high:.1%} of the rows of {len(shares):,} periods"
        f" (p-value {chance_number(p_value)} at one look)"
    )
    words += (
        f" The split moved:{seen}. Arms are compared within periods, so this alone biases no gap."
        if p_value <= ALARM
        else f" Shares of periods are alike as far as rows tell:{seen}."
    )
    details = {"arm": cells.arms.labels[arm], "low": low, "high": high, "alike_p_value": p_value}
    return Diagnostic("sample ratio", "note", words, details=details)


def alike_shares(counts: Array) -> tuple[float | None, Mask]:
    """Test whether rows (S, K) of S strata may all have been drawn with the same shares (chi-squared).

    Returns
    -------
    p_value : float or None
        Of one look; None if fewer than two strata are large enough.
    tested : (S,) array of bool
        The strata with at least five rows of every arm to be expected.

    Examples
    --------
    >>> p_value, tested = alike_shares(np.array([[50.0, 50.0], [60.0, 40.0], [3.0, 1.0]]))
    >>> round(p_value, 3), tested.tolist()
    (0.155, [True, True, False])
    """
    shares = counts.sum(axis=0) / counts.sum()
    tested = np.asarray((counts.sum(axis=1, keepdims=True) * shares).min(axis=1) >= LEAST_EXPECTED)
    if np.count_nonzero(tested) < 2:
        return None, tested
    kept = counts[tested]
    expected = kept.sum(axis=1, keepdims=True) * (kept.sum(axis=0) / kept.sum())
    if np.any(expected <= 0):
        return None, tested
    statistic = float(((kept - expected) ** 2 / expected).sum())
    return float(chdtrc((len(kept) - 1) * (kept.shape[1] - 1), statistic)), tested


def constant_gaps(cells: Cells, follower: Follower) -> Diagnostic:
    """Check whether the gaps of a metric to the reference arm drift."""
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
    """Return the alarm of a gap that drifts."""
    drift = found.drift
    labels = cells.arms.labels
    split, seen = (float(cells.times[bucket]) + cells.width for bucket in (found.split, found.seen))
    low, high = drift.before
    later_low, later_high = drift.after
    words = (
        f"The model is violated: the gap of {labels[drift.arm]!r} over {labels[drift.reference]!r} was"
        f" between {low:.4g} and {high:.4g} until {cells.time_words(split)}, and between {later_low:.4g} and"
        f" {later_high:.4g} after it, as seen at {cells.time_words(seen)}. One number cannot stand for both."
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
    """Report how many rows come from plans under which some arm's gap cannot be estimated."""
    shares, share, buckets = _blind(cells, reference)
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
    return Diagnostic("blind buckets", "note" if share > BLIND_SHARE else "fine", words, details=details)


def _blind(cells: Cells, reference: int) -> tuple[Array, float, int]:
    """Return the shares of rows that cannot tell each gap (K − 1,), or some gap, and the buckets of these."""
    total = max(float(cells.counts.sum()), 1.0)
    if cells.own is not None:
        with_rows = cells.counts > 0
        number = np.unique((cells.bucket * len(cells.segments) + cells.segment)[with_rows])
        found = cells.own.blind[number]
        buckets = np.unique(number[found[:, reference] > 0] // len(cells.segments))
        by_arm = found.sum(axis=0) / total
        return np.delete(by_arm, reference), float(by_arm[reference]), len(buckets)
    rows = np.bincount(cells.plan, cells.counts, minlength=len(cells.plans)).astype(np.float64)
    blind = ~_known(cells, reference)
    some = np.asarray(blind.any(axis=1))
    by_cell = some[cells.plan] & (cells.counts > 0)
    return rows @ blind / total, float(rows @ some) / total, len(np.unique(cells.bucket[by_cell]))


def _known(cells: Cells, reference: int) -> Mask:
    """Mark the gaps to the reference arm (P, K − 1) that each plan can estimate."""
    others = [arm for arm in range(len(cells.arms)) if arm != reference]
    if cells.arms.dimension == len(cells.arms) - 1:  # arms have nothing in common
        return np.asarray((cells.plans[:, others] > 0) & (cells.plans[:, [reference]] > 0))
    contrasts = np.eye(len(cells.arms))[others] - np.eye(len(cells.arms))[reference]
    size = max(MAX_TABULATED_NUMBERS // (len(cells.arms) * len(others)), 1)
    blocks = [
        Pulls.of(cells.arms.positions, contrasts, cells.plans[start : start + size]).known
        for start in range(0, len(cells.plans), size)
    ]
    return np.concatenate(blocks)


def _capped(cells: Cells, question: Question) -> list[Diagnostic]:
    """Report how many values each cap has cut, by arm."""
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
        if share > CAPPED_SHARE:
            words += " Effects are on the metric as it was cut."
        status = "note" if share > CAPPED_SHARE else "fine"
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


def units_found(units: int, rows: int, several: int) -> Diagnostic:
    """Tell how many units were seen in several arms."""
    share = several / max(units, 1)
    details = {"units": units, "rows": rows, "several": several}
    seen = f"{several:,} of {units:,} units ({share:.2%}) were seen in several arms"
    if share > SEVERAL_ARMS_ALARM:
        words = f"{seen}. Each counts for the arm it saw first, which dilutes gaps: find out why they move."
        return Diagnostic("units", "alarm", words, details=details)
    if share > SEVERAL_ARMS_NOTE:
        words = f"{seen}; each counts for the arm it saw first."
        return Diagnostic("units", "note", words, details=details)
    words = f"{units:,} units have {rows:,} rows; {several:,} of them were seen in several arms."
    return Diagnostic("units", "fine", words, details=details)


def sample_ratios(cells: Cells) -> list[Diagnostic]:
    """Test all rows, those without values too, against the probabilities: overall and by segment.

    The log is cut into stretches of time; the bets in each depend on earlier ones only. Stretches stay where
    they are as the log grows (:func:`_stretches`), so daily looks follow one martingale. In a log of one
    bucket there is nothing to learn from, and the test is the ordinary one for one look: its false alarms
    come on top. With segments, p-values are multiplied by their number (Bonferroni); where a new segment
    comes up, or the 200 largest become others, p-values are those of the new family.
    """
    ratio = _ratio(cells, None, SINGLE_BUCKETS)
    found = [_ratio_found(cells, ratio, 1, None)]
    if found[0].status != "alarm" and not _could_alarm(cells, ratio[0], 1, SINGLE_BUCKETS):
        found = [_too_early(cells, ratio[0])]
    if len(cells.segments) == 1:
        return found
    rows = np.bincount(cells.segment, _all_rows(cells), minlength=len(cells.segments))
    chosen = np.sort(np.argsort(-rows, kind="stable")[:MAX_TESTED_SEGMENTS])
    blocks = int(np.clip(10 * SINGLE_BUCKETS // len(chosen), FEWEST_SINGLE_BUCKETS, SINGLE_BUCKETS))
    early: list[str] = []
    for segment in chosen[rows[chosen] > 0]:
        part = cells.of_segment(int(segment))
        ratio = _ratio(part, None, blocks)
        one = _ratio_found(cells, ratio, len(chosen), cells.segments[segment])
        if one.status != "alarm" and not _could_alarm(part, ratio[0], len(chosen), blocks):
            early.append(cells.segments[segment])
        else:
            found.append(one)
    if early:
        found.append(_too_early_segments(early, len(chosen)))
    return found


def _could_alarm(cells: Cells, ratio: SampleRatio, tests: int, single: int) -> bool:
    """Tell whether the test of the sample ratio would raise an alarm if every row had shown one arm.

    No larger deviation is possible. The arm is the one with the highest expected share, whose excess is the
    hardest to detect. If the test could not raise an alarm even then, "fine" would say nothing.
    """
    arm = int(np.argmax(ratio.expected))
    is_possible = cells.plans[cells.plan, arm] > 0
    all_of_it = np.zeros(len(cells.arms), dtype=np.int64)
    all_of_it[arm] = _all_rows(cells)[is_possible].sum()
    # Totals alone are quick, and settle it for most logs.
    totals = SampleRatio.start(len(cells.arms)).and_sums(all_of_it, ratio.expected, np.zeros(1))
    if tests * totals.p_value <= ALARM or cells.own is not None:
        return bool(tests * totals.p_value <= ALARM)
    shown = np.where(cells.plans[:, arm] > 0, arm, np.argmax(cells.plans, axis=1))
    return bool(tests * _ratio(replace(cells, arm=shown[cells.plan]), None, single)[1] <= ALARM)


def _too_early(cells: Cells, ratio: SampleRatio) -> Diagnostic:
    """Return a note that the log has too few rows for the test of the sample ratio."""
    arm = int(np.argmax(ratio.expected))
    words = (
        "Too early to tell whether arms come up as often as the probabilities say: even if all"
        f" {int(ratio.observed.sum()):,} rows had shown {cells.arms.labels[arm]!r}, that could be chance."
    )
    details = {
        "rows": dict(zip(cells.arms.labels, ratio.observed.tolist(), strict=True)),
        "expected": dict(zip(cells.arms.labels, ratio.expected.tolist(), strict=True)),
        "tests": 1,
    }
    return Diagnostic("sample ratio", "note", words, details=details)


def _too_early_segments(names: Sequence[str], tests: int) -> Diagnostic:
    """Return a note on segments that have too few rows for the test of the sample ratio."""
    shown = ", ".join(map(repr, names[:NAMED_SEGMENTS]))
    more = f" and {len(names) - NAMED_SEGMENTS} more" if len(names) > NAMED_SEGMENTS else ""
    words = (
        f"Too early to tell in {len(names)} of {tests} segments whether arms come up as often as the"
        f" probabilities say: {shown}{more}. Even if all their rows had shown one arm, that could be chance."
    )
    return Diagnostic("sample ratio", "note", words, details={"segments": list(names), "tests": tests})


def missing_values(cells: Cells) -> list[Diagnostic]:
    """Test for each column whether values are missing more often from some arms than from others.

    A stratum is one bucket of time under one plan. If strata have enough rows, rows without a value are
    compared with the rows of each arm in the same stratum. If not, as where each row has its own
    probabilities, they are compared with the probabilities. The p-value holds at the ends of all stretches at
    once. Which of the two tests is used, and how many columns share the level, depends on the log so far.
    """
    columns = np.flatnonzero(cells.missing.sum(axis=0) > 0)
    if not len(columns):
        return [Diagnostic("missing", "fine", f"No value is missing in {_all_rows(cells).sum():,} rows.")]
    strata = len(np.unique(cells.bucket * len(cells.plans) + cells.plan))
    sparse = cells.own is not None or _all_rows(cells).sum() < SPARSE_ROWS * len(cells.arms) * strata
    return [_missing_found(cells, int(column), len(columns), bool(sparse)) for column in columns]


def _all_rows(cells: Cells) -> Whole:
    return np.asarray(cells.counts + cells.dropped)


def _stretches(places: Whole, single: int) -> Whole:
    """Return the stretch number of each bucket, given its rank among buckets with rows.

    The first `single` buckets are stretches by themselves; after that a stretch has two buckets until there
    are 2·`single`, four until there are 4·`single`, and so on: their number grows with the logarithm, and no
    boundary depends on how long the log is.

    Examples
    --------
    >>> _stretches(np.arange(14), 3).tolist()
    [0, 1, 2, 3, 3, 5, 6, 6, 6, 6, 10, 10, 12, 12]
    """
    level = np.maximum(np.floor(np.log2(np.maximum(places, 1) / single)) + 1.0, 0.0)
    length = 2 ** level.astype(np.int64)
    begin = np.where(length > 1, single * length // 2, 0)  # where stretches of this length begin
    return np.asarray(begin + (places - begin) // length * length)


def _blocks(cells: Cells, values: tuple[Whole, ...], single: int) -> Iterator[tuple[Array, list[Whole]]]:
    """Yield stretches of time: the probabilities (n, K) of their plans, and tables (n, K) of each value."""
    arms = len(cells.arms)
    places = np.cumsum(np.diff(cells.bucket, prepend=cells.bucket[:1]) != 0)
    stretch = _stretches(places, single)
    edges = np.flatnonzero(np.diff(stretch, prepend=-1, append=-1))
    for begin, end in pairwise(edges):
        plans, place = np.unique(cells.plan[begin:end], return_inverse=True)
        index = place * arms + cells.arm[begin:end]
        tables = []
        for value in values:
            table = np.zeros(len(plans) * arms, dtype=np.int64)
            np.add.at(table, index, value[begin:end])
            tables.append(table.reshape(-1, arms))
        yield cells.plans[plans], tables


def _ratio(cells: Cells, column: int | None, single: int) -> tuple[SampleRatio, float]:
    """Return the test and its p-value, for all rows or for those in which a column is missing."""
    if cells.own is not None:
        return _ratio_by_row(cells, column, single)
    rows = _all_rows(cells) if column is None else cells.missing[:, column]
    ratio = SampleRatio.start(len(cells.arms))
    count = 0
    for plans, (table,) in _blocks(cells, (rows,), single):
        ratio = ratio.and_table(plans, table)
        count = count + 1
    return ratio, ratio_p_value(plans, table) if count == 1 else ratio.p_value


def _ratio_by_row(cells: Cells, column: int | None, single: int) -> tuple[SampleRatio, float]:
    """Return the test and its p-value for rows that each have a distribution of their own."""
    if cells.own is None:
        raise AssertionError("rows have distributions of their own")
    ratio = SampleRatio.start(len(cells.arms))
    buckets = np.unique(cells.bucket)
    edges = np.flatnonzero(np.diff(_stretches(np.arange(len(buckets)), single), prepend=-1, append=-1))
    size = len(cells.arms) if len(edges) == 2 else 0
    products = np.zeros((size, size))
    segment = int(cells.segment[0]) if cells.is_part else None
    for begin, end in pairwise(edges):
        ranges = cells.own.ranges(int(buckets[begin]), int(buckets[end - 1]) + 1, segment)
        bets = ratio.bets
        logs = np.zeros(len(bets))
        table = np.zeros((2, len(cells.arms)))
        for part in cells.own.parts(ranges):
            row_sums.add_bets(part, bets, -1 if column is None else column, logs, table, products)
        ratio = ratio.and_sums(table[0].astype(np.int64), table[1], logs)
    if not size:
        return ratio, ratio.p_value
    values, vectors = np.linalg.eigh(products)
    spread = (vectors * np.sqrt(np.maximum(values, 0.0))).T
    return ratio, chi_squared_p_value(ratio.observed - ratio.expected, ratio.expected, spread, ratio.expected)


def _missing(cells: Cells, drawn: Whole, silent: Whole) -> float:
    """Return the p-value of silent rows, given what was drawn."""
    missing = Missing.start(len(cells.arms))
    count = 0
    for _, (rounds, quiet) in _blocks(cells, (drawn, silent), SINGLE_BUCKETS):
        missing = missing.and_table(rounds, quiet)
        count = count + 1
    return missing_p_value(rounds, quiet) if count == 1 else missing.p_value


def _ratio_found(
    cells: Cells, tested: tuple[SampleRatio, float], tests: int, segment: str | None
) -> Diagnostic:
    """Return the result of the sample-ratio test in words, naming the arm that is furthest off."""
    ratio = tested[0]
    p_value = min(1.0, tests * tested[1])
    alarm = p_value <= ALARM
    off = np.abs(ratio.observed - ratio.expected) / np.sqrt(np.maximum(ratio.expected, 1.0))
    worst = int(np.argmax(off))
    where = "" if segment is None else f" in segment {segment!r}"
    joint = f", for {tests} segments at once" if tests > 1 else ""
    seen = (
        f"{cells.arms.labels[worst]!r} has {ratio.observed[worst]:,} rows where {ratio.expected[worst]:,.0f}"
        f" were to be expected (p-value {chance_number(p_value)}{joint})"
    )
    # Of one arm that is spelt in two ways, each spelling comes up too seldom.
    spelt = (
        " Some labels differ only in case or spaces, which may be why: mend them."
        if alarm and segment is None and alike_labels(cells.arms.labels)
        else ""
    )
    words = (
        f"Arms did not come up{where} as often as the probabilities say: {seen}."
        f"{_when_off(cells, worst) if segment is None else ''}{spelt} Find out why before you believe any"
        " effect."
        if alarm
        else f"Arms came up{where} as often as the probabilities say; furthest off, {seen}."
    )
    details = {
        "rows": dict(zip(cells.arms.labels, ratio.observed.tolist(), strict=True)),
        "expected": dict(zip(cells.arms.labels, ratio.expected.tolist(), strict=True)),
        "tests": tests,
    }
    return Diagnostic("sample ratio", "alarm" if alarm else "fine", words, p_value, segment, details)


def _when_off(cells: Cells, arm: int) -> str:
    """Say in which stretch of time most rows of an arm are missing or too many; "" if there is none."""
    if cells.own is not None or len(cells.times) < LEAST_PARTS:
        return ""
    rows = _all_rows(cells)
    p = cells.plans[cells.plan, arm]
    buckets = len(cells.times)
    off = np.bincount(cells.bucket, rows * ((cells.arm == arm) - p), minlength=buckets)
    scatter = np.bincount(cells.bucket, rows * p * (1.0 - p), minlength=buckets)
    edges = np.unique(np.linspace(0, buckets, MOST_PARTS + 1).astype(np.int64))
    totals = np.concatenate([[0.0], np.cumsum(off)])[edges]
    scatters = np.concatenate([[0.0], np.cumsum(scatter)])[edges]
    # Between all pairs of edges: the stretch whose rows are the furthest from chance.
    apart = scatters[np.newaxis, :] - scatters[:, np.newaxis]
    deviation = (totals[np.newaxis, :] - totals[:, np.newaxis]) * np.sign(totals[-1])
    scores = np.where(apart > 0.0, deviation / np.sqrt(np.where(apart > 0.0, apart, 1.0)), 0.0)
    begin, end = np.unravel_index(int(np.argmax(scores)), scores.shape)
    is_short = apart[begin, end] <= SHORT_SHARE * scatters[-1]
    if not (is_short and deviation[begin, end] >= MOST_SHARE * abs(totals[-1])):
        return ""
    first = cells.time_words(float(cells.times[edges[begin]]))
    last = cells.time_words(float(cells.times[edges[end] - 1]) + cells.width)
    return f" Most of the difference arose from {first} to {last}."


def _missing_found(cells: Cells, column: int, tests: int, sparse: bool) -> Diagnostic:
    """Test whether values of one column are missing more often with some arms, and say so in words.

    The p-value allows for `tests` such tests. If the log is `sparse`, with few rows per arm and stratum, all
    strata are tested together.
    """
    silent = cells.missing[:, column]
    drawn = _all_rows(cells)
    arms = len(cells.arms)
    rows = np.bincount(cells.arm, drawn, minlength=arms)
    shares = np.bincount(cells.arm, silent, minlength=arms) / np.maximum(rows, 1)
    single = _ratio(cells, column, SINGLE_BUCKETS)[1] if sparse else _missing(cells, drawn, silent)
    p_value = min(1.0, tests * single)
    alarm = p_value <= ALARM
    name = cells.columns[column]
    labels = cells.arms.labels
    low, high = int(np.argmin(np.where(rows > 0, shares, np.inf))), int(np.argmax(shares))
    spread = (
        f"from {shares[low]:.2%} of rows with {labels[low]!r} to {shares[high]:.2%} with {labels[high]!r}"
        f" (p-value {chance_number(p_value)})"
    )
    words = (
        f"Whether {name!r} is missing depends on the arm, {spread}: what is left does not compare like with"
        " like."
        if alarm
        else f"{name!r} is missing in {silent.sum():,} of {drawn.sum():,} rows, {spread}; no arm stands out."
    )
    details = {"column": name, "share": dict(zip(labels, shares.tolist(), strict=True))}
    return Diagnostic("missing", "alarm" if alarm else "note", words, p_value, None, details)


def find_drift(
    snapshots: Sequence[Snapshot], others: Sequence[int], reference: int, alpha: float = DRIFT_ALPHA
) -> tuple[DriftFound | None, int]:
    """Return the first drift of a gap that the log shows, if any, and how many splits were tried.

    The test of :class:`~orthobandit.estimate.health.constancy.Constancy`. The log is split at the snapshot
    after 64 rounds and each time that their number has doubled. The intervals before a split are compared
    with those after it, up to every later snapshot; all comparisons hold at once. The largest residual is
    that of the whole log.

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
    splits = split_places([one.rows for one in snapshots])
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


def split_places(rows: Sequence[int]) -> list[int]:
    """Return where a log is split, given the rows up to each place; the last has nothing after it.

    Examples
    --------
    >>> split_places([10, 70, 100, 150, 300])
    [1, 3]
    """
    out = list[int]()
    enough = FIRST
    # Doubling keeps the number of splits that share α logarithmic in the rows.
    for place, count in enumerate(rows[:-1]):
        if count >= enough:
            out.append(place)
            enough = 2 * count
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
        """Stack the evidence of all snapshots, for the first `gaps` pairs."""
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
    all rows after it. Both hold at all times at once; all splits share DRIFT_ALPHA as those of gaps do.

    Parameters
    ----------
    joint : Joint
    path : PairPath
    ends : callable
        Returns the interval of what is looked at, from sums and a δ.
    arms : int
        How many arms are tested this way.
    """
    found: Change | None = None
    judged = 0
    for number, step in enumerate(split_places(joint.rows.tolist())):
        # level_of is for one side of an interval; these regions take both.
        delta = SIDES * float(level_of(DRIFT_ALPHA, number, arms)[0])
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


def constant_ratios(name: str, scores: RatioScores) -> Diagnostic:
    """Check whether the difference of a ratio between arms drifts; see `find_change`."""
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

    A lift also moves when the level does while the gap is constant, which is harmless; so this check is made
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
    joint = joint_of(follower)
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
