"""Policies, shifts, baselines and arms of the user's own: in sweeps, on the command line, from Python."""

import json
import re
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from inside.study import latex_table
from orthobandit.cli import main
from orthobandit.study import Part, Sweep, SweepResult, read_spec, run_sweep

PAGE = Path(__file__).parents[3] / "docs" / "own.md"
MINE = re.search(r"MINE = '''\n(.*?)'''", PAGE.read_text(encoding="utf-8"), re.S)[1]
MORE = """

from orthobandit.simulation import Formula


@dataclass(frozen=True)
class Strike(Formula):
    begin: int = 100
    drop: float = -2.0

    @property
    def bound(self):
        return abs(self.drop)

    def at(self, rounds):
        return np.where(rounds > self.begin, self.drop, 0.0)
"""
SPEC = """\
horizon = 400
replications = 6
batch = 3

[policies.greedy]
kind = "MODULE:Greedy"
grid = { epsilon = [0.1, 0.5] }

[policies.uniform]

[instances.pages]
kind = "file"
path = "arms.csv"
theta = [1.0, 0.5]

[shifts.strike]
kind = "MODULE:Strike"
drop = -1.0
"""
NAMES = iter(f"own_module_{number}" for number in range(100))


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a folder with a module of its own name, arms and a study; it is where commands are run."""
    module = next(NAMES)
    (tmp_path / f"{module}.py").write_text(MINE + MORE)
    (tmp_path / "arms.csv").write_text("page,price,video\nplain,0,0\nsale,1,0\nboth,1,1\n")
    (tmp_path / "study.toml").write_text(SPEC.replace("MODULE", module))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    return tmp_path, module


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_a_study_with_things_of_ones_own_runs(place, capsys, jobs):
    folder, _ = place
    assert main(["sweep", "study.toml", "--out", "found", "--jobs", jobs, "--latex", "t.tex", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["policy"] for row in rows] == ["greedy epsilon=0.1", "greedy epsilon=0.5", "uniform"]
    assert rows[0]["regret"] < rows[2]["regret"]
    assert pyarrow.parquet.read_table("found/runs.parquet").num_rows == 18
    assert r"greedy epsilon=0.1 & pages & strike & 6 & \textbf" in (folder / "t.tex").read_text()


def test_code_and_arms_that_change_are_computed_again(place, monkeypatch):
    folder, module = place
    monkeypatch.syspath_prepend(str(folder))
    first = {cell.key for cell in read_spec("study.toml").cells()}
    assert {cell.key for cell in read_spec("study.toml").cells()} == first
    arms = folder / "arms.csv"
    arms.write_text(arms.read_text().replace("1,1", "1,2"))
    assert not {cell.key for cell in read_spec("study.toml").cells()} & first
    arms.write_text(arms.read_text().replace("1,2", "1,1"))
    code = (folder / f"{module}.py").read_text().replace("self.epsilon / state.count", "1 / state.count")
    (folder / f"{module}.py").write_text(code.replace("(1 - self.epsilon) * leads", "0 * leads"))
    sys.modules.pop(module)
    same = {cell.labels["policy"] for cell in read_spec("study.toml").cells() if cell.key in first}
    assert same == {"uniform"}


def test_own_policies_and_shifts_on_the_command_line(place, capsys):
    _, module = place
    given = ["--policy", "uniform", f"{module}:Greedy:epsilon=0.2", "--shift", f"{module}:Strike:begin=50"]
    run = ["--arms-file", "arms.csv", "--theta", "1", "0.5", "--horizon", "300", "--replications", "4"]
    assert main(["simulate", *given, *run, "--parquet", "tidy.parquet"]) == 0
    said = capsys.readouterr().out
    assert f"{module}:Greedy:epsilon=0.2" in said
    assert "shift Strike(begin=50, drop=-2.0)" in said
    table = pyarrow.parquet.read_table("tidy.parquet")
    assert table.column_names == ["policy", "replication", "round", "regret"]
    assert set(table.column("policy").to_pylist()) == {"uniform", f"{module}:Greedy:epsilon=0.2"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("Greedy", "Gredy"), "has no 'Gredy'; did you mean 'Greedy'?"),
        (('path = "arms.csv"', 'path = "arm.csv"'), "arm.csv is not a file"),
        (("theta = [1.0, 0.5]", "theta = [1.0]"), "theta has shape (1,); the arms have 2 features"),
        (("drop = -1.0", "dropp = -1.0"), "has no setting 'dropp'; did you mean 'drop'?"),
    ],
)
def test_mistakes_are_refused_with_their_line_before_anything_runs(place, capsys, change, said):
    folder, _ = place
    study = folder / "study.toml"
    study.write_text(study.read_text().replace(*change))
    assert main(["sweep", "study.toml"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "study.toml line" in told
    assert not (folder / "sweep").exists()


@pytest.fixture(scope="module")
def found():
    study = Sweep(
        policies={"half_&_half": Part("uniform"), "SBE": Part("sbe")},
        instances={"two": Part("table", {"features": [[0.0], [1.0]], "theta": [2.0]})},
        shifts={"none": Part("none"), "sine": Part("sine")},
        horizon=500,
        replications=4,
    )
    return run_sweep(study)


def test_a_sweep_from_python_is_a_table_a_frame_and_a_picture(found, tmp_path):
    assert isinstance(found, SweepResult)
    assert str(found).splitlines()[0].split()[:3] == ["policy", "instance", "shift"]
    assert found.to_frame(library="pandas").shape == (4, 10)
    assert found.to_frame("runs", library="polars").height == 16
    assert [path.name for path in found.to_parquet(tmp_path)] == ["curves.parquet", "runs.parquet"]
    axes = found.plot(shift="sine")
    assert axes.get_title("left") == "two, shift sine"
    assert [line.get_label() for line in axes.lines] == ["half_&_half", "SBE"]
    assert "half_&amp;_half" in found._repr_html_()


def test_the_latex_table_escapes_names_and_marks_the_least_regret(found):
    text = found.to_latex(caption="50 % of all", label="tab:one")
    assert r"\caption{50 \% of all}" in text
    assert r"\label{tab:one}" in text
    assert r"half\_\&\_half & two & none & 4 & " in text
    best = [line for line in text.splitlines() if r"\textbf" in line]
    assert [line.split(" & ")[0] for line in best] == ["SBE", "SBE"]
    assert text.count("\\begin{") == text.count("\\end{") == 2


def test_what_the_runs_do_not_tell_apart_is_all_in_bold():
    row = {"instance": "i", "shift": "s", "runs": 9, "declared": 0.5, "wrong": 0.0, "stop": 1234.0}
    rows = [
        row | {"policy": name, "regret": regret, "regret_error": 1.0, "stop_error": None}
        for name, regret in (("a", 10.0), ("b", 12.0), ("c", 14.0))
    ]
    text = latex_table(rows)
    assert r"\textbf{12.0 $\pm$ 1.0}" in text
    assert "c & i & s & 9 & 14.0" in text
    assert r"$\ge$ 1\,234" in text
