import pytest

from orthobandit import SBE
from orthobandit.errors import ParameterError
from orthobandit.simulation import compare, comparison_table, one_hot, simulate


def test_rows_are_plain_and_say_what_does_not_exist():
    environment = one_hot([0.0, 1.0])
    results = {
        "long": simulate(SBE(), environment, horizon=500, replications=10, seed=1),
        "short": simulate(SBE(), environment, horizon=5, replications=1, seed=1),
    }
    long, short = compare(results)
    assert long["policy"] == "long"
    assert long["declared"] == 1
    assert long["stop_median"] == int(sorted(results["long"].stop_times)[5])
    assert short["regret_error"] is None
    assert short["stop_median"] is None
    assert (long["wrong"], short["wrong"]) == (0, None)
    assert short["regret_mean"] == results["short"].regret[0, -1]


def test_the_table_is_aligned():
    rows = compare({"a": simulate(SBE(), one_hot([0.0, 1.0]), horizon=5, replications=2, seed=1)})
    head, line = comparison_table([*rows, rows[0] | {"policy": "a longer name"}]).splitlines()[:2]
    assert head.startswith("policy         ")
    assert len(line) == len(head)
    assert "never" in line
    assert line.split()[-3:] == ["–", "never", "1"]


def test_runs_of_different_horizons_are_told_apart():
    environment = one_hot([0.0, 1.0])
    results = {
        str(horizon): simulate(SBE(), environment, horizon=horizon, replications=2, seed=1)
        for horizon in (5, 1000)
    }
    rows = compare(results)
    assert [row["horizon"] for row in rows] == [5, 1000]
    head, short, long = comparison_table(rows).splitlines()
    assert head.split()[:2] == ["policy", "rounds"]
    assert (short.split()[1], long.split()[1]) == ("5", "1,000")
    assert "rounds" not in comparison_table(rows[:1])


def test_runs_without_names_are_refused():
    with pytest.raises(ParameterError, match=r"results is a list; give a dict of runs by name"):
        compare([])
    with pytest.raises(ParameterError, match=r"results\['a'\] is a int; give what simulate\(\) returns"):
        compare({"a": 1})


def test_a_table_is_of_rows():
    with pytest.raises(ParameterError, match=r"rows is a dict; give what compare\(\) returns"):
        comparison_table({"a": 1})
