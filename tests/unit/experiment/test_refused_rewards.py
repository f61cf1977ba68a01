"""Batches of rewards: rows are taken or refused one by one, as if told one by one, and reports count them."""

import json
from threading import Barrier, Thread

import numpy as np
import pytest

from experiment_samples import Clock
from orthobandit import ArmSet, Experiment, Metric
from orthobandit.errors import (
    ClosedError,
    ConflictError,
    OrthobanditError,
    RewardError,
    UnknownProposalError,
)

ARMS = ArmSet.one_hot(2)
COUNT = 40
LATE = 10  # proposals whose window has passed, of which the first five were told


def begun(where=None, **settings):
    """Return an experiment with proposals of every kind, and its clock."""
    clock = Clock()
    options = {"rewards": (0, 1), "window": 60.0, "key": "3" * 64, "clock": clock, **settings}
    made = Experiment.memory(ARMS, **options) if where is None else Experiment.create(where, ARMS, **options)
    made.ask_many(LATE)
    made.tell_many(range(1, 6), [1.0] * 5)
    clock.now += 61.0
    made.ask_many(COUNT - LATE)
    made.tell_many(range(11, 21), [0.0] * 10)
    return made, clock


def told_singly(experiment, ids, rewards):
    """Tell rows one by one; return the place and the words of each refusal."""
    refused = []
    for place, number in enumerate(ids):
        row = {name: values[place] for name, values in rewards.items()}
        try:
            experiment.tell(number, row)
        except OrthobanditError as error:
            refused.append((place, type(error), str(error)))
    return refused


@pytest.mark.parametrize(
    ("number", "value", "error", "words"),
    [
        (99, 1.0, UnknownProposalError, "proposal 99 was never asked for"),
        (0, 1.0, UnknownProposalError, "proposal 0 was never asked for"),
        (6, 1.0, ClosedError, "its window of 1 minute has passed"),
        (1, 0.0, ConflictError, "told 1 for 'reward' before, now 0; the first value is final"),
        (11, 1.0, ConflictError, "told 0 for 'reward' before, now 1; the first value is final"),
        (21, 7.0, RewardError, r"must be a finite number in the declared range \[0, 1\]"),
        (21, np.nan, RewardError, "must be a finite number"),
        (21, np.inf, RewardError, "must be a finite number"),
    ],
)
def test_a_row_that_is_wrong_is_refused_alone(number, value, error, words):
    experiment, _ = begun()
    [refusal] = experiment.tell_many([30, number, 31], [1.0, value, 0.0])
    assert (refusal.index, type(refusal.error)) == (1, error)
    with pytest.raises(error, match=words) as single:
        experiment.tell(number, value)
    assert str(refusal.error) == str(single.value)
    assert experiment.glance().report.metrics[0].provisional == 2  # the other two rows were taken
    assert sum(experiment.report().refused.values()) == 2  # of the batch, and the single one


@pytest.mark.parametrize("number", [1, 11], ids=["settled", "open"])
def test_the_same_value_again_is_no_refusal(number):
    experiment, _ = begun()
    value = float(number == 1)
    assert experiment.tell_many([number, 30, number], [value, 1.0, value]) == ()
    assert experiment.report().refused == {}


def test_of_two_values_for_one_proposal_the_first_counts():
    experiment, _ = begun()
    [refusal] = experiment.tell_many([30, 31, 30, 30], [1.0, 0.0, 0.0, 1.0])
    assert (refusal.index, type(refusal.error)) == (2, ConflictError)
    # A value that was refused is no first value.
    [refusal] = experiment.tell_many([32, 32], [7.0, 1.0])
    assert (refusal.index, type(refusal.error)) == (0, RewardError)
    assert experiment.report().refused == {"conflict": 1, "invalid": 1}


@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_a_batch_is_what_its_rows_are_one_by_one(add, seed):
    random = np.random.default_rng(seed)
    metrics = [Metric("seconds", rewards=(0, 3), add=add)]
    (many, _), (single, _) = (begun(metrics=metrics, window=60.0) for _ in range(2))
    for _ in range(5):
        ids = random.integers(-1, COUNT + 4, 25).tolist()
        rewards = {
            "reward": random.choice([0.0, 1.0, 7.0], 25, p=[0.5, 0.4, 0.1]),
            "seconds": random.choice([0.0, 1.0, np.nan, 5.0], 25, p=[0.4, 0.4, 0.1, 0.1]),
        }
        if random.random() < 0.5:
            del rewards["seconds"]
        refused = many.tell_many(ids, rewards)
        found = [(one.index, type(one.error), str(one.error)) for one in refused]
        assert found == told_singly(single, ids, rewards)
    assert many.report().refused == single.report().refused
    assert many.report().to_json() == single.report().to_json()
    assert many.replay().is_equal


