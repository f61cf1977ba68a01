"""Arms and tables from files: what is found without being told, and files that are refused."""

import re
import sys

import pyarrow
import pyarrow.parquet
import pytest

from orthobandit import ArmSet
from orthobandit._foundation.arm_files import read_table
from orthobandit.errors import FeatureError, FileFormatError, InputWarning, LabelError, MissingExtraError

COLOURS = "label,price,size\nred,1,10\ngreen,2,20\nblue,3,35\n"


def text(path, content, encoding="utf-8"):
    path.write_text(content, encoding=encoding)
    return path


def parquet(path, columns):
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_columns_come_in_the_order_of_the_file(tmp_path):
    table = read_table(text(tmp_path / "a.csv", "b,a\n1,x\n2,y\n"))
    assert table == {"b": ["1", "2"], "a": ["x", "y"]}
    assert list(table) == ["b", "a"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"], ids=["plain", "byte-order mark"])
def test_a_text_file_of_arms(tmp_path, encoding):
    arms = ArmSet.read(text(tmp_path / "arms.csv", COLOURS, encoding), label="label")
    assert arms.labels == ("red", "green", "blue")
    assert arms.features.tolist() == [[1.0, 10.0], [2.0, 20.0], [3.0, 35.0]]


def test_tabs_capitals_blank_lines_and_quotes(tmp_path):
    content = 'size\tArm\n1.5\t"blue\tbutton"\n\n-2e3\t"rot ""ü"""\n'
    arms = ArmSet.read(str(text(tmp_path / "arms.TSV", content)))
    assert arms.labels == ("blue\tbutton", 'rot "ü"')
    assert arms.features.tolist() == [[1.5], [-2000.0]]


@pytest.mark.parametrize("suffix", ["parquet", "pq"])
def test_a_parquet_file_of_arms(tmp_path, suffix):
    columns = {"price": [1, 2, 3], "colour": ["red", "green", "blue"], "new": [True, False, True]}
    arms = ArmSet.read(parquet(tmp_path / f"arms.{suffix}", columns))
    assert arms.labels == ("red", "green", "blue")
    assert arms.features.tolist() == [[1.0, 1.0], [2.0, 0.0], [3.0, 1.0]]


def test_the_first_column_without_a_number_holds_the_labels(tmp_path):
    arms = ArmSet.read(text(tmp_path / "a.csv", "x,variant,note\n1,A,old\n2,B,new\n"), features=["x"])
    assert arms.labels == ("A", "B")


def test_numbers_alone_need_no_labels(tmp_path):
    arms = ArmSet.read(text(tmp_path / "a.csv", "x,y\n1,2\n3,4\n"))
    assert arms.labels == ("0", "1")
    assert arms.features.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_columns_can_be_named(tmp_path):
    path = text(tmp_path / "a.csv", "name,code,x,y\nred,7,1,2\nblue,8,3,4\n")
    arms = ArmSet.read(path, label="code", features=["y", "x"])
    assert arms.labels == ("7", "8")
    assert arms.features.tolist() == [[2.0, 1.0], [4.0, 3.0]]


@pytest.mark.parametrize("options", [{"label": "colour"}, {"features": ["price", "colour"]}])
def test_a_column_that_is_not_there(tmp_path, options):
    path = text(tmp_path / "a.csv", COLOURS)
    message = f"{path} has no column 'colour'; its columns are label, price, size"
    with pytest.raises(FileFormatError, match=re.escape(message)):
        ArmSet.read(path, **options)


def test_a_single_bad_cell_does_not_turn_a_feature_into_labels(tmp_path):
    path = text(tmp_path / "a.csv", "x,y\n1,2\n1.o5,4\n")
    message = "features row 1 has '1.o5' in column 'x'; every feature must be a finite number"
    with pytest.raises(FeatureError, match=re.escape(message)):
        ArmSet.read(path)


def test_a_bad_cell_is_named_by_label_and_column(tmp_path):
    path = text(tmp_path / "a.csv", "label,price\nred,1\nblue,cheap\n")
    message = "features row 1 (\"blue\") has 'cheap' in column 'price'; every feature must be a finite number"
    with pytest.raises(FeatureError, match=re.escape(message)):
        ArmSet.read(path)


def test_a_missing_value_in_parquet(tmp_path):
    path = parquet(tmp_path / "a.parquet", {"label": ["red", "blue"], "price": [1.0, None]})
    with pytest.raises(FeatureError, match=re.escape("features row 1 (\"blue\") has None in column 'price'")):
        ArmSet.read(path)


def test_a_value_that_is_not_finite(tmp_path):
    path = text(tmp_path / "a.csv", "label,price\nred,1\nblue,nan\n")
    with pytest.raises(FeatureError, match=re.escape('features row 1 ("blue") has a non-finite value')):
        ArmSet.read(path)


def test_labels_twice_in_a_file(tmp_path):
    path = text(tmp_path / "a.csv", "label,price\nred,1\nred,2\n")
    with pytest.raises(LabelError, match=re.escape('labels rows 0 and 1 are both "red"')):
        ArmSet.read(path)


@pytest.mark.parametrize("sign", [",", ";", "\t", "|"])
def test_separators_are_seen_in_the_header(tmp_path, sign):
    lines = ["label,x", '"red, or so",1', "blue,2"]
    first, *rest = (line.replace(",", sign) if line[0] != '"' else f'"red, or so"{sign}1' for line in lines)
    arms = ArmSet.read(text(tmp_path / "a.csv", "\n".join([first, *rest])))
    assert arms.labels == ("red, or so", "blue")
    assert arms.features.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ("", FileFormatError, "is empty; a header line and one line per arm are needed"),
        ("label,x\n", FileFormatError, "has a header line and nothing below it; one line per arm is needed"),
        ("1,2\n3,4\n", FileFormatError, "begins with the line 1, 2, which looks like an arm"),
        ("label,x\nred,1\n ,2\n", LabelError, "labels row 1 is empty; every arm needs a name of its own"),
        ("label\nred\nblue\n", FeatureError, "has no feature column beside the labels ('label'); add one"),
        ("x,x\n1,2\n", FileFormatError, "has a column name twice: x, x; rename one"),
        ("label,x\nred,1\nblue,2,3\n", FileFormatError, "line 3 has 3 fields; the header has 2"),
        ("label,x,y\nred,1,2\n\nblue,2\n", FileFormatError, "line 4 has 2 fields; the header has 3"),
        (",label,x\n0,red,1\n1,blue,2\n", FileFormatError, "has a column without a name; name it or list"),
    ],
)
def test_text_files_that_hold_no_arms(tmp_path, content, error, message):
    with pytest.raises(error, match=re.escape(message)):
        ArmSet.read(text(tmp_path / "a.csv", content))


