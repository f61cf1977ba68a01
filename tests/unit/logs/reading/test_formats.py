"""Logs that people already have become a source and a question."""

import asyncio
import json

import numpy as np
import pytest

from inside.logs import open_source
from logs_samples import BEGIN, LABELS, PLANS, by_key, gathered, made, same
from orthobandit import AnytimeElimination, ArmSet, Experiment
from orthobandit.errors import FileFormatError, InputError, InputWarning, ParameterError
from orthobandit.experiment import AsyncExperiment
from orthobandit.logs.reading.formats import read_export, read_exposures, read_obp, read_vw

P = tuple(f"p:{label}" for label in LABELS)
WEIGHTS = [dict(zip(LABELS.tolist(), law.tolist(), strict=True)) for law in PLANS]


@pytest.fixture
def experiment():
    """Return an experiment of 60 draws, a second apart, with a holdout."""
    now = iter(range(1000, 2000))
    arms = ArmSet.one_hot(2, labels=["a", "b"])
    policy = AnytimeElimination(rewards=(0.0, 1.0))
    experiment = Experiment.memory(arms, policy, clock=lambda: float(next(now)), holdout=0.3)
    for place in range(60):
        experiment.tell(experiment.ask().id, float(place % 3 == 0))
    return experiment


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_experiment_and_its_export_are_the_same(experiment, kind, tmp_path):
    experiment.export(tmp_path / f"log.{kind}")
    with open_source(experiment) as opened:
        fields = opened.fields
    columns = {"arm": "arm", "time": "at", "reward": "reward", "probabilities": ("p:a", "p:b")}
    columns["missing"] = "zero"
    assert fields == columns | {"reference": "a", "bounds": {"reward": (0.0, 1.0)}}
    found = gathered(experiment, **fields)
    table, read = read_export(tmp_path / f"log.{kind}")
    assert read == columns
    same(by_key(found), by_key(gathered(table, **read)))
    lines = (tmp_path / "log.csv").read_text().splitlines()[1:] if kind == "csv" else None
    if lines:
        drawn = [line.split(",") for line in lines if line.split(",")[6] == "False"]
        assert 0 < len(drawn) < 60
        assert found.cells.rows == len(drawn)


def test_an_export_of_two_experiments_that_count_silence_differently_is_refused(experiment, tmp_path):
    experiment.export(tmp_path / "log.csv")
    text = (tmp_path / "log.csv").read_text()
    (tmp_path / "log.csv").write_text(text.replace(",zero,", ",missing,", 30))
    with pytest.raises(FileFormatError, match="an export has 'zero' in all rows, or 'missing' in all"):
        read_export(tmp_path / "log.csv")


def test_an_experiment_that_must_be_awaited_says_how_to_get_its_draws():
    experiment = asyncio.run(AsyncExperiment.memory(ArmSet.one_hot(2), rewards=(0.0, 1.0)))
    with pytest.raises(InputError, match=r"say `await experiment.export\('draws.parquet'\)`"):
        open_source(experiment)


def test_columns_may_be_called_like_what_an_experiment_has():
    log = made(200).to_pandas().rename(columns={"clicks": "export", "age": "settings"})
    found = gathered(log, time="at", probabilities=P, metrics=("export", "settings"))
    assert found.cells.rows == 200


def test_an_export_that_is_none_is_refused(tmp_path):
    (tmp_path / "log.csv").write_text("arm,reward\na,1\n")
    with pytest.raises(
        FileFormatError, match=r"is not the export of an experiment: its columns are arm, reward"
    ):
        read_export(tmp_path / "log.csv")


@pytest.mark.parametrize("kind", ["text", "number"])
def test_phases_of_exposures_are_plans(kind):
    middle = BEGIN.timestamp() + 20 * 3600 + 1
    log = made()
    turn = middle if kind == "number" else "2024-03-01T20:00:01"
    phases = [
        {"from": "2024-03-01", "to": turn, "weights": WEIGHTS[0]},
        {"from": turn, "weights": WEIGHTS[1]},
    ]
    source, fields = read_exposures(log, phases, variation="arm", time="at")
    same(by_key(gathered(source, **fields)), by_key(gathered(log, time="at", probabilities=P)))


def test_exposures_outside_all_phases_are_refused():
    phases = [{"from": "2024-03-01", "to": "2024-03-02", "weights": WEIGHTS[0]}]
    source, fields = read_exposures(made(), phases, variation="arm", time="at")
    with pytest.raises(InputError, match=r"plan='phase' is empty in \d+ rows"):
        gathered(source, **fields)


@pytest.mark.parametrize(
    ("phases", "message"),
    [
        ([], "phases is empty"),
        ([{"from": "soon", "weights": {}}], "'soon' is not an ISO time"),
        (
            [{"to": 5, "weights": {}}, {"from": 4, "weights": {}}],
            "number 2 begins before the one before it ended",
        ),
    ],
)
def test_phases_that_are_none(phases, message):
    with pytest.raises(ParameterError, match=message):
        read_exposures(made(), phases, variation="arm", time="at")


