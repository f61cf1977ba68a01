"""Calls with a key are done once, however often they are repeated."""

import json
import warnings
from threading import Thread

import numpy as np
import pytest

from experiment_samples import outcomes_of, store_of
from orthobandit import ArmSet, Experiment
from orthobandit.errors import ConflictError, ParameterError, RewardError, StorageError
from orthobandit.experiment.commit.requests import REMEMBERED_SECONDS

ARMS = ArmSet.one_hot(2, labels=["old", "new"])
SUMS = {"rewards": (0, 10), "window": "7d", "add": True}


def told(experiment):
    return [outcome.rewards for outcome in outcomes_of(experiment)]


@pytest.fixture(params=["memory", "file"])
def sales(request, tmp_path):
    kept = request.param == "file"
    made = Experiment.create(tmp_path / "log.db", ARMS, **SUMS) if kept else Experiment.memory(ARMS, **SUMS)
    with made as experiment:
        yield experiment


def test_values_that_add_up_are_added_once_with_a_key(sales):
    sale = sales.ask()
    for _ in range(3):
        sales.once("order 17").tell(sale.id, 2.0)
    assert told(sales) == [{"reward": 2.0}]
    for _ in range(2):
        sales.tell(sale.id, 2.0)
    assert told(sales) == [{"reward": 6.0}]


def test_asking_again_with_a_key_draws_nothing_new(sales):
    first = sales.once("visit").ask_many(3)
    again = sales.once("visit").ask_many(3)
    assert [(one.id, one.label, one.plan) for one in again] == [
        (one.id, one.label, one.plan) for one in first
    ]
    assert sales.ask().id == 4


def test_the_same_key_with_other_words_is_refused(sales):
    sale = sales.ask()
    sales.once("k", "two").tell(sale.id, 2.0)
    with pytest.raises(ConflictError, match="the key 'k' was used for another request before; use a new one"):
        sales.once("k", "three").tell(sale.id, 3.0)
    assert told(sales) == [{"reward": 2.0}]


USED = "the key 'k' was used for another request before; use a new one"


def test_the_same_key_for_another_call_is_refused(sales):
    first, second = sales.ask(), sales.ask()
    sales.once("k").tell(first.id, 2.0)
    others = [
        lambda live: live.tell(second.id, 2.0),
        lambda live: live.tell(first.id, 3.0),
        lambda live: live.tell_many([first.id, second.id], [2.0, 3.0]),
        lambda live: live.ask(),
        lambda live: live.pause(),
        lambda live: live.retire("new"),
    ]
    for other in others:
        with pytest.raises(ConflictError, match=USED):
            other(sales.once("k"))
    sales.once("k").tell_many(np.array([first.id]), {"reward": np.array([2])})
    assert told(sales) == [{"reward": 2.0}, {}]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda live: live.ask("ann"), lambda live: live.ask("bob")),
        (lambda live: live.ask(available=["old"]), lambda live: live.ask()),
        (lambda live: live.stop("x"), lambda live: live.stop("y")),
        (lambda live: live.retire("new"), lambda live: live.retire("old")),
    ],
)
def test_calls_with_other_arguments_are_other_calls(sales, first, second):
    first(sales.once("k"))
    first(sales.once("k"))
    with pytest.raises(ConflictError, match=USED):
        second(sales.once("k"))


def test_fingerprints_stay_the_same_over_releases(tmp_path):
    with Experiment.create(tmp_path / "log.db", ARMS, **SUMS) as sales, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # covariates that nothing uses
        sales.once("ask").ask_many(units=["ann"], covariates=[{"b": 1, "a": 2.5}])
        sales.once("tell").tell(1, 2.0)
        sales.once("stop").stop("done")
        with store_of(sales).exclusive() as writer:
            found = {key: json.loads(writer.recall(key))["request"] for key in ("ask", "tell", "stop")}
    assert found == {
        "ask": "3f87b17ea444835462a60211aba9c4e0",
        "tell": "7053473c69cc55cd4a597a019c185615",
        "stop": "2ba34766768d2ffa01c3e87df35e829c",
    }


def test_calls_that_only_read_take_no_notice_of_the_key(sales):
    sales.ask()
    reader = sales.once("k")
    assert reader.report().proposals == reader.glance().report.proposals == 1
    sales.ask()
    assert reader.report().proposals == 2
    assert reader.arms.labels == ("old", "new")
    reader.tell(1, 2.0)
    assert told(sales) == [{"reward": 2.0}, {}]


def test_a_call_that_was_refused_is_not_remembered(sales):
    sale = sales.ask()
    with pytest.raises(RewardError):
        sales.once("k").tell(sale.id, 99.0)
    sales.once("k").tell(sale.id, 2.0)
    assert told(sales) == [{"reward": 2.0}]


def test_a_repeated_pause_is_no_error(sales):
    sales.once("p").pause()
    sales.once("p").pause()
    assert sales.report().status == "paused"


@pytest.mark.parametrize("key", ["", "a\nb", "k" * 201, None])
def test_keys_are_short_and_printable(sales, key):
    with pytest.raises(ParameterError, match=r"key=.* must be printable text of 1 to 200 characters"):
        sales.once(key)


def test_keys_survive_a_restart_and_are_forgotten_after_a_week(tmp_path, monkeypatch):
    monkeypatch.setattr("inside.experiment.SNAPSHOT_ENTRIES", 1)
    now, where = 0.0, tmp_path / "log.db"
    settings = {**SUMS, "window": "52w", "clock": lambda: now}
    with Experiment.create(where, ARMS, **settings) as sales:
        sales.ask()
        sales.once("k").tell(1, 2.0)
    with Experiment.open(where, clock=lambda: now) as sales:
        sales.once("k").tell(1, 2.0)
        assert told(sales) == [{"reward": 2.0}]
        now = REMEMBERED_SECONDS + 1
        sales.ask()
        sales._shared.queue.call(lambda: sales._shared._keeping).join()
        sales.once("k").tell(1, 2.0)
        assert told(sales) == [{"reward": 4.0}, {}]


def test_threads_with_one_key_are_answered_alike(sales):
    found = []
    threads = [Thread(target=lambda: found.append(sales.once("k").ask().id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 8
    assert sales.report().proposals == 1


def test_a_call_that_cannot_be_remembered_is_not_done(tmp_path, monkeypatch):
    with Experiment.create(tmp_path / "log.db", ARMS, **SUMS) as sales:
        sale = sales.ask()

        def full(self, *_):
            with self._running():
                raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("inside.experiment.SQLWriter.remember", full)
            with pytest.raises(StorageError, match="No space left"):
                sales.once("k").tell(sale.id, 2.0)
        assert told(sales) == [{}]
        sales.once("k").tell(sale.id, 2.0)
        assert told(sales) == [{"reward": 2.0}]
        assert sales.replay().is_equal
