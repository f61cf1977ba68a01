"""SQL statements, compiled once and run by the driver's cursor: SQLAlchemy takes seven times as long."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ColumnElement, Select
from sqlalchemy.sql.expression import UpdateBase

from orthobandit.experiment.ledger.entries import NUMBERED
from orthobandit.experiment.store.sql.schema import (
    EVENTS,
    EXPERIMENTS,
    PLANS,
    PROPOSALS,
    REQUESTS,
    REWARDS,
    SNAPSHOTS,
)

# units looked up by one statement
FEW = 16
MANY = 256
SIZES = (64, 16, 4)  # rows that are added by one statement; the rest one by one


class Statement:
    """One statement; its parameters are given by position, in the order of `names`.

    Parameters
    ----------
    statement : Select or UpdateBase
    names : sequence of str
    dialect : Dialect
    """

    def __init__(self, statement: Select[Any] | UpdateBase, names: Sequence[str], dialect: Dialect) -> None:
        compiled: Any = statement.compile(dialect=dialect)
        constants = {name: value for name, value in compiled.params.items() if name not in names}
        self._text = compiled.string
        self._names = [*names, *constants]
        self._constants = tuple(constants.values())
        order = compiled.positiontup if compiled.positional else None
        self._order = None if order is None else [self._names.index(name) for name in order]
        self._is_plain = self._order == list(range(len(names)))

    def run(self, cursor: Any, *values: Any) -> list[Any]:
        """Run a query and return its rows."""
        return self.begun(cursor, *values)()

    def begun(self, cursor: Any, *values: Any) -> Callable[[], list[Any]]:
        """Send a query; return a function that waits for its rows. Until then leave the cursor alone."""
        cursor.execute(self._text, self._given(values))
        rows: Callable[[], list[Any]] = cursor.fetchall
        return rows

    def change(self, cursor: Any, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run an insertion or deletion for each row of parameters."""
        if rows:
            cursor.executemany(self._text, rows if self._is_plain else [self._given(row) for row in rows])

    def _given(self, values: tuple[Any, ...]) -> Any:
        if self._is_plain:
            return values
        values += self._constants
        if self._order is None:
            return dict(zip(self._names, values, strict=True))
        return tuple(values[index] for index in self._order)


class Insertion(Statement):
    """Inserts rows, several per statement where the driver takes parameters by position.

    Parameters
    ----------
    table : Table
    dialect : Dialect
    """

    def __init__(self, table: Table, dialect: Dialect) -> None:
        super().__init__(sa.insert(table), [column.name for column in table.c], dialect)
        self._sizes = dict[int, str]()
        # psycopg would read a text with more than 50 parameters again every time, unless it is PostgreSQL's.
        self._raw = getattr(dialect.dbapi, "RawCursor", None)
        mark = {"qmark": "?", "format": "%s"}.get("raw" if self._raw else dialect.paramstyle)
        if mark is not None or self._raw is not None:
            quoted = dialect.identifier_preparer
            width = len(table.c)
            names = ", ".join(quoted.quote(column.name) for column in table.c)
            begin = f"INSERT INTO {quoted.format_table(table)} ({names}) VALUES "  # noqa: S608
            for size in SIZES:
                marks = [mark or f"${place}" for place in range(1, width * size + 1)]
                rows = [", ".join(marks[start : start + width]) for start in range(0, len(marks), width)]
                self._sizes[size] = begin + ", ".join(f"({row})" for row in rows)

    def change(self, cursor: Any, rows: Sequence[tuple[Any, ...]]) -> None:
        """Add rows."""
        done = 0
        if len(rows) >= SIZES[-1]:
            several = cursor if self._raw is None else self._raw(cursor.connection)
            for size, text in self._sizes.items():
                while len(rows) - done >= size:
                    several.execute(text, tuple(chain.from_iterable(rows[done : done + size])))
                    done += size
        super().change(cursor, rows[done:])


