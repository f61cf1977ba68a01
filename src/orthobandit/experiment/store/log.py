"""A log in memory, column by column: 40 bytes for a proposal and its reward, asked and told one by one."""

import json
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.experiment.ledger.entries import NUMBERED, Asked, Entry, Noted, Told
from orthobandit.experiment.store.columns import Column
from orthobandit.experiment.store.contract import Row
from orthobandit.experiment.store.order import Head

BLOCK = 1024  # entries between two marks
# kinds of entries; others are rewards of the metric with that index
ASKED = -1
NOTED = -2
PROPOSALS, REWARDS, NOTES = range(3)  # what marks count


class Log:
    """All entries, as columns; :meth:`cut` takes back what was appended since :meth:`settle`.

    Of every entry there are kind, time and how many rows it has; the rows of all entries of one kind follow
    each other, and marks say how many rows precede every block of entries.
    """

    def __init__(self) -> None:
        self.head = Head()
        self.settled = Head()
        self.first: dict[str, int] = {}  # the first proposal of each unit
        self._units: dict[int, str] = {}
        self._covariates: dict[int, Any] = {}
        self._metrics: list[str] = []
        self._kinds = Column(np.int64)
        self._times = Column(np.float64)
        self._counts = Column(np.int64)
        self._arms = Column(np.int64)
        self._plans = Column(np.int64)
        self._distributions = Column(np.int64)
        self._held = Column(np.bool_)
        self._forecasts = Column(np.float64, 0)
        self._proposals = Column(np.int64)
        self._values = Column(np.float64)
        self._notes: list[tuple[str, str]] = []
        self._marks: list[tuple[int, int, int]] = []

    def append(self, entries: Sequence[Entry]) -> None:
        """Append entries, all or none."""
        head = self.head.after(entries)
        if self.head.metrics is None and head.metrics is not None:
            self._forecasts = Column(np.float64, head.metrics)
        for entry in entries:
            if len(self._kinds) % BLOCK == 0:
                self._marks.append((len(self._arms), len(self._proposals), len(self._notes)))
            self._times.append(entry.at, 1)
            if isinstance(entry, Asked):
                self._ask(entry)
            elif isinstance(entry, Told):
                self._tell(entry)
            else:
                self._kinds.append(NOTED, 1)
                self._counts.append(1, 1)
                self._notes.append((entry.kind, json.dumps(entry.data)))
        self.head = head

    def _ask(self, entry: Asked) -> None:
        count = entry.count
        self._kinds.append(ASKED, 1)
        self._counts.append(count, 1)
        self._arms.append(entry.arms, count)
        self._plans.append(entry.plan, count)
        self._distributions.append(entry.distribution, count)
        self._held.append(entry.held, count)
        self._forecasts.append(entry.forecasts.T, count)
        for number, unit in enumerate(entry.units, entry.first):
            if unit is not None:
                self._units[number] = unit
                self.first.setdefault(unit, number)
        self._covariates.update(enumerate(entry.covariates, entry.first))

    def _tell(self, entry: Told) -> None:
        if entry.metric not in self._metrics:
            self._metrics.append(entry.metric)
        self._kinds.append(self._metrics.index(entry.metric), 1)
        self._counts.append(entry.count, 1)
        self._proposals.append(entry.proposals, entry.count)
        self._values.append(entry.values, entry.count)

    def settle(self) -> None:
        """Make what was appended last for good."""
        self.settled = self.head
        columns = self._columns()
        for rows in (columns[:3], columns[3:8], columns[8:]):  # of entries, proposals and rewards
            if rows[0].has_full_chunks:
                for column in rows:
                    column.settle()

    def cut(self) -> None:
        """Take back what was appended since the last :meth:`settle`."""
        head = self.settled
        added = self._kinds.read(head.seq, self.head.seq)
        told = int(self._counts.read(head.seq, self.head.seq)[added >= 0].sum())
        lengths = (head.seq, head.number, len(self._proposals) - told)
        for column, length in zip(self._columns(), np.repeat(lengths, (3, 5, 2)).tolist(), strict=True):
            column.cut(length)
        for number in range(head.number + 1, self.head.number + 1):
            self._covariates.pop(number, None)
            unit = self._units.pop(number, None)
            if unit is not None and self.first[unit] == number:
                del self.first[unit]
        del self._notes[len(self._notes) - int(np.count_nonzero(added == NOTED)) :]
        del self._marks[-(-head.seq // BLOCK) :]
        self.head = head

    def _columns(self) -> tuple[Column, ...]:
        entries = (self._kinds, self._times, self._counts)
        proposals = (self._arms, self._plans, self._distributions, self._held, self._forecasts)
        return (*entries, *proposals, self._proposals, self._values)

    @property
    def nbytes(self) -> int:
        """Return the room of all columns."""
        return sum(column.nbytes for column in self._columns())

    def block(self, start: int, stop: int) -> list[Entry]:
        """Return the entries beyond `start` up to `stop`, at most to the end of the block of the first."""
        if stop <= start:
            return []
        index = start // BLOCK
        stop = min(stop, (index + 1) * BLOCK)
        kinds, counts = (column.read(index * BLOCK, stop).tolist() for column in (self._kinds, self._counts))
        times = self._times.read(index * BLOCK, stop).tolist()
        rows = list(self._marks[index])
        found = []
        for seq, (kind, count) in enumerate(zip(kinds, counts, strict=True), index * BLOCK):
            stream = PROPOSALS if kind == ASKED else NOTES if kind == NOTED else REWARDS
            if seq >= start:
                found.append(self._entry(kind, times[seq - index * BLOCK], rows[stream], count))
            rows[stream] += count
        return found

    def _entry(self, kind: int, at: float, row: int, count: int) -> Entry:
        end = row + count
        if kind == NOTED:
            name, text = self._notes[row]
            return Noted(at, name, json.loads(text))
        if kind >= 0:
            metric = self._metrics[kind]
            return Told(at, metric, self._proposals.read(row, end), self._values.read(row, end))
        first = row + 1
        numbers = range(first, end + 1)
        return Asked(
            at,
            first,
            int(self._plans.read(row, row + 1)[0]),
            int(self._distributions.read(row, row + 1)[0]),
            self._arms.read(row, end),
            self._forecasts.read(row, end).T,
            tuple(self._units.get(number) for number in numbers) if self._units else (),
            self._held.read(row, end),
            tuple(self._covariates[number] for number in numbers) if first in self._covariates else (),
        )

    def distribution(self, number: int) -> dict[str, Any] | None:
        """Return the data of the plan or distribution of this number, if there is one."""
        for kind, text in reversed(self._notes):
            if kind in NUMBERED and (data := json.loads(text))["number"] == number:
                return dict(data)
        return None

    def rows(self, start: int, stop: int) -> list[Row]:
        """Return the proposals with numbers beyond `start` up to `stop`."""
        times, _ = self._expanded(PROPOSALS, start, stop)
        columns = (self._arms, self._plans, self._distributions, self._held, self._forecasts)
        read = [column.read(start, stop).tolist() for column in columns]
        return [
            Row(number, at, self._units.get(number), arm, plan, law, held, tuple(row), self._given(number))
            for number, (at, arm, plan, law, held, row) in enumerate(
                zip(times.tolist(), *read, strict=True), start + 1
            )
        ]

    def _given(self, number: int) -> dict[str, float] | None:
        return dict(self._covariates[number]) if number in self._covariates else None

    def rewards(self, start: int, stop: int) -> tuple[Whole, Array, Array, list[str]]:
        """Return rewards in the order they were told: proposals, values, times and metrics."""
        at, kinds = self._expanded(REWARDS, start, stop)
        metrics = [self._metrics[kind] for kind in kinds.tolist()]
        return self._proposals.read(start, stop), self._values.read(start, stop), at, metrics

    def told(self, start: int, stop: int) -> Whole:
        """Return the numbers of the proposals that rewards belong to."""
        return self._proposals.read(start, stop)

    @property
    def rewarded(self) -> int:
        """Return how many rewards were told."""
        return len(self._proposals)

    def _expanded(self, stream: int, start: int, stop: int) -> tuple[Array, Whole]:
        # Time and kind of the entries that rows of a stream belong to.
        index = max(bisect_right(self._marks, start, key=lambda mark: mark[stream]) - 1, 0)
        times = []
        kinds = []
        done = self._marks[index][stream] if self._marks else 0
        first = done
        while done < stop:
            block = (index * BLOCK, min((index + 1) * BLOCK, self.head.seq))
            kind = self._kinds.read(*block)
            counts = self._counts.read(*block)
            counts = np.where(kind == ASKED if stream == PROPOSALS else kind >= 0, counts, 0)
            times.append(np.repeat(self._times.read(*block), counts))
            kinds.append(np.repeat(kind, counts))
            done = done + int(counts.sum())
            index = index + 1
        if not times:
            return np.empty(0), np.empty(0, np.int64)
        wanted = slice(start - first, stop - first)
        return np.concatenate(times)[wanted], np.concatenate(kinds)[wanted]
