"""One server does what one does for all, and another takes over when that one is killed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time

import httpx
import pytest
import sqlalchemy as sa

from experiment_samples import outcomes_of
from inside.experiment import EVENTS, EXPERIMENTS, PLANS
from inside.service import check
from orthobandit import Experiment
from orthobandit.service import Client
from orthobandit.service.background.keeper import KeeperLock
from service_samples import ready, served, started

HOLD = """
import sys, time
from orthobandit.service.background.keeper import KeeperLock
lock = KeeperLock(sys.argv[1])
print(lock.is_held(), flush=True)
time.sleep(600)
"""


def until(condition, seconds=30):
    """Wait for something that another process does."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    return tmp_path / "all.db" if request.param == "sqlite" else request.getfixturevalue("postgres")


def test_the_lock_has_one_holder_and_outlives_none(where):
    command = [sys.executable, "-c", HOLD, str(where)]
    other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    lock = KeeperLock(where)
    try:
        assert other.stdout.readline() == "True\n"
        assert not lock.is_held()
        assert not lock.is_held()
        other.kill()
        other.wait()
        until(lock.is_held)
        assert lock.is_held()
        second = KeeperLock(where)
        assert not second.is_held()
        lock.release()
        until(second.is_held)
        second.release()
    finally:
        other.stdout.close()
        other.kill()
        other.wait()
        lock.release()


def test_a_connection_that_breaks_loses_the_lock(postgres):
    lock, other = KeeperLock(postgres), KeeperLock(postgres)
    assert lock.is_held()
    engine = sa.create_engine(postgres)
    with engine.connect() as connection:  # as a database that restarts
        mine = sa.text("SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1")
        for (pid,) in connection.execute(mine).all():
            connection.execute(sa.text(f"SELECT pg_terminate_backend({pid})"))
    engine.dispose()
    until(other.is_held)
    assert not lock.is_held()
    lock.release()
    other.release()


def test_windows_that_pass_unnoticed_are_noticed(tmp_path, monkeypatch):
    """Nobody asks: the keeper settles, and puts the next plan into force."""
    monkeypatch.setattr("inside.service.ROUND_SECONDS", 0.05)
    monkeypatch.setattr("inside.service.SETTLING_SECONDS", 0.05)
    where = tmp_path / "all.db"
    with served(where) as http:
        body = {"key": "page", "arms": ["a", "b"], "rewards": [0, 1], "window": "0.5s"}
        http.post("/v1/experiments", json=body)
        http.post("/v1/experiments/page/ask-many", json={"count": 500})

        def plans():
            connection = sqlite3.connect(where)
            try:
                return connection.execute("SELECT COUNT(*) FROM plans").fetchone()[0]
            finally:
                connection.close()

        assert plans() == 1
        until(lambda: plans() > 1)


def keepers(addresses):
    """Return which servers say that they are the keeper."""
    found = []
    for address in addresses:
        try:
            text = httpx.get(f"{address}/metrics").text
        except httpx.TransportError:
            continue
        if "orthobandit_keeper 1.0" in text:
            found.append(address)
    return found


@pytest.mark.slow
def test_two_servers_plan_once_and_count_once_while_the_keeper_is_killed(postgres):
    processes = dict([started(postgres, "--no-auth")[::-1] for _ in range(2)])
    try:
        addresses = list(processes)
        for address in addresses:
            ready(address)
        until(lambda: len(keepers(addresses)) == 1)
        [first] = keepers(addresses)
        [second] = set(addresses) - {first}
        with Client(first, retries=0) as one, Client(second) as other:
            other.create("plans", ["a", "b", "c"], rewards=[0, 1])
            told = played(one, other, processes[first])
        until(lambda: keepers([second]) == [second])
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
            process.stdout.close()
    with Experiment.open(postgres, name="plans") as plans:
        found = {one.proposal.number: one.rewards["reward"] for one in outcomes_of(plans) if one.rewards}
        assert plans.replay().is_equal
        assert plans.audit().passed
    assert told.items() <= found.items()
    assert [one for one in check(postgres) if one.experiment in (None, "plans")] == []
    assert numbers_of_plans(postgres, "plans") > 5


def played(one, other, process):
    """Ask and tell through both servers, and kill the first half-way; return what was acknowledged."""
    told, clients = {}, [one, other]
    for step in range(80):
        if step == 40:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            clients = [other]
        client, last = clients[step % len(clients)], clients[(step + 1) % len(clients)]
        shown = client.ask_many("plans", 50)
        values = {proposal.id: float(proposal.arm == 1) for proposal in shown}
        last.tell_many("plans", list(values), list(values.values()))
        told |= values
    return told


def numbers_of_plans(where, name):
    """Return how many plans there were, after checking that their numbers are 1, 2, 3 … and noted once."""
    engine = sa.create_engine(where)
    with engine.connect() as connection:
        mine = connection.execute(sa.select(EXPERIMENTS.c.id).where(EXPERIMENTS.c.name == name)).scalar()
        query = sa.select(PLANS.c.number).where(PLANS.c.experiment == mine).order_by(PLANS.c.number)
        numbers = list(connection.scalars(query))
        noted = sa.select(sa.func.count()).where(EVENTS.c.experiment == mine, EVENTS.c.kind == "plan")
        assert connection.execute(noted).scalar() == len(numbers)
    engine.dispose()
    assert numbers == list(range(1, len(numbers) + 1))
    return len(numbers)
