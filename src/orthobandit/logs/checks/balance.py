"""Do arms come up, and rewards go missing, as they should? Tests over the buckets of a log."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate.health.balance import ALARM, Missing, SampleRatio
from orthobandit.logs.cells import Cells
from orthobandit.logs.checks.one_look import missing_p_value, ratio_p_value
from orthobandit.logs.results import Diagnostic

# First buckets that are stretches of time by themselves; for all segments together, ten times that.
BLOCKS = 500
FEWEST = 25  # the same for each of many segments
SEGMENTS = 200  # the largest ones are tested
SPARSE = 5  # rows an arm in a stratum, below which silence is compared with the plan and not with the draws


def sample_ratios(cells: Cells) -> list[Diagnostic]:
    """Test all rows, those without values too, against the probabilities: overall and by segment.

    The log is cut into stretches of time, in each of which bets rest on earlier ones alone. They stay where
    they are as it grows (:func:`_stretches`), so that whoever looks daily sees one martingale. In a log of
    one bucket there is nothing to learn from, and the test is the ordinary one for one look: its false alarms
    come on top. With segments, p-values are multiplied by their number (Bonferroni); where a new segment
    comes up, or the 200 largest become others, p-values are those of the new family.
    """
    found = [_ratio_found(cells, _ratio(cells, _all_rows(cells), BLOCKS), 1, None)]
    if len(cells.segments) == 1:
        return found
    rows = np.bincount(cells.segment, _all_rows(cells), minlength=len(cells.segments))
    chosen = np.sort(np.argsort(-rows, kind="stable")[:SEGMENTS])
    blocks = int(np.clip(10 * BLOCKS // len(chosen), FEWEST, BLOCKS))
    for segment in chosen[rows[chosen] > 0]:
        part = cells.of_segment(int(segment))
        ratio = _ratio(part, _all_rows(part), blocks)
        found.append(_ratio_found(cells, ratio, len(chosen), cells.segments[segment]))
    return found


def missing_values(cells: Cells) -> list[Diagnostic]:
    """Test for each column whether values are missing more often from some arms than from others.

    Given the draws of a stratum (Hoeffding's comparison); where strata have very few rows on average, as when
    each row has its own probabilities, the silent rows are compared with the probabilities instead. The
    p-value holds at the ends of stretches, all at once; which of both tests it is, and how many columns share
    the level, is seen in the log so far.
    """
    columns = np.flatnonzero(cells.missing.sum(axis=0) > 0)
    if not len(columns):
        return [Diagnostic("missing", "fine", f"No value is missing in {_all_rows(cells).sum():,} rows.")]
    strata = len(np.unique(cells.bucket * len(cells.plans) + cells.plan))
    sparse = _all_rows(cells).sum() < SPARSE * len(cells.arms) * strata
    return [_missing_found(cells, int(column), len(columns), bool(sparse)) for column in columns]


def _all_rows(cells: Cells) -> Whole:
    return np.asarray(cells.counts + cells.dropped)


def _stretches(places: Whole, single: int) -> Whole:
    """Return the number of the stretch that each bucket, by its place among those with rows, belongs to.

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


def _ratio(cells: Cells, rows: Whole, single: int) -> tuple[SampleRatio, float]:
    """Return the test and its p-value."""
    ratio = SampleRatio.start(len(cells.arms))
    count = 0
    for plans, (table,) in _blocks(cells, (rows,), single):
        ratio = ratio.and_table(plans, table)
        count = count + 1
    return ratio, ratio_p_value(plans, table) if count == 1 else ratio.p_value


def _missing(cells: Cells, drawn: Whole, silent: Whole) -> float:
    """Return the p-value of silent rows, given what was drawn."""
    missing = Missing.start(len(cells.arms))
    count = 0
    for _, (rounds, quiet) in _blocks(cells, (drawn, silent), BLOCKS):
        missing = missing.and_table(rounds, quiet)
        count = count + 1
    return missing_p_value(rounds, quiet) if count == 1 else missing.p_value


def _ratio_found(
    cells: Cells, tested: tuple[SampleRatio, float], tests: int, segment: str | None
) -> Diagnostic:
    ratio = tested[0]
    p_value = min(1.0, tests * tested[1])
    alarm = p_value <= ALARM
    off = np.abs(ratio.observed - ratio.expected) / np.sqrt(np.maximum(ratio.expected, 1.0))
    worst = int(np.argmax(off))
    where = "" if segment is None else f" in segment {segment!r}"
    joint = f", for {tests} segments at once" if tests > 1 else ""
    seen = (
        f"{cells.arms.labels[worst]!r} has {ratio.observed[worst]:,} rows where {ratio.expected[worst]:,.0f}"
        f" were to be expected (p-value {p_value:.2g}{joint})"
    )
    words = (
        f"Arms did not come up{where} as often as the probabilities say: {seen}. Find out why before you"
        " believe any effect."
        if alarm
        else f"Arms came up{where} as often as the probabilities say; furthest off, {seen}."
    )
    details = {
        "rows": dict(zip(cells.arms.labels, ratio.observed.tolist(), strict=True)),
        "expected": dict(zip(cells.arms.labels, ratio.expected.tolist(), strict=True)),
        "tests": tests,
    }
    return Diagnostic("sample ratio", "alarm" if alarm else "fine", words, p_value, segment, details)


def _missing_found(cells: Cells, column: int, tests: int, sparse: bool) -> Diagnostic:
    silent = cells.missing[:, column]
    drawn = _all_rows(cells)
    arms = len(cells.arms)
    rows = np.bincount(cells.arm, drawn, minlength=arms)
    shares = np.bincount(cells.arm, silent, minlength=arms) / np.maximum(rows, 1)
    single = _ratio(cells, silent, BLOCKS)[1] if sparse else _missing(cells, drawn, silent)
    p_value = min(1.0, tests * single)
    alarm = p_value <= ALARM
    name = cells.columns[column]
    labels = cells.arms.labels
    low, high = int(np.argmin(np.where(rows > 0, shares, np.inf))), int(np.argmax(shares))
    spread = (
        f"from {shares[low]:.2%} of rows with {labels[low]!r} to {shares[high]:.2%} with {labels[high]!r}"
        f" (p-value {p_value:.2g})"
    )
    words = (
        f"Whether {name!r} is missing depends on the arm, {spread}: what is left does not compare like with"
        " like."
        if alarm
        else f"{name!r} is missing in {silent.sum():,} of {drawn.sum():,} rows, {spread}; no arm stands out."
    )
    details = {"column": name, "share": dict(zip(labels, shares.tolist(), strict=True))}
    return Diagnostic("missing", "alarm" if alarm else "note", words, p_value, None, details)
