import json
import sys

import numpy as np
import pytest
from tests.unit.simulation.toys import DropWorst, FixedPolicy

from orthobandit.errors import FileFormatError, MissingExtraError, ParameterError
from orthobandit.policy import Decision
from orthobandit.simulation import RunResult, Sine, one_hot, simulate

ENVIRONMENT = one_hot([0.1, 0.3, 0.2], shift=Sine())


@pytest.fixture(params=[DropWorst(), FixedPolicy()], ids=repr)
def result(request):
    return simulate(request.param, ENVIRONMENT, horizon=300, replications=6, seed=2)


def test_json_is_exact(result):
    again = RunResult.from_json(json.loads(json.dumps(result.to_json(), allow_nan=False)))
    assert again.equals(result)
    for name in ("regret", "stop_times", "elimination_times", "plans", "clipped", "gaps", "checkpoints"):
        assert np.array_equal(getattr(again, name), getattr(result, name))
        assert getattr(again, name).dtype == getattr(result, name).dtype
    assert np.array_equal(again.decision.epsilon, result.decision.epsilon)
    assert np.array_equal(again.correct, result.correct)


@pytest.mark.parametrize("name", ["run.json", "run.parquet"])
def test_files_are_exact(result, tmp_path, name):
    result.write(tmp_path / name)
    assert RunResult.read(tmp_path / name).equals(result)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_settings_tell_what_was_run(result):
    assert result.settings["seed"] == 2
    assert result.settings["horizon"] == 300
    assert result.settings["environment"]["shift"].startswith("Sine(")
    assert "(" in result.settings["policy"]


def test_parts_merge_in_any_order(result):
    parts = [result.only(np.array([4, 5])), result.only(np.array([0, 1])), result.only(np.array([2, 3]))]
    assert RunResult.merge(parts).equals(result)
    with pytest.raises(ParameterError, match="share a replication"):
        RunResult.merge([result, parts[0]])


def _result(regret, stops, declared):
    size = len(regret)
    decision = Decision(
        np.ones((size, 2), bool), np.zeros(size, int), np.array(declared), np.full(size, np.inf), 0.0, "none"
    )
    return RunResult(
        replications=np.arange(size),
        checkpoints=np.array([10]),
        gaps=np.array([0.0, 0.5]),
        regret=np.array(regret)[:, np.newaxis],
        stop_times=np.array(stops),
        elimination_times=np.full((size, 2), -1),
        plans=np.arange(size),
        clipped=np.zeros(size, int),
        decision=decision,
    )


def test_summary_by_hand():
    summary = _result([1.0, 2.0, 3.0, 6.0], [5, 7, -1, 9], [0, 0, -1, 1]).summary(levels=[0.0, 0.5, 1.0])
    assert summary.regret_mean.tolist() == [3.0]
    assert summary.regret_error[0] == pytest.approx(np.sqrt(14 / 3) / 2)
    assert summary.regret_quantiles[:, 0].tolist() == [1.0, 2.5, 6.0]
    assert summary.stop_quantiles.tolist() == [5, 9, np.inf]
    assert (summary.declared, summary.correct, summary.wrong) == (0.75, 0.5, 0.25)
    assert summary.most_plans == 3


def test_summary_of_one_replication_claims_no_error():
    assert np.isnan(_result([1.0], [5], [0]).summary().regret_error[0])
    with pytest.raises(ParameterError, match="levels"):
        _result([1.0], [5], [0]).summary(levels=[1.5])


def test_unreadable_files_are_named(result, tmp_path):
    with pytest.raises(FileFormatError, match=r"\.csv"):
        result.write(tmp_path / "run.csv")
    with pytest.raises(FileFormatError, match=r"\.csv"):
        RunResult.read(tmp_path / "run.csv")
    with pytest.raises(FileFormatError, match="not a file"):
        RunResult.read(tmp_path / "absent.json")
    (tmp_path / "broken.json").write_text('{"format": ')
    with pytest.raises(FileFormatError, match="JSON"):
        RunResult.read(tmp_path / "broken.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(FileFormatError, match="not a run result"):
        RunResult.read(tmp_path / "other.json")
    (tmp_path / "broken.parquet").write_text("PAR")
    with pytest.raises(FileFormatError, match="Parquet"):
        RunResult.read(tmp_path / "broken.parquet")


def test_parquet_without_pyarrow_says_what_to_install(result, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="Parquet needs pyarrow; install it with `pip install"):
        result.write(tmp_path / "run.parquet")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lost", ["regret", "stop_times", "declared"])
def test_a_result_with_a_piece_missing_is_named(result, tmp_path, lost):
    result.write(tmp_path / "run.json")
    data = json.loads((tmp_path / "run.json").read_text())
    for rows, said in (
        (data["rows"][lost][:-1], "columns of different lengths"),
        (None, "incomplete or damaged"),
    ):
        broken = data["rows"] | {lost: rows} if rows is not None else {}
        (tmp_path / "broken.json").write_text(json.dumps(data | {"rows": broken}))
        with pytest.raises(FileFormatError, match=said):
            RunResult.read(tmp_path / "broken.json")
