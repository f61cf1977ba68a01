"""Reading a log from tables, a block at a time."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from orthobandit.errors import DamagedStoreError
from orthobandit.experiment.ledger.entries import Entry
from orthobandit.experiment.store.contract import Head, Outcome, Row, check_drawn
from orthobandit.experiment.store.sql.records import (
    BLOCK,
    ROWS,
    checked,
    damaged,
    event_of,
    first_group,
    outcomes,
    row_of,
)
from orthobandit.experiment.store.sql.statements import FEW, MANY, Statements

TABLE = 2000  # proposals of one step of a table
AHEAD = 16  # entries that are read before it is known whether there are any


class Ahead(NamedTuple):
    """What was asked of the tables and not yet heard of: new entries, their proposals and rewards."""

    events: Callable[[], list[Any]]
    proposals: Callable[[], list[Any]]
    rewards: Callable[[], list[Any]]

    def block(self, last: int, before: bytes) -> list[tuple[int, Entry]] | None:
        """Return all entries up to `last`, the first of which follows the seal `before`.

        None if they are more than were asked for, or not what they should be: they are to be read again.
        """
        records = self.events()
        proposals = self.proposals()
        rewards = self.rewards()
        try:
            events = [event_of(record) for record in records]
            drawn = sum(event.rows for event in events if event.kind == "asked")
            if not events or events[-1].seq != last or drawn != len(proposals):
                return None
            return checked(events, [row_of(record) for record in proposals], rewards, before)
        except (DamagedStoreError, KeyError, TypeError, ValueError):
            return None


class Reader:
    """What can be asked of one experiment's tables; every method takes the cursor to ask with.

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
        """Return where the log ends by what its query has found."""
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
        records = self.statements.events.run(cursor, self.experiment, after, after + BLOCK)
        if not records:
            newest = self.statements.newest_event.run(cursor, self.experiment)
            if not newest or newest[0][0] <= after:
                return [], before
            # Somebody has appended in between; or what was there cannot be found any more.
            records = self.statements.events.run(cursor, self.experiment, after, after + BLOCK)
            if not records:
                raise damaged(f"entry {after + 1}")
        try:
            events = first_group([event_of(record) for record in records])
            asked = [event for event in events if event.kind == "asked"]
            proposals: list[Row] = []
            if asked:
                last = asked[-1].data["first"] + asked[-1].rows - 1
                proposals = self.rows(cursor, asked[0].data["first"] - 1, last)
        except (KeyError, TypeError, ValueError) as error:
            raise damaged(f"an entry between {after + 1} and {records[-1][0]}") from error
        rewards = self.statements.rewards_of_events.run(cursor, self.experiment, after, events[-1].seq)
        return checked(events, proposals, rewards, before), events[-1].seal

    def ahead(self, cursors: Sequence[Any], head: Head) -> Ahead:
        """Begin to read the few entries that may have come after `head`, by three cursors."""
        statements = self.statements
        mine = self.experiment
        most = head.seq + AHEAD
        return Ahead(
            statements.events.begun(cursors[0], mine, head.seq, most),
            statements.proposals.begun(cursors[1], mine, head.number, head.number + ROWS),
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
        end = above + TABLE if most is None else most
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
