"""A store in memory: quick, small, and gone with its process."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import Any

import numpy as np

from orthobandit._foundation.forks import Forkable, register_forkable
from orthobandit.errors import (
    ClosedError,
    ConflictError,
    ExperimentExistsError,
    ParameterError,
    UnknownExperimentError,
)
from orthobandit.experiment.ledger.entries import Entry
from orthobandit.experiment.store.columns import CHUNK
from orthobandit.experiment.store.contract import Outcome, Row, Writer
from orthobandit.experiment.store.log import BLOCK, Log
from orthobandit.experiment.store.order import as_json, check_drawn, check_snapshot


class MemoryStore(Forkable):
    """A :class:`~orthobandit.experiment.store.Store` that lasts as long as its process.

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
        self._lock = RLock()
        self._log = Log()
        self._settings: str | None = None
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
                raise ExperimentExistsError("this store has its experiment; make another store")
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
                found = self._log.block(after, self._log.settled.seq)
            if not found:
                return
            yield from enumerate(found, after + 1)
            after += len(found)

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
            for number in numbers:
                check_drawn(number, self._log.settled.number)
            return [self._log.rows(number - 1, number)[0] for number in map(int, numbers)]

    def outcomes(self, numbers: Sequence[int]) -> list[Outcome]:
        """Return proposals with their rewards by number; see :meth:`Store.outcomes`."""
        found = [Outcome(row, {}, {}) for row in self.proposals(numbers)]
        with self._lock:
            spans = _Spans(self._log)
            for outcome in found:
                _add(outcome, spans.between(outcome.proposal.number - 1, outcome.proposal.number))
        return found

    def distribution(self, number: int) -> dict[str, Any]:
        """Return a plan or distribution by number; see :meth:`Store.distribution`."""
        self._ready()
        with self._lock:
            found = self._log.distribution(number)
        if found is None:
            raise ParameterError(f"number={number!r} is not a distribution of this experiment")
        return found

    def table(self) -> Iterator[Outcome]:
        """Yield proposals with their rewards; see :meth:`Store.table`."""
        start = 0
        spans = _Spans(self._log)
        while True:
            with self._lock:
                self._ready()
                stop = min(start + BLOCK, self._log.settled.number)
                rows = self._log.rows(start, stop) if stop > start else []
                outcomes = [Outcome(row, {}, {}) for row in rows]
                for reward in spans.between(start, stop):
                    _add(outcomes[reward[0] - start - 1], [reward])
            if not outcomes:
                return
            yield from outcomes
            start = stop

    def close(self) -> None:
        """Let the log go."""
        with self._lock:
            self._is_closed = True
            self._log = Log()

    def after_fork_in_child(self) -> None:
        """Take back what another thread had begun, which is not in this process."""
        self._lock = RLock()
        if self._writer is not None:
            self._writer = None
            self._log.cut()

    @property
    def nbytes(self) -> int:
        """Return the room of the log, but for units, covariates and notes."""
        return self._log.nbytes

    def _ready(self) -> str:
        if self._is_closed:
            raise ClosedError("the store is closed; what it held is gone")
        if self._settings is None:
            raise UnknownExperimentError("there is no experiment yet; call create first")
        return self._settings


class _Block:
    """The context of :meth:`MemoryStore.exclusive`; not a generator, which would take twice as long."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def __enter__(self) -> Writer:
        store = self._store
        store._lock.acquire()
        try:
            store._ready()
            if store._writer is not None:
                raise ConflictError("this thread has an exclusive block open; end that one first")
            store._writer = self._writer = _MemoryWriter(store._log, store._snapshot, store._requests)
        except BaseException:
            store._lock.release()
            raise
        return self._writer

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        store = self._store
        try:
            if kind is None:
                store._log.settle()
                store._snapshot = self._writer.kept
                store._requests = self._writer.requests()
            else:
                store._log.cut()
        finally:
            store._writer = None
            self._writer.is_open = False
            store._lock.release()


class _MemoryWriter:
    """The store while nobody else writes."""

    def __init__(
        self, log: Log, kept: tuple[int, str] | None, requests: dict[str, tuple[float, str]]
    ) -> None:
        self._log = log
        self.kept = kept
        self._requests = requests
        self._added = dict[str, tuple[float, str]]()
        self._before = -np.inf
        self.is_open = True

    def last(self) -> int:
        return self._ready().head.seq

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        while found := self._ready().block(after, self._log.head.seq):
            yield from enumerate(found, after + 1)
            after += len(found)

    def append(self, entries: Sequence[Entry]) -> int:
        log = self._ready()
        log.append(entries)
        return log.head.seq

    def keep(self, seq: int, state: Mapping[str, Any]) -> None:
        check_snapshot(seq, self._ready().head.seq)
        if self.kept is None or seq >= self.kept[0]:
            self.kept = (seq, as_json("the state", state))

    def known(self, units: Sequence[str]) -> dict[str, int]:
        first = self._ready().first
        return {unit: first[unit] for unit in units if unit in first}

    def recall(self, key: str) -> str | None:
        self._ready()
        at, text = self._added.get(key) or self._requests.get(key) or (-np.inf, None)
        return text if at >= self._before else None

    def remember(self, key: str, at: float, text: str) -> None:
        self._ready()
        self._added[key] = (at, text)

    def forget(self, before: float) -> None:
        self._ready()
        self._before = max(self._before, before)

    def requests(self) -> dict[str, tuple[float, str]]:
        """Return all that is remembered at the end of the block."""
        self._requests.update(self._added)
        if self._before == -np.inf:
            return self._requests
        return {key: one for key, one in self._requests.items() if one[0] >= self._before}

    def _ready(self) -> Log:
        if not self.is_open:
            raise ClosedError("the exclusive block has ended; open another")
        return self._log


def _add(outcome: Outcome, rewards: list[tuple[int, float, float, str]]) -> None:
    """Add (proposal, value, at, metric) to what was told of a proposal."""
    for _, value, at, metric in rewards:
        outcome.rewards[metric] = outcome.rewards.get(metric, 0.0) + value
        outcome.told[metric] = at


class _Spans:
    """Rewards by proposal: which chunks of them can hold rewards of a range of proposals."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._spans: list[tuple[int, int]] = []  # of each full chunk, the smallest and largest proposal

    def between(self, start: int, stop: int) -> list[tuple[int, float, float, str]]:
        """Return (proposal, value, at, metric) of proposals beyond `start` up to `stop`, as told."""
        found = []
        log = self._log
        while (len(self._spans) + 1) * CHUNK <= log.rewarded:
            chunk = log.told(len(self._spans) * CHUNK, (len(self._spans) + 1) * CHUNK)
            self._spans.append((int(chunk.min()), int(chunk.max())))
        for index in range(-(-log.rewarded // CHUNK)):
            low, high = self._spans[index] if index < len(self._spans) else (1, stop)
            if low > stop or high <= start:
                continue
            first = index * CHUNK
            told = log.told(first, min(first + CHUNK, log.rewarded))
            rows = np.flatnonzero((told > start) & (told <= stop))
            if rows.size:
                found += self._picked(first, rows)
        return found

    def _picked(self, first: int, rows: Any) -> list[tuple[int, float, float, str]]:
        low, high = int(rows[0]), int(rows[-1]) + 1
        proposals, values, at, metrics = self._log.rewards(first + low, first + high)
        return [
            (int(proposals[row]), float(values[row]), float(at[row]), metrics[row])
            for row in (rows - low).tolist()
        ]