def test_sums_stay_within_their_range_in_one_batch():
    experiment = Experiment.memory(ARMS, rewards=(0, 2), add=True, window=60.0)
    experiment.ask()
    [refusal] = experiment.tell_many([1, 1, 1], [1.0, 1.0, 1.0])
    assert (refusal.index, type(refusal.error)) == (2, RewardError)


def test_a_metric_that_is_none_is_an_error_of_the_whole_call_and_is_counted():
    experiment, _ = begun()
    for call in (
        lambda: experiment.tell_many([30, 31], {"rewrd": [1.0, 1.0]}),
        lambda: experiment.tell_many([30, 31], {"reward": [1.0, 1.0], "rewrd": [1.0, 1.0]}),
        lambda: experiment.tell(30, {"rewrd": 1.0}),
    ):
        with pytest.raises(RewardError, match="'rewrd' is not a metric of this experiment"):
            call()
    report = experiment.report()
    assert report.refused == {"metric": 5}
    assert report.metrics[0].provisional == 0
    assert "5 rewards were refused: 5 for a metric that the experiment does not have" in report.warnings


def test_a_report_counts_what_was_refused_by_reason():
    experiment, _ = begun()
    experiment.tell_many([6, 7, 99, 11, 21, 30], [1.0, 1.0, 1.0, 1.0, 9.0, 1.0])
    with pytest.raises(ClosedError):
        experiment.tell(8, 1.0)
    report = experiment.report()
    assert report.refused == {"late": 3, "unknown": 1, "conflict": 1, "invalid": 1}
    words = (
        "6 rewards were refused: 3 after their proposal was settled, 1 for proposals that were never asked"
        " for, 1 against a value that was told before, 1 no finite number in the declared range"
    )
    assert words in report.warnings
    assert words in str(report)
    assert words in report.to_html()
    assert json.loads(json.dumps(report.to_json()))["refused"] == dict(report.refused)


def test_what_was_refused_is_counted_after_a_restart_and_by_other_processes(tmp_path):
    path = tmp_path / "log.db"
    experiment, clock = begun(path)
    experiment.tell_many([6, 30], [1.0, 1.0])
    with Experiment.open(path, clock=clock) as other:
        assert other.report().refused == {"late": 1}
        other.tell_many([7], [1.0])
    assert experiment.report().refused == {"late": 2}
    experiment.close()
    with Experiment.open(path, clock=clock) as again:
        assert again.report().refused == {"late": 2}
        assert again.replay().is_equal


def test_thousands_of_late_rewards_are_refused_in_one_go(tmp_path):
    experiment, clock = begun(tmp_path / "log.db")
    clock.now += 61.0
    ids = [one.id for one in experiment.ask_many(3_000)]
    clock.now += 61.0
    fresh = experiment.ask().id
    refused = experiment.tell_many([*ids, fresh], [1.0] * 3_001)
    assert [one.index for one in refused] == list(range(3_000))
    assert experiment.report().refused == {"late": 3_000}
    experiment.close()


def test_rewards_that_share_a_commit_hear_of_their_own_refusals(tmp_path):
    experiment, _ = begun(tmp_path / "log.db")
    answers, barrier = {}, Barrier(12)

    def tell(number):
        barrier.wait()
        if number % 3:
            answers[number] = experiment.tell_many([number, 6, 99], [1.0, 1.0, 1.0])
            return
        try:
            answers[number] = experiment.tell(number if number % 2 else 7, 1.0)
        except ClosedError as error:
            answers[number] = error

    threads = [Thread(target=tell, args=(number,)) for number in range(21, 33)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, answer in answers.items():
        if number % 3:
            assert [(one.index, type(one.error)) for one in answer] == [
                (1, ClosedError),
                (2, UnknownProposalError),
            ]
        else:
            assert answer is None if number % 2 else isinstance(answer, ClosedError)
    assert experiment.report().refused == {"late": 10, "unknown": 8}
    assert experiment.replay().is_equal
    experiment.close()
