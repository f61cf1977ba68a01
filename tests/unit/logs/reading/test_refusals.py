"""Logs and questions that cannot be used are refused in words that name column, row and remedy."""

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
import pytest

from logs_samples import LABELS, gathered, made
from orthobandit.errors import (
    FileFormatError,
    InputError,
    LabelError,
    ParameterError,
    ProbabilityError,
    RewardError,
    SourceError,
)

P = tuple(f"p:{label}" for label in LABELS)
PLANS = {"early": {"a": 0.5, "b": 0.3, "c": 0.2}, "late": {"a": 0.2, "b": 0.2, "c": 0.6}}
EQUAL = {"split": "equal"}


def changed(name, place, value, log=None):
    """Return the log with one value changed."""
    log = made() if log is None else log
    values = log[name].to_pylist()
    values[place] = value
    return log.set_column(log.column_names.index(name), name, [values])


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"reward": "bougt"}, InputError, r"reward='bougt': .* no such column; did you mean 'bought'\?"),
        ({"covariates": ("agee",)}, InputError, r"covariates='agee'.*did you mean 'age'"),
        (
            {"reward": "country"},
            InputError,
            r"reward='country' holds text that is not a number, such as '..', first",
        ),
        ({"reward": "at"}, InputError, r"reward='at' holds timestamp\(?6?\)? values, not numbers; convert"),
        (
            {"time": "country"},
            InputError,
            r"time='country' cannot be read in 600 rows .* row 1, such as '..'; ISO",
        ),
        ({"split": None}, ParameterError, r"not stated; name .*probabilities.*plans.*split='equal'"),
        ({"probabilities": P}, ParameterError, r"stated twice, by probabilities and by split; keep one"),
        ({"split": "even"}, ParameterError, r"split='even' must be 'equal' or \{arm: probability\}"),
        (
            {"split": None, "plan": "plan"},
            ParameterError,
            r"belong together; plans \(a file or a mapping\) is not",
        ),
        ({"split": None, "plans": PLANS}, ParameterError, r"plan \(a column\) is not given"),
        (
            {"split": {"a": 0.5, "b": 0.5}},
            LabelError,
            r"arm='arm' holds 'c', not among the arms, in \d+ rows, first in",
        ),
        ({"split": {"a": 0.5, "b": 0.3, "c": 0.1}}, ProbabilityError, r"0.5, 0.3, 0.1 sum to 0.9; they must"),
        (
            {"split": {"a": 0.5, "b": 0.5, "c": 0.0}},
            ProbabilityError,
            r"'c' was played in \d+ rows .* probability is 0",
        ),
        ({"reference": "d"}, LabelError, r"reference='d' is not an arm; the names are a, b, c"),
        (
            {"window": 10.0},
            ParameterError,
            r"window= is how long the rows of a unit add up; name the unit",
        ),
        ({"window": 10.0, "unit": "user"}, ParameterError, r"window=10.0 needs a time column"),
        ({"bucket": "hour"}, ParameterError, r"bucket='hour' needs a time column"),
        ({"bucket": "houre", "time": "at"}, ParameterError, r"bucket='houre' .* did you mean 'hour'"),
        ({"bucket": 0.5, "time": "at"}, ParameterError, r"bucket=0.5 must be a whole number of seconds"),
        (
            {"unit": "user", "time": "at", "window": 0.5},
            ParameterError,
            r"window=0.5 must be a whole number of seconds",
        ),
        ({"unit": "user"}, ParameterError, r"\d+ units were seen in several arms, .* name it with time"),
        ({"segment": "user"}, InputError, r"segment='user' has \d+ values; at most 200"),
        ({"covariates": ("arm",)}, ParameterError, r"'arm' is named twice, as arm and as covariates"),
        ({"covariates": ("age", "age")}, ParameterError, r"covariates names the column 'age' twice"),
        ({"caps": {"revenue": 3.0}}, ParameterError, r"caps: 'revenue' is not a metric"),
        ({"missing": "ignore"}, ParameterError, r"missing='ignore' is not one of 'refuse', 'zero', 'drop'"),
        (
            {"split": None, "probabilities": P[:2]},
            InputError,
            r"2 columns \(p:a, p:b\) cannot be matched .* 'a', 'b', 'c'",
        ),
    ],
)
def test_questions(fields, error, message):
    log = made()
    if "segment" in fields:
        log = log.set_column(log.column_names.index("user"), "user", [np.arange(600)])
    with pytest.raises(error, match=message):
        gathered(log, **(EQUAL | fields))


