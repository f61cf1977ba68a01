"""A store in memory: fast, and gone when its process ends."""

import json
import math
from array import array
from bisect import bisect_right
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from orthobandit.errors import (
    ClosedError,
    ConflictError,
    ExperimentExistsError,
    ParameterError,
    UnknownExperimentError,
)
from orthobandit.experiment.forks import LockedForkable, register_forkable
from orthobandit.experiment.ledger.entries import NUMBERED, Asked, Entry, Noted, Told
from orthobandit.experiment.store.contract import (
    Head,
    Outcome,
    Row,
    Writer,
    as_json,
    check_drawn,
    check_snapshot,
)

ENTRIES_PER_BLOCK = 1024  # entries that are read at once, between which others may write


class _KeptAsked(NamedTuple):
    """An :class:`Asked` in less than half the memory: an array of one number has a header of 112 bytes."""

    at: float
    first: int
    plan: int
    distribution: int
    arms: bytes
    forecasts: bytes
    units: tuple[str | None, ...]
    held: bytes
    covariates: tuple[Mapping[str, float], ...]

    def entry(self) -> Asked:
        arms = np.frombuffer(self.arms, np.int64)
        forecasts = np.frombuffer(self.forecasts).reshape(-1, arms.size)
        held = np.frombuffer(self.held, np.bool_)
        numbers = (self.first, self.plan, self.distribution)
        return Asked(self.at, *numbers, arms, forecasts, self.units, held, self.covariates)

    def rows(self) -> list[Row]:
        """Return the proposals of the entry, one row each."""
        arms = np.frombuffer(self.arms, np.int64).tolist()
        held = np.frombuffer(self.held, np.bool_).tolist()
        forecasts = np.frombuffer(self.forecasts).reshape(-1, len(arms)).T.tolist()
        units = self.units or (None,) * len(arms)
        covariates = [dict(given) for given in self.covariates] if self.covariates else [None] * len(arms)
        columns = zip(units, arms, held, forecasts, covariates, strict=True)
        return [
            Row(number, self.at, unit, arm, self.plan, self.distribution, is_held, tuple(row), given)
            for number, (unit, arm, is_held, row, given) in enumerate(columns, self.first)
        ]


class _KeptTold(NamedTuple):
    """A :class:`Told` in less than half the memory."""

    at: float
    metric: str
    proposals: bytes
    values: bytes

    def entry(self) -> Told:
        return Told(self.at, self.metric, np.frombuffer(self.proposals, np.int64), np.frombuffer(self.values))


class _KeptNoted(NamedTuple):
    """A :class:`Noted` as text, so that changing what was read does not change what is stored."""

    at: float
    kind: str
    text: str

    def entry(self) -> Noted:
        return Noted(self.at, self.kind, json.loads(self.text))


_Kept = _KeptAsked | _KeptTold | _KeptNoted


def _kept(entry: Entry) -> _Kept:
    """Return an entry in its compact form."""
    if isinstance(entry, Asked):
        numbers = (entry.at, entry.first, entry.plan, entry.distribution)
        arms = entry.arms.tobytes()
        forecasts = entry.forecasts.tobytes()
        return _KeptAsked(*numbers, arms, forecasts, entry.units, entry.held.tobytes(), entry.covariates)
    if isinstance(entry, Told):
        return _KeptTold(entry.at, entry.metric, entry.proposals.tobytes(), entry.values.tobytes())
    return _KeptNoted(entry.at, entry.kind, json.dumps(entry.data))


