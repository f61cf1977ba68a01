"""Times given as numbers since 1970, in any unit."""

import duckdb
import numpy as np
import pyarrow
import pytest
from pyarrow import csv

from logs_samples import LABELS, made
from orthobandit import analyse
from orthobandit.cli import main
from orthobandit.errors import InputError, ParameterError
from orthobandit.logs import warehouse_sql
from orthobandit.logs.reading.clock import PER_SECOND, likely_unit
from orthobandit.logs.reading.formats import read_exposures

P = tuple(f"p:{label}" for label in LABELS)
ASKED = {"arm": "arm", "reward": "bought", "time": "at", "probabilities": P}


def with_times(log, unit, kind=np.int64):
    """Return a log whose timestamps are numbers since 1970."""
    seconds = log["at"].cast(pyarrow.timestamp("ns")).cast("int64").to_numpy() / 1e9
    times = np.round(seconds * PER_SECOND[unit]).astype(kind)
    return log.set_column(log.column_names.index("at"), "at", pyarrow.array(times))


def told(found):
    """Return all that an analysis says."""
    return found.to_json() | {"bucket_rule": found.bucket_rule}


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("unit", PER_SECOND)
def test_numbers_of_a_unit_are_the_times_that_they_stand_for(unit, kind):
    log = made()
    found = analyse(with_times(log, unit, kind), **ASKED, time_unit=unit)
    assert told(found) == told(analyse(log, **ASKED))
    assert (found.bucket, found.is_clock) == ("hour", True)


@pytest.mark.parametrize(
    "more", [{"unit": "user", "window": 36_000, "missing": "drop"}, {"context": ["age"]}]
)
def test_units_windows_and_rules_count_in_seconds(more):
    log = made()
    found = analyse(with_times(log, "ms"), **ASKED, **more, time_unit="ms")
    assert told(found) == told(analyse(log, **ASKED, **more))


@pytest.mark.parametrize("unit", PER_SECOND)
def test_without_a_unit_buckets_stay_as_they_were_and_a_note_names_the_option(unit):
    found = analyse(with_times(made(), unit), **ASKED)
    assert found.bucket_rule["width"] == 1.0
    assert not found.is_clock
    note = next(one for one in found.notes if "since 1970" in one)
    assert f"time_unit={unit!r} (--time-unit {unit})" in note
    assert "2024-03-01 00:0" in note


def test_rules_have_that_note_too():
    found = analyse(with_times(made(), "s"), **ASKED, context=["age"])
    assert any("since 1970" in one for one in found.notes)


def test_numbers_that_are_no_times_have_no_note():
    log = made()
    for times in (np.arange(len(log)), 1e9 * np.arange(len(log)), np.linspace(0.0, 3e9, len(log))):
        plain = log.set_column(0, "at", pyarrow.array(times))
        assert not any("1970" in one for one in analyse(plain, **ASKED).notes)


@pytest.mark.parametrize(
    ("ends", "unit"),
    [
        ((946_684_800, 4_102_444_800), "s"),
        ((946_684_799, 1_700_000_000), None),
        ((1_700_000_000, 4_102_444_801), None),
        ((1_700_000_000, 1_700_000_000_000), None),
        ((1.7e15, 1.8e15), "us"),
    ],
)
def test_times_are_likely_from_2000_to_2100_in_one_unit(ends, unit):
    assert likely_unit(*ends) == unit


def test_a_unit_is_for_numbers_of_a_time_column():
    with pytest.raises(ParameterError, match="time_unit='s' is for times given as numbers; time='at' is of"):
        analyse(made(), **ASKED, time_unit="s")
    with pytest.raises(ParameterError, match="time_unit='sec' is not one of 's', 'ms', 'us', 'ns'"):
        analyse(made(), **ASKED, time_unit="sec")
    with pytest.raises(ParameterError, match="time_unit='s' needs a time column"):
        analyse(made(), **{**ASKED, "time": None}, time_unit="s")


def test_times_that_are_no_numbers_are_refused():
    times = with_times(made(), "s", np.float64)["at"].to_numpy().copy()
    times[3] = np.nan
    log = made().set_column(0, "at", pyarrow.array(times))
    with pytest.raises(InputError, match=r"time='at' cannot be read in 1 rows .*first in row 4.*finite num"):
        analyse(log, **ASKED, time_unit="s")


def test_periods_of_a_summary_may_be_such_numbers():
    day = 86_400_000
    columns = {
        "at": [1_740_960_000_000 + day * one for one in (0, 0, 1, 1, 2, 2)],
        "arm": ["a", "b"] * 3,
        "n": [100, 90, 80, 110, 100, 100],
        "mean": [0.3, 0.4, 0.3, 0.4, 0.3, 0.4],
        "variance": [0.2] * 6,
    }
    asked = {"arm": "arm", "time": "at", "n": "n", "mean": "mean", "variance": "variance", "split": "equal"}
    log = pyarrow.table(columns)
    assert analyse(log, **asked, time_unit="ms").bucket == "day"
    assert any("--time-unit ms" in one for one in analyse(log, **asked).notes)


def test_phases_of_exposures_may_be_such_numbers():
    log = pyarrow.table({"at": [1_740_960_000_000, 1_740_970_000_000], "arm": ["a", "b"]})
    even = {"a": 0.5, "b": 0.5}
    for middle in (1_740_965_000_000, "2025-03-03T01:23:20"):
        phases = [{"to": middle, "weights": even}, {"from": middle, "weights": even}]
        opened, _ = read_exposures(log, phases, variation="arm", time="at", time_unit="ms")
        with opened:
            assert opened.fetch(opened.table)["phase"].to_pylist() == ["phase 1", "phase 2"]


def test_the_flag_says_the_same(tmp_path, capsys):
    path = tmp_path / "log.csv"
    csv.write_csv(with_times(made(), "ms"), path)
    flags = ["--arm", "arm", "--reward", "bought", "--time", "at", "--probabilities", *P]
    assert main(["analyse", str(path), *flags, "--time-unit", "ms"]) == 0
    assert "buckets (hour)" in capsys.readouterr().out
    assert main(["analyse", str(path), *flags]) == 0
    assert "--time-unit ms" in capsys.readouterr().out


def test_a_warehouse_divides_by_the_unit():
    log = with_times(made(), "ms")
    asked = ASKED | {"time_unit": "ms"}
    with duckdb.connect() as connection:
        connection.register("log", log)
        cells = connection.sql(warehouse_sql("log", "duckdb", **asked)).to_arrow_table()
    found = analyse(cells, **asked, cells=True)
    assert found.bucket == "hour"
    assert found.metrics[0].effects[1].interval == pytest.approx(
        analyse(made(), **ASKED).metrics[0].effects[1].interval
    )
