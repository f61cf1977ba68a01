import csv
import json

import pytest

from orthobandit.cli import main

ARMS = "page,price,colour\nplain,0,0\nbold,1,0\nsale,0,1\nboth,1,1\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text(ARMS)
    return path


@pytest.mark.parametrize("method", ["centred", "anchor", "contrast", "g-optimal"])
def test_table_names_method_certificate_and_rounds(table, capsys, method):
    assert main(["design", str(table), "--method", method]) == 0
    shown = capsys.readouterr().out
    assert f"{method} design of 4 arms, affine dimension 2" in shown
    assert "certified gap" in shown
    assert "Corollary 5" in shown


def test_json_holds_the_whole_design(table, capsys):
    assert main(["design", str(table), "--json", "--epsilon", "0.2"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert sum(report["probabilities"].values()) == pytest.approx(1)
    assert report["probabilities"]["plain"] == pytest.approx(0.25)
    assert report["centred_norm"] == pytest.approx(2**0.5)
    assert report["epsilon"] == 0.2
    assert report["rounds"]["Corollary 5 (anchor design), C₂ = 1"] > 0


def test_norms_that_are_infinite_are_null_in_json(tmp_path, capsys):
    path = tmp_path / "arms.csv"
    path.write_text("arm,a,b\nx,1,0\ny,0,1\nz,0.2,0.3\n")
    assert main(["design", str(path), "--method", "g-optimal", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["centred_norm"] is None
    assert report["rounds"]["Theorem 4 with this design, C₁ = 1"] is None


def test_out_writes_csv_that_sums_to_one(table, tmp_path):
    out = tmp_path / "design.csv"
    assert main(["design", str(table), "--method", "anchor", "--reference", "both", "--out", str(out)]) == 0
    rows = {row["label"]: float(row["probability"]) for row in csv.DictReader(out.read_text().splitlines())}
    assert rows["both"] == 0.5
    assert sum(rows.values()) == pytest.approx(1, abs=1e-12)


def test_out_writes_json(table, tmp_path):
    out = tmp_path / "design.json"
    assert main(["design", str(table), "--out", str(out)]) == 0
    assert json.loads(out.read_text())["method"] == "centred"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--reference", "bold"], "--reference has no meaning for --method centred"),
        (["--method", "anchor", "--reference", "blod"], "label='blod' is not an arm"),
        (["--gap", "0"], "gap=0.0 must lie strictly between 0 and 1"),
        (["--epsilon", "-1"], "epsilon=-1.0"),
        (["--delta", "2"], "delta=2.0"),
        (["--label", "colours"], "has no column 'colours'"),
        (["--out", "x.txt"], "write to .json or .csv"),
    ],
)
def test_wrong_input_is_named_and_exits_with_2(table, capsys, arguments, said):
    assert main(["design", str(table), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_missing_file_exits_with_2(capsys):
    assert main(["design", "no-such.csv"]) == 2
    assert "no-such.csv is not a file" in capsys.readouterr().err


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "design" in capsys.readouterr().out