class MemoryStore(LockedForkable):
    """A :class:`~orthobandit.experiment.store.Store` that lasts as long as its process.

    A proposal and its reward, asked and told one by one, take about half a kilobyte.

    Examples
    --------
    >>> from orthobandit.experiment.ledger.entries import Noted
    >>> store = MemoryStore()
    >>> store.create({"window": 60})
    >>> with store.exclusive() as writer:
    ...     writer.append([Noted(0.0, "pause", {})])
    1
    >>> [(seq, entry.kind) for seq, entry in store.entries()]
    [(1, 'pause')]
    """

    def __init__(self) -> None:
        super().__init__()
        self._settings: str | None = None
        self._head = Head()
        self._entries: list[_Kept] = []
        self._drawn: list[_KeptAsked] = []  # those of the entries that drew proposals, in order
        self._first_of_unit: dict[str, int] = {}
        self._rewards: dict[str, _Rewards] = {}  # by metric
        self._snapshot: tuple[int, str] | None = None
        self._requests: dict[str, tuple[float, str]] = {}
        self._writer: _MemoryWriter | None = None
        self._is_closed = False
        register_forkable(self)

    def create(self, settings: Mapping[str, Any]) -> None:
        """Begin the experiment; see :meth:`Store.create`."""
        text = as_json("settings", settings)
        with self._lock:
            if self._is_closed:
                raise ClosedError("the store is closed; make another")
            if self._settings is not None:
                raise ExperimentExistsError("this store holds an experiment already; make another store")
            self._settings = text

    def settings(self) -> dict[str, Any]:
        """Return a copy of the settings; see :meth:`Store.settings`."""
        return dict(json.loads(self._ready()))

    def exclusive(self) -> AbstractContextManager[Writer]:
        """Wait for the others, then write; see :meth:`Store.exclusive`."""
        return _Block(self)

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """Yield what is committed; see :meth:`Store.entries`."""
        while True:
            with self._lock:
                self._ready()
                found = self._entries[after : after + ENTRIES_PER_BLOCK]
            if not found:
                return
            for kept in found:
                after += 1
                yield after, kept.entry()

    def snapshot(self) -> tuple[int, dict[str, Any]] | None:
        """Return the newest snapshot; see :meth:`Store.snapshot`."""
        self._ready()
        with self._lock:
            kept = self._snapshot
        return None if kept is None else (kept[0], json.loads(kept[1]))

    def proposals(self, numbers: Sequence[int]) -> list[Row]:
        """Return proposals by number; see :meth:`Store.proposals`."""
        self._ready()
        with self._lock:
            found = []
            for number in map(int, numbers):
                check_drawn(number, self._head.number)
                index = bisect_right(self._drawn, number, key=lambda kept: kept.first) - 1
                found.append(self._drawn[index].rows()[number - self._drawn[index].first])
            return found

    def outcomes(self, numbers: Sequence[int]) -> list[Outcome]:
        """Return proposals with their rewards by number; see :meth:`Store.outcomes`."""
        rows = self.proposals(numbers)
        with self._lock:
            return [self._outcome(row) for row in rows]

    def distribution(self, number: int) -> dict[str, Any]:
        """Return a plan or distribution by number; see :meth:`Store.distribution`."""
        self._ready()
        with self._lock:
            for kept in reversed(self._entries):
                if isinstance(kept, _KeptNoted) and kept.kind in NUMBERED:
                    data = json.loads(kept.text)
                    if data["number"] == number:
                        return dict(data)
        raise ParameterError(f"number={number!r} is not a distribution of this experiment")

    def table(self) -> Iterator[Outcome]:
        """Yield proposals with their rewards; see :meth:`Store.table`."""
        done = 0
        while True:
            with self._lock:
                self._ready()
                drawn = self._drawn[done : done + ENTRIES_PER_BLOCK]
            if not drawn:
                return
            for kept in drawn:
                rows = kept.rows()
                with self._lock:
                    self._ready()
                    outcomes = [self._outcome(row) for row in rows]
                yield from outcomes
            done += len(drawn)

    def close(self) -> None:
        """Drop the log."""
        with self._lock:
            self._is_closed = True
            self._entries = []
            self._drawn = []
            self._first_of_unit = {}
            self._rewards = {}

    fork_order = 1  # after the queues, whose threads wait for this lock

    def after_fork_in_child(self) -> None:
        """Drop an exclusive block of a thread that does not exist in the child."""
        super().after_fork_in_child()
        self._writer = None

    def _ready(self) -> str:
        if self._is_closed:
            raise ClosedError("the store is closed; what it held is gone")
        if self._settings is None:
            raise UnknownExperimentError("there is no experiment yet; call create first")
        return self._settings

    def _outcome(self, row: Row) -> Outcome:
        """Return a proposal with its rewards."""
        outcome = Outcome(row, {}, {})
        for metric, rewards in self._rewards.items():
            at = rewards.times[row.number - 1] if row.number <= len(rewards.times) else math.nan
            if not math.isnan(at):
                outcome.rewards[metric] = rewards.sums[row.number - 1]
                outcome.told[metric] = at
        return outcome

    def _commit(self, writer: "_MemoryWriter") -> None:
        """Make everything that a writer has added part of the store."""
        for entry in writer.added:
            kept = _kept(entry)
            self._entries.append(kept)
            if isinstance(kept, _KeptAsked):
                self._drawn.append(kept)
            elif isinstance(entry, Told):
                self._rewards.setdefault(entry.metric, _Rewards()).add(entry)
        for unit, number in writer.added_units.items():
            self._first_of_unit.setdefault(unit, number)
        self._head = writer.head
        self._snapshot = writer.kept
        self._requests.update(writer.added_requests)
        if writer.forget_before > -math.inf:
            self._requests = {
                key: one for key, one in self._requests.items() if one[0] >= writer.forget_before
            }


