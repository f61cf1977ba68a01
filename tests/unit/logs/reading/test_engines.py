"""The same numbers from every kind of source, to 1e-9."""

import warnings
from functools import cache

import pyarrow.csv
import pyarrow.parquet
import pytest

from logs_samples import LABELS, by_key, gathered, made, same
from orthobandit.logs import Ratio

P = tuple(f"p:{label}" for label in LABELS)
FULL = {
    "time": "at",
    "probabilities": P,
    "metrics": ("revenue",),
    "ratios": (Ratio("revenue", "clicks"),),
    "covariates": ("age",),
    "segment": "country",
    "caps": {"revenue": 20.0},
}
QUESTIONS = {
    "rows": (FULL, False),
    "units": (FULL | {"unit": "user", "window": 36000, "missing": "drop"}, True),
    "zero": (FULL | {"missing": "zero"}, True),
    "text": (FULL | {"time": "iso", "segment": None}, False),
}
FILES = ["csv", "csv.gz", "tsv", "parquet", "folder", "pattern"]


@cache
def table(holes):
    """Return the log, with its times also as text in another time zone."""
    log = made(holes=holes)
    iso = [f"{one.isoformat()}+00:00" for one in log["at"].to_pylist()]
    return log.append_column("iso", [iso])


def written(kind, folder, log):
    if kind in ("csv", "tsv", "csv.gz"):
        options = pyarrow.csv.WriteOptions(delimiter="\t" if kind == "tsv" else ",")
        path = folder / f"log.{kind}"
        with pyarrow.output_stream(path, compression="gzip" if kind == "csv.gz" else None) as stream:
            pyarrow.csv.write_csv(log, stream, options)
        return path
    if kind == "parquet":
        pyarrow.parquet.write_table(log, folder / "log.parquet")
        return folder / "log.parquet"
    for place in range(3):
        pyarrow.parquet.write_table(log.slice(200 * place, 200), folder / f"part{place}.parquet")
    return folder if kind == "folder" else str(folder / "*.parquet")


@cache
def expected_of(question):
    """Return what the log in memory gives: its cells by key, its number of units, what is binary."""
    fields, holes = QUESTIONS[question]
    found = gathered(table(holes), **fields)
    return by_key(found), found.units, found.is_binary.tolist()


def check(source, question, name=None):
    cells, units, is_binary = expected_of(question)
    found = gathered(source, name, **QUESTIONS[question][0])
    same(by_key(found), cells)
    assert found.units == units
    assert found.is_binary.tolist() == is_binary


@pytest.mark.parametrize("kind", FILES)
def test_files(kind, tmp_path):
    for question in ("rows", "units"):
        (tmp_path / question).mkdir()
        check(written(kind, tmp_path / question, table(QUESTIONS[question][1])), question)


@pytest.mark.parametrize("package", ["pandas", "polars", "lazy", "arrow"])
@pytest.mark.parametrize("question", list(QUESTIONS))
def test_frames(package, question):
    log = table(QUESTIONS[question][1])
    if package == "pandas":
        log = log.to_pandas()
    elif package in ("polars", "lazy"):
        polars = pytest.importorskip("polars")
        log = polars.from_arrow(log)
        log = log.lazy() if package == "lazy" else log
    check(log, question)


@pytest.mark.parametrize("question", list(QUESTIONS))
def test_a_table_of_duckdb(question, tmp_path):
    import duckdb

    log = table(QUESTIONS[question][1])
    with duckdb.connect(tmp_path / "log.db") as connection:
        connection.register("given", log)
        connection.execute("CREATE TABLE log AS SELECT * FROM given")
    check(f"duckdb://{tmp_path / 'log.db'}", question, "log")


@pytest.fixture(scope="module")
def in_postgres(postgres):
    import psycopg

    with psycopg.connect(postgres) as connection:
        for holes in (False, True):
            log = table(holes)
            kinds = {"timestamp[us]": "timestamp", "string": "text", "double": "float8", "int64": "int8"}
            columns = ", ".join(f'"{one.name}" {kinds[str(one.type)]}' for one in log.schema)
            connection.execute(f"CREATE TABLE log{int(holes)} ({columns})")
            with connection.cursor().copy(f"COPY log{int(holes)} FROM STDIN") as copy:
                for row in log.to_pylist():
                    copy.write_row(tuple(row.values()))
    return postgres


@pytest.mark.parametrize("question", list(QUESTIONS))
def test_a_table_of_postgresql(question, in_postgres):
    check(in_postgres, question, f"log{int(QUESTIONS[question][1])}")


@pytest.fixture(scope="module")
def in_spark(spark, tmp_path_factory):
    folder, frames = tmp_path_factory.mktemp("spark"), []
    for holes in (False, True):
        pyarrow.parquet.write_table(table(holes), folder / f"log{int(holes)}.parquet")
        frames.append(spark.read.parquet(str(folder / f"log{int(holes)}.parquet")))
    return frames


@pytest.mark.slow
@pytest.mark.parametrize("question", ["units", "text"])  # Spark takes seconds for each
def test_a_frame_of_spark(question, in_spark):
    frame, zone = in_spark[int(QUESTIONS[question][1])], "spark.sql.session.timeZone"
    session = frame.sparkSession
    before = session.conf.get(zone)
    session.conf.set(zone, "Asia/Tokyo")
    try:
        check(frame, question)
        assert session.conf.get(zone) == "Asia/Tokyo"
    finally:
        session.conf.set(zone, before)  # other tests share the session


def test_an_ibis_table_is_asked_where_it_is():
    ibis = pytest.importorskip("ibis")
    log = table(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        backend = ibis.duckdb.connect()
        backend.con.register("log", log)
        given = backend.table("log")
        chosen = given.filter(given.country != "de")
    found = gathered(chosen, **FULL)
    kept = log.filter(pyarrow.compute.not_equal(log["country"], "de"))
    same(by_key(found), by_key(gathered(kept, **FULL)))
