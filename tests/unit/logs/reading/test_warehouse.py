"""The GROUP BY as SQL of many engines, and the whole analysis from what one of them returned."""

from pathlib import Path

import duckdb
import ibis
import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from logs_samples import LABELS, made
from orthobandit.cli import main
from orthobandit.errors import FileFormatError, InputError, ParameterError, RewardError
from orthobandit.logs import Ratio, analyse, warehouse_sql
from orthobandit.logs.reading.warehouse import DIALECTS
from plain_data import assert_alike

GOLDEN = Path(__file__).parent / "golden_sql"
IBIS = "12.0.0"  # the release whose SQL is stored
P = tuple(f"p:{label}" for label in LABELS)
PLAIN = {"arm": "arm", "reward": "bought", "time": "at", "probabilities": P}
QUESTIONS = {
    "plain": PLAIN,
    "segments": PLAIN | {"segment": "country", "metrics": ["revenue"], "caps": {"revenue": 20.0}},
    "ratio": PLAIN | {"ratios": [Ratio("revenue", "clicks")], "bucket": "day"},
    "units": PLAIN | {"unit": "user", "window": 36_000, "missing": "drop"},
    "zero": PLAIN | {"missing": "zero", "reward": "revenue"},
}
TYPES = {"units": {"user": "integer"}}


def returned(log, sql):
    """Run SQL on a table in DuckDB, as a warehouse would."""
    with duckdb.connect() as connection:
        connection.register("log", log)
        return connection.sql(sql).to_arrow_table()


def flat(found):
    """Return all numbers of an analysis, without what only a look at rows can tell."""
    values = found.to_json()
    values.pop("notes")
    return values


@pytest.mark.parametrize(("name", "kind"), [*((name, "csv") for name in QUESTIONS), ("ratio", "parquet")])
def test_a_round_trip_says_what_the_direct_way_says(name, kind, tmp_path):
    asked = QUESTIONS[name]
    log = made(holes=name in ("units", "zero"))
    types = TYPES.get(name)
    cells = returned(log, warehouse_sql("log", "duckdb", types=types, **asked))
    path = tmp_path / f"cells.{kind}"
    if kind == "csv":
        pyarrow.csv.write_csv(cells, path)
    else:
        pyarrow.parquet.write_table(cells, path)
    found = analyse(path, cells=True, types=types, **asked)
    assert_alike(flat(found), flat(analyse(log, **asked)))


def test_a_round_trip_through_postgresql(postgres):
    psycopg = pytest.importorskip("psycopg")
    log = made().select(["at", "arm", "bought", "revenue", "country", *P])
    asked = QUESTIONS["segments"]
    columns = "at timestamp, arm text, bought float8, revenue float8, country text"
    columns += "".join(f', "{name}" float8' for name in P)
    with psycopg.connect(postgres) as connection:
        connection.execute(f"CREATE TEMP TABLE trip ({columns})")
        with connection.cursor().copy("COPY trip FROM STDIN") as copy:
            for row in log.to_pylist():
                copy.write_row(list(row.values()))
        cursor = connection.execute(warehouse_sql("trip", "postgres", **asked))
        names = [column.name for column in cursor.description]
        rows = cursor.fetchall()
    cells = pyarrow.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    assert_alike(flat(analyse(cells, cells=True, **asked)), flat(analyse(log, **asked)))


@pytest.mark.slow
# Spark leaves the socket of an answer to the garbage collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["segments", "units"])
def test_a_round_trip_through_spark(name, spark, tmp_path):
    log = made(holes=name == "units")
    pyarrow.parquet.write_table(log, tmp_path / "log.parquet")
    spark.read.parquet(str(tmp_path / "log.parquet")).createOrReplaceTempView("trip")
    types = TYPES.get(name)
    sql = warehouse_sql("trip", "spark", types=types, **QUESTIONS[name])
    answer = spark.sql(sql)
    rows = answer.collect()
    # Not by toPandas: it uses what pandas has deprecated.
    cells = pyarrow.table({column: [row[column] for row in rows] for column in answer.columns})
    found = analyse(cells, cells=True, types=types, **QUESTIONS[name])
    assert_alike(flat(found), flat(analyse(log, **QUESTIONS[name])))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_sql_is_as_it_was(dialect):
    asked = QUESTIONS["segments"]
    sql = warehouse_sql("shop.exposures", dialect, types={"bought": "boolean"}, **asked)
    assert sql.count("GROUP BY") == 1
    if ibis.__version__ != IBIS:
        pytest.skip(f"SQL is stored as Ibis {IBIS} writes it")
    assert f"{sql}\n" == (GOLDEN / f"{dialect}.sql").read_text(encoding="utf-8")


