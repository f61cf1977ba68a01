"""Experiments in a file: going on after a restart, several processes, sudden death, a full disk."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from experiment_samples import entries_of, ledger_of, outcomes_of, store_of
from inside.experiment import Noted
from orthobandit import AnytimeElimination, ArmSet, Experiment, Metric
from orthobandit.errors import (
    DamagedStoreError,
    ExperimentExistsError,
    ParameterError,
    StorageError,
    UnknownExperimentError,
)
from orthobandit.estimate import OnlineRegression

from .conftest import played

ARMS = ArmSet.one_hot(3, labels=["a", "b", "c"])
POLICY = AnytimeElimination(rewards=(0.0, 1.0))


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "signup.db")


def test_an_experiment_goes_on_after_a_restart(path, clock):
    rng = np.random.default_rng(1)
    with Experiment.create(path, ARMS, POLICY, window=30, metrics=[Metric("x")], clock=clock) as first:
        played(first, clock, 120, [0.3, 0.4, 0.5], rng, delay=20.0)
        before = first.report()
    with Experiment.open(path, clock=clock) as again:
        assert again.report() == before
        played(again, clock, 40, [0.3, 0.4, 0.5], rng, delay=20.0)
        assert again.replay().is_equal
        assert again.audit().passed


def test_an_experiment_goes_on_without_a_snapshot_as_with_one(path, clock, monkeypatch):
    monkeypatch.setattr("inside.experiment.SNAPSHOT_ENTRIES", 50)
    experiment = Experiment.create(path, ARMS, POLICY, window=30, clock=clock)
    played(experiment, clock, 150, [0.3, 0.4, 0.5], np.random.default_rng(2), delay=20.0)
    experiment._shared.queue.call(lambda: experiment._shared._keeping).join()
    seq, _ = store_of(experiment).snapshot()
    assert seq >= 50
    state = ledger_of(experiment).to_json()
    # Neither closed nor told: another process finds what was acknowledged.
    again = Experiment.open(path, clock=clock)
    assert ledger_of(again).to_json() == state


def test_a_unit_keeps_its_proposal_after_a_restart(path):
    with Experiment.create(path, ARMS, POLICY) as first:
        proposal = first.ask(unit="ann")
        for _ in range(60):
            first.tell(first.ask().id, 0.0)
        first.tell(proposal.id, 1.0)
        for _ in range(60):
            first.tell(first.ask().id, 0.0)
    with Experiment.open(path) as again:
        found = again.ask(unit="ann")
        assert (found.id, found.arm, found.plan) == (proposal.id, proposal.arm, proposal.plan)
        assert found.probabilities.tolist() == proposal.probabilities.tolist()


def test_two_open_experiments_see_each_other(path):
    one = Experiment.create(path, ARMS, POLICY)
    other = Experiment.open(path)
    first, second = one.ask(), other.ask()
    assert (first.id, second.id) == (1, 2)
    one.tell(second.id, 1.0)
    other.tell(first.id, 0.0)
    assert one.report() == other.report()
    assert one.replay().is_equal


def work(path, count):
    with Experiment.open(path) as experiment:
        for _ in range(count):
            experiment.tell(experiment.ask().id, 1.0)


@pytest.mark.slow
def test_processes_share_a_file(path):
    Experiment.create(path, ARMS, POLICY).close()
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=work, args=(path, 25)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    with Experiment.open(path) as experiment:
        assert experiment.report().settled == 50
        assert experiment.replay().is_equal
        assert experiment.audit().passed


CHILD = """
import sys
from orthobandit import Experiment
with Experiment.open(sys.argv[1]) as experiment:
    while True:
        proposal = experiment.ask()
        experiment.tell(proposal.id, float(proposal.id % 3 == 0))
        print(proposal.id, flush=True)
