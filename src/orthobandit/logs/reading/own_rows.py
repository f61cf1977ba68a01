"""Logs in which each row has a distribution of its own: in one pass, rows go to a file and sums to cells.

For such a log, a GROUP BY by distribution would return as many groups as there are rows. What needs each
row's distribution is computed from the file (:mod:`orthobandit.estimate.follow.by_row`), and everything else
from cells by bucket, arm and segment. No errors are raised here: a log that is not of this kind, or that has
a fault, is left to the GROUP BY, whose checks name the fault.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.estimate.follow.cells import Cells
from orthobandit.estimate.follow.row_file import CHUNK_ROWS, RowFile
from orthobandit.logs.question import Question
from orthobandit.logs.reading.clock import Clock
from orthobandit.logs.reading.plans import ROUNDING, TOLERANCE, columns_of_arms, distributions_of, read_arms
from orthobandit.logs.reading.rows import rows_of, segments_of, units_of
from orthobandit.logs.reading.source import Opened

BATCH_ROWS = 131_072
MOST_CELLS = 1_000_000  # a bucket, segment and arm each
SPAN = 50_000_000  # bucket numbers that a table may hold


@dataclass(frozen=True, eq=False)
class OwnRows:
    """Cells with the rows behind them, and the groups (a pyarrow table) of bucket, arm and segment."""

    cells: Cells
    groups: Any
    counts: Whole
    notes: tuple[str, ...]

    def have_copies(self) -> bool:
        """Tell whether two rows of a bucket and segment are alike in arm and probabilities."""
        file = self.cells.own
        if file is None:
            raise AssertionError("the rows are in a file")
        for begin, end in pairwise(file.edges.tolist()):
            # What is not in memory at once is left to the engine.
            if end - begin > CHUNK_ROWS or _has_alike(file.read(begin, end), 1 + file.arms):
                return True
        return False


def read_own_rows(opened: Opened, question: Question, clock: Clock, offset: Array) -> OwnRows | None:
    """Read a log row by row; return None for a log with a fault, so that the GROUP BY can say which.

    Parameters
    ----------
    opened : Opened
    question : Question
    clock : Clock
    offset : (q,) array
        What is subtracted from each column.
    """
    found = _read(opened, question, clock, offset, is_masked=False)
    if found is None and question.missing != "refuse":
        found = _read(opened, question, clock, offset, is_masked=True)
    return found


def _read(
    opened: Opened, question: Question, clock: Clock, offset: Array, *, is_masked: bool
) -> OwnRows | None:
    rows = rows_of(opened, question, clock, is_masked=is_masked)
    if question.unit is not None:
        rows = units_of(rows, question.window)
    table = rows.table
    table = table.mutate(bucket=clock.bucket(table.when))
    keys = ["bucket", *(name for name in ("arm", "segment") if name in rows.attributes)]
    wanted = {"n": table.count(), **{name: table[name].sum() for name in rows.extra}}
    if "last" in table.columns:
        wanted["last"] = table["last"].max()
    groups = opened.fetch(table.group_by(keys).aggregate(**wanted))
    if any(groups[name].null_count for name in ("bucket", "arm")):
        return None
    counts = groups["n"].to_numpy().astype(np.int64)
    arms, arm, notes = read_arms(opened, question, groups, counts, distributions_of(question))
    keyed = _Keyed.of(question, groups, arm, counts, len(arms))
    if keyed is None or len(keyed.buckets) < 2:
        return None
    order = columns_of_arms(question.probabilities, arms.labels)
    reference = 0 if question.reference is None else arms.index(question.reference)
    sums = _Sums.start(len(keyed.buckets) * keyed.segments, len(arms), len(question.columns))
    file = RowFile(keyed.rows, len(arms), len(question.columns), is_masked, sums.blind)
    caps = question.caps or {}
    cap = np.array([caps.get(name, np.inf) for name in question.columns])
    needed = ["bucket", *keys[1:], *(f"p{place}" for place in order)]
    values = [f"x{place}" for place in range(rows.columns)]
    masks = [f"m{place}" for place in range(rows.columns)] if is_masked else []
    drops = is_masked and question.missing == "drop"
    room = np.empty((BATCH_ROWS, file.width))
    for batch in opened.batches(table.select(*needed, *values, *masks), BATCH_ROWS):
        p = np.stack([_floats(batch, f"p{place}") for place in order])
        x = np.stack([_floats(batch, name) for name in values])
        gone = np.stack([_floats(batch, name) > 0 for name in masks]) if is_masked else ~np.isfinite(x)
        if not is_masked and gone.any():
            return None
        cell = keyed.cells_of(batch)
        out = room[: len(cell)] if len(cell) <= len(room) else np.empty((len(cell), file.width))
        _pack(keyed.arms_of(batch), cell, p, x, gone, cap, offset, drops, reference, out, sums)
        if sums.faults[0]:
            return None
        file.write(cell, out)
    if not file.is_filled:
        return None
    if sums.faults[1] > ROUNDING:
        off = float(sums.faults[1])
        notes = (*notes, f"probabilities sum to 1 within {off:.1g} only, and were divided by their sums")
    cells = sums.cells(question, clock, keyed, arms, file, offset)
    return OwnRows(cells, groups, counts, notes)


def _floats(batch: Any, name: str) -> Array:
    return np.asarray(batch.column(name).to_numpy(zero_copy_only=False), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Keyed:
    """The numbers of buckets, segments and arms, by the values that the engine has for them.

    Attributes
    ----------
    buckets : (B,) array of int
        Ascending.
    places : (…,) array of int
        The place in `buckets` of each bucket number from the first on; −1 for buckets without rows.
    names : tuple of str
        Of the segments.
    rows : (B, S) array of int
    arms, texts : dict
        Numbers of arms and of segments, by their values.
    """

    buckets: Whole
    places: Whole
    names: tuple[str, ...]
    rows: Whole
    arms: dict[Any, int]
    texts: dict[Any, int]

    @property
    def segments(self) -> int:
        """Number of segments."""
        return len(self.names)

    @classmethod
    def of(cls, question: Question, groups: Any, arm: Whole, counts: Whole, arms: int) -> "_Keyed | None":
        """Return the numbers of groups, or None if there are too many of them."""
        number = groups["bucket"].to_numpy().astype(np.int64)
        buckets, bucket = np.unique(number, return_inverse=True)
        names, segment = segments_of(question, groups)
        size = len(buckets) * len(names)
        if size * arms > MOST_CELLS or buckets[-1] - buckets[0] > SPAN:
            return None
        places = np.full(int(buckets[-1] - buckets[0]) + 1, -1, dtype=np.int64)
        places[buckets - buckets[0]] = np.arange(len(buckets))
        rows = np.bincount(bucket * len(names) + segment, counts, minlength=size)
        arm_values = groups["arm"].to_pylist()
        texts = groups["segment"].to_pylist() if "segment" in groups.column_names else []
        return cls(
            buckets,
            places,
            names,
            rows.astype(np.int64).reshape(len(buckets), len(names)),
            dict(zip(arm_values, arm.tolist(), strict=True)),
            dict(zip(texts, segment.tolist(), strict=False)),
        )

    def cells_of(self, batch: Any) -> Whole:
        """Return the cell (n,) of each row of a batch: its bucket and its segment."""
        bucket = self.places[batch.column("bucket").to_numpy() - self.buckets[0]]
        if self.segments == 1:
            return np.asarray(bucket)
        return np.asarray(bucket * self.segments + _numbers(batch.column("segment"), self.texts))

    def arms_of(self, batch: Any) -> Whole:
        """Return the arm (n,) of each row of a batch."""
        return _numbers(batch.column("arm"), self.arms)


def _numbers(column: Any, known: dict[Any, int]) -> Whole:
    """Return the number of each value of a column; −1 for unknown values, and NULL like any other value."""
    encoded = column.dictionary_encode()
    values = [known.get(value, -1) for value in encoded.dictionary.to_pylist()]
    table = np.array([*values, known.get(None, -1)], dtype=np.int64)
    codes = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False)
    return np.asarray(table[codes])


class _Sums(NamedTuple):
    """Sums of every cell of a bucket and a segment, by arm; see :class:`Cells`.

    `faults` counts the rows whose probabilities are no distribution, or give the arm that was drawn
    probability 0. Its second number is the largest distance of a row's sum of probabilities from 1.
    """

    counts: Whole
    dropped: Whole
    missing: Whole
    capped: Whole
    sums: Array
    squares: Array
    low: Array
    high: Array
    expected: Array
    blind: Array
    faults: Array

    @classmethod
    def start(cls, cells: int, arms: int, columns: int) -> "_Sums":
        """Return sums over nothing."""
        shape = (cells, arms, columns)
        return cls(
            counts=np.zeros((cells, arms), dtype=np.int64),
            dropped=np.zeros((cells, arms), dtype=np.int64),
            missing=np.zeros(shape, dtype=np.int64),
            capped=np.zeros(shape, dtype=np.int64),
            sums=np.zeros(shape),
            squares=np.zeros(shape),
            low=np.full(shape, np.inf),
            high=np.full(shape, -np.inf),
            expected=np.zeros((cells, arms)),
            blind=np.zeros((cells, arms)),
            faults=np.zeros(2),
        )

    def cells(
        self, question: Question, clock: Clock, keyed: _Keyed, arms: Any, file: RowFile, offset: Array
    ) -> Cells:
        """Return the cells of bucket, segment and arm that have rows."""
        cell, arm = np.nonzero(self.counts + self.dropped)
        bucket, segment = np.divmod(cell, keyed.segments)
        order = np.lexsort((segment, arm, bucket))
        cell, arm, bucket, segment = (one[order] for one in (cell, arm, bucket, segment))
        kept, plan = np.unique(cell, return_inverse=True)
        expected = self.expected[kept]
        counts = self.counts[cell, arm]
        empty = (counts == 0)[:, np.newaxis]
        columns = len(question.columns)
        products = np.full((len(cell), columns, columns), np.nan)
        every = np.arange(columns)
        products[:, every, every] = self.squares[cell, arm]
        return Cells(
            arms=arms,
            plans=expected / expected.sum(axis=1, keepdims=True),
            times=clock.begins(keyed.buckets),
            width=clock.width,
            is_clock=clock.is_clock,
            segments=keyed.names,
            columns=question.columns,
            offset=offset,
            bucket=bucket,
            plan=plan,
            arm=arm,
            segment=segment,
            counts=counts,
            missing=self.missing[cell, arm],
            dropped=self.dropped[cell, arm],
            sums=self.sums[cell, arm],
            products=products,
            low=np.where(empty, 0.0, self.low[cell, arm]),
            high=np.where(empty, 0.0, self.high[cell, arm]),
            capped=self.capped[cell, arm],
            own=file,
        )


@compiled
def _pack(
    arm: Whole,
    cell: Whole,
    p: Array,
    x: Array,
    gone: Mask,
    cap: Array,
    offset: Array,
    drops: bool,
    reference: int,
    out: Array,
    sums: _Sums,
) -> None:
    """Write the rows of a batch in the form of the file, and add them to the sums of their cells."""
    arms, rows = p.shape
    columns = len(x)
    for row in range(rows):
        a = arm[row]
        c = cell[row]
        whole = 0.0
        is_proper = a >= 0 and c >= 0
        for other in range(arms):
            is_proper = is_proper and p[other, row] >= 0.0
            whole += p[other, row]
        off = abs(whole - 1.0)
        if not (is_proper and off <= TOLERANCE and p[a, row] > 0.0):
            sums.faults[0] += 1.0
            return
        sums.faults[1] = max(sums.faults[1], off)
        silent = 0.0
        for column in range(columns):
            if gone[column, row]:
                silent += 2.0**column
                sums.missing[c, a, column] += 1
        counted = not (drops and silent > 0.0)
        out[row, 0] = a if counted else -1 - a
        cannot = False
        for other in range(arms):
            share = p[other, row] / whole
            out[row, 1 + other] = share
            sums.expected[c, other] += share
            cannot = cannot or share == 0.0
        if out.shape[1] > 1 + arms + columns:
            out[row, 1 + arms + columns] = silent
        if not counted:
            sums.dropped[c, a] += 1
            out[row, 1 + arms : 1 + arms + columns] = 0.0
            continue
        sums.counts[c, a] += 1
        if cannot:
            for other in range(arms):
                if other == reference or p[other, row] == 0.0 or p[reference, row] == 0.0:
                    sums.blind[c, other] += 1.0
        for column in range(columns):
            value = 0.0 if gone[column, row] else x[column, row]
            if value > cap[column]:
                value = cap[column]
                sums.capped[c, a, column] += 1
            value -= offset[column]
            out[row, 1 + arms + column] = value
            sums.sums[c, a, column] += value
            sums.squares[c, a, column] += value * value
            sums.low[c, a, column] = min(sums.low[c, a, column], value)
            sums.high[c, a, column] = max(sums.high[c, a, column], value)


@compiled
def _has_alike(rows: Array, columns: int) -> bool:
    """Tell whether any two rows are equal in their first columns, by a hash table of row numbers."""
    size = 2
    while size < 2 * len(rows):
        size *= 2
    held = np.full(size, -1, dtype=np.int64)
    for row in range(len(rows)):
        total = 0.0
        for column in range(columns):
            total += rows[row, column] * (1.0 + 0.6180339887498949 * column)
        # The digits of the fraction of a large multiple are as good as random.
        mixed = abs(total) * 9.8696044e8
        place = int((mixed - np.floor(mixed)) * size) % size
        while held[place] >= 0:
            is_alike = True
            for column in range(columns):
                is_alike = is_alike and rows[held[place], column] == rows[row, column]
            if is_alike:
                return True
            place = (place + 1) % size
        held[place] = row
    return False
