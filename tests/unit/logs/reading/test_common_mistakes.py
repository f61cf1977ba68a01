"""What newcomers get wrong: told with counts and a remedy, not taken in silence."""

import pickle
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow
import pyarrow.csv
import pytest

from orthobandit import analyse
from orthobandit.cli import main
from orthobandit.errors import (
    FileFormatError,
    InputError,
    LabelError,
    MissingExtraError,
    ParameterError,
    ProbabilityError,
    RewardError,
    SourceError,
)
from orthobandit.logs import Quantile, Ratio, warehouse_sql

ASKED = {"arm": "arm", "reward": "y", "time": "at", "split": "equal"}


def log(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    seconds = np.sort(rng.choice(20 * 3600, rows, replace=False))
    begin = datetime(2025, 3, 1, tzinfo=UTC)
    return pyarrow.table(
        {
            "at": [begin + timedelta(seconds=int(one)) for one in seconds],
            "arm": np.array(["old", "new"])[rng.integers(0, 2, rows)],
            "y": rng.normal(size=rows),
            "x": rng.normal(size=rows),
        }
    )


def test_rows_that_were_loaded_twice_are_counted():
    rows = log()
    twice = pyarrow.concat_tables([rows, rows.slice(0, 50)])
    words = "50 of 450 rows are copies of other rows in every column"
    assert any(words in note for note in analyse(twice, **ASKED).notes)
    assert not any("copies" in note for note in analyse(rows, **ASKED).notes)
    # Days, arms and outcomes repeat by nature.
    plain = pyarrow.table({"at": np.arange(400) // 20, "arm": ["a", "b"] * 200, "y": [0, 0, 1, 1] * 100})
    assert not any("copies" in note for note in analyse(plain, **ASKED).notes)


def test_labels_that_differ_in_case_or_spaces_are_counted():
    rows = log()
    labels = rows["arm"].to_pylist()
    labels[:6] = ["New", "new ", "new ", "NEW", "old", "old"]
    found = analyse(rows.set_column(1, "arm", [labels]), **ASKED)
    note = next(one for one in found.notes if "differ only in case or spaces" in one)
    assert "'NEW' (1 rows), 'New' (1 rows), 'new' (" in note
    assert "'new ' (2 rows)" in note
    # Each spelling comes up too seldom, and nobody sees a space at the end of a label.
    assert "Some labels differ only in case or spaces, which may be why" in found.sentence
    assert "new␣" in str(found)


def test_the_reference_that_nobody_chose_is_named():
    words = "gaps are to 'new', the first arm in alphabetical order"
    assert any(words in note for note in analyse(log(), **ASKED).notes)
    for chosen in ({"reference": "new"}, {"split": {"new": 0.5, "old": 0.5}}):
        assert not any(words in note for note in analyse(log(), **(ASKED | chosen)).notes)


def test_covariates_that_do_nothing_are_named():
    rows = log().append_column("one", [np.full(400, 3.0)])
    found = analyse(rows, **ASKED, covariates=["one", "x"])
    assert "the covariate 'one' never varies within a bucket and arm, and so changed nothing" in found.notes


def test_numbers_too_large_to_be_multiplied_are_refused_without_a_warning():
    rows = log()
    huge = rows.set_column(2, "y", [np.asarray(rows["y"]) * 1e150])
    with pytest.raises(RewardError, match="squares are too large to add up"):
        analyse(huge, **ASKED)


def test_text_in_utf_16_is_refused_by_name(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,y\na,1\nb,2\n", encoding="utf-16")
    with pytest.raises(FileFormatError, match=r"is text in UTF-16.*save it as UTF-8"):
        analyse(path, arm="arm", reward="y", split="equal")


def test_pickled_feedback_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "log.pkl").write_bytes(pickle.dumps({"action": np.zeros(2)}))
    np.savez(tmp_path / "log.npz", action=np.array([0, 1], dtype=object))
    for name in ("log.pkl", "log.npz"):
        with pytest.raises(FileFormatError, match=r"pickled files are not read.*np\.savez"):
            analyse(tmp_path / name, format="obp")
    with pytest.raises(FileFormatError, match="is not a file"):
        analyse(tmp_path / "none.npz", format="obp")


def test_the_history_has_times_where_the_log_has():
    history = analyse(log(), **ASKED).to_frame("history", library="pyarrow")
    assert history["time"][0].as_py().year == 2025
    numbers = analyse(log().set_column(0, "at", [np.arange(400) // 10]), **ASKED)
    assert isinstance(numbers.to_frame("history", library="pyarrow")["time"][0].as_py(), float)


def test_errors_of_the_command_name_flags(tmp_path, capsys):
    path = tmp_path / "log.csv"
    pyarrow.csv.write_csv(log(), path)
    command = ["analyse", str(path), "--arm", "arm", "--time", "at", "--split", "equal"]
    cases = [
        (["--reward", "y", "--covariate", "x", "--bounds", "0", "1"], "--bounds and --covariate together"),
        (["--reward", "y", "--range", "y=0:1", "--covariate", "x"], "--bounds and --covariate together"),
        (["--reward", "y", "--cap", "z=3"], "--cap: 'z' is not a metric"),
        (["--reward", "y", "--value", "z=1"], "--value: 'z' is not an arm; the names are new, old"),
        (["--reward", "z"], "--reward z: "),
        (["--reward", "y", "--window", "7d"], "--window is how long the rows"),
    ]
    for flags, words in cases:
        assert main([*command, *flags]) == 2
        assert words in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("values", [np.array([0.0, 1.0]), np.array([0, 1]), np.array([False, True])])
def test_arms_that_are_numbers_may_be_named_as_numbers(values):
    rows = log()
    played = values[np.random.default_rng(2).integers(0, 2, len(rows))]
    first, second = values
    found = analyse(
        rows.set_column(1, "arm", [played]),
        arm="arm",
        reward="y",
        split={first: 0.5, second: 0.5},
        reference=second,
        value={first: 1.0},
    )
    assert found.reference in ("1", "true")
    assert found.value is not None


def test_rules_are_refused_before_a_warehouse_is_asked():
    with pytest.raises(ParameterError, match="rules are judged from the rows of a log; analyse a copy"):
        warehouse_sql("log", "bigquery", **ASKED, context=["x"])


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:///{folder}/no.db", "there is no file"),
        ("https://host/log.csv", "files are read from this machine"),
        ("s3://bucket/log.parquet", "files are read from this machine"),
        ("oracle://host/shop", "needs a driver; install it with `pip install 'ibis-framework"),
    ],
)
def test_urls_that_cannot_be_opened(url, words, tmp_path):
    with pytest.raises((SourceError, MissingExtraError), match=words):
        analyse(url.format(folder=str(tmp_path).lstrip("/")), table="log", **ASKED)
    assert not list(tmp_path.iterdir())  # nothing was created by reading


def test_a_column_that_the_first_line_names_twice_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("at,arm,y,y\n" + "".join(f"{row},{'ab'[row % 2]},1,{row}\n" for row in range(60)))
    with pytest.raises(FileFormatError, match="has 2 columns called 'y'; rename all but the one"):
        analyse(str(path), **ASKED)
    # A name that is not used may come twice.
    path.write_text("at,arm,y,z,z\n" + "".join(f"{row},{'ab'[row % 2]},{row},1,1\n" for row in range(60)))
    assert analyse(str(path), **ASKED).rows == 60


def test_lines_that_hide_the_header_are_named(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("at,arm,y\n1,a\n2,b,3,4\n")
    with pytest.raises(
        InputError, match=r"the first line of .* names this column, but lines differ in their"
    ):
        analyse(str(path), **ASKED)


@pytest.mark.parametrize("words", [("True", "False"), ("TRUE", "FALSE"), ("true", "false")])
def test_arms_that_are_booleans_have_one_name_in_all_files(tmp_path, words):
    rng = np.random.default_rng(3)
    lines = [
        f"{row // 20},{words[int(arm)]},{row % 7},{user}\n"
        for row, (arm, user) in enumerate(
            zip(rng.integers(0, 2, 2000), rng.integers(0, 40, 2000), strict=True)
        )
    ]
    path = tmp_path / "log.csv"
    path.write_text("at,arm,y,user\n" + "".join(lines))
    found = analyse(str(path), **ASKED)
    assert found.labels == ("false", "true")
    # Each of the 40 users is in both arms.
    assert not any("keep to one arm" in note for note in found.notes)
    with pytest.raises(
        LabelError, match="'false' and 'FALSE' differ only in case or spaces: write them alike"
    ):
        analyse(str(path), **(ASKED | {"split": {"FALSE": 0.5, "TRUE": 0.5}}))


def test_columns_of_probabilities_that_miss_a_spelling_of_an_arm_name_both_spellings():
    rows = log().append_column("p:old", [np.full(400, 0.5)]).append_column("p:new", [np.full(400, 0.5)])
    labels = rows["arm"].to_pylist()
    labels[:2] = ["new ", "old"]
    asked = ASKED | {"split": None, "probabilities": ["p:old", "p:new"]}
    with pytest.raises(InputError, match="'new ' and 'new' differ only in case or spaces: write them alike"):
        analyse(rows.set_column(1, "arm", [labels]), **asked)


def test_probabilities_in_per_cent_are_recognised():
    rows = log().append_column("p:old", [np.full(400, 50.0)]).append_column("p:new", [np.full(400, 50.0)])
    with pytest.raises(ProbabilityError, match="sum to 1; they look like per cent: divide by 100"):
        analyse(rows, **(ASKED | {"split": None, "probabilities": ["p:old", "p:new"]}))


def test_a_quantile_of_text_is_refused_as_other_metrics_are():
    with pytest.raises(InputError, match="quantiles='arms' holds text that is not a number"):
        analyse(
            log().append_column("arms", log()["arm"]).set_column(4, "arms", [[f"n{n}" for n in range(400)]]),
            **ASKED,
            metrics={"arms": Quantile(0.5)},
        )


def notes_on_times(path, *, begin, form, days=5, rows=600):
    """Return the notes on the time of a CSV file whose times are written in a form."""
    rng = np.random.default_rng(0)
    times = [begin + timedelta(days=days) * float(part) for part in np.sort(rng.random(rows))]
    lines = [
        f"{one:{form}},{'ab'[int(arm)]},{arm}\n"
        for one, arm in zip(times, rng.random(rows) < 0.5, strict=True)
    ]
    path.write_text("at,arm,y\n" + "".join(lines))
    return [note for note in analyse(str(path), **ASKED).notes if "'at'" in note]


def test_dates_that_may_begin_with_the_day_or_the_month_are_told(tmp_path):
    begin = datetime(2026, 3, 1, tzinfo=UTC)
    path = tmp_path / "log.csv"
    for form in ("%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S"):
        (note,) = notes_on_times(path, begin=begin, form=form)
        assert "the day or the month first, and no date of the log tells which" in note
        assert "2026. If that is wrong, write ISO times" in note
        # Whichever it is: the note says what it was read as.
        assert ("1 March 2026" in note) != ("3 January 2026" in note)
    # The 13th and later cannot be months.
    assert not notes_on_times(path, begin=begin, form="%d/%m/%Y %H:%M:%S", days=20)
    assert not notes_on_times(path, begin=begin, form="%Y-%m-%d %H:%M:%S")


def test_dates_that_are_written_as_numbers_are_told(tmp_path):
    begin = datetime(2026, 3, 1, tzinfo=UTC)
    for form in ("%Y%m%d", "%Y%m%d%H%M", "%Y%m%d%H%M%S"):
        (note,) = notes_on_times(tmp_path / "log.csv", begin=begin, form=form, days=40)
        assert "'at' looks like dates written as numbers (20260301" in note
        assert "for 2026-03-01 0" in note
    numbers = log().set_column(0, "at", [20_990_000 + np.arange(400)])  # there is no 90th month
    assert not any("dates written as numbers" in note for note in analyse(numbers, **ASKED).notes)


@pytest.mark.parametrize(("stray", "words"), [(1970, "20,148 days before"), (2999, "days after")])
def test_a_few_rows_at_another_time_than_all_others_are_told(stray, words):
    rows = log()
    times = rows["at"].to_pylist()
    times[:3] = [datetime(stray, 1, 1, tzinfo=UTC)] * 3
    found = analyse(rows.set_column(0, "at", [times]), **ASKED)
    (note,) = [note for note in found.notes if "clock wrong" in note]
    assert note.startswith("3 of 400 rows have a time in 'at' that is ")
    assert words in note
    assert f"({stray}-01-01 00:00)" in note
    assert not any("clock wrong" in note for note in analyse(rows, **ASKED).notes)


def test_a_ratio_of_a_column_to_itself_is_refused():
    with pytest.raises(ParameterError, match="ratios: 'x/x' is the same column twice, and always 1"):
        analyse(log(), **ASKED, ratios=[Ratio("x", "x")])


def test_errors_of_the_command_name_its_flags(tmp_path, capsys):
    path = tmp_path / "log.csv"
    pyarrow.csv.write_csv(log(), path)
    flags = ["--arm", "arm", "--reward", "y", "--time", "at", "--split", "equal"]
    assert main(["analyse", str(path), *flags, "--window", "7d"]) == 2
    assert (
        "--window is how long the rows of a unit add up; name the unit with --unit" in capsys.readouterr().err
    )
    assert main(["analyse", "log", *flags, "--sql", "duckdb", "--type", "nope=text"]) == 2
    assert "--type: the column 'nope' has no part in the question" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"arm": ["arm"]}, r"arm=\['arm'\] must be the name of one column"),
        ({"segment": ["x"]}, r"segment=\['x'\] must be the name of one column"),
        ({"fixed": "yes"}, "fixed='yes' must be True or False"),
        ({"context": "x", "rules": ["old"]}, r"rules=\['old'\] must name rules"),
        ({"split": {}}, r"split=\{\} names no arms"),
    ],
)
def test_arguments_of_the_wrong_kind_are_refused_by_name(asked, words):
    with pytest.raises(ParameterError, match=words):
        analyse(log(), **(ASKED | asked))


def test_thresholds_and_names_of_tables_must_be_what_they_are():
    with pytest.raises(ParameterError, match=r"thresholds=\['a'\] must be a list of finite numbers"):
        Quantile(0.5, thresholds=["a"])
    with pytest.raises(ParameterError, match="table=3 must be a name such as exposures"):
        warehouse_sql(3, "duckdb", **ASKED)


def test_no_source_is_not_the_current_folder():
    with pytest.raises(FileFormatError, match="source='' is empty"):
        analyse("", **ASKED)


def test_columns_of_a_frame_with_the_same_name_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = log().to_pandas()
    twice = pandas.concat([frame, frame[["y"]]], axis=1)
    with pytest.raises(
        InputError, match="the pandas frame has several columns of the same name: 'y'; rename"
    ):
        analyse(twice, **ASKED)


def test_a_file_that_is_no_table_of_plans_is_told_what_one_has(tmp_path):
    path = tmp_path / "plans.csv"
    path.write_text("at,page,y\n2025-03-01,old,1\n")
    asked = ASKED | {"split": None, "plan": "x", "plans": str(path)}
    with pytest.raises(
        FileFormatError, match="'page' is not a number; a table of plans has their names in a"
    ):
        analyse(log(), **asked)
