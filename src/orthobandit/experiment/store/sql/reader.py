"""Reading a log from tables, a block at a time; entries are sealed, so that damage is noticed."""

import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from orthobandit.errors import DamagedStoreError, InputError
from orthobandit.experiment.ledger.entries import Asked, Entry, Noted, Told, encode_entry
from orthobandit.experiment.store.contract import Head, Outcome, Row, check_drawn
from orthobandit.experiment.store.sql.statements import FEW, MANY, Statements

ENTRIES_PER_BLOCK = 512  # entries that are read at once
MAX_ROWS_PER_BLOCK = 20_000  # rows of them that are read at once, unless one entry has more
PROPOSALS_PER_STEP = 2000  # proposals of one step of a table
ENTRIES_READ_AHEAD = 16  # entries that are read before it is known whether there are any


class Ahead(NamedTuple):
    """Queries that were sent ahead: new entries, their proposals and rewards."""

    events: Callable[[], list[Any]]
    proposals: Callable[[], list[Any]]
    rewards: Callable[[], list[Any]]

    def block(self, last: int, before: bytes) -> list[tuple[int, Entry]] | None:
        """Return all entries up to `last`, the first of which follows the seal `before`.

        None if there are more than were asked for, or they are damaged; then read them again.
        """
        records = self.events()
        proposals = self.proposals()
        rewards = self.rewards()
        try:
            events = [event_of(record) for record in records]
            drawn = sum(event.rows for event in events if event.kind == "asked")
            if not events or events[-1].seq != last or drawn != len(proposals):
                return None
            return check_entries(events, [row_of(record) for record in proposals], rewards, before)
        except (DamagedStoreError, KeyError, TypeError, ValueError):
            return None