@pytest.mark.parametrize(
    ("name", "value", "fields", "error", "message"),
    [
        (
            "arm",
            "d",
            {"probabilities": P},
            InputError,
            r"cannot be matched|'d', not among the arms, in 1 rows",
        ),
        ("arm", None, EQUAL, InputError, r"arm='arm' is empty in 1 rows, first in row 8; leave"),
        ("at", None, EQUAL | {"time": "at"}, InputError, r"time='at' is missing in 1 rows, first in row 8"),
        (
            "p:a",
            0.6,
            {"probabilities": P, "time": "at"},
            ProbabilityError,
            r"in 1 rows, first in row 8, e.g. 0.6, 0.3",
        ),
        ("p:b", -0.3, {"probabilities": P, "time": "at"}, ProbabilityError, r"in 1 rows, first in row 8"),
        (
            "p:b",
            None,
            {"probabilities": P, "time": "at"},
            ProbabilityError,
            r"in 1 rows, first in row 8, e.g. 0.5, nan",
        ),
        (
            "plan",
            "mid",
            {"plan": "plan", "plans": PLANS, "time": "at"},
            InputError,
            r"holds the plan 'mid' in 1 rows",
        ),
        (
            "plan",
            None,
            {"plan": "plan", "plans": PLANS, "time": "at"},
            InputError,
            r"plan='plan' is empty in 1 rows",
        ),
        (
            "user",
            None,
            EQUAL | {"unit": "user", "time": "at"},
            InputError,
            r"unit='user' is empty .* first in row 8",
        ),
        (
            "bought",
            None,
            EQUAL,
            RewardError,
            r"'bought' is missing or not finite in 1 of 600 rows \(a \d.*first in row 8",
        ),
        ("bought", np.nan, EQUAL, RewardError, r"row 8; choose missing='zero' .* or missing='drop'"),
        ("bought", np.inf, EQUAL, RewardError, r"'bought' is missing or not finite in 1 of 600 rows"),
        ("bought", 1e200, EQUAL, RewardError, r"'bought' has values whose squares are too large"),
        (
            "age",
            None,
            EQUAL | {"covariates": ("age",)},
            InputError,
            r"covariate 'age' .* missing='drop' leaves",
        ),
        ("age", None, EQUAL | {"covariates": ("age",), "missing": "zero"}, InputError, r"covariate 'age'"),
    ],
)
def test_rows(name, value, fields, error, message):
    with pytest.raises(error, match=message):
        gathered(changed(name, 7, value), **fields)


@pytest.mark.parametrize("value", [None, np.nan, np.inf])
@pytest.mark.parametrize("unit", [None, "user"])
def test_a_cap_hides_no_missing_value(value, unit):
    log, fields = changed("revenue", 7, value), EQUAL | {"time": "at", "unit": unit, "caps": {"revenue": 5.0}}
    with pytest.raises(RewardError, match=r"'revenue' is missing or not finite in 1 of 600 rows .* row 8"):
        gathered(log, reward="revenue", **fields)
    cells = gathered(log, reward="revenue", missing="drop", **fields).cells
    assert (cells.missing.sum(), cells.dropped.sum()) == (1, 1)


