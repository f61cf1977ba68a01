import csv
import json

import pytest

from orthobandit import ArmSet
from orthobandit.cli import main
from orthobandit.simulation import rounds_to_plan

ARMS = "page,price,colour\nplain,0,0\nbold,1,0\nsale,0,1\nboth,1,1\n"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text(ARMS)
    return path


@pytest.mark.parametrize("method", ["centred", "anchor", "contrast", "g-optimal"])
def test_table_names_method_certificate_and_rounds(table, capsys, method):
    assert main(["design", str(table), "--method", method, "--runs", "0", "--bounds"]) == 0
    shown = capsys.readouterr().out
    assert f"{method} design of 4 arms, affine dimension 2" in shown
    assert "certified gap" in shown
    assert "Corollary 5" in shown
    assert "not simulated; --runs 5 does" in shown


def test_one_number_of_rounds_to_plan_with_and_its_spread(table, capsys):
    wanted = ["--epsilon", "0.5", "--sigma", "0.5", "--runs", "4"]
    assert main(["design", str(table), *wanted]) == 0
    shown = capsys.readouterr().out
    assert main(["design", str(table), *wanted, "--json"]) == 0
    rounds = json.loads(capsys.readouterr().out)["rounds"]
    assert 40 < rounds["least"] <= rounds["median"] <= rounds["most"] < 1000
    assert "to identify with ε = 0.5, δ = 0.05 and rewards of s.d. 0.5" in shown
    assert "one run in 5 takes longer still" in shown
    assert f"  {rounds['median']:,}   (median of 4 runs, {rounds['least']:,} to {rounds['most']:,})" in shown
    assert "Corollary 5" not in shown


def test_rounds_are_planned_for_the_goal_that_is_asked_for(table, capsys):
    wanted = ["--epsilon", "0.8", "--sigma", "0.5", "--runs", "2"]
    found = {}
    for goal in ("identify", "earn"):
        assert main(["design", str(table), *wanted, "--goal", goal, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["goal"] == goal
        found[goal] = report["rounds"]
    needed = rounds_to_plan(ArmSet.read(table), epsilon=0.8, sigma=0.5, runs=2, goal="earn")
    assert found["earn"] | {"least": int(needed.min()), "most": int(needed.max())} == found["earn"]
    assert found["earn"] != found["identify"]
    with pytest.raises(SystemExit):
        main(["design", str(table), "--goal", "win"])
    assert "--goal" in capsys.readouterr().err


def test_rounds_that_were_given_up_are_not_invented(table, capsys, monkeypatch):
    monkeypatch.setattr("inside.cli.MAX_SIMULATED_ROUNDS", 500)
    assert main(["design", str(table), "--epsilon", "0.01", "--runs", "2"]) == 0
    assert "more than 500, where the simulation was given up" in capsys.readouterr().out


def test_many_arms_are_simulated_only_when_asked(tmp_path, capsys):
    path = tmp_path / "arms.csv"
    path.write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(41)))
    assert main(["design", str(path)]) == 0
    assert "not simulated for more than 40 arms; --runs 5 does" in capsys.readouterr().out


def test_a_long_comparison_of_all_pairs_is_announced(table, capsys, monkeypatch):
    monkeypatch.setattr("inside.cli.MANY_ARMS", 3)
    assert main(["design", str(table), "--method", "contrast", "--runs", "0"]) == 0
    assert "comparing all pairs of 4 arms may take minutes" in capsys.readouterr().err


def test_no_arm_need_be_listed(table, capsys):
    assert main(["design", str(table), "--top", "0", "--runs", "0"]) == 0
    shown = capsys.readouterr().out
    assert "arms played       4" in shown
    assert "plain" not in shown