def test_columns_without_a_name_may_be_passed_over(tmp_path):
    path = text(tmp_path / "a.csv", ",label,x\n0,red,1\n1,blue,2\n")
    assert ArmSet.read(path, features=["x"]).features.tolist() == [[1.0], [2.0]]


def test_text_in_another_encoding(tmp_path):
    path = text(tmp_path / "a.csv", "label,x\nblå,1\n", encoding="latin-1")
    with pytest.raises(FileFormatError, match=r"a\.csv cannot be read as text .*; save it as UTF-8"):
        ArmSet.read(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [("none.csv", "none.csv is not a file"), (".", "is not a file"), ("none.parquet", "is not a file")],
)
def test_files_that_are_not_there(tmp_path, name, message):
    with pytest.raises(FileFormatError, match=re.escape(message)):
        ArmSet.read(tmp_path / name)


def test_files_of_another_kind(tmp_path):
    path = text(tmp_path / "arms.xlsx", "")
    with pytest.raises(FileFormatError, match=re.escape("ends in '.xlsx'; .csv, .tsv and .parquet can be")):
        ArmSet.read(path)


def test_what_only_claims_to_be_parquet(tmp_path):
    with pytest.raises(FileFormatError, match=r"a\.parquet cannot be read as Parquet"):
        ArmSet.read(text(tmp_path / "a.parquet", COLOURS))
    path = parquet(tmp_path / "b.parquet", {"x": list(range(1000))})
    damaged = bytearray(path.read_bytes())
    damaged[4:-8] = bytes(len(damaged) - 12)
    path.write_bytes(damaged)
    with pytest.raises(FileFormatError, match=r"b\.parquet cannot be read as Parquet"):
        ArmSet.read(path)


def test_parquet_with_a_column_name_twice(tmp_path):
    table = pyarrow.table([[1.0], [2.0]], names=["x", "x"])
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(FileFormatError, match="has a column name twice: x, x"):
        ArmSet.read(tmp_path / "a.parquet")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = parquet(tmp_path / "a.parquet", {"x": [1.0]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = "Parquet needs pyarrow; install it with `pip install '.[parquet]'` in orthobandit's folder"
    with pytest.raises(MissingExtraError, match=re.escape(message)):
        ArmSet.read(path)


def test_columns_may_be_called_by_years_beside_labels(tmp_path):
    arms = ArmSet.read(text(tmp_path / "a.csv", "label, 2019 ,2020\nred,1,2\nblue,2,3\n"), features=["2019"])
    assert arms.features.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize("name", ["id", "ID", "arm_id", "page id", "index"])
def test_a_column_that_numbers_the_arms_is_used_with_a_warning(tmp_path, name):
    path = text(tmp_path / "a.csv", f"{name},x\n1,5\n2,3\n")
    with pytest.warns(InputWarning, match=f"the column '{name}' is taken as a feature"):
        assert ArmSet.read(path).features.shape == (2, 2)
    assert ArmSet.read(path, label=name).labels == ("1", "2")
    assert ArmSet.read(path, features=[name, "x"]).features.shape == (2, 2)


def test_arms_that_do_not_differ_are_read_with_a_warning(tmp_path):
    path = text(tmp_path / "a.csv", "label,x\nred,1\ngreen,2\nblue,1\n")
    with pytest.warns(InputWarning, match="the arms 'red' and 'blue' have the same features"):
        assert ArmSet.read(path).dimension == 1