def test_the_command_prints_sql_and_reads_its_result(capsys, tmp_path):
    rng = np.random.default_rng(0)
    arm = rng.integers(0, 2, 4000)
    log = pyarrow.table(
        {
            "day": np.sort(rng.integers(0, 20, 4000)),
            "page": np.array(["old", "new"])[arm],
            "paid": rng.random(4000) < 0.2 + 0.1 * arm,
        }
    )
    asked = ["--arm", "page", "--reward", "paid", "--time", "day", "--bucket", "1"]
    asked += ["--split", "equal", "--reference", "old"]
    types = ["--type", "day=integer", "--type", "paid=boolean"]
    assert main(["analyse", "log", "--sql", "duckdb", *asked, *types]) == 0
    cells = returned(log, capsys.readouterr().out)
    # Warehouses may change the case of names.
    cells = cells.rename_columns([name.upper() for name in cells.column_names])
    path = tmp_path / "cells.csv"
    pyarrow.csv.write_csv(cells, path)
    assert main(["analyse", "--cells", str(path), *asked, *types]) == 0
    shown = capsys.readouterr().out
    direct = analyse(log, arm="page", reward="paid", time="day", bucket=1, split="equal", reference="old")
    assert shown == f"{direct}\n"
    assert "exact for values from 0 to 1" in shown


def test_cells_of_another_question_are_refused():
    log = made()
    cells = returned(log, warehouse_sql("log", "duckdb", **PLAIN))
    with pytest.raises(InputError, match="answers another question"):
        analyse(cells, cells=True, **(PLAIN | {"bucket": "day"}))
    with pytest.raises(FileFormatError, match="has no column 's1'"):
        analyse(cells, cells=True, **(PLAIN | {"metrics": ["revenue"]}))
    with pytest.raises(FileFormatError, match="has no column 'bucket'"):
        analyse(log, cells=True, **PLAIN)
    # What decides nothing in the engine may change.
    assert analyse(cells, cells=True, **PLAIN, delta=0.1).rows == 600


def test_what_only_rows_could_tell_is_refused():
    with pytest.raises(ParameterError, match="'at' holds numbers: say how long a bucket is"):
        warehouse_sql("log", "duckdb", types={"at": "integer"}, **PLAIN)
    with pytest.raises(ParameterError, match="'other' has no part in the question"):
        warehouse_sql("log", "duckdb", types={"other": "integer"}, **PLAIN)
    with pytest.raises(ParameterError, match="dialect='oracle9' is not one of"):
        warehouse_sql("log", "oracle9", **PLAIN)
    with pytest.raises(ParameterError, match="must be a name such as exposures"):
        warehouse_sql("a..b", "duckdb", **PLAIN)
    with pytest.raises(ParameterError, match=r"types=.* are for cells=True"):
        analyse(made(), types={"at": "time"}, **PLAIN)
    cells = returned(made(holes=True), warehouse_sql("log", "duckdb", **(PLAIN | {"reward": "revenue"})))
    with pytest.raises(RewardError, match=r"missing or not finite in \d+ of 600 rows: choose missing='zero'"):
        analyse(cells, cells=True, **(PLAIN | {"reward": "revenue"}))
    far = PLAIN | {"reward": "age"}
    moved = made().set_column(6, "age", [np.asarray(made()["age"]) * 1e3])
    cells = returned(moved, warehouse_sql("log", "duckdb", **far))
    with pytest.raises(InputError, match=r"'age' is around 1e\+09, far from 0"):
        analyse(cells, cells=True, **far)


def test_flags_that_do_not_fit_are_refused(capsys):
    for flags, words in (
        (["--arm", "a", "--reward", "r"], "SOURCE is missing; give a file"),
        (["--arm", "a", "--reward", "r", "--sql", "duckdb"], "SOURCE is missing; give the name of the table"),
        (["t", "--arm", "a", "--reward", "r", "--sql", "duckdb", "--cells", "f"], "one of them at a time"),
        (["t", "--arm", "a", "--reward", "r", "--type", "a=text"], "--type is for --sql and --cells"),
        (["t", "--arm", "a", "--reward", "r", "--type", "a=int"], "must be COLUMN=KIND"),
        (["t", "--arm", "a", "--reward", "r", "--sql", "bigqery"], "did you mean bigquery?"),
    ):
        try:
            code = main(["analyse", *flags])
        except SystemExit as stop:
            code = stop.code
        assert code == 2
        assert words in " ".join(capsys.readouterr().err.split())