def test_json_holds_the_whole_design(table, capsys):
    assert main(["design", str(table), "--json", "--epsilon", "0.2", "--runs", "0"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert sum(report["probabilities"].values()) == pytest.approx(1)
    assert report["probabilities"]["plain"] == pytest.approx(0.25)
    assert report["centred_norm"] == pytest.approx(2**0.5)
    assert report["epsilon"] == 0.2
    assert report["rounds"] is None
    assert report["bounds"]["Corollary 5 (anchor design), C₂ = 1"] > 0


def test_norms_that_are_infinite_are_null_in_json(tmp_path, capsys):
    path = tmp_path / "arms.csv"
    path.write_text("arm,a,b\nx,1,0\ny,0,1\nz,0.2,0.3\n")
    assert main(["design", str(path), "--method", "g-optimal", "--json", "--runs", "0"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["centred_norm"] is None
    assert report["bounds"]["Theorem 4 with this design, C₁ = 1"] is None


def test_out_writes_csv_that_sums_to_one(table, tmp_path):
    out = tmp_path / "design.csv"
    assert (
        main(
            [
                "design",
                str(table),
                "--method",
                "anchor",
                "--reference",
                "both",
                "--out",
                str(out),
                "--runs",
                "0",
            ]
        )
        == 0
    )
    rows = {row["label"]: float(row["probability"]) for row in csv.DictReader(out.read_text().splitlines())}
    assert rows["both"] == 0.5
    assert sum(rows.values()) == pytest.approx(1, abs=1e-12)


def test_out_writes_json(table, tmp_path):
    out = tmp_path / "design.json"
    assert main(["design", str(table), "--out", str(out), "--runs", "0"]) == 0
    assert json.loads(out.read_text())["method"] == "centred"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--reference", "bold"], "--reference has no meaning for --method centred"),
        (["--method", "anchor", "--reference", "blod"], "design: --reference blod is not an arm"),
        (["--gap", "0"], "design: --gap 0.0 must lie strictly between 0 and 1"),
        (["--epsilon", "-1"], "design: --epsilon -1.0 must be a finite number above 0"),
        (["--delta", "2"], "design: --delta 2.0 must lie strictly between 0 and 1"),
        (["--delta", ".95"], "design: --delta 0.95 lets claims be wrong with probability 0.95; if they"),
        (["--label", "colours"], "has no column 'colours'"),
        (["--out", "x.txt"], "write to .json or .csv"),
        (["--out", "/dev/null/x.csv"], "--out /dev/null/x.csv cannot be written: "),
        (["--epsilon", "1e-200"], "--epsilon 1e-200 must be at least 1e-150"),
        (["--epsilon", "nan"], "--epsilon nan must be a finite number above 0"),
        (["--top", "-1"], "--top -1 must be a whole number of at least 0"),
        (["--runs", "-1"], "--runs -1 must be a whole number of at least 0"),
        (["--sigma", "0"], "--sigma 0.0 must be a finite number above 0"),
        (["--sigma", "1e200"], "--sigma 1e+200 must be at most 1e+100"),
    ],
)
def test_wrong_input_is_named_and_exits_with_2(table, capsys, arguments, said):
    assert main(["design", str(table), *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("page,price\nplain,0\n", "there is one arm; two that differ are needed"),
        ("page,price\nplain,1\nbold,1\n", "there are 2 arms with the same features; two that differ"),
        ("page,price\n", "has a header line and nothing below it; one line per arm is needed"),
        ("1,2\n3,4\n", "begins with the line 1, 2, which looks like an arm; a header line"),
        ("red,1,2\nblue,3,4\n", "begins with the line red, 1, 2, which looks like an arm; a header line"),
        ("label,price\n,1\nb,2\n", "labels row 0 is empty; every arm needs a name of its own"),
        ("\n\n", "is empty; a header line and one line per arm are needed"),
    ],
)
def test_tables_that_cannot_be_meant_are_refused(tmp_path, capsys, content, said):
    path = tmp_path / "arms.csv"
    path.write_text(content)
    assert main(["design", str(path), "--runs", "0"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "id,price\n1,1\n2,3\n3,2\n",
            "warning: {}: the column 'id' is taken as a feature; if it only",
        ),
        ("page,price\na,1\nb,2\nc,1\n", "warning: {}: the arms 'a' and 'c' have the same features"),
    ],
)
def test_tables_that_may_be_meant_otherwise_are_used_with_a_warning(tmp_path, capsys, content, said):
    path = tmp_path / "arms.csv"
    path.write_text(content)
    assert main(["design", str(path), "--runs", "0"]) == 0
    assert said.format(path) in capsys.readouterr().err


def test_missing_file_exits_with_2(capsys):
    assert main(["design", "no-such.csv"]) == 2
    assert "no-such.csv is not a file" in capsys.readouterr().err


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "design" in capsys.readouterr().out