class _Rewards:
    """Rewards of one metric by proposal: their sum, and the time of the last, NaN if there is none."""

    def __init__(self) -> None:
        self.sums = array("d")
        self.times = array("d")

    def add(self, told: Told) -> None:
        """Add the rewards of an entry."""
        numbers = told.proposals.tolist()
        missing = max(numbers) - len(self.sums)
        if missing > 0:
            self.sums.extend([0.0] * missing)
            self.times.extend([math.nan] * missing)
        for number, value in zip(numbers, told.values.tolist(), strict=True):
            self.sums[number - 1] += value
            self.times[number - 1] = told.at


class _Block:
    """The context of :meth:`MemoryStore.exclusive`; a class, because a generator would take twice as long."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def __enter__(self) -> Writer:
        store = self._store
        store._lock.acquire()
        try:
            store._ready()
            if store._writer is not None:
                raise ConflictError("this thread has an exclusive block open; end that one first")
            store._writer = self._writer = _MemoryWriter(store)
        except BaseException:
            store._lock.release()
            raise
        return self._writer

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        store = self._store
        try:
            if kind is None:
                store._commit(self._writer)
        finally:
            store._writer = None
            self._writer.is_open = False
            store._lock.release()


class _MemoryWriter:
    """The writer of an exclusive block; what it adds becomes part of the store when the block ends."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.head = store._head
        self.kept = store._snapshot
        self.added: list[Entry] = []
        self.added_units: dict[str, int] = {}
        self.added_requests: dict[str, tuple[float, str]] = {}
        self.forget_before = -math.inf
        self.is_open = True

    def last(self) -> int:
        self._check_open()
        return self.head.seq

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        self._check_open()
        committed = len(self._store._entries)
        for seq, kept in enumerate(self._store._entries[after:], after + 1):
            yield seq, kept.entry()
        start = max(after - committed, 0)
        yield from enumerate(self.added[start:], committed + start + 1)

    def append(self, entries: Sequence[Entry]) -> int:
        self._check_open()
        self.head = self.head.after(entries)
        self.added.extend(entries)
        for entry in entries:
            if isinstance(entry, Asked):
                for number, unit in enumerate(entry.units, entry.first):
                    if unit is not None:
                        self.added_units.setdefault(unit, number)
        return self.head.seq

    def keep(self, seq: int, state: Mapping[str, Any]) -> None:
        self._check_open()
        check_snapshot(seq, self.head.seq)
        if self.kept is None or seq >= self.kept[0]:
            self.kept = (seq, as_json("the state", state))

    def known(self, units: Sequence[str]) -> dict[str, int]:
        self._check_open()
        first = ChainMap(self._store._first_of_unit, self.added_units)
        return {unit: first[unit] for unit in units if unit in first}

    def recall(self, key: str) -> str | None:
        self._check_open()
        at, text = self.added_requests.get(key) or self._store._requests.get(key) or (-math.inf, None)
        return text if at >= self.forget_before else None

    def remember(self, key: str, at: float, text: str) -> None:
        self._check_open()
        self.added_requests[key] = (at, text)

    def forget(self, before: float) -> None:
        self._check_open()
        self.forget_before = max(self.forget_before, before)

    def _check_open(self) -> None:
        if not self.is_open:
            raise ClosedError("the exclusive block has ended; open another")
