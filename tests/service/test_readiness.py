"""`/readyz` tells the truth: 503 while writes fail, or while the database does not answer."""

import asyncio
import sqlite3
from threading import Event

import pytest
import sqlalchemy as sa

from inside.experiment import MAX_STATEMENT_SECONDS, address, make_engine
from inside.service import Metrics, Registry
from orthobandit import ArmSet
from orthobandit.errors import StorageError
from orthobandit.policy import AnytimeElimination
from orthobandit.service.api import health
from orthobandit.service.api.health import FRESH_SECONDS, Readiness
from orthobandit.service.background.keeper import ClockWatch, Keeper
from service_samples import TWO, is_problem, served


def test_a_database_that_takes_no_writes_is_not_ready(tmp_path, monkeypatch):
    monkeypatch.setattr(health, "FRESH_SECONDS", 0.0)
    where = tmp_path / "all.db"
    with served(where) as http:
        http.post("/v1/experiments", json=TWO)
        assert http.get("/readyz").status_code == 200
        keeper = sqlite3.connect(where)
        try:
            keeper.execute("BEGIN EXCLUSIVE")  # as a process that hangs within a transaction
            answer = http.get("/readyz")
            assert is_problem(answer, 503, "unavailable")
            assert answer.headers["retry-after"] == "2"
            assert http.get("/v1/experiments").json()["keys"] == ["page"]  # though it can be read
            assert http.get("/healthz").status_code == 200
        finally:
            keeper.close()


def test_a_full_or_read_only_database_takes_no_trial(tmp_path):
    registry = Registry(tmp_path / "all.db")
    registry.try_write()

    def read_only(connection, *_):
        connection.execute("PRAGMA query_only = ON")

    registry._engine.dispose()
    sa.event.listen(registry._engine, "connect", read_only)
    with pytest.raises(StorageError):
        registry.try_write()
    registry.page(1)  # while it can be read
    registry.close()


class Database:
    """A database that fails, hangs or works as it is told."""

    def __init__(self):
        self.now = 0.0
        self.tried = 0
        self.fails = False
        self.goes_on = Event()
        self.goes_on.set()

    def write(self):
        self.tried += 1
        self.goes_on.wait(20)
        if self.fails:
            raise StorageError("the disk is full")


def test_a_trial_holds_for_a_moment_however_many_ask():
    database = Database()

    async def play():
        asked = Readiness(database.write, clock=lambda: database.now)
        assert await asyncio.gather(*(asked.find_trouble() for _ in range(100))) == [""] * 100
        assert database.tried == 1
        database.fails = True
        assert await asked.find_trouble() == ""
        database.now += FRESH_SECONDS
        assert await asked.find_trouble() == "the disk is full"
        database.fails = False
        database.now += FRESH_SECONDS
        assert await asked.find_trouble() == ""
        assert database.tried == 3

    asyncio.run(play())


def test_a_database_that_hangs_is_asked_once(monkeypatch):
    monkeypatch.setattr("inside.service.MAX_WAIT_SECONDS", 0.05)
    database = Database()
    database.goes_on.clear()

    async def play():
        asked = Readiness(database.write, clock=lambda: database.now)
        for _ in range(3):
            assert await asked.find_trouble() == "the database does not answer within 0.05 s"
            database.now += 100.0  # no second thread waits for it
        assert database.tried == 1
        database.goes_on.set()
        while await asked.find_trouble():
            await asyncio.sleep(0.01)
            database.now += FRESH_SECONDS

    asyncio.run(play())


def test_postgresql_gives_up_statements_and_lost_connections(postgres):
    engine = make_engine(address(postgres), 5.0)
    with engine.connect() as connection:
        said = connection.execute(
            sa.text(
                "SELECT name, setting FROM pg_settings WHERE name IN"
                " ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')"
            )
        ).all()
    engine.dispose()
    wanted = str(round(1000 * MAX_STATEMENT_SECONDS))
    assert dict(said) == {
        "statement_timeout": wanted,
        "idle_in_transaction_session_timeout": wanted,
        "lock_timeout": "5000",
    }
    engine = make_engine(address(postgres), 5.0, statement_seconds=0.05)
    with engine.connect() as connection, pytest.raises(sa.exc.OperationalError, match="statement timeout"):
        connection.execute(sa.text("SELECT pg_sleep(5)"))
    engine.dispose()


def test_nobody_idles_within_a_transaction(postgres):
    """PostgreSQL ends connections that do: an experiment that is used once an hour must not."""
    registry = Registry(postgres)
    made = registry.create("idle", ArmSet.one_hot(2), AnytimeElimination(rewards=(0, 1)))
    shown = made.ask_many(500)
    made.tell_many([one.id for one in shown], [0.0] * 500)
    made.report()
    made.certificate()
    registry.try_write()
    engine = sa.create_engine(postgres)
    with engine.connect() as connection:
        query = sa.text(
            "SELECT query FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
            " AND pid <> pg_backend_pid()"
        )
        assert connection.execute(query).all() == []
    engine.dispose()
    registry.close()


def test_jumps_of_the_clock_are_counted(monkeypatch, caplog):
    monkeypatch.setattr("inside.service.ROUND_SECONDS", 0.0)
    metrics = Metrics()
    keeper = Keeper(None, None, None, metrics)
    times = [0.0, 5.0, 3600.0, 3605.0, 3540.0]

    def clock():
        if len(times) == 1:
            keeper._is_over.set()
        return times.pop(0)

    keeper._drift = ClockWatch(clock, steady=lambda: 0.0)
    monkeypatch.setattr(keeper, "round", lambda: True)
    keeper._run()
    assert metrics.clock_jumps == 2
    assert "the clock was set by +3595 s" in caplog.text
    assert "the clock was set by -65 s" in caplog.text