def feedback(distributions, positions=None):
    rng = np.random.default_rng(4)
    n = len(distributions)
    log = {"action": rng.integers(0, 3, n), "reward": rng.integers(0, 2, n), "pi_b": distributions}
    return log | ({} if positions is None else {"position": positions})


def test_open_bandit_arrays_with_one_distribution_are_a_split():
    log = feedback(np.tile([0.5, 0.3, 0.2], (50, 1))[:, :, np.newaxis])
    source, fields = read_obp(log)
    assert fields["split"] == {"0": 0.5, "1": 0.3, "2": 0.2}
    cells = gathered(source, **fields).cells
    assert cells.counts.sum() == 50
    for arm in range(3):
        assert cells.sums[cells.arm == arm].sum() == log["reward"][log["action"] == arm].sum()


def test_open_bandit_distributions_are_those_of_the_position():
    by_position = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])
    positions = np.arange(40) % 2
    log = feedback(np.tile(by_position.T[np.newaxis], (40, 1, 1)), positions)
    source, fields = read_obp(log)
    cells = gathered(source, **fields).cells
    used = cells.plans[cells.plan]
    np.testing.assert_array_equal(used, by_position[(cells.times[cells.bucket] % 2).astype(int)])
    with pytest.raises(InputError, match="of 2 positions; 'position' must say which"):
        read_obp(log | {"position": None})


def test_open_bandit_distributions_that_all_differ_are_columns():
    p = np.random.default_rng(5).dirichlet(np.ones(3), 1500)
    source, fields = read_obp(feedback(p))
    assert fields["probabilities"] == ("p:0", "p:1", "p:2")
    cells = gathered(source, **fields).cells
    assert len(cells.plans) == 1500


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ({"action": [0]}, "no 'reward'; its keys are action"),
        ({"action": [0], "reward": [1]}, "neither 'pi_b' nor 'action_dist' nor 'pscore'"),
        (
            {"action": [0, 1], "reward": [1], "pscore": [1, 1]},
            r"'reward' has shape \(1,\); the feedback has 2",
        ),
        ({"action": [0, 1], "reward": [1, 1], "pi_b": [[0.5, 0.5]]}, r"shape \(1, 2\); \(rounds, actions\)"),
    ],
)
def test_open_bandit_arrays_that_do_not_fit(log, message):
    with pytest.raises(InputError, match=message):
        read_obp(log)


def test_the_probability_of_the_action_alone_is_taken_as_it_is():
    source, fields = read_obp({"action": [0, 1, 1], "reward": [1, 0, 1], "pscore": [0.4, 0.6, 0.6]})
    np.testing.assert_allclose(gathered(source, **fields).cells.plans, [[0.4, 0.6]])


def lines(path, entries):
    path.write_text("\n".join(json.dumps(entry) for entry in entries))
    return path


def test_lines_of_vowpal_wabbit(tmp_path):
    entries = [
        {"_label_cost": -1.0, "_label_probability": 0.8, "_label_Action": 2, "a": [2, 1], "p": [0.8, 0.2]},
        {"_label_cost": 0, "_label_probability": 0.3, "_label_Action": 1, "a": [1, 2], "p": [0.3, 0.7]},
        {"_label_cost": -2.5, "_label_probability": 0.8, "a": [2, 1], "p": [0.8, 0.2]},
    ]
    stamps = [f"2024-03-01T0{hour}:00:00.5Z" for hour in range(3)]
    entries = [entry | {"Timestamp": stamp} for entry, stamp in zip(entries, stamps, strict=True)]
    source, fields = read_vw(lines(tmp_path / "log.dsjson", entries))
    assert source["arm"].to_pylist() == ["2", "1", "2"]
    assert source["reward"].to_pylist() == [1.0, 0.0, 2.5]
    assert fields == {"arm": "arm", "reward": "reward", "time": "at", "probabilities": ("p:1", "p:2")}
    cells = gathered(source, **fields).cells
    np.testing.assert_allclose(cells.plans[cells.plan], [[0.2, 0.8], [0.3, 0.7], [0.2, 0.8]])


def test_lines_of_vowpal_wabbit_without_all_probabilities(tmp_path):
    entries = [{"_label_Cost": -1, "_label_Probability": 0.5, "_label_Action": action} for action in (1, 2)]
    with pytest.warns(InputWarning, match="1 lines have no '_label_cost'"):
        source, fields = read_vw(lines(tmp_path / "log.json", [*entries, {"RewardValue": 1}]))
    assert fields == {"arm": "arm", "reward": "reward", "time": "line", "probabilities": ("p",)}
    assert gathered(source, **fields).cells.counts.sum() == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1 is not JSON"),
        ("[1]", "line 1 is not a JSON object"),
        ('{"x": 1}', "has no decision"),
        ('{"_label_cost": 1}', "line 1 is not a decision"),
        ('{"_label_cost": 1, "a": [1, 2], "p": [1]}', "'a' has 2 actions, 'p' 1 probabilities"),
        ('{"_label_cost": 1, "a": [0], "p": [1]}', "actions are numbered from 1"),
    ],
)
def test_lines_that_are_none(text, message, tmp_path):
    (tmp_path / "log.json").write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_vw(tmp_path / "log.json")