def test_numbers_and_text_in_one_column_of_a_frame():
    pandas = pytest.importorskip("pandas")
    log = pandas.DataFrame({"arm": ["a", "b"], "bought": [1, "many"]})
    with pytest.raises(
        (SourceError, InputError), match=r"several kinds of values|not a number, such as 'many'"
    ):
        gathered(log, **EQUAL)


def test_a_played_arm_of_probability_zero_names_the_row():
    log = made()
    place = log["arm"].to_pylist().index("c")
    for name, value in zip(P, (0.5, 0.5, 0.0), strict=True):
        log = changed(name, place, value, log)
    with pytest.raises(
        ProbabilityError, match=rf"'c' was played in 1 rows .* is 0, first in row {place + 1};"
    ):
        gathered(log, probabilities=P, time="at")


def test_the_drawn_arm_alone_is_not_enough_if_its_probability_varies():
    log = made()
    p = [row[f"p:{row['arm']}"] for row in log.to_pylist()]
    with pytest.raises(
        ProbabilityError, match=r"varies from row to row: .* centred by the whole distribution; log every"
    ):
        gathered(log.append_column("p", [p]), probabilities=("p",), time="at")


def test_probabilities_that_differ_need_a_time():
    with pytest.raises(
        InputError, match=r"probabilities differ between rows \(2 distributions\): the order of draws"
    ):
        gathered(made(), probabilities=P)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", FileFormatError, r"log.csv is empty; a log has a header and one row per draw"),
        ("arm,bought\n", InputError, r"log.csv has no rows; one row per draw is needed"),
        (
            "arm;bought\na;1,5\nb;2,25\n",
            InputError,
            r"reward='bought' holds numbers with a comma, such as '1,5'",
        ),
        (
            "arm;bought\na;0\nb;2,25\n",
            InputError,
            r"reward='bought' holds numbers with a comma, such as '2,25'",
        ),
        (
            "arm,bought\na,ja\nb,nein\nb,nein\n",
            InputError,
            r"reward='bought' holds the words 'ja' and 'nein'; write 1 for the one that counts and 0 for the",
        ),
        (
            "arm,bought\na,1\nb,n/a\n",
            InputError,
            r"'bought' holds text that is not a number, such as 'n/a', first in row 2",
        ),
        ("arm,bought\na,\nb,\n", InputError, r"reward='bought' has no value in the first 2 rows"),
        ("arm,bought\na,1\na,0\n", InputError, r"only the arm 'a'; there is nothing to compare"),
        (
            "arm,bought\n" + "".join(f"12:{k:03d},{k % 2}\n" for k in range(400)),
            InputError,
            r"arm='arm' holds 400 different values in 400 rows, '12:000' and '12:001' among them; is this",
        ),
        (
            "arm,bought\n" + "a,1\nb,0\n" * 20_000 + "a,many\n",
            SourceError,
            r"log.csv cannot be read: .*40002.*many",
        ),
    ],
)
def test_text_files(text, error, message, tmp_path):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(error, match=message):
        gathered(tmp_path / "log.csv", **EQUAL)


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_text_that_is_no_time_is_counted(kind, tmp_path):
    rows = {"arm": ["a", "b", "a"], "bought": [1, 0, 1], "at": ["2024-01-01 00:00:00", "yesterday", None]}
    source = pyarrow.table(rows)
    if kind == "csv":
        source = tmp_path / "log.csv"
        pyarrow.csv.write_csv(pyarrow.table(rows), source)
    elif kind == "parquet":
        source = tmp_path / "log.parquet"
        pyarrow.parquet.write_table(pyarrow.table(rows), source)
    message = (
        r"cannot be read in 1 rows \(and is missing in 1\), first in row 2, such as 'yesterday'; ISO times"
    )
    with pytest.raises(InputError, match=message):
        gathered(source, time="at", **EQUAL)


def test_a_frame_that_was_read_with_the_wrong_separator():
    with pytest.raises(FileFormatError, match=r"column 'arm;bought': it seems to be separated by semicolons"):
        gathered(pyarrow.table({"arm;bought": ["a;1", "b;0"]}), **EQUAL)


