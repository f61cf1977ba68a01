"""Writing to the tables, in an exclusive transaction."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, Self

from sqlalchemy.engine import Connection

from orthobandit._foundation.json_arrays import json_text
from orthobandit.errors import ClosedError, StorageError
from orthobandit.experiment.ledger.entries import NUMBERED, Asked, Entry, Told, encode_entry
from orthobandit.experiment.store.contract import Head, as_json, check_snapshot
from orthobandit.experiment.store.sql.connections import version
from orthobandit.experiment.store.sql.reader import Ahead, Reader, seal

ENDED = "the exclusive block has ended; open another"


class End(NamedTuple):
    """Where the log ended, valid until somebody else writes; see :func:`~.connections.version`."""

    version: int | None
    head: Head
    seal: bytes
    is_shared: bool = False  # whether others had written since the block before


class SQLWriter:
    """A :class:`~orthobandit.experiment.store.Writer` in a transaction that has begun; a context.

    After a database error nothing more can be done in the block, and its end raises that error: the database
    may have aborted the transaction, and later statements would be committed alone.

    Parameters
    ----------
    reader : Reader
    connection : Connection
    errors : function
        Makes the context that gives names to errors of the database.
    end : End, optional
        Where the last block of the same connection left the log.
    """

    def __init__(
        self,
        reader: Reader,
        connection: Connection,
        errors: Callable[[], AbstractContextManager[None]],
        end: End | None = None,
    ) -> None:
        self._reader = reader
        self._errors = errors
        self._failure: StorageError | None = None
        self._before = end
        self._has_appended = False
        self._ahead: Ahead | None = None
        with errors():
            self._cursor: Any = connection.connection.cursor()
            self._version = version(connection)
            if end is not None and end.version is not None and end.version == self._version:
                self._head = end.head
                self._seal = end.seal
            else:
                self._begin(connection)
        self._is_shared = end is not None and end.head.seq < self._head.seq

    def _begin(self, connection: Connection) -> None:
        """Wait for other writers, then read where the log ends, and what others wrote since.

        Where the database allows, all queries are sent at once; they run after the lock is held, so they see
        everything committed before it.
        """
        reader = self._reader
        statements = self._reader.statements
        cursors = [connection.connection.cursor() for _ in range(4)]
        locked = statements.lock.begun(cursors[0], reader.experiment)
        newest = statements.newest.begun(self._cursor, reader.experiment)
        if self._before is not None and self._before.is_shared:
            self._ahead = reader.ahead(cursors[1:], self._before.head)
        self._head, self._seal = reader.head_of(newest())
        locked()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._cursor.close()
        self._cursor = None
        if kind is None and self._failure is not None:
            raise self._failure

    @property
    def end(self) -> End:
        """Return where the log ends."""
        return End(self._version, self._head, self._seal, self._is_shared)

    def last(self) -> int:
        """Return the seq of the newest entry."""
        if self._cursor is None:
            raise ClosedError(ENDED)
        return self._head.seq

    def entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """Yield entries, those of this block among them."""
        known = self._before
        if known is not None and known.head.seq == after:
            before: bytes | None = known.seal
            found = self._read_ahead(known)
            if found:
                yield from found
                return
        else:
            with self._running() as cursor:
                before = self._reader.seal(cursor, after)
        while before is not None and after < self.last():  # nobody else appends meanwhile
            with self._running() as cursor:
                found, before = self._reader.block(cursor, after, before)
            if not found:
                return
            yield from found
            after = found[-1][0]

    def _read_ahead(self, known: End) -> list[tuple[int, Entry]] | None:
        """Return the entries of others, if they were read ahead and nothing was appended since."""
        ahead, self._ahead = self._ahead, None
        if ahead is None or self._has_appended:
            return None
        with self._running():
            return ahead.block(self._head.seq, known.seal)

    def append(self, entries: Sequence[Entry]) -> int:
        """Append entries and return the seq of the last."""
        head = self._head.after(entries)
        statements = self._reader.statements
        rows = rows_of(self._reader.experiment, entries, self._head.seq, self._seal)
        with self._running() as cursor:
            statements.add_event.change(cursor, rows.events)
            statements.add_plan.change(cursor, rows.plans)
            statements.add_proposal.change(cursor, rows.proposals)
            statements.add_reward.change(cursor, rows.rewards)
        self._head = head
        self._seal = rows.seal
        self._has_appended = True
        return head.seq

    def keep(self, seq: int, state: Mapping[str, Any]) -> None:
        """Keep a snapshot in place of older ones."""
        check_snapshot(seq, self._head.seq)
        text = as_json("the state", state)
        mine = self._reader.experiment
        with self._running() as cursor:
            self._reader.statements.drop_snapshots.change(cursor, [(mine, seq)])
            self._reader.statements.add_snapshot.change(cursor, [(mine, seq, text, seal(text.encode()))])

    def known(self, units: Sequence[str]) -> dict[str, int]:
        """Return the first proposal of each unit that has one."""
        with self._running() as cursor:
            return self._reader.known(cursor, units)

    def recall(self, key: str) -> str | None:
        """Return the remembered answer to a request."""
        with self._running() as cursor:
            found = self._reader.statements.request.run(cursor, self._reader.experiment, key)
        return found[0][0] if found else None

    def remember(self, key: str, at: float, text: str) -> None:
        """Remember a request."""
        with self._running() as cursor:
            rows = [(self._reader.experiment, key, at, text)]
            self._reader.statements.add_request.change(cursor, rows)

    def forget(self, before: float) -> None:
        """Forget old requests."""
        with self._running() as cursor:
            self._reader.statements.drop_requests.change(cursor, [(self._reader.experiment, before)])

    @contextmanager
    def _running(self) -> Iterator[Any]:
        if self._cursor is None:
            raise ClosedError(ENDED)
        if self._failure is not None:
            raise self._failure
        try:
            with self._errors():
                yield self._cursor
        except StorageError as error:
            self._failure = error
            raise


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
        before = seal(encode_entry(entry), before)
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
