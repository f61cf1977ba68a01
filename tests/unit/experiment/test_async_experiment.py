"""Coroutines and threads share commits; whatever happens to one request, the others are done."""

import asyncio
import ctypes
import threading
import time

import pytest

from experiment_samples import store_of
from inside.experiment import SharedLedger
from orthobandit import ArmSet, Experiment
from orthobandit.errors import ConflictError, RewardError, StorageError
from orthobandit.experiment import AsyncExperiment

ARMS = ArmSet.one_hot(3)


@pytest.fixture
def live(tmp_path):
    with Experiment.create(tmp_path / "live.db", ARMS, rewards=(0, 1), key="4" * 64) as experiment:
        yield experiment


@pytest.fixture
def sizes(monkeypatch):
    """Return a list that grows by the number of requests of every commit."""
    found, commit = [], SharedLedger._commit

    def noted(self, jobs):
        found.append(len(jobs))
        commit(self, jobs)

    monkeypatch.setattr(SharedLedger, "_commit", noted)
    return found


def test_coroutines_share_commits(live, sizes):
    async def visit(unit):
        one = await AsyncExperiment(live).ask(unit=unit)
        await AsyncExperiment(live).tell(one.id, 1.0)
        return one

    async def all_visits():
        return await asyncio.gather(*(visit(f"user-{k}") for k in range(100)))

    found = asyncio.run(all_visits())
    assert sorted(one.id for one in found) == list(range(1, 101))
    assert sum(sizes) == 200
    assert len(sizes) < 50
    assert live.report().settled == 100
    assert live.replay().is_equal


def test_the_answers_are_those_of_the_experiment(live):
    async def calls():
        slow = AsyncExperiment(live)
        many = await slow.ask_many(units=["ann", "bob"])
        await slow.tell_many([one.id for one in many], [1.0, 0.0])
        drawn = live.edge_plan().draw("cid")
        exposed = await slow.expose(drawn.plan, [drawn.unit], [drawn.arm], [1.0])
        return (
            many,
            exposed,
            await AsyncExperiment(live.once("k")).ask(),
            await AsyncExperiment(live.once("k")).ask(),
        )

    many, exposed, first, again = asyncio.run(calls())
    assert [one.id for one in many] == [live.ask(unit="ann").id, live.ask(unit="bob").id]
    assert (exposed.taken, exposed.told) == (1, 1)
    assert first.id == again.id == 4


def test_what_one_commit_brings_is_known_within_it(live, sizes):
    async def together():
        drawn = live.edge_plan().draw("ann")
        slow = AsyncExperiment(live)
        post = (drawn.plan, [drawn.unit], [drawn.arm], [1.0])
        return await asyncio.gather(slow.ask(), slow.expose(*post), slow.expose(*post), slow.ask(unit="ann"))

    _, first, again, asked = asyncio.run(together())
    assert max(sizes) >= 3
    assert (first.taken, first.known, first.told) == (1, 0, 1)
    assert (again.taken, again.known, again.told) == (0, 1, 1)
    assert asked.id == live.known("ann").id
    assert len(asked.probabilities) == 3


def test_a_request_that_is_refused_leaves_the_others_alone(live):
    async def mixed():
        slow = AsyncExperiment(live)
        one = await slow.ask()
        calls = [slow.tell(one.id, 7.0), slow.tell(one.id, 1.0), slow.tell(one.id, 0.0), slow.ask()]
        return await asyncio.gather(*calls, return_exceptions=True)

    wrong, right, late, asked = asyncio.run(mixed())
    assert isinstance(wrong, RewardError)
    assert right is None
    assert isinstance(late, ConflictError)
    assert asked.id == 2


def test_one_that_is_cancelled_holds_up_nobody(live):
    async def impatient():
        slow = AsyncExperiment(live)
        gone = asyncio.create_task(slow.ask(unit="gone"))
        await asyncio.sleep(0)
        gone.cancel()
        return await slow.ask(unit="ann")

    assert asyncio.run(impatient()).id in (1, 2)
    live.ask(unit="bob")


def test_a_store_that_fails_is_told_to_all_and_tried_again(live, monkeypatch):
    store, exclusive = store_of(live), type(store_of(live)).exclusive

    def failing(self):
        raise StorageError("the disk is full")

    async def both():
        slow = AsyncExperiment(live)
        monkeypatch.setattr(type(store), "exclusive", failing)
        lost = await asyncio.gather(slow.ask(), slow.ask(), return_exceptions=True)
        monkeypatch.setattr(type(store), "exclusive", exclusive)
        return lost, await slow.ask()

    lost, found = asyncio.run(both())
    assert all(isinstance(one, StorageError) for one in lost)
    assert found.id == 1


def test_errors_that_nobody_expects_reach_those_who_wait(live, monkeypatch):
    def broken(self, jobs):
        for job in jobs:
            job.error, job.is_done = RuntimeError("broken"), True
        raise RuntimeError("broken")

    async def asked():
        return await asyncio.gather(AsyncExperiment(live).ask(), return_exceptions=True)

    with monkeypatch.context() as patch:
        patch.setattr(SharedLedger, "_commit", broken)
        assert str(asyncio.run(asked())[0]) == "broken"
        with pytest.raises(RuntimeError, match="broken"):
            live.ask()
    assert live.ask().id == 1


def test_threads_and_coroutines_take_turns(live):
    def visits():
        for _ in range(20):
            live.tell(live.ask().id, 1.0)

    async def others():
        slow = AsyncExperiment(live)
        for _ in range(20):
            await slow.tell((await slow.ask()).id, 1.0)

    threads = [threading.Thread(target=visits) for _ in range(4)]
    for thread in threads:
        thread.start()
    asyncio.run(others())
    for thread in threads:
        thread.join()
    assert live.report().settled == 100


def test_a_thread_that_is_interrupted_holds_up_nobody(live):
    """The one that waits is interrupted; those behind it are done all the same."""
    begun, may_end, ends = threading.Event(), threading.Event(), []

    def slow(turn):
        begun.set()
        may_end.wait(10)

    def interrupted():
        try:
            live.ask()
        except KeyboardInterrupt:
            ends.append("interrupted")

    first = threading.Thread(target=live._do, args=(slow,))
    first.start()
    begun.wait(10)
    second = threading.Thread(target=interrupted)
    second.start()
    while not live._shared.queue:
        time.sleep(0.001)
    identity = ctypes.c_ulong(second.ident)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(KeyboardInterrupt))
    third = threading.Thread(target=live.ask)
    third.start()
    may_end.set()
    for thread in (first, second, third):
        thread.join(10)
        assert not thread.is_alive()
    assert live.ask().id >= 2