def test_files_that_are_not_there(tmp_path):
    for name, message in [
        ("none.csv", "none.csv is not a file, a folder"),
        ("*.csv", r"no file is called .*\*.csv"),
        ("", "has no .parquet, .csv or .tsv file in it"),
    ]:
        with pytest.raises(FileFormatError, match=message):
            gathered(tmp_path / name, **EQUAL)
    (tmp_path / "a.xlsx").write_text("x")
    with pytest.raises(FileFormatError, match=r"a.xlsx does not end in .csv"):
        gathered(tmp_path / "a.xlsx", **EQUAL)
    (tmp_path / "a.parquet").write_text("no Parquet")
    with pytest.raises(SourceError, match=r"a.parquet cannot be read: .*is it what its name says"):
        gathered(tmp_path / "a.parquet", **EQUAL)
    (tmp_path / "b.csv").write_text("arm,bought\na,1\n")
    with pytest.raises(FileFormatError, match=r"has both Parquet and text files; name one kind"):
        gathered(tmp_path, **EQUAL)


def test_sources_that_are_none():
    with pytest.raises(InputError, match=r"a source of type 'int' cannot be read; give a path, a frame"):
        gathered(3, **EQUAL)
    with pytest.raises(ParameterError, match=r"table='log' is for databases"):
        gathered(made(), "log", **EQUAL)


def test_databases(tmp_path):
    import duckdb

    path = tmp_path / "log.db"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE visits (arm TEXT, bought DOUBLE)")
    url = f"duckdb://{path}"
    with pytest.raises(ParameterError, match=r"table= must name the table of .*log.db; there are visits"):
        gathered(url, **EQUAL)
    with pytest.raises(ParameterError, match=r"table='visit' is not in .*; did you mean 'visits'"):
        gathered(url, "visit", **EQUAL)
    with pytest.raises(SourceError, match=r"postgres://me:\*\*\*@127.0.0.1:1/x cannot be read: .*refused"):
        gathered("postgres://me:secret@127.0.0.1:1/x", "log", **EQUAL)


def test_what_an_engine_cannot_do(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "log.db") as connection:
        connection.execute("CREATE TABLE log (arm TEXT, bought REAL, at TEXT)")
        connection.execute("INSERT INTO log VALUES ('a', 1, '2024-01-01'), ('b', 2, '2024-01-02')")
    connection.close()
    url = f"sqlite://{tmp_path / 'log.db'}"
    assert gathered(url, "log", **EQUAL).cells.sums[:, 0].tolist() == [1.0, 2.0]
    with pytest.raises(
        SourceError, match=r"engine lacks what is needed .*TryCast.*; copy the table to a Parquet"
    ):
        gathered(url, "log", time="at", **EQUAL)


def test_a_database_that_goes_away_half_way(postgres):
    import psycopg

    from inside.logs import cells_of, open_source
    from orthobandit.logs import Question

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE gone AS SELECT 'a' AS arm, 1.0::float8 AS bought")
        with open_source(postgres, "gone") as opened:
            assert "arm" in opened.schema
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
            with pytest.raises(
                SourceError, match=r"table 'gone' of postgresql://.* cannot be read: .*terminat"
            ):
                cells_of(opened, Question("arm", "bought", split="equal"))


@pytest.mark.parametrize("kind", ["frame", "parquet"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_arm_that_is_no_number_is_no_arm(kind, bad, tmp_path):
    arms = np.array([0.0, 1.0] * 10)
    arms[[6, 11]] = bad
    log = pyarrow.table({"arm": arms, "bought": np.ones(20)})
    if kind == "parquet":
        pyarrow.parquet.write_table(log, tmp_path / "log.parquet")
        log = str(tmp_path / "log.parquet")
    with pytest.raises(InputError, match=r"arm='arm' is empty in 2 rows, first in row 7; leave these out"):
        gathered(log, split="equal")
