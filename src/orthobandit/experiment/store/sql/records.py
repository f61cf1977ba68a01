"""Entries as rows of tables and back, sealed so that damage is noticed."""

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.json_arrays import json_text
from orthobandit.errors import DamagedStoreError, InputError
from orthobandit.experiment.ledger.entries import NUMBERED, Asked, Entry, Noted, Told, encoded
from orthobandit.experiment.store.contract import Outcome, Row

BLOCK = 512  # entries read at once
ROWS = 20_000  # and rows of them, unless one entry has more


def seal(data: bytes, before: bytes = b"") -> bytes:
    """Return the hash of data and of what came before them."""
    return blake2b(before + data, digest_size=16).digest()


class Rows(NamedTuple):
    """Rows to insert, in the order of the columns."""

    events: list[tuple[Any, ...]]
    plans: list[tuple[Any, ...]]
    proposals: list[tuple[Any, ...]]
    rewards: list[tuple[Any, ...]]
    seal: bytes


def rows_of(experiment: int, entries: Sequence[Entry], last: int, before: bytes) -> Rows:
    """Return the rows of entries that follow the entry `last`, whose seal is `before`."""
    rows = Rows([], [], [], [], before)
    for seq, entry in enumerate(entries, last + 1):
        before = seal(encoded(entry), before)
        if isinstance(entry, Asked):
            kind = "asked"
            data = f'{{"first":{entry.first},"count":{entry.count}}}'
            rows.proposals.extend(_proposals(experiment, entry))
        elif isinstance(entry, Told):
            kind = "told"
            data = f'{{"metric": {_quoted(entry.metric)}, "count": {entry.count}}}'
            pairs = zip(entry.proposals.tolist(), entry.values.tolist(), strict=True)
            rows.rewards.extend(
                (experiment, seq, position, proposal, entry.metric, entry.at, value)
                for position, (proposal, value) in enumerate(pairs)
            )
        else:
            kind = entry.kind
            data = json_text(entry.data)
            if kind in NUMBERED:
                rows.plans.append((experiment, kind, entry.data["number"], seq))
        rows.events.append((experiment, seq, kind, entry.at, data, before))
    return rows._replace(seal=before)


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return json.dumps(text)


def _proposals(experiment: int, entry: Asked) -> Iterator[tuple[Any, ...]]:
    units = entry.units or (None,) * entry.count
    given = [json.dumps(row) for row in entry.covariates] or (None,) * entry.count
    # The text of a list of finite floats is JSON, and reads back as the same numbers.
    forecasts = map(str, entry.forecasts.T.tolist())
    columns = zip(units, entry.arms.tolist(), entry.held.tolist(), forecasts, given, strict=True)
    for number, (unit, arm, held, row, covariates) in enumerate(columns, entry.first):
        fixed = (entry.plan, entry.distribution)
        yield (experiment, number, entry.at, unit, arm, *fixed, held, row, covariates)


def row_of(record: Sequence[Any]) -> Row:
    """Return a proposal from its record, without the experiment."""
    number, at, unit, arm, plan, distribution, held, forecasts, covariates = record
    given = None if covariates is None else json.loads(covariates)
    parsed = tuple(json.loads(forecasts))
    return Row(number, at, unit, arm, plan, distribution, bool(held), parsed, given)


def outcomes(rows: Sequence[Row], rewards: Sequence[Sequence[Any]]) -> Iterator[Outcome]:
    """Yield proposals with their rewards: records of proposal, metric, at and value, ordered by proposal."""
    by_proposal = {number: list(some) for number, some in groupby(rewards, key=itemgetter(0))}
    for row in rows:
        outcome = Outcome(row, {}, {})
        for _, metric, at, value in by_proposal.get(row.number, ()):
            outcome.rewards[metric] = outcome.rewards.get(metric, 0.0) + value
            outcome.told[metric] = at
        yield outcome


class Event(NamedTuple):
    """An entry of the log without its rows; `data` as in the table, read."""

    seq: int
    kind: str
    at: float
    data: dict[str, Any]
    seal: bytes

    @property
    def rows(self) -> int:
        """Return how many rows it has elsewhere."""
        return int(self.data["count"]) if self.kind in ("asked", "told") else 0


def event_of(record: Sequence[Any]) -> Event:
    """Return an event from its record, without the experiment."""
    seq, kind, at, data, mark = record
    return Event(seq, kind, at, json.loads(data), bytes(mark))


def first_group(events: Sequence[Event]) -> Sequence[Event]:
    """Return the first events, as many as have at most `ROWS` rows together, and at least one."""
    size = 0
    for index, event in enumerate(events):
        size += event.rows
        if index and size > ROWS:
            return events[:index]
    return events


def entry_of(event: Event, proposals: Sequence[Row], rewards: Sequence[Sequence[Any]]) -> Entry:
    """Return the entry of an event and its rows, proposals or (event, proposal, value)."""
    if event.kind == "asked":
        return _asked(event, proposals)
    if event.kind == "told":
        numbers = np.array([record[1] for record in rewards], np.int64)
        values = np.array([record[2] for record in rewards], np.float64)
        return Told(event.at, event.data["metric"], numbers, values)
    return Noted(event.at, event.kind, event.data)


def _asked(event: Event, rows: Sequence[Row]) -> Asked:
    forecasts = np.array([row.forecasts for row in rows], np.float64).reshape(len(rows), -1).T
    has_covariates = rows[0].covariates is not None
    return Asked(
        event.at,
        event.data["first"],
        rows[0].plan,
        rows[0].distribution,
        np.array([row.arm for row in rows], np.int64),
        forecasts,
        tuple(row.unit for row in rows),
        np.array([row.held for row in rows], np.bool_),
        tuple(row.covariates or {} for row in rows) if has_covariates else (),
    )


def checked(
    events: Sequence[Event], proposals: Sequence[Row], rewards: Sequence[Sequence[Any]], before: bytes
) -> list[tuple[int, Entry]]:
    """Return the entries of consecutive events, after checking that they are as they were appended.

    Raises
    ------
    DamagedStoreError
        If they are not.
    """
    found: list[tuple[int, Entry]] = []
    asked = told = 0
    for event in events:
        try:
            mine = proposals[asked : asked + event.rows] if event.kind == "asked" else ()
            values = rewards[told : told + event.rows] if event.kind == "told" else ()
            entry = entry_of(event, mine, values)
        except (InputError, LookupError, TypeError, ValueError) as error:
            raise damaged(f"entry {event.seq}") from error
        asked = asked + len(mine)
        told = told + len(values)
        before = seal(encoded(entry), before)
        if before != event.seal:
            raise damaged(f"entry {event.seq}")
        found.append((event.seq, entry))
    return found


def damaged(what: str) -> DamagedStoreError:
    """Return the error of something that is not as it was written."""
    return DamagedStoreError(f"{what} is not as it was written; restore a copy")
