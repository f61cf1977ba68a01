import numpy as np
import pytest

from inside.reproduction import Fit
from inside.study import Cell
from orthobandit.study.tables import (
    compared,
    compared_table,
    distinct,
    grouped,
    join,
    read_parquet,
    where,
    write_parquet,
)


def test_cells_are_joined_below_each_other_with_their_labels():
    cells = [Cell("math:hypot", {"a": n}, {"policy": f"p{n}", "scale": n}) for n in (1, 2)]
    results = [{"runs": {"regret": [1.0 * n, 2.0 * n]}} for n in (1, 2)]
    runs = join(cells, results)["runs"]
    assert runs["policy"].tolist() == ["p1", "p1", "p2", "p2"]
    assert where(runs, policy="p2", scale=2)["regret"].tolist() == [2.0, 4.0]
    assert distinct(runs, "scale", "policy") == [(1, "p1"), (2, "p2")]
    places, values = grouped(runs, "scale", "regret")
    assert places.tolist() == [1, 2]
    assert values.tolist() == [[1.0, 2.0], [2.0, 4.0]]


def test_parquet_keeps_numbers_words_and_truth(tmp_path):
    columns = {
        "x": np.array([0.1, -3.0]),
        "n": np.array([1, 2**40]),
        "name": np.array(["a", "β"]),
        "is_good": np.array([True, False]),
    }
    write_parquet(tmp_path / "deep" / "t.parquet", columns)
    back = read_parquet(tmp_path / "deep" / "t.parquet")
    assert {name: values.tolist() for name, values in back.items()} == {
        name: values.tolist() for name, values in columns.items()
    }


def test_runs_are_compared_by_policy_instance_and_shift():
    runs = {
        "policy": np.array(["a", "a", "b"]),
        "instance": np.array(["i", "i", "i"]),
        "shift": np.array(["s", "s", "s"]),
        "regret": np.array([1.0, 3.0, 5.0]),
        "stop_time": np.array([10, 30, -1]),
        "declared": np.array([0, 1, -1]),
        "is_correct": np.array([True, False, False]),
    }
    first, second = compared(runs, horizon=100)
    assert first["regret"] == 2.0
    assert first["regret_error"] == pytest.approx(1.0)
    assert (first["declared"], first["wrong"]) == (1.0, 0.5)
    assert (first["stop"], first["stop_error"]) == (20.0, pytest.approx(10.0))
    assert (second["declared"], second["wrong"]) == (0.0, None)
    lines = compared_table([first, second]).splitlines()
    assert lines[0].split()[:4] == ["policy", "instance", "shift", "runs"]
    assert lines[1].endswith("2.0 ± 1.0   100.0 %  50.0 %        20 ± 10")
    assert lines[2].endswith("5.0     0.0 %       –  none declared")


def test_a_policy_that_gives_up_does_not_look_fast():
    runs = {
        "policy": np.repeat(["all", "third"], 3),
        "instance": np.full(6, "i"),
        "shift": np.full(6, "s"),
        "regret": np.zeros(6),
        "stop_time": np.array([50, 60, 70, 10, -1, -1]),
        "declared": np.array([0, 0, 0, 0, -1, -1]),
        "is_correct": np.array([True, True, True, True, False, False]),
    }
    every, third = compared(runs, horizon=100)
    assert every["stop"] == 60.0
    assert third["stop"] == 70.0  # (10 + 100 + 100) / 3
    assert third["stop_error"] == pytest.approx(30.0)
    assert third["declared"] == pytest.approx(1 / 3)
    shown = compared_table([every, third]).splitlines()
    assert shown[1].endswith("  60 ± 6")
    assert shown[2].endswith("≥ 70 ± 30")


def test_the_fitted_exponent_and_its_error():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    generator = np.random.default_rng(1)
    y = 3 * np.sqrt(x)[:, None] * np.exp(0.05 * generator.standard_normal((4, 50)))
    fit = Fit.of(x, y)
    assert fit.exponent == pytest.approx(0.5, abs=4 * fit.error)
    assert 0 < fit.error < 0.02
    assert fit.values[2] == pytest.approx(6.0, rel=0.03)
    assert Fit.of(x, y[:, :1]).error == 0