class Statements:
    """All statements of a store, for one kind of database."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        event = EVENTS.c
        proposal = PROPOSALS.c
        reward = REWARDS.c
        mine: sa.BindParameter[int] = sa.bindparam("experiment")
        self.find = self._query(
            sa.select(EXPERIMENTS.c.id, EXPERIMENTS.c.settings, EXPERIMENTS.c.seal),
            EXPERIMENTS.c.name == sa.bindparam("name"),
        )
        # FOR UPDATE is where PostgreSQL's writers wait for each other; SQLite's wait at the beginning.
        lock = sa.select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.id == mine).with_for_update()
        self.lock = Statement(lock, ["experiment"], dialect)
        self.newest_event = self._newest(sa.select(event.seq, event.at, event.seal), event.seq)
        self.newest = self._newest_of_both()
        self.newest_snapshot = self._newest(
            sa.select(SNAPSHOTS.c.seq, SNAPSHOTS.c.state, SNAPSHOTS.c.seal), SNAPSHOTS.c.seq
        )
        self.seal = self._query(
            sa.select(event.seal), event.experiment == mine, event.seq == sa.bindparam("seq")
        )
        self.events = self._between(sa.select(*list(event)[1:]), event.seq)
        self.proposals = self._between(sa.select(*list(proposal)[1:]), proposal.number)
        self.rewards_of_events = self._between(
            sa.select(reward.event, reward.proposal, reward.value), reward.event, reward.position
        )
        self.rewards_of_proposals = self._between(
            sa.select(reward.proposal, reward.metric, reward.at, reward.value),
            reward.proposal,
            reward.event,
            reward.position,
        )
        self.known_one, self.known_few, self.known_many = map(self._known, (1, FEW, MANY))
        self.distribution = self._distribution()
        tables = (EVENTS, PLANS, PROPOSALS, REWARDS, SNAPSHOTS, REQUESTS)
        (
            self.add_event,
            self.add_plan,
            self.add_proposal,
            self.add_reward,
            self.add_snapshot,
            self.add_request,
        ) = (Insertion(table, dialect) for table in tables)
        column = SNAPSHOTS.c
        older = sa.delete(SNAPSHOTS).where(column.experiment == mine, column.seq <= sa.bindparam("seq"))
        self.drop_snapshots = Statement(older, ["experiment", "seq"], dialect)
        asked = REQUESTS.c
        self.request = self._query(
            sa.select(asked.answer), asked.experiment == mine, asked.key == sa.bindparam("key")
        )
        earlier = sa.delete(REQUESTS).where(asked.experiment == mine, asked.at < sa.bindparam("before"))
        self.drop_requests = Statement(earlier, ["experiment", "before"], dialect)

    def _query(self, select: Select[Any], *conditions: ColumnElement[bool]) -> Statement:
        names = [condition.right.key for condition in conditions]
        return Statement(select.where(*conditions), names, self._dialect)

    def _newest(self, select: Select[Any], column: Column[Any]) -> Statement:
        mine = column.table.c.experiment
        query = select.where(mine == sa.bindparam("experiment")).order_by(column.desc())
        return Statement(query.limit(1), ["experiment"], self._dialect)

    def _newest_of_both(self) -> Statement:
        """Return the query of the newest entry, beside the newest proposal if there is one."""
        event = EVENTS.c
        proposal = PROPOSALS.c
        parts = []
        for columns in ((event.seq, event.at, event.seal), (proposal.number, proposal.forecasts)):
            mine = columns[0].table.c.experiment == sa.bindparam("experiment")
            parts.append(sa.select(*columns).where(mine).order_by(columns[0].desc()).limit(1).subquery())
        both = sa.select(*parts[0].c, *parts[1].c).select_from(parts[0].outerjoin(parts[1], sa.true()))
        return Statement(both, ["experiment"], self._dialect)

    def _between(self, select: Select[Any], column: Column[Any], *then: Column[Any]) -> Statement:
        mine = column.table.c.experiment
        query = select.where(
            mine == sa.bindparam("experiment"), column > sa.bindparam("above"), column <= sa.bindparam("most")
        )
        return Statement(query.order_by(column, *then), ["experiment", "above", "most"], self._dialect)

    def _distribution(self) -> Statement:
        note = EVENTS.c
        plan = PLANS.c
        either = sa.or_(*(plan.kind == sa.literal_column(f"'{kind}'") for kind in NUMBERED))
        query = (
            sa.select(note.data)
            .join(PLANS, sa.and_(plan.experiment == note.experiment, plan.event == note.seq))
            .where(
                plan.experiment == sa.bindparam("experiment"), either, plan.number == sa.bindparam("number")
            )
        )
        return Statement(query, ["experiment", "number"], self._dialect)

    def _known(self, count: int) -> Statement:
        names = [f"unit{index}" for index in range(count)]
        column = PROPOSALS.c
        query = (
            sa.select(column.unit, sa.func.min(column.number))
            # With OR, or beside IS NOT NULL, SQLite looks at every unit that there is.
            .where(column.experiment == sa.bindparam("experiment"))
            .where(column.unit.in_([sa.bindparam(name) for name in names]))
            .group_by(column.unit)
        )
        return Statement(query, ["experiment", *names], self._dialect)
