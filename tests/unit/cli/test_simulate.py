import json
import math
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from orthobandit.cli import main
from orthobandit.cli._durations import expected_seconds
from orthobandit.simulation import RunResult

FAST = ["--dimension", "2", "--arms", "4", "--horizon", "400", "--replications", "6"]


def run(capsys, *arguments):
    assert main(["simulate", *FAST, *arguments]) == 0
    return capsys.readouterr().out


def report(capsys, *arguments):
    return json.loads(run(capsys, *arguments, "--json"))


def test_the_table_has_a_row_a_policy(capsys):
    shown = run(capsys, "--policy", "sbe", "sbe:scale=2", "--policy", "explore:rounds=50", "--shift", "sine")
    assert "4 arms of dimension 2, gap 0.5" in shown
    assert "Sine(" in shown
    assert [line.split()[0] for line in shown.splitlines()[4:]] == ["sbe", "sbe:scale=2", "explore:rounds=50"]


def test_flags_reach_every_policy_that_has_them_and_its_own_settings_win(capsys):
    rows = report(capsys, "--policy", "sbe", "explore:rounds=9,delta=0.3", "--delta", "0.2", "--scale", "3")
    assert [("delta=0.2" in row["settings"], "scale=3.0" in row["settings"]) for row in rows["policies"]] == [
        (True, True),
        (False, False),
    ]
    assert "delta=0.3" in rows["policies"][1]["settings"]
    hinted = report(capsys, "--policy", "anytime", "sbe", "--expect", "0.4", "--horizon", "30")
    assert ["expect=0.4" in row["settings"] for row in hinted["policies"]] == [True, False]


def test_json_depends_on_the_seed_alone(capsys):
    first = report(capsys, "--seed", "3", "--shift", "random-walk")
    assert report(capsys, "--seed", "3", "--shift", "random-walk") == first
    other = report(capsys, "--seed", "4", "--instance-seed", "3", "--shift", "random-walk")
    assert other["environment"] == first["environment"]
    assert other["policies"] != first["policies"]


@pytest.mark.parametrize(
    ("arguments", "arms", "shift"),
    [
        (["--instance", "one-hot", "--arms", "3", "--gap", "1"], 3, "Constant(level=0.0)"),
        (["--instance", "one-hot", "--means", "0.1", "-0.2"], 2, "Constant(level=0.0)"),
        (["--instance", "near-degenerate", "--dimension", "3", "--angle", "0.5"], 4, "Constant(level=0.0)"),
        (["--instance", "uniform-sphere", "--shift", "trend", "--bound"], 100, "limit=1.0)"),
        (["--shift", "push-leader", "--bound", "0.25"], 10, "PushLeader(limit=0.25)"),
        (["--shift", "jumps:every=5", "--noise", "uniform:half_width=2"], 10, "Jumps(every=5"),
    ],
)
def test_instances_and_shifts_by_name(capsys, arguments, arms, shift):
    assert main(["simulate", "--horizon", "50", "--replications", "2", "--json", *arguments]) == 0
    environment = json.loads(capsys.readouterr().out)["environment"]
    assert environment["arms"] == arms
    assert environment["shift"].endswith(shift) or environment["shift"].startswith(shift)