class Reader:
    """Queries on the tables of one experiment; every method takes the cursor to use.

    Parameters
    ----------
    statements : Statements
    experiment : int
        The number of the experiment in its table.
    root : bytes
        The seal that the first entry follows: that of the settings.
    """

    def __init__(self, statements: Statements, experiment: int, root: bytes) -> None:
        self.statements = statements
        self.experiment = experiment
        self.root = root

    def head(self, cursor: Any) -> tuple[Head, bytes]:
        """Return where the log ends, and the seal of its newest entry."""
        return self.head_of(self.statements.newest.run(cursor, self.experiment))

    def head_of(self, found: list[Any]) -> tuple[Head, bytes]:
        """Return where the log ends, from the result of its query."""
        if not found:
            return Head(), self.root
        [(seq, at, before, number, forecasts)] = found
        metrics = None if forecasts is None else len(json.loads(forecasts))
        return Head(seq, at, number or 0, metrics), bytes(before)

    def seal(self, cursor: Any, seq: int) -> bytes | None:
        """Return the seal of an entry, None if there is no such entry."""
        if seq == 0:
            return self.root
        found = self.statements.seal.run(cursor, self.experiment, seq)
        return bytes(found[0][0]) if found else None

    def block(self, cursor: Any, after: int, before: bytes) -> tuple[list[tuple[int, Entry]], bytes]:
        """Return some entries beyond `after`, whose seal is `before`, and the seal of the last of them."""
        records = self.statements.events.run(cursor, self.experiment, after, after + ENTRIES_PER_BLOCK)
        if not records:
            newest = self.statements.newest_event.run(cursor, self.experiment)
            if not newest or newest[0][0] <= after:
                return [], before
            # Somebody has appended in between; or what was there cannot be found any more.
            records = self.statements.events.run(cursor, self.experiment, after, after + ENTRIES_PER_BLOCK)
            if not records:
                raise damage_error(f"entry {after + 1}")
        try:
            events = first_group([event_of(record) for record in records])
            asked = [event for event in events if event.kind == "asked"]
            proposals: list[Row] = []
            if asked:
                last = asked[-1].data["first"] + asked[-1].rows - 1
                proposals = self.rows(cursor, asked[0].data["first"] - 1, last)
        except (KeyError, TypeError, ValueError) as error:
            raise damage_error(f"an entry between {after + 1} and {records[-1][0]}") from error
        rewards = self.statements.rewards_of_events.run(cursor, self.experiment, after, events[-1].seq)
        return check_entries(events, proposals, rewards, before), events[-1].seal

    def ahead(self, cursors: Sequence[Any], head: Head) -> Ahead:
        """Send the queries for the few entries that may have come after `head`, by three cursors."""
        statements = self.statements
        mine = self.experiment
        most = head.seq + ENTRIES_READ_AHEAD
        return Ahead(
            statements.events.begun(cursors[0], mine, head.seq, most),
            statements.proposals.begun(cursors[1], mine, head.number, head.number + MAX_ROWS_PER_BLOCK),
            statements.rewards_of_events.begun(cursors[2], mine, head.seq, most),
        )

    def rows(self, cursor: Any, above: int, most: int) -> list[Row]:
        """Return proposals with numbers beyond `above` up to `most`."""
        return [
            row_of(record) for record in self.statements.proposals.run(cursor, self.experiment, above, most)
        ]

    def proposals(self, cursor: Any, numbers: Sequence[int]) -> list[Row]:
        """Return proposals by number; consecutive ones are read together."""
        wanted = sorted(set(map(int, numbers)))
        last = self.head(cursor)[0].number if wanted else 0
        for number in wanted[:1] + wanted[-1:]:
            check_drawn(number, last)
        gaps = [index for index, (one, next_) in enumerate(pairwise(wanted), 1) if next_ > one + 1]
        found: dict[int, Row] = {}
        for start, stop in pairwise([0, *gaps, len(wanted)] if wanted else []):
            rows = self.rows(cursor, wanted[start] - 1, wanted[stop - 1])
            found.update((row.number, row) for row in rows)
        return [found[int(number)] for number in numbers]

    def outcomes(self, cursor: Any, above: int, most: int | None = None) -> list[Outcome]:
        """Return proposals with numbers beyond `above`, the next few by default, with their rewards."""
        end = above + PROPOSALS_PER_STEP if most is None else most
        rows = self.rows(cursor, above, end)
        rewards = self.statements.rewards_of_proposals.run(cursor, self.experiment, above, end)
        return list(outcomes(rows, rewards))

    def distribution(self, cursor: Any, number: int) -> dict[str, Any] | None:
        """Return the data of the plan or distribution of this number, if there is one."""
        found = self.statements.distribution.run(cursor, self.experiment, int(number))
        return dict(json.loads(found[0][0])) if found else None

    def known(self, cursor: Any, units: Sequence[str]) -> dict[str, int]:
        """Return the first proposal of each unit that has one."""
        found: dict[str, int] = {}
        statements = self.statements
        done = 0
        # A few statements for every number of units: the last unit fills the places that are left.
        sizes = ((MANY, statements.known_many), (FEW, statements.known_few), (1, statements.known_one))
        while done < len(units):
            left = len(units) - done
            size, statement = next(one for one in sizes if left > one[0] // 4)
            some = tuple(units[done : done + size])
            padded = some + some[-1:] * (size - len(some))
            found.update(statement.run(cursor, self.experiment, *padded))
            done += size
        return found


def seal(data: bytes, before: bytes = b"") -> bytes:
    """Return the hash of data chained to the seal before them."""
    return blake2b(before + data, digest_size=16).digest()


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
        """Return how many rows it has in other tables."""
        return int(self.data["count"]) if self.kind in ("asked", "told") else 0


def event_of(record: Sequence[Any]) -> Event:
    """Return an event from its record, without the experiment."""
    seq, kind, at, data, mark = record
    return Event(seq, kind, at, json.loads(data), bytes(mark))


def first_group(events: Sequence[Event]) -> Sequence[Event]:
    """Return the first events with at most `MAX_ROWS_PER_BLOCK` rows together, and at least one."""
    size = 0
    for index, event in enumerate(events):
        size += event.rows
        if index and size > MAX_ROWS_PER_BLOCK:
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
    """Return the entry of proposals drawn together, from its event and the rows of the proposals."""
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


def check_entries(
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
            raise damage_error(f"entry {event.seq}") from error
        asked = asked + len(mine)
        told = told + len(values)
        before = seal(encode_entry(entry), before)
        if before != event.seal:
            raise damage_error(f"entry {event.seq}")
        found.append((event.seq, entry))
    return found


def damage_error(what: str) -> DamagedStoreError:
    """Return the error to raise for data that changed after they were written."""
    return DamagedStoreError(f"{what} has changed since it was written; restore a copy")
