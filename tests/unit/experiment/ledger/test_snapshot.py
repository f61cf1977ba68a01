"""Pictures of a state: taken while nobody writes, kept later, and the same as the state was."""

import json
import logging
import threading

import pytest

from experiment_samples import entries_of, ledger_of, store_of
from inside.experiment import Ledger, SharedLedger
from orthobandit import ArmSet, Experiment, Metric
from orthobandit.errors import StorageError
from orthobandit.experiment.commit import group_commit as shared
from orthobandit.experiment.ledger.snapshot import take_snapshot, write_out

ARMS = ArmSet.one_hot(3)


@pytest.fixture
def live(tmp_path):
    settings = {"rewards": (0, 1), "metrics": [Metric("seconds")], "window": "1d", "holdout": 0.2}
    with Experiment.create(tmp_path / "live.db", ARMS, key="5" * 64, **settings) as experiment:
        yield experiment


def visited(experiment, count):
    shown = experiment.ask_many(count)
    told = shown[: count // 2]
    experiment.tell_many([one.id for one in told], [float(one.arm == 1) for one in told])
    for one in told[::3]:
        experiment.tell(one.id, {"seconds": 2.5})


def plain(state):
    return json.loads(json.dumps(state))


def test_a_snapshot_is_what_the_state_was(live):
    visited(live, 100)
    ledger = ledger_of(live)
    before, snapshot = plain(ledger.to_json()), take_snapshot(ledger)
    visited(live, 300)
    live.retire(2)
    live.extend(ArmSet.one_hot(4))
    visited(live, 50)
    assert plain(ledger.to_json()) != before
    assert plain(write_out(snapshot)) == before
    assert plain(Ledger.from_json(live.settings, before).to_json()) == before


def test_nobody_waits_while_a_snapshot_is_kept(live, monkeypatch):
    monkeypatch.setattr("inside.experiment.SNAPSHOT_ENTRIES", 5)
    may_go, keep = threading.Event(), SharedLedger._keep

    def slowly(self, snapshot):
        assert may_go.wait(10)
        keep(self, snapshot)

    monkeypatch.setattr(SharedLedger, "_keep", slowly)
    for _ in range(20):
        live.tell(live.ask().id, {"reward": 1.0, "seconds": 1.0})
    assert store_of(live).snapshot() is None
    may_go.set()
    live._shared.queue.call(lambda: live._shared._keeping).join()
    seq, state = store_of(live).snapshot()
    entries = entries_of(live)
    assert 5 <= seq < len(entries)
    ledger = Ledger(live.settings)
    for _, entry in entries[:seq]:
        ledger.apply(entry)
    assert plain(ledger.to_json()) == state


def test_a_snapshot_that_cannot_be_kept_is_said_and_nothing_is_lost(live, monkeypatch, caplog):
    monkeypatch.setattr("inside.experiment.SNAPSHOT_ENTRIES", 5)
    logging.getLogger("orthobandit").propagate = True
    with monkeypatch.context() as patch:
        patch.setattr(
            SharedLedger, "_keep", lambda *_: (_ for _ in ()).throw(StorageError("the disk is full"))
        )
        for _ in range(10):
            live.tell(live.ask().id, {"reward": 1.0, "seconds": 1.0})
        live._shared.queue.call(lambda: live._shared._keeping).join()
    assert "was not kept: the disk is full" in caplog.text
    with monkeypatch.context() as patch:
        patch.setattr(shared, "take_snapshot", lambda _: 1 / 0)
        for _ in range(10):
            live.tell(live.ask().id, {"reward": 1.0, "seconds": 1.0})
    assert "no snapshot could be taken after entry" in caplog.text
    assert live.report().proposals == 20
    assert live.replay().is_equal


def test_closing_keeps_the_newest_state(tmp_path):
    where = tmp_path / "closed.db"
    with Experiment.create(where, ARMS, rewards=(0, 1)) as live:
        live.tell(live.ask().id, 1.0)
        last = live._shared.do(lambda turn: turn.seq)
    with Experiment.open(where) as again:
        seq, state = store_of(again).snapshot()
        assert seq == last
        assert plain(ledger_of(again).to_json()) == state