def test_a_file_of_arms(capsys, tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("page,price,colour\nplain,0,0\nbold,1,0\nboth,1,1\n")
    arguments = [
        "--arms-file",
        str(path),
        "--theta",
        "1.0",
        "-0.5",
        "--horizon",
        "2e2",
        "--replications",
        "2",
    ]
    assert main(["simulate", *arguments]) == 0
    assert "3 arms of dimension 2, gap 0.5" in capsys.readouterr().out


@pytest.mark.parametrize(
    "rows", ["plain,0.1,0.2\n", "a,0.1,0.2\nb,0.1,0.2\nc,0.1,0.2\n"], ids=["one", "equal"]
)
def test_arms_without_a_difference_are_settled_at_once(capsys, tmp_path, rows):
    path = tmp_path / "arms.csv"
    path.write_text("page,price,colour\n" + rows)
    arguments = ["--arms-file", str(path), "--theta", "0.3", "0.7", "--policy", "sbe", "explore:rounds=10"]
    assert main(["simulate", *arguments, "--horizon", "1000000", "--replications", "3", "--json"]) == 0
    for row in json.loads(capsys.readouterr().out)["policies"]:
        assert (row["declared"], row["wrong"], row["stop_median"], row["regret_mean"]) == (1, 0, 0, 0)


def test_out_holds_every_run_the_summary_and_the_plot(capsys, tmp_path):
    out = tmp_path / "deep" / "out"
    told = report(capsys, "--policy", "sbe", "explore:rounds=40", "--out", str(out))
    names = ["explore-rounds=40.parquet", "regret.png", "regret.svg", "sbe.parquet", "summary.json"]
    assert sorted(path.name for path in out.iterdir()) == names
    assert sorted(told["files"]) == [str(out / name) for name in names]
    result = RunResult.read(out / "sbe.parquet")
    assert result.regret[:, -1].mean() == told["policies"][0]["regret_mean"]
    assert json.loads((out / "summary.json").read_text())["policies"] == told["policies"]
    assert np.all(np.diff(result.checkpoints) > 0)
    assert result.checkpoints[-1] == 400


def test_resume_keeps_parts_and_changes_nothing(capsys, tmp_path):
    plain = report(capsys)
    assert report(capsys, "--resume", str(tmp_path / "parts")) == plain
    assert list(tmp_path.glob("parts/*/part-*.json"))
    assert report(capsys, "--resume", str(tmp_path / "parts")) == plain


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--horizon", "0"], "simulate: --horizon 0 must be a whole number of at least 1"),
        (["--replications", "0"], "simulate: --replications 0 must be a whole number of at least 1"),
        (["--jobs", "0"], "simulate: --jobs 0 must be a whole number of at least 1"),
        (["--seed", "-1"], "simulate: --seed -1 must be a whole number of at least 0"),
        (["--delta", "0"], "simulate: --delta 0.0 must lie strictly between 0 and 1"),
        (["--delta", "1"], "simulate: --delta 1.0 must lie strictly between 0 and 1"),
        (["--arms", "1"], "simulate: --arms 1 must be a whole number of at least 2; a gap takes two"),
        (["--policy", "sbee"], "did you mean 'sbe'?"),
        (["--policy", "sbe:scal=2"], "did you mean 'scale'?"),
        (["--policy", "sbe", "sbe"], "--policy sbe is given twice"),
        (["--policy", "explore"], "give exactly one of the two"),
        (["--policy", "explore:rounds=5", "--scale", "2"], "--scale has no meaning for explore:rounds=5"),
        (["--schedule", "theoretical"], "did you mean 'theory'?"),
        (["--shift", "sin"], "did you mean 'sine'?"),
        (["--shift", "trend:slope=x"], "shift 'trend': slope='x' must be a number"),
        (["--noise", "gausian"], "did you mean 'gaussian'?"),
        (["--bound", "0"], "simulate: --bound 0.0 must be a finite number above 0"),
        (["--angle", "0.1"], "--angle has no meaning for --instance exact-gap"),
        (["--instance", "one-hot"], "--dimension has no meaning for --instance one-hot"),
        (["--theta", "1"], "--theta is for --arms-file"),
        (["--arms-file", "x.csv"], "--dimension has no meaning beside --arms-file"),
        (["--resume", "/dev/null/x"], "--resume /dev/null/x cannot be created: Not a directory"),
        (["--out", "/dev/null/x"], "--out /dev/null/x cannot be created"),
        (["--out", ""], "--out  is empty; name a folder"),
        (["--resume", ""], "--resume  is empty; name a folder"),
        (
            ["--horizon", "1e23"],
            "--horizon 100000000000000000000000 must be a whole number of at most",
        ),
        (["--horizon", "1e23", "--policy", "bose"], "must be a whole number of at most 4.61e+18"),
        (["--replications", "1e30"], "must be a whole number of at most 4.29e+09"),
        (["--jobs", "5000"], "--jobs 5000 must be a whole number of at most 1,024"),
        (["--instance-seed", "-1"], "--instance-seed -1 must be a whole number of at least 0"),
        (["--policy", "sbe:delta=2"], "--policy sbe:delta=2: delta=2 must lie strictly between 0 and 1"),
        (["--policy", "sbe:foo=1"], "policy 'sbe' has no setting 'foo'; the names are C2, C3, delta"),
        (["--policy", "foo"], "unknown policy 'foo'; the names are action-centred-ts, action-elimination"),
        (["--shift", "random-walk:step=-1"], "step=-1 must not be negative"),
    ],
)
def test_wrong_input_is_named_and_exits_with_2(capsys, arguments, said):
    assert main(["simulate", *FAST, *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--arms", "1000000"], "--arms 1000000 is too many: one-hot features of K arms are K × K numbers"),
        (["--arms", "0"], "--arms 0 must be a whole number of at least 1"),
        (["--gap", "nan"], "--gap nan must be finite"),
        (["--means", "nan", "1"], "--means nan 1.0 must be a list of finite numbers"),
    ],
)
def test_wrong_one_hot_arms_are_named(capsys, arguments, said):
    assert main(["simulate", "--instance", "one-hot", "--horizon", "20", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_theta_must_fit_the_file(capsys, tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("a,b\n0,1\n1,0\n")
    assert main(["simulate", "--arms-file", str(path), "--theta", "1"]) == 2
    assert "--theta has 1 numbers for 2 features of" in capsys.readouterr().err


def test_one_arm_is_played_with_a_warning(capsys):
    arguments = ["--instance", "one-hot", "--arms", "1", "--horizon", "20", "--replications", "2"]
    assert main(["simulate", *arguments]) == 0
    assert "warning: no arm differs from another" in capsys.readouterr().err


def test_wrong_is_left_open_for_a_policy_that_never_declares(capsys):
    shown = run(capsys, "--policy", "uniform")
    assert shown.splitlines()[-1].split()[-5:-1] == ["0.0", "%", "–", "never"]
    assert report(capsys, "--policy", "uniform")["policies"][0]["wrong"] is None


def test_a_number_that_is_not_whole_is_refused_by_the_parser(capsys):
    with pytest.raises(SystemExit):
        main(["simulate", "--horizon", "1.5"])
    assert "'1.5' is not a whole number" in capsys.readouterr().err


def test_a_missing_theta_is_asked_for(capsys, tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("a,b\n0,1\n1,0\n")
    assert main(["simulate", "--arms-file", str(path)]) == 2
    assert "give --theta" in capsys.readouterr().err


def test_nothing_is_drawn_where_nobody_is_watching(capsys):
    assert main(["simulate", *FAST]) == 0
    assert capsys.readouterr().err == ""


def test_a_terminal_sees_a_bar(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["simulate", *FAST]) == 0
    drawn = capsys.readouterr().err
    assert "sbe" in drawn
    assert "100%" in drawn


def test_what_would_take_for_ever_is_refused_with_the_time_it_would_take(capsys):
    arguments = ["simulate", "--policy", "linucb", "--horizon", "1e17", "--replications", "2"]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert re.search(r"with 2 replications would take linucb about [\d,]+ years; lower one of them", said)
    # Phases that double are few, however many rounds there are.
    assert main(["simulate", "--policy", "sbe", "--horizon", "1e15", "--replications", "2"]) == 0


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        (lambda rounds: 0.01 + 1e-8 * rounds, 1e4),  # what a run costs anyway hides the rounds at first
        (lambda rounds: 1e-5 * rounds, 1e7),
        (lambda rounds: 0.01 * math.log(rounds), 0.01 * math.log(1e12)),
    ],
    ids=["cheap rounds", "costly rounds", "phases"],
)
def test_the_time_of_a_long_run_is_foreseen_from_short_ones(taken, expected, monkeypatch):
    monkeypatch.setattr("inside.cli.seconds_of", lambda _policy, _place, rounds: taken(rounds))
    assert expected_seconds(None, None, 10**12) == pytest.approx(expected, rel=0.25)


LONG_STUDY = """
horizon = 1_000_000_000_000
shifts = ["none"]
[policies.a]
kind = "linucb"
delta = 0.95
[instances.two]
kind = "one-hot"
means = [0.0, 1.0]
"""


def test_a_study_that_would_take_for_ever_is_refused_unless_that_is_wanted(capsys, monkeypatch, tmp_path):
    spec = tmp_path / "study.toml"
    spec.write_text(LONG_STUDY)
    trial = "orthobandit.cli._durations.seconds_of"
    monkeypatch.setattr(trial, lambda _policy, _environment, rounds: 1e-6 * rounds)
    command = ["sweep", str(spec), "--out", str(tmp_path / "out"), "--jobs", "1"]
    assert main(command) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "the study would take about 231 days with --jobs 1: policies a, each 20 runs of 1,000,000,000" in said
    )
    assert "delta 0.95 of a lets claims be wrong with probability 0.95" in said
    monkeypatch.setattr("orthobandit.cli.study.run_study", lambda *_, **__: pytest.fail("it runs"))
    with pytest.raises(pytest.fail.Exception, match="it runs"):
        main([*command, "--yes"])


def test_a_delta_that_is_meant_as_its_complement_is_warned_of(capsys):
    assert main(["simulate", *FAST, "--policy", "sbe", "--delta", ".95"]) == 0
    assert "of sbe lets claims be wrong with probability 0.95" in capsys.readouterr().err
    assert main(["simulate", *FAST, "--policy", "sbe", "--delta", ".5"]) == 0
    assert capsys.readouterr().err == ""


SCRIPT = "import sys; from orthobandit.cli import main; sys.exit(main())"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals differ")
def test_after_ctrl_c_the_same_command_goes_on(tmp_path):
    parts = tmp_path / "parts"
    arguments = ["simulate", "--shift", "push-leader", "--horizon", "300000", "--replications", "4000"]
    arguments += ["--gap", "0.001", "--resume", str(parts)]
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", SCRIPT, *arguments], stderr=subprocess.PIPE, env=os.environ
    )
    while process.poll() is None and not list(parts.glob("*/part-*.json")):
        time.sleep(0.05)
    process.send_signal(2)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130
    assert said == "stopped on the way; run the same command again to go on\ninterrupted\n"
    kept = [RunResult.read(path) for path in parts.glob("*/part-*.json")]
    done = RunResult.merge(kept)
    assert 0 < done.replications.size < 4000
    assert not list(Path(parts).glob("*/.part*"))