"""


def killed(path, moments):
    """Kill a process that asks and tells at each of these moments; return what it had acknowledged."""
    said = set()
    for moment in moments:
        command = [sys.executable, "-c", CHILD, path]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:  # noqa: S603
            said.add(int(child.stdout.readline()))  # it has begun
            time.sleep(moment)
            os.kill(child.pid, signal.SIGKILL)
            said |= {int(line) for line in child.stdout if line.endswith("\n")}
    return said


def check_after_death(path, moments):
    Experiment.create(path, ARMS, POLICY).close()
    said = killed(path, moments)
    with Experiment.open(path) as experiment:
        rewards = {one.proposal.number: one.rewards for one in outcomes_of(experiment)}
        assert all(rewards[number] == {"reward": float(number % 3 == 0)} for number in said)
        assert experiment.replay().is_equal
        assert experiment.audit().passed
        experiment.tell(experiment.ask().id, 1.0)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_to_sudden_death(path):
    check_after_death(path, [0.05, 0.2])


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_to_fifty_deaths(path):
    check_after_death(path, np.random.default_rng(3).random(50) * 0.5)


def test_a_full_disk_loses_nothing_and_the_experiment_goes_on(path):
    experiment = Experiment.create(path, ARMS, POLICY)
    experiment.tell(experiment.ask().id, 1.0)
    file = store_of(experiment)._connection
    limit = file.exec_driver_sql("PRAGMA page_count").scalar()
    file.exec_driver_sql(f"PRAGMA max_page_count = {limit}").close()
    file.rollback()

    def fill():
        for step in range(10_000):
            experiment.ask_many(units=[f"{step}-{k}" for k in range(50)])

    with pytest.raises(StorageError):
        fill()
    file = store_of(experiment)._connection
    file.exec_driver_sql("PRAGMA max_page_count = 1000000").close()
    file.rollback()
    assert experiment.replay().is_equal
    experiment.tell(experiment.ask().id, 1.0)
    assert experiment.replay().is_equal


def test_another_policy_on_the_same_file_is_refused(path):
    Experiment.create(path, ARMS, POLICY).close()
    with pytest.raises(ParameterError, match="was begun with AnytimeElimination"):
        Experiment.open(path, AnytimeElimination())
    Experiment.open(path, POLICY).close()


def test_a_file_that_is_there_or_not_there_is_named(path):
    with pytest.raises(UnknownExperimentError, match=r"signup\.db does not exist; make it with"):
        Experiment.open(path)
    Experiment.create(path, ARMS, POLICY).close()
    with pytest.raises(UnknownExperimentError, match="has no experiment 'other'"):
        Experiment.open(path, name="other")
    with pytest.raises(ExperimentExistsError, match="open it, or choose another name"):
        Experiment.create(path, ARMS, POLICY)
    Experiment.create(path, ARMS, POLICY, name="second").close()


def test_a_damaged_file_is_named(path):
    with Experiment.create(path, ARMS, POLICY) as experiment:
        for _ in range(5):
            experiment.tell(experiment.ask().id, 1.0)
    with sqlite3.connect(path) as connection:
        connection.execute("update rewards set value = 0.0 where proposal = 3")
        connection.execute("delete from snapshots")
    with pytest.raises(DamagedStoreError):
        Experiment.open(path)
    Path(path).write_bytes(b"not a database at all" * 100)
    with pytest.raises(DamagedStoreError):
        Experiment.open(path)


def test_a_baseline_that_cannot_be_kept_is_refused_at_once(path):
    policy = AnytimeElimination(rewards=(0.0, 1.0), baseline=OnlineRegression(dict))
    with pytest.raises(ParameterError, match="cannot go on after a restart"):
        Experiment.create(path, ARMS, policy)
    assert not Path(path).exists()


def test_looking_writes_only_what_a_window_has_settled(tmp_path):
    now = iter([0.0, 0.0, 1.0, 2.0, 9.0, 10.0])
    made = Experiment.create(
        tmp_path / "a.db", ArmSet.one_hot(2), rewards=(0, 1), window=5.0, clock=lambda: next(now)
    )
    made.ask()
    before = [entry.kind for _, entry in entries_of(made) if isinstance(entry, Noted)]
    made.report()
    made.report()
    assert [entry.kind for _, entry in entries_of(made) if isinstance(entry, Noted)] == before
    assert made.report().settled == 1  # after the window
    assert made.report().settled == 1
    assert [entry.kind for _, entry in entries_of(made) if isinstance(entry, Noted)] == [*before, "plan"]
    assert made.replay().is_equal
    made.close()
